"""What is watched, above what the node panel says of its node."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gviz.tui.lines import Line, line, wrapped


def watch_lines(watching: Sequence[tuple[str, str]], width: int) -> Iterator[Line]:
    """One line for each expression and its value, and a rule below; nothing if nothing is watched."""
    for expression, value in watching:
        yield from wrapped(line((expression, "key"), " = ", (value, "value")), width, 2)
    if watching:
        yield line(("─" * width, "muted"))

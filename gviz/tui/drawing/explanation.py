"""An explanation as lines: facts, what they rest on below them, each with its event."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gviz.tui.lines import TIED, Line, line, link, wrapped


def explanation_lines(rows: Sequence[tuple[int, str, int]], width: int) -> Iterator[Line]:
    """The rows of `gviz.explain.finding.lines`, broken to a width; events lead to their moment."""
    for depth, said, event in rows:
        where = [(f"  event{TIED}{event}", link("key", event))] if event else []
        yield from wrapped(line("  " * depth, (said, "" if depth else "title"), *where), width, 2 * depth + 2)

"""What is watched: as lines above what the node panel says, and as rows of a panel."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from gviz.plain_text import shown
from gviz.tui.lines import Line, fitted, line, wrapped

EMPTY = "nothing is watched: w asks for an expression"
COLUMN = 20
"""Cells of the column of expressions, at most."""


def watch_lines(watching: Sequence[tuple[str, str]], width: int) -> Iterator[Line]:
    """One line for each expression and its value, and a rule below; nothing if nothing is watched."""
    for expression, value in watching:
        yield from wrapped(line((expression, "key"), " = ", (value, "value")), width, 2)
    if watching:
        yield line(("─" * width, "muted"))


def watch_rows(watching: Sequence[tuple[str, str]], before: Mapping[str, str], width: int) -> list[tuple[Line, int]]:
    """A row for each expression, and its number (0: none); ``^`` marks what is not as it was at the stop before."""
    if not watching:
        return [(row, 0) for row in wrapped(line((EMPTY, "muted")), width)]
    room = min(max(len(shown(expression)) for expression, _ in watching) + 1, COLUMN, max(width // 2, 4))
    return [
        (_row(expression, value, room, changed=before.get(expression, value) != value), number)
        for number, (expression, value) in enumerate(watching, 1)
    ]


def _row(expression: str, value: str, room: int, *, changed: bool) -> Line:
    return line((fitted(shown(expression), room), "key"), ("^ " if changed else "  ", "sum"), (shown(value), "value"))

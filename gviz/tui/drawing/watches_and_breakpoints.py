"""The lists of watched expressions and of breakpoints, which share one line while both are empty.

Each row comes with its number. `gviz.tui.widgets.list_panels` uses it to choose the row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile

from gviz.tui.breakpoints import BreakpointEntry, Breakpoints, entry_text
from gviz.tui.glyphs import Glyphs
from gviz.tui.styled_lines import Line, cells, columns, fitted, line, wrapped
from gviz.values.plain_text import abridged, shown

EMPTY = "No watches. w: add one"
NOTHING_SET = "No watches (w) · No breakpoints (b)"
"""Replaces both lists while they share one line."""
COLUMN = 20
"""The largest width of the column of expressions, in cells, unless the values leave more."""


def watch_lines(watching: Sequence[tuple[str, str]], width: int) -> Iterator[Line]:
    """Yield one line for each expression and its value, and a rule below; nothing without watches."""
    for expression, value in watching:
        yield from wrapped(line((expression, "key"), " = ", (value, "value")), width, 2)
    if watching:
        yield line(("─" * width, "muted"))


def watch_rows(watching: Sequence[tuple[str, str]], before: Mapping[str, str], width: int) -> list[tuple[Line, int]]:
    """Return a row for each expression, with its number (0: none); ``^`` marks a value that has just changed."""
    if not watching:
        return [(row, 0) for row in wrapped(line((EMPTY, "muted")), width)]
    longest, values = (max(map(len, map(shown, texts))) for texts in zip(*watching, strict=True))
    room = min(longest + 1, max(min(COLUMN, width // 2), width - values - len("^ "), 4))
    return [
        (_watch_row(expression, value, room, changed=before.get(expression, value) != value), number)
        for number, (expression, value) in enumerate(watching, 1)
    ]


def _watch_row(expression: str, value: str, room: int, *, changed: bool) -> Line:
    name = abridged(expression, max(room - 1, 1))  # the middle is cut: the ends distinguish parameters of a model
    return line((fitted(name, room), "key"), ("^ " if changed else "  ", "sum"), (shown(value), "value"))


COUNTED = 100_000
"""Hits are counted for events up to this one; counting beyond it would delay a key too long."""
SO_FAR = " so far"


def break_rows(breakpoints: Breakpoints, n: int, glyphs: Glyphs, width: int) -> list[tuple[Line, int]]:
    """Return a row for each breakpoint, with its number (0: none)."""
    if not breakpoints.listed:
        text = "No breakpoints. b: set one here"
        return [(row, 0) for row in wrapped(line((text, "muted")), width)]
    return [(_break_row(one, n, glyphs, width), one.number) for one in breakpoints.listed]


def _break_row(one: BreakpointEntry, n: int, glyphs: Glyphs, width: int) -> Line:
    """Return its place and its number of hits; a place that is too long is cut, the number is not."""
    mark = glyphs.stop if one.enabled else glyphs.nothing
    what = line((f"{mark} ", "error" if one.enabled else "muted"), entry_text(one))
    if n > COUNTED:
        return what
    hits = sum(1 for _ in takewhile(lambda hit: hit.n <= n, one.after(0)))
    unknown = one.unknown_count(n)
    times = f"  {hits} hit{'' if hits == 1 else 's'}" + (f", {unknown} unknown" if unknown else "")
    if cells(what) + len(times) + len(SO_FAR) <= width:
        return (*what, (times + SO_FAR, "muted"))
    return columns(what, line((times.strip(), "muted")), width, glyphs.cut)

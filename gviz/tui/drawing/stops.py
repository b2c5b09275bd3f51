"""The breakpoints as rows: whether each is on, what it stops at, and how often it has by now."""

from __future__ import annotations

from itertools import takewhile

from gviz.tui.breakpoint import Listed
from gviz.tui.breakpoints import Breakpoints
from gviz.tui.commands.stopping import described
from gviz.tui.glyphs import Glyphs
from gviz.tui.lines import Line, cells, columns, line, wrapped

COUNTED = 100_000
"""Hits are counted as they go by up to this event; beyond it that takes longer than a key may."""
SO_FAR = " so far"


def break_rows(breakpoints: Breakpoints, n: int, glyphs: Glyphs, width: int) -> list[tuple[Line, int]]:
    """A row for each breakpoint, and its number (0: none)."""
    if not breakpoints.listed:
        said = "no breakpoints: b sets one, :break on nan too"
        return [(row, 0) for row in wrapped(line((said, "muted")), width)]
    return [(_row(one, n, glyphs, width), one.number) for one in breakpoints.listed]


def _row(one: Listed, n: int, glyphs: Glyphs, width: int) -> Line:
    """What it stops at and how often it has; of a place that is too long the end is missing, never of the number."""
    mark = glyphs.stop if one.enabled else glyphs.nothing
    what = line((f"{mark} ", "error" if one.enabled else "muted"), described(one))
    if n > COUNTED:
        return what
    hits = sum(1 for _ in takewhile(lambda hit: hit.n <= n, one.after(0)))
    untold = one.untold(n)
    times = f"  {hits} hit{'' if hits == 1 else 's'}" + (f", {untold} not known" if untold else "")
    if cells(what) + len(times) + len(SO_FAR) <= width:
        return (*what, (times + SO_FAR, "muted"))
    return columns(what, line((times.strip(), "muted")), width, glyphs.cut)

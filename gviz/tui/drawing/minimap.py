"""The overview: one row that shows the whole graph from its first row to its last, with a thick line where the view is.

    ━━━━━━━━━━━━━━━━►──────────x───○───◆────────────────!─   ◆ selected  ► now  ! nan, inf  x cut  ○ no gradient

A cell represents some rows of the graph. If several marks are in one cell, the most important one is shown there, and
another one in the next cell if that is free.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from gviz.render.boxes.node_states import bad_numbers, cuts, has_failed, has_no_gradient
from gviz.trace.node_gradients import in_its_iteration
from gviz.trace.timeline import Moment, Timeline
from gviz.tui.glyphs import Glyphs
from gviz.tui.styled_lines import Line, Span, cells, line


@dataclass(frozen=True, slots=True)
class Sign:
    """A mark of the overview: its character, its style, and its meaning."""

    text: str
    style: str
    meaning: str


SIGNS: Mapping[str, Sign] = {
    "selected": Sign("◆", "key", "selected"),
    "now": Sign("►", "now", "now"),
    "bad": Sign("!", "error", "nan, inf"),
    "cut": Sign("x", "sum", "cut"),
    "missing": Sign("○", "sum", "no gradient"),
}
"""The marks, the most important first."""

MOST_NODES = 3000
"""In a drawing with more nodes, no marks of values are searched."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A node that is marked, and the row of its box."""

    row: int
    node: int


@dataclass(frozen=True, slots=True)
class Overview:
    """The rows of the whole graph, the rows in view, and the marks by their name in `SIGNS`."""

    height: int
    view: range
    marks: Mapping[str, tuple[Mark, ...]]


def cut_nodes(timeline: Timeline, nodes: Iterable[int]) -> frozenset[int]:
    """Return the nodes at which autograd stops tracking a value that requires a gradient."""
    return frozenset(node for node in nodes if cuts(timeline, timeline.info(node)))


def marked_nodes(
    timeline: Timeline, moment: Moment, nodes: Sequence[int], cut: Collection[int]
) -> Mapping[str, Sequence[int]]:
    """Return the nodes with nan or inf at a moment, those that `cut` the graph, and leaves without a gradient.

    The program wrote the infinities of a mask on purpose: they do not count.
    """
    after_pass = any(end <= moment.n for end in timeline.pass_ends(timeline.iteration_at(moment.n)))
    marks: dict[str, list[int]] = {"bad": [], "cut": [], "missing": []}
    for node, recorded in zip(nodes, moment.states(nodes), strict=True):
        state = in_its_iteration(timeline, moment.n, recorded)
        if state is None:
            continue
        info = timeline.info(node)
        if has_failed(node, state, moment) or bad_numbers(timeline, info, state):
            marks["bad"].append(node)
        if node in cut:
            marks["cut"].append(node)
        if has_no_gradient(info, state, after_pass=after_pass):
            marks["missing"].append(node)
    return marks


def overview_line(overview: Overview, width: int, glyphs: Glyphs) -> Line:
    """Return the row: the graph, and the meaning of the marks in it if that leaves enough room."""
    meanings = _meanings(overview, width, glyphs)
    room = graph_cells(overview, width, glyphs)
    first, last = (cell_of(row, overview.height, room) for row in (overview.view.start, overview.view.stop - 1))
    row = [(glyphs.past, "brand") if first <= at <= last else (glyphs.future, "muted") for at in range(room)]
    for at, (name, _) in placed_marks(overview, room).items():
        row[at] = (glyphs.text(SIGNS[name].text), SIGNS[name].style)
    return line(" ", *row, " ", *meanings)


def placed_marks(overview: Overview, room: int) -> dict[int, tuple[str, Mark]]:
    """Return the mark in each cell that has one, with its name."""
    placed: dict[int, tuple[str, Mark]] = {}
    for name in SIGNS:
        for mark in overview.marks.get(name, ()):
            at = cell_of(mark.row, overview.height, room)
            for cell in (at, at + 1, at - 1):
                if 0 <= cell < room and placed.setdefault(cell, (name, mark))[0] == name:
                    break
    return placed


def graph_cells(overview: Overview, width: int, glyphs: Glyphs) -> int:
    """Return how many cells represent the graph; the first of them is the second cell of the row."""
    return max(width - 2 - cells(_meanings(overview, width, glyphs)), 1)


def _meanings(overview: Overview, width: int, glyphs: Glyphs) -> Line:
    spans: list[Span] = []
    for name, sign in SIGNS.items():
        if overview.marks.get(name):
            spans += [(" ", ""), (glyphs.text(sign.text), sign.style), (f" {sign.meaning} ", "muted")]
    return line(*spans) if cells(tuple(spans)) * 2 <= width else ()


def cell_of(row: int, height: int, room: int) -> int:
    """Return the cell that represents a row of the graph; the last one for a row below the graph."""
    return min(row * room // height, room - 1)


def row_of(cell: int, height: int, room: int) -> int:
    """Return the first row of the graph that a cell represents."""
    return -(-cell * height // room)

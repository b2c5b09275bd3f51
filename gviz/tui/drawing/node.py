"""The node panel: what `gviz.explain.panel` says about one node at one moment, always in the same order."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gviz.explain.names import called
from gviz.explain.panel import SECTIONS, Fact, NodeView, Part
from gviz.explain.tracking import as_at
from gviz.plain_text import clipped_name, shown
from gviz.trace.gradients import in_its_iteration
from gviz.trace.moment import Moment
from gviz.trace.state import NodeInfo, NodeState
from gviz.trace.timeline import Timeline
from gviz.tui.drawing.beside import differences, shares_beside
from gviz.tui.drawing.failure import failure_lines
from gviz.tui.glyphs import Glyphs
from gviz.tui.lines import TIED, Line, Span, cells, columns, cut, labelled, line, link, wrapped
from gviz.value_text import SOME
from gviz.values import Value

if TYPE_CHECKING:
    from gviz.rerun.branch import BranchView

COLUMNS = {"used by": 8, "grad in": 8, ".grad": 8, "at": 3, "in module": 10}
"""Where the text of a row begins, behind its label; of any other section at `COLUMN`."""
COLUMN = 7
ELEMENTS = 1000
"""An array of more elements is not written out, not even in full."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What the panel is about, and how it is to be drawn. `full` asks for every digit and statistic."""

    timeline: Timeline
    moment: Moment
    node: int
    width: int
    glyphs: Glyphs
    full: bool = False
    beside: BranchView | None = None

    @property
    def info(self) -> NodeInfo:
        """How the node was made."""
        return self.timeline.info(self.node)

    @property
    def state(self) -> NodeState | None:
        """The node at the moment; None before it is born."""
        return in_its_iteration(self.timeline, self.moment.n, self.moment.state(self.node))


def node_lines(subject: Subject) -> Iterator[Line]:
    """The whole panel."""
    yield from failure_lines(subject.timeline, subject.moment, subject.width)
    if not subject.node:
        yield from _nothing(subject)
        return
    yield _header(subject)
    view = _view(subject)
    for section in SECTIONS:
        for fact in section.facts(view):
            yield from _drawn(subject, section.name, fact)
        if section.name == "value":
            yield from _what_if(subject)


def _view(subject: Subject) -> NodeView:
    timeline, moment, node = subject.timeline, subject.moment, subject.node
    branch = shares_beside(subject.beside, node, moment.n)
    return NodeView(timeline, moment, node, subject.state, subject.full, subject.width - 3, branch)


def _nothing(subject: Subject) -> Iterator[Line]:
    if not subject.timeline.nodes and subject.timeline.growing:
        text = "starting: nothing yet"
    elif not subject.timeline.nodes:
        text = "this recording holds no tensors: the program made none while it was recorded"
    else:
        text = "no node is concerned here: s goes one event on, j selects a node"
    yield from wrapped(line((text, "muted")), subject.width)


_WORTH_CUTTING = 5
"""Cells in which the beginning of a word still says something."""


def _header(subject: Subject) -> Line:
    info = as_at(subject.info, subject.state)
    if info.created.kind == "op":
        right = shown(info.op.grad_fn) if info.created.requires_grad else ""
    else:
        right = info.created.kind if info.name else ""
    left = line((clipped_name(called(info), 60), "title"), (f"  #{info.node}", "muted"))
    room = max(subject.width - cells(left) - 1, 0)
    called_so = cut(line((right, "muted")), room, subject.glyphs.cut) if room >= _WORTH_CUTTING else ()
    return columns(left, called_so, subject.width, subject.glyphs.cut)


def _drawn(subject: Subject, section: str, fact: Fact) -> Iterator[Line]:
    """A row as one section is drawn: behind its label, below it, or as an equation."""
    spans, width = [_span(part) for part in fact.parts], subject.width
    if fact.further:
        yield from _further(fact, width)
    elif section == "to be made":
        yield from wrapped(line(*spans, " (t goes there)"), width)
    elif section == "formula":
        yield from wrapped(line("  ", *spans), width, 4)
    elif section == "to":
        yield from wrapped(line((fact.name, "key"), ": ", *spans), width, 3)
    else:
        more = _elements(subject, fact.about) if section == "value" and subject.full else ()
        yield from labelled(fact.name, [*spans, *more], width, COLUMNS.get(section, COLUMN))


def _span(part: Part) -> Span:
    """The number of an event stays with its word, ``(2 of 2)`` on one row, and that of a matrix where it has room."""
    tied = _TOGETHER.sub(lambda found: found[0].replace(" ", TIED), part.text)
    return tied, link(part.style, part.event)


_TOGETHER = re.compile(r"^event \d+$|\[[^][]*\]|\(\d+ of \d+\)")


def _further(fact: Fact, width: int) -> Iterator[Line]:
    """A row below the one it belongs to, closer together where only that lets it stay one."""
    name = f"{fact.name} " if fact.name else ""
    wide = line(("   " + name, "muted"), *map(_span, fact.parts))
    closer = [part._replace(text=part.close) if part.close else part for part in fact.parts]
    close = line((" " + name, "muted"), *map(_span, closer))
    yield from wrapped(close if cells(close) <= width < cells(wide) else wide, width, 3)


def _elements(subject: Subject, output_nr: int) -> Iterator[Span]:
    """All elements of a small array; a larger one says where they are."""
    state = subject.state
    value = state.outputs[output_nr].value if state is not None else None
    if value is not None:
        yield from _written_out(subject.timeline, value)


def _written_out(timeline: Timeline, value: Value) -> Iterator[Span]:
    array = timeline.array(value)
    if array is None:
        yield "  elements not stored", "muted"
    elif array.size > ELEMENTS:
        yield f"  {array.size} elements, the first: {array.reshape(-1)[:8].tolist()}", "muted"
    elif array.size > SOME:
        yield f"  {array.tolist()}", "value"


def _what_if(subject: Subject) -> Iterator[Line]:
    for at, text in enumerate(differences(subject.timeline, subject.beside, subject.node, subject.moment.n)):
        yield from labelled("" if at else "what if", [(text, "sum")], subject.width, 8)

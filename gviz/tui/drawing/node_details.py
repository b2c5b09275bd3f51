"""The node panel: what `gviz.explain.node_facts` knows about one node at one moment, always in the same order.

At a failure of the program, cause and fix come first. If a number was changed (``whatif``), the numbers of the branch
are next to the recorded ones: ``value 9 → 25``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gviz.events import NodeCreated
from gviz.explain.display_names import called, label, with_mode
from gviz.explain.event_description import description
from gviz.explain.failed_call import first_input
from gviz.explain.formula import is_small
from gviz.explain.node_facts import SECTIONS, Fact, NodeView, Part, Section
from gviz.explain.outgoing_gradients import OutgoingGradient, outgoing_gradients
from gviz.explain.program_errors import failure_at
from gviz.explain.tracking import as_at
from gviz.trace.graph_state import NodeInfo, NodeState
from gviz.trace.node_gradients import in_its_iteration
from gviz.trace.timeline import Moment, Timeline
from gviz.tui.drawing.training_summary import BranchMoment, after_pass, beginning, nonfinite_lines, overview
from gviz.tui.glyphs import Glyphs, glyphs, wants_ascii
from gviz.tui.styled_lines import TIED, Line, Span, cells, columns, cut, labelled, line, link, plain, wrapped
from gviz.values.plain_text import clipped_name, shown
from gviz.values.value import Value
from gviz.values.value_text import SOME, elements_text, or_unknown, short

if TYPE_CHECKING:
    from gviz.rerun.branch import BranchView

COLUMNS = {"used by": 8, "incoming": 9, ".grad": 8, "at": 3, "in module": 10}
"""Where the text of a row begins, after its label; in all other sections at `COLUMN`."""
COLUMN = 7
ELEMENTS = 1000
"""A larger array is not written out, even in full."""


@dataclass(frozen=True, slots=True)
class Subject:
    """The subject of the panel, and how to draw it.

    `full` shows every digit and statistic. `glance` shows the most important facts about the moment above the node.
    """

    timeline: Timeline
    moment: Moment
    node: int
    width: int
    glyphs: Glyphs
    full: bool = False
    branch_view: BranchView | None = None
    glance: bool = False

    @property
    def info(self) -> NodeInfo:
        """How the node was made."""
        return self.timeline.info(self.node)

    @property
    def state(self) -> NodeState | None:
        """The node at the moment; None before it is made."""
        return in_its_iteration(self.timeline, self.moment.n, self.moment.state(self.node))


def node_lines(subject: Subject) -> Iterator[Line]:
    """Yield the whole panel."""
    timeline, moment, width, glyphs = subject.timeline, subject.moment, subject.width, subject.glyphs
    failure_row = _failure_elsewhere(subject)
    if failure_row:
        yield failure_row
    else:
        yield from failure_lines(timeline, moment, width)
    if subject.glance:
        yield from overview(timeline, moment, subject.node, width, glyphs, _moment_of_branch(subject))
        yield from nonfinite_lines(timeline, moment, width)
    if not subject.node:
        yield from _nothing(subject)
        return
    yield _header(subject)
    view, there = _view(subject), _view_of_branch(subject)
    for section in SECTIONS:
        for fact in _facts(section, view, there, subject):
            yield from _drawn(subject, section.name, fact)
        if section.name == "value":
            yield from _unknown_in_branch(subject)
    if subject.glance:
        yield from after_pass(timeline, moment, width, glyphs, _moment_of_branch(subject))
        if failure_row:
            yield ()
            yield from failure_lines(timeline, moment, width)
        yield from beginning(timeline, moment, width, glyphs)


def _view(subject: Subject) -> NodeView:
    timeline, moment, node = subject.timeline, subject.moment, subject.node
    branch = branch_gradients(subject.branch_view, node, moment.n)
    return NodeView(timeline, moment, node, subject.state, subject.full, subject.width - 3, branch)


VALUES = frozenset({"formula", "value", "with"})
GRADIENTS = frozenset({"incoming", ".grad"})
"""Sections with numbers of a node, which are others in a what-if. The section of its rule compares by itself."""
_NUMBER_STYLES = frozenset({"value", "grad", "sum", "error"})


def _view_of_branch(subject: Subject) -> NodeView | None:
    """Return the node as it is in the branch, with the numbers of the branch; None if it has none there."""
    branch, n = subject.branch_view, subject.moment.n
    if branch is None or not branch.covers(n) or subject.node not in branch.branch.numbers:
        return None
    timeline, moment = branch.timeline, branch.timeline.at(branch.moment(n))
    node = branch.branch.numbers[subject.node]
    state = in_its_iteration(timeline, moment.n, moment.state(node))
    return None if state is None else NodeView(timeline, moment, node, state, subject.full, subject.width - 3)


def _moment_of_branch(subject: Subject) -> BranchMoment | None:
    """Return the recording of the branch, and its moment, if there is one."""
    branch, n = subject.branch_view, subject.moment.n
    return (branch.timeline, branch.moment(n)) if branch is not None and branch.covers(n) else None


def _facts(section: Section, view: NodeView, there: NodeView | None, subject: Subject) -> Iterator[Fact]:
    """Yield the facts of a section; in a what-if with the branch's numbers, or with the word "recorded"."""
    facts, branch, n = section.facts(view), subject.branch_view, subject.moment.n
    if section.name not in VALUES | GRADIENTS or branch is None or not branch.covers(n):
        return facts
    is_unknown = branch.is_unknown(subject.node, n)
    if is_unknown or (section.name in GRADIENTS and subject.node in branch.branch.unknown):
        return map(_as_recorded, facts)
    if section.name == "formula" and (words := set_by_user(branch, subject.node)):
        return (replace(fact, parts=(*fact.parts[:1], Part(f", {words}", "sum"), *fact.parts[1:])) for fact in facts)
    return facts if there is None else _compared(branch, [*facts], [*section.facts(there)])


def set_by_user(branch: BranchView, node: int) -> str:
    """Return ``set to 1 by you`` for a node whose value was set in a what-if: its formula gives the recorded value."""
    if node not in branch.branch.set_values or node not in branch.branch.numbers:
        return ""
    outputs = branch.timeline.info(branch.branch.numbers[node]).created.outputs
    few = [short(output.value) for output in outputs if output.value is not None and is_small(output.value)]
    return f"set to {', '.join(few)} by you" if len(few) == len(outputs) else "set by you"


def _as_recorded(fact: Fact) -> Fact:
    if not any(part.style in _NUMBER_STYLES for part in fact.parts) and fact.name:
        return fact
    return replace(fact, parts=(Part("recorded ", "muted"), *fact.parts))


def _compared(branch: BranchView, here: Sequence[Fact], there: Sequence[Fact]) -> Iterator[Fact]:
    """Yield facts with the numbers of the branch: ``9 → 25``. The links lead to events of the recording."""
    for at, fact in enumerate(there):
        old = here[at].parts if at < len(here) else ()
        new = [part._replace(text=branch.text(part.text), event=0) for part in fact.parts]
        if len(old) == len(new):
            new = [_both(*pair) for pair in zip(old, new, strict=True)]
        yield replace(fact, parts=tuple(new))


def _both(old: Part, new: Part) -> Part:
    """Return a part of the branch; a number with the recorded one in front of it."""
    if old.text == new.text:
        return old
    is_number = old.style in _NUMBER_STYLES and new.style in _NUMBER_STYLES
    return Part(f"{old.text} → {new.text.lstrip()}" if is_number else new.text, new.style, old.event)


def _nothing(subject: Subject) -> Iterator[Line]:
    if not subject.timeline.nodes and subject.timeline.growing:
        text = "Starting: no tensors yet (importing PyTorch can take a few seconds). Keys you press now are kept."
    elif not subject.timeline.nodes:
        text = "This recording has no tensors: the program made none while it was recorded"
    else:
        text = "No node at this event. s: next event · j: select a node"
    yield from wrapped(line((text, "muted")), subject.width)
    if subject.glance:
        yield from beginning(subject.timeline, subject.moment, subject.width, subject.glyphs)


_LEAST_CUT = 5
"""The fewest cells in which the beginning of a word is still readable."""


def _header(subject: Subject) -> Line:
    info = as_at(subject.info, subject.state)
    if info.created.kind == "op":
        right = shown(info.op.grad_fn) if info.created.requires_grad else ""
    else:
        right = info.created.kind if info.name else ""
    left = line((with_mode(clipped_name(called(info), 60), info), "title"), (f"  #{info.node}", "muted"))
    room = max(subject.width - cells(left) - 1, 0)
    kind = cut(line((right, "muted")), room, subject.glyphs.cut) if room >= _LEAST_CUT else ()
    return columns(left, kind, subject.width, subject.glyphs.cut)


def _drawn(subject: Subject, section: str, fact: Fact) -> Iterator[Line]:
    """Yield a fact in the form of its section: after its label, below it, or as an equation."""
    spans, width = [_span(part) for part in fact.parts], subject.width
    if fact.further:
        yield from _continuation(fact, width)
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
    """Return a part as a span; ``event 12``, ``(2 of 2)`` and matrices stay on one row, if it is wide enough."""
    tied = _TOGETHER.sub(lambda match: match[0].replace(" ", TIED), part.text)
    return tied, link(part.style, part.event)


_TOGETHER = re.compile(r"^event \d+$|\[[^][]*\]|\(\d+ of \d+\)")


def _continuation(fact: Fact, width: int) -> Iterator[Line]:
    """Yield a row below the one it belongs to, in a closer form if only that fits into one row."""
    name = f"{fact.name} " if fact.name else ""
    wide = line(("   " + name, "muted"), *map(_span, fact.parts))
    closer = [part._replace(text=part.close) if part.close else part for part in fact.parts]
    close = line((" " + name, "muted"), *map(_span, closer))
    yield from wrapped(close if cells(close) <= width < cells(wide) else wide, width, 3)


def _elements(subject: Subject, output_nr: int) -> Iterator[Span]:
    """Yield all elements of a small array, or the first ones of a larger one."""
    there = _view_of_branch(subject)
    timeline, state = (subject.timeline, subject.state) if there is None else (there.timeline, there.state)
    value = state.outputs[output_nr].value if state is not None else None
    if value is not None:
        yield from _written_out(timeline, value)


def _written_out(timeline: Timeline, value: Value) -> Iterator[Span]:
    array = timeline.array(value)
    if array is None:
        yield "  elements not stored", "muted"
    elif array.size > ELEMENTS:
        yield f"  {array.size} elements, the first: {elements_text(array.reshape(-1)[:8])}", "muted"
    elif array.size > SOME:
        yield f"  {elements_text(array)}", "value"


def _unknown_in_branch(subject: Subject) -> Iterator[Line]:
    branch, n = subject.branch_view, subject.moment.n
    if branch is not None and branch.covers(n) and branch.is_unknown(subject.node, n):
        yield from labelled("what if", [(UNKNOWN_IN_BRANCH, "sum")], subject.width, 8)


UNKNOWN_IN_BRANCH = "unknown: the branch stopped before it"


MESSAGE = 1200
"""A longer error message is cut: all of it is in the program's output."""


def failure_lines(timeline: Timeline, moment: Moment, width: int) -> Iterator[Line]:
    """Yield error, cause, fix, what led to it, and last the message, which is long; nothing without a failure."""
    if failure_at(timeline, moment.n) is None:
        return
    from gviz.explain.why import (
        diagnosis,  # imports every kind of finding: only after a failure, for a fast start
    )

    failure = diagnosis(timeline, moment)
    if failure is None:
        return
    at = f" at {label(timeline, failure.node)}" if failure.node else ""
    yield from wrapped(line((f"{failure.error}{at}", "error")), width)
    if failure.cause:
        yield from labelled("cause", [(failure.cause, "")], width)
    for what, seq in failure.related:
        yield from labelled("", [(f"{what}, ", "muted"), (f"event{TIED}{seq}", link("key", seq))], width)
    if failure.remedy:
        yield from labelled("fix", [(failure.remedy, "title")], width)
    for text in failure.message[:MESSAGE].splitlines():
        yield from wrapped(line(text), width)
    yield ()


def _failure_elsewhere(subject: Subject) -> Line:
    """Return a row that names the failure of another node than the one that the user has selected; else an empty row.

    The panel is about the selected node, and all about the failure is below it.
    """
    timeline, moment = subject.timeline, subject.moment
    failure = failure_at(timeline, moment.n) if subject.glance and subject.node else None
    if failure is None:
        return ()
    node = moment.actor or first_input(timeline, moment.n)
    if node in (0, subject.node):
        return ()
    return cut(line((f"{failure.error} at {label(timeline, node)}", "error")), subject.width, subject.glyphs.cut)


_NUMBER = 24


def what_if_title(branch_view: BranchView | None, n: int) -> str:
    """Return ``WHAT IF x = 5`` at moments that were run again; else an empty text."""
    return (
        f"WHAT IF {', '.join(map(shown, branch_view.changes))}"
        if branch_view is not None and branch_view.covers(n)
        else ""
    )


def event_text(timeline: Timeline, moment: Moment, branch_view: BranchView | None, room: int = 0) -> str:
    """Return a description of the event with the numbers of the branch; in front of recorded ones, ``recorded:``.

    In little `room` the most important numbers come first.
    """
    here = description(timeline, moment, room=room)
    if branch_view is None or not branch_view.covers(moment.n) or not any(map(str.isdigit, here)):
        return here
    again, node = branch_view.event(moment.n), moment.actor
    if not again or (node and (node in branch_view.branch.unknown or branch_view.is_unknown(node, moment.n))):
        return f"recorded: {here}"
    is_birth = isinstance(moment.event, NodeCreated) and moment.event.kind == "op"
    if is_birth and (words := set_by_user(branch_view, node)):
        return f"{here}; {words}"
    return branch_view.text(description(branch_view.timeline, branch_view.timeline.at(again), room=room))


def event_in_branch(timeline: Timeline, moment: Moment, branch_view: BranchView | None) -> str:
    """Return ``WHAT IF x = 5: 3 to #1 x``; empty where the event has the same numbers in the branch, or none."""
    text = event_text(timeline, moment, branch_view)
    is_other = text not in (here := description(timeline, moment), f"recorded: {here}")
    return f"{what_if_title(branch_view, moment.n)}: {text}" if is_other else ""


def differences(timeline: Timeline, branch_view: BranchView | None, node: int, n: int) -> list[str]:
    """Return the numbers that differ in the branch: ``value 9 → 25``; nothing without a branch."""
    if branch_view is None or not node or not branch_view.covers(n):
        return []
    (here,), (there,) = timeline.at(n).states([node]), branch_view.states([node], n)
    here = in_its_iteration(timeline, n, here)
    if here is None or there is None:
        return []
    if any(output.value is not None and not output.value.is_known for output in there.outputs):
        return [UNKNOWN_IN_BRANCH]
    return list(_differences(here, there))


def branch_gradients(branch_view: BranchView | None, node: int, n: int) -> dict[int, OutgoingGradient] | None:
    """Return the outgoing gradients of the node in the branch, by input slot; None without a branch.

    Gradients that are unknown in the branch are left out.
    """
    if branch_view is None or not branch_view.covers(n):
        return None
    there = branch_view.branch.numbers.get(node)
    if there is None or node in branch_view.branch.unknown:
        return {}
    moment = branch_view.timeline.at(branch_view.moment(n))
    if moment.state(there) is None:
        return {}
    gradients = outgoing_gradients(branch_view.timeline, moment, there)
    return {share.operand.slot: replace(share, numbers=branch_view.text(share.numbers)) for share in gradients}


def _differences(here: NodeState, there: NodeState) -> Iterator[str]:
    for nr, (old, new) in enumerate(zip(here.outputs, there.outputs, strict=False)):
        which = f" {nr}" if len(here.outputs) > 1 else ""
        pairs = {
            "value": (old.value, new.value),
            "incoming": (old.incoming, new.incoming),
            ".grad": (old.grad, new.grad),
        }
        texts = {name: (_text(before), _text(after)) for name, (before, after) in pairs.items()}
        yield from (f"{name}{which} {before} → {after}" for name, (before, after) in texts.items() if before != after)


def _text(value: Value | None) -> str:
    return "none" if value is None else or_unknown(short(value, _NUMBER), short(value))


def plain_panel(timeline: Timeline, n: int, node: int, width: int) -> Iterator[str]:
    """Yield the panel of a node in full, as plain text."""
    subject = Subject(timeline, timeline.at(n), node, width, glyphs(ascii=wants_ascii()), full=True)
    return (plain(line).rstrip() for line in node_lines(subject))

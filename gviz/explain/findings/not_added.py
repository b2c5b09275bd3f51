"""A ``.grad``, and what a pass has brought that is not in it."""

from __future__ import annotations

from dataclasses import replace

from gviz.events import BackwardFinished
from gviz.explain.contributions import contributions
from gviz.explain.finding import Finding
from gviz.explain.findings.gradient import gradient, the_pass
from gviz.explain.findings.written_grad import written
from gviz.explain.kind import Kind, Question
from gviz.explain.pass_starts import start_of_pass
from gviz.value_text import grad


def not_added(asked: Question) -> Finding | None:
    """A ``.grad`` to which the pass that reached the node last has not added: as it was made, and what has arrived."""
    pass_nr, output = _later_pass(asked), asked.output
    if output.grad is None or not pass_nr:
        return None
    then = asked.at(output.grad_seq)
    made = written(then) or gradient(then)
    parts = contributions(asked.timeline, output.parts)
    last = output.parts[-1].seq if parts else start_of_pass(asked.timeline, pass_nr)
    missing = Finding("incoming", _not_yet(asked, pass_nr), last, asked.node, parts)
    return replace(made, parts=(missing, *made.parts)) if made is not None else None


def _later_pass(asked: Question) -> int:
    """The pass of the node's state if it began after the ``.grad`` was set, else 0."""
    pass_nr = asked.state.pass_nr if asked.state is not None else 0
    return pass_nr if 0 < asked.output.grad_seq < start_of_pass(asked.timeline, pass_nr) else 0


def _not_yet(asked: Question, pass_nr: int) -> str:
    """What has arrived of a pass that has not added it, and why it has not."""
    timeline, parts = asked.timeline, asked.output.parts
    which = the_pass(timeline, pass_nr)
    arrived = f"{grad(asked.output.incoming)} has arrived in {which}"
    ends = timeline.select((BackwardFinished,), start_of_pass(timeline, pass_nr), asked.moment.n + 1)
    end = next((event for _, event in ends if event.pass_nr == pass_nr), None)
    if not parts:
        return f"{which} has {'not come to it yet' if end is None else 'brought nothing to it'}{_failed(end)}"
    if end is None:
        return f"{arrived}, and is not added yet"
    return f"{arrived}, and was not added{_failed(end) or ': this pass adds to no .grad'}"


def _failed(end: BackwardFinished | None) -> str:
    return ": it ended with an error" if end is not None and end.error else ""


NOT_ADDED = Kind(
    "not-added", "fact", "a .grad, and what a pass has brought that is not in it", ("gradient",), not_added
)

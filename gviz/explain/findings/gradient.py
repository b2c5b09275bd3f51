"""A gradient taken apart: what was there before, and what came over every edge."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gviz.events import BackwardFinished, BackwardStarted, GradFlowed, GradSet
from gviz.explain.accumulation import Accumulation, accumulation, passes_added
from gviz.explain.by_loss import by_loss
from gviz.explain.contributions import agreeing, contribution, contributions
from gviz.explain.finding import Finding
from gviz.explain.kind import Kind, Question
from gviz.explain.names import innermost, label, label_at
from gviz.explain.silent_uses import silent_uses
from gviz.numbers import grad, short
from gviz.trace.state import Contribution
from gviz.trace.timeline import Timeline
from gviz.values import Value

MOST_PASSES = 20
"""So many earlier passes are told one by one, the latest."""


def sent(asked: Question) -> Finding:
    """What the node sends at this very moment."""
    event = asked.moment.event
    assert isinstance(event, GradFlowed)
    return contribution(asked.timeline, Contribution(event.source, event.slot, event.part, asked.moment.n))


def assigned(asked: Question) -> Finding | None:
    """A ``.grad`` that the program has set, with what a pass had made of it before."""
    timeline, output = asked.timeline, asked.output
    event = timeline.event(output.grad_seq) if output.grad_seq else None
    if output.grad is None or not isinstance(event, GradSet):
        return None
    how = "changed in place" if event.how == "in place" else "set"
    text = f"the .grad of {label(timeline, asked.node)} was {how} by the program: {short(output.grad)}"
    return Finding("assigned", text, output.grad_seq, asked.node, tuple(_until(asked)), at=innermost(asked.info))


def _until(asked: Question) -> Iterator[Finding]:
    """The gradient of a pass that was there before the program set it."""
    last = _as_at(asked, asked.output.grad_seq - 1)
    made = last.output.grad_seq if last.state is not None and last.output.grad is not None else 0
    if made and not isinstance(asked.timeline.event(made), GradSet) and (found := gradient(_as_at(asked, made))):
        yield replace(found, text=f"before that, {found.text}", fix="")


def _as_at(asked: Question, n: int) -> Question:
    """The same question about an earlier moment."""
    moment = asked.timeline.at(n)
    return replace(asked, moment=moment, state=moment.state(asked.node))


def not_added(asked: Question) -> Finding | None:
    """A ``.grad`` to which the pass that reached the node last has not added: as it was made, and what has arrived."""
    pass_nr, output = _later_pass(asked), asked.output
    if output.grad is None or not pass_nr:
        return None
    then = _as_at(asked, output.grad_seq)
    made = assigned(then) or gradient(then)
    parts = contributions(asked.timeline, output.parts)
    last = output.parts[-1].seq if parts else _start(asked.timeline, pass_nr)
    missing = Finding("incoming", _not_yet(asked, pass_nr), last, asked.node, parts)
    return replace(made, parts=(missing, *made.parts)) if made is not None else None


def _later_pass(asked: Question) -> int:
    """The pass of the node's state if it began after the ``.grad`` was set, else 0."""
    pass_nr = asked.state.pass_nr if asked.state is not None else 0
    return pass_nr if 0 < asked.output.grad_seq < _start(asked.timeline, pass_nr) else 0


def _not_yet(asked: Question, pass_nr: int) -> str:
    """What has arrived of a pass that has not added it, and why it has not."""
    timeline, parts = asked.timeline, asked.output.parts
    which = _the_pass(timeline, pass_nr)
    arrived = f"{grad(asked.output.incoming)} has arrived in {which}"
    ends = timeline.select((BackwardFinished,), _start(timeline, pass_nr), asked.moment.n + 1)
    end = next((event for _, event in ends if isinstance(event, BackwardFinished) and event.pass_nr == pass_nr), None)
    if not parts:
        return f"{which} has {'not come to it yet' if end is None else 'brought nothing to it'}{_failed(end)}"
    if end is None:
        return f"{arrived}, and is not added yet"
    return f"{arrived}, and was not added{_failed(end) or ': this pass adds to no .grad'}"


def _failed(end: BackwardFinished | None) -> str:
    return ": it ended with an error" if end is not None and end.error else ""


def incoming(asked: Question) -> Finding | None:
    """What has arrived so far in a pass, as a sum."""
    timeline, output = asked.timeline, asked.output
    if output.grad is not None:
        return None
    missing = output.expected - len(output.parts)
    still = f", {missing} of {output.expected} contributions have not arrived yet" if missing > 0 else ""
    kept = "" if asked.info.created.kind != "op" else "; .grad keeps it only after retain_grad()"
    text = f"{label(timeline, asked.node)}: the gradient is {grad(output.incoming)}{still}{kept}"
    parts = contributions(timeline, output.parts)
    return Finding("incoming", text, output.parts[-1].seq, asked.node, parts, at=innermost(asked.info))


def gradient(asked: Question) -> Finding | None:
    """The ``.grad`` of a node as a sum."""
    timeline, node, output = asked.timeline, asked.node, asked.output
    if output.grad is None:
        return None
    silent = silent_uses(timeline, node, output.parts) if asked.info.created.kind != "op" else ()
    of_losses = by_loss(timeline, node, output.parts, output.incoming)
    parts = (*silent, *of_losses, *contributions(timeline, output.parts, output.incoming))
    text, at = f"{label(timeline, node)}: .grad is {grad(output.grad)}", innermost(asked.info)
    before = accumulation(timeline, node, output)
    if before is None:
        return Finding("gradient", text, output.grad_seq, node, parts, at=at)
    parts = (*_earlier(timeline, node, output.grad, output.grad_seq, before), *parts)
    fix = "zero_grad() before each backward, if the passes should not add up"
    return Finding("gradient", text, output.grad_seq, node, parts, fix, at)


def _earlier(timeline: Timeline, node: int, total: Value, seq: int, before: Accumulation) -> Iterator[Finding]:
    """What was there before the last pass, by pass where that is known."""
    passes = [(n, event.part, event.pass_nr) for n, event in passes_added(timeline, node, seq)[:-1]]
    for n, part, pass_nr in passes[-MOST_PASSES:] or [(before.event, before.before, before.since)]:
        since = f", from {_the_pass(timeline, pass_nr)}" if pass_nr else ""
        had = f"{grad(part)} was there before{since}, and nothing has cleared it"
        yield agreeing(timeline, Finding("accumulated", had, n, node), part, total)
    if len(passes) > MOST_PASSES:
        yield Finding("more", f"and from {len(passes) - MOST_PASSES} more passes before these")


def _start(timeline: Timeline, pass_nr: int) -> int:
    """The event with which a pass begins, 0 if it is not recorded."""
    return next((phase.start for phase in timeline.phases if pass_nr and phase.pass_nr == pass_nr), 0)


def _the_pass(timeline: Timeline, pass_nr: int) -> str:
    """``backward pass 1 of #7 loss = Mean at train.py:9``."""
    start = _start(timeline, pass_nr)
    started = timeline.event(start) if start else None
    roots = started.roots if isinstance(started, BackwardStarted) else ()
    return f"backward pass {pass_nr}" + (f" of {label_at(timeline, roots[0][0])}" if roots and roots[0][0] else "")


SENT = Kind("contribution", "fact", "what went over one edge, and the rule that made it", ("sent",), sent)
ASSIGNED = Kind("assigned", "fact", "a .grad that the program set itself", ("gradient",), assigned)
NOT_ADDED = Kind(
    "not-added", "fact", "a .grad, and what a pass has brought that is not in it", ("gradient",), not_added
)
INCOMING = Kind(
    "incoming", "fact", "the gradient of a pass in progress, as far as it has arrived", ("gradient",), incoming
)
GRADIENT = Kind("gradient", "fact", "a gradient as the sum of what came over every edge", ("gradient",), gradient)

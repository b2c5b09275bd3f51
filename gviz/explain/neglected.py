"""Gradients that nothing uses: of leaves that no step of an optimizer and no line of the program ever changes."""

from __future__ import annotations

from dataclasses import dataclass

from gviz.events import DataSet, GradAccumulated, GradCaptured, OptimizerStepped, StorageWritten
from gviz.explain.finding import Finding
from gviz.explain.names import innermost, label, label_at, made_at
from gviz.explain.pass_starts import pass_started
from gviz.explain.rewriting import update_in_place
from gviz.explain.trouble import line_text
from gviz.explain.ways import ancestors
from gviz.plain_text import clipped, shown
from gviz.trace.moment import Moment
from gviz.trace.state import NodeInfo
from gviz.trace.timeline import Timeline

_PASSES = 3
"""So many passes over a parameter are there to train it, and not to look at its gradient."""


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps of all optimizers by a moment: how many, the parameters they have, and those that never found any.

    `idle` are the last events of calls of ``step()`` that have found no gradient, any of the times.
    """

    count: int
    held: frozenset[int]
    idle: tuple[int, ...]


def has_stepped(timeline: Timeline, n: int) -> bool:
    """Whether an optimizer has stepped by event `n`."""
    return next(iter(timeline.select((OptimizerStepped,), 1, n + 1)), None) is not None


def steps_by(timeline: Timeline, n: int) -> Steps:
    """The steps of all optimizers up to event `n`."""
    return timeline.once(_steps_by, n)


def _steps_by(timeline: Timeline, n: int) -> Steps:
    steps = list(timeline.select((OptimizerStepped,), 1, n + 1))
    busy = {step.stack for _, step in steps if step.parameters}
    idle = {step.stack: seq for seq, step in steps if step.stack not in busy}
    held = frozenset(node for _, step in steps for node in (*step.parameters, *step.skipped))
    return Steps(len(steps), held, tuple(idle.values()))


def never_found(timeline: Timeline, n: int) -> frozenset[int]:
    """The parameters of steps that have found no gradient at all by event `n`, any of the times."""
    steps = (timeline.event(seq) for seq in steps_by(timeline, n).idle)
    return frozenset(node for step in steps if isinstance(step, OptimizerStepped) for node in step.skipped)


def next_step(timeline: Timeline, node: int, n: int) -> int:
    """The first step after event `n` of an optimizer that has a parameter; 0 if there is none."""
    steps = timeline.select((OptimizerStepped,), n + 1)
    return next((seq for seq, step in steps if node in step.parameters or node in step.skipped), 0)


def all_frozen(moment: Moment, step: OptimizerStepped) -> bool:
    """Whether a step that ends at a moment found parameters, and none of them requires a gradient."""
    return bool(step.skipped) and not any(state and state.requires_grad for state in moment.states(step.skipped))


def why_nothing(moment: Moment, step: OptimizerStepped) -> str:
    """Why a step that ends at a moment had nothing to do: ``all of its 2 parameters are frozen``."""
    count = len(step.skipped)
    if not count:
        return "none of its parameters is used in what is recorded, so no gradient comes to them"
    if all_frozen(moment, step):
        return f"all of its {count} parameters are frozen" if count > 1 else "its parameter is frozen"
    return f"none of its {count} parameters has a gradient" if count > 1 else "its parameter has no gradient"


def neglected(timeline: Timeline, node: int, n: int) -> Finding | None:
    """That by event `n` nothing has ever used the gradients of a leaf to change it, None if something has.

    It is suspected where they may be wanted for their own sake.
    """
    added = _added(timeline, node, n)
    if not added:
        return None
    steps, info = steps_by(timeline, n), timeline.info(node)
    if node in steps.held or _is_a_loss(timeline, node, added[0][1]):
        return None
    if info.created.kind != "parameter" and (_is_asked_for(timeline, node, n) or _is_copy(timeline, node, steps)):
        return None
    if steps.count:
        return _unheld(timeline, info, added, steps)
    if not _is_of_a_loop(timeline, [event for _, event in added]):
        return None
    recomputed = _recomputed(timeline, info, added[0][0])
    return _never_stepped(timeline, info, added) if recomputed is None else recomputed


def _is_asked_for(timeline: Timeline, node: int, n: int) -> bool:
    """Whether the program takes derivatives by a leaf itself: an input, whose ``.grad`` is of no use to it."""
    return any(isinstance(timeline.event(seq), GradCaptured) for seq in timeline.events_of(node) if seq <= n)


def _is_copy(timeline: Timeline, node: int, steps: Steps) -> bool:
    """Whether a leaf was made of what an optimizer has: the way back to that is cut, which is another finding."""
    return not steps.held.isdisjoint(ancestors(timeline, node))


def _added(timeline: Timeline, node: int, n: int) -> list[tuple[int, GradAccumulated]]:
    """What passes have added to the ``.grad`` of a leaf by event `n`; nothing if it was changed after the first."""
    added = []
    for seq in timeline.events_of(node):
        if seq > n:
            break
        event = timeline.event(seq)
        if isinstance(event, GradAccumulated):
            added.append((seq, event))
        elif added and isinstance(event, StorageWritten | DataSet):
            return []
    return added


def _is_a_loss(timeline: Timeline, node: int, first: GradAccumulated) -> bool:
    """Whether the pass began at the leaf itself: no parameter that an optimizer lacks, but a loss without a history."""
    started = pass_started(timeline, first.pass_nr)
    return started is not None and any(root == node for root, _ in started.roots)


def _unheld(
    timeline: Timeline, info: NodeInfo, added: list[tuple[int, GradAccumulated]], steps: Steps
) -> Finding | None:
    """Optimizers step, but with others: certainly by mistake if one of them finds nothing to do."""
    name, seq = label(timeline, info.node), added[0][0]
    if not steps.idle:
        if info.created.kind != "parameter" and not _piles_up(timeline, [event for _, event in added]):
            return None
        text = f"{name} gets a gradient, but no optimizer has updated it"
        held = "make the optimizer of all parameters() of the model as it stays (layers in a list: nn.ModuleList)"
        if info.created.kind != "parameter":
            held = "make it an nn.Parameter of the model, so that parameters() has it for the optimizer"
        fix = f"{held}, or freeze it with requires_grad_(False)"
        return Finding("never-stepped", text, seq, info.node, (), fix, innermost(info), suspected=True)
    step = timeline.event(steps.idle[-1])
    assert isinstance(step, OptimizerStepped)
    frames, kind = timeline.stack(step.stack), shown(step.kind)
    text = f"{name} gets a gradient, but no optimizer holds it"
    others = f"{label_at(timeline, step.skipped[0])} and others" if step.skipped else "other parameters"
    idle = f"the step of {kind}{made_at(frames)} found no gradient: it holds {others}"
    at = frames[0] if frames else None
    fix = "make the optimizer after the model is as it stays, of that model's parameters()"
    parts = (Finding("idle", idle, steps.idle[-1], at=at),)
    return Finding("never-stepped", text, seq, info.node, parts, fix, innermost(info))


def _piles_up(timeline: Timeline, added: list[GradAccumulated]) -> bool:
    """Whether a loop has added to a gradient again and again that nothing cleared, as who looks at it would."""
    uncleared = all(event.value is not None for event in added[1:])
    return len(added) >= _PASSES and uncleared and _is_of_a_loop(timeline, added)


def _is_of_a_loop(timeline: Timeline, added: list[GradAccumulated]) -> bool:
    """Whether the last two passes were called by one line, as a loop of training calls them."""
    return len(added) > 1 and len({_called(timeline, event.pass_nr) for event in added[-2:]} - {0}) == 1


def _called(timeline: Timeline, pass_nr: int) -> int:
    started = pass_started(timeline, pass_nr)
    return started.stack if started is not None else 0


def _recomputed(timeline: Timeline, info: NodeInfo, seq: int) -> Finding | None:
    """An update that makes a new tensor of the leaf and its gradient, which nothing uses."""
    update = next((user for user in _updates(timeline, info.node) if not timeline.nodes.users(user.node)), None)
    if update is None:
        return None
    at, name = innermost(update), shown(update.name)
    text = f"{label(timeline, info.node)} gets a gradient, but stays as it was: its update makes a new tensor"
    made = f"{label_at(timeline, update.node)} is that tensor, and nothing uses it"
    in_place = update_in_place(line_text(timeline, at), update.name)
    fix = f"with torch.no_grad(): {clipped(in_place, 80)}" if in_place else f"with torch.no_grad(): {name or 'it'} -= …"
    parts = (Finding("recomputed", made, update.born, update.node, at=at),)
    return Finding("never-stepped", text, seq, info.node, parts, fix, at)


def _updates(timeline: Timeline, node: int) -> list[NodeInfo]:
    """What was computed of a leaf and its latest gradient."""
    owners = timeline.nodes.origins.gradient_of
    latest = [timeline.nodes[place] for place in (owners == node).nonzero()[0][-1:].tolist()]
    scaled = {user for gradient in latest for user in timeline.nodes.users(gradient)}
    made = map(timeline.info, sorted({*scaled, *(user for one in scaled for user in timeline.nodes.users(one))}))
    return [info for info in made if node in {source for source, _ in info.created.inputs}]


def _never_stepped(timeline: Timeline, info: NodeInfo, added: list[tuple[int, GradAccumulated]]) -> Finding | None:
    if info.created.kind != "parameter" or len(added) < _PASSES:
        return None  # it may be there to look at its gradient
    text = f"{label(timeline, info.node)} got gradients in {len(added)} passes, and nothing has ever updated it"
    fix = "optimizer.step() after backward(), if it is to learn"
    return Finding("never-stepped", text, added[0][0], info.node, (), fix, innermost(info), suspected=True)

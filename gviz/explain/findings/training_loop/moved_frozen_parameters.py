"""Frozen parameters and elements that momentum or weight decay still changes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import merge
from operator import itemgetter

from gviz.events import (
    DataSet,
    GradAccumulated,
    GradSet,
    HookRan,
    OptimizerStarted,
    OptimizerStepped,
    RequiresGradSet,
    StorageWritten,
    grad_left,
)
from gviz.explain.display_names import label, titled
from gviz.explain.finding import Finding, Number
from gviz.explain.hook_effects import HookEffect, hooks_of
from gviz.explain.parameter_updates import next_step, numbers_without_shape, options_of
from gviz.explain.program_text import assignment, receiver
from gviz.explain.recording_survey import Survey
from gviz.explain.source_edit import keeping_none, with_keyword
from gviz.explain.source_frames import at_text, innermost
from gviz.trace.timeline import Timeline
from gviz.values.number_text import number
from gviz.values.plain_text import shown
from gviz.values.value import Value

# Parameters that are frozen, and that an optimizer moves all the same

_FEWEST_MOVES = 2


@dataclass(slots=True)
class _Frozen:
    """A frozen parameter: its numbers, whether its ``.grad`` was set to zeros since, and the steps that moved it."""

    numbers: tuple[object, ...] | None
    is_cleared: bool = False
    has_moved: bool = False
    moves: list[tuple[int, OptimizerStepped]] = field(default_factory=list)


def frozen_moved(survey: Survey) -> Iterator[Finding | None]:
    """Yield the first frozen parameter that an optimizer moves by momentum or weight decay, with a count of the others.

    ``zero_grad(set_to_none=False)`` leaves zeros in ``.grad``, and a step only skips parameters whose ``.grad`` is
    None. A step after the freezing may still use a gradient that came before. It does not count.
    """
    timeline, frozen, cleared = survey.timeline, dict[int, _Frozen](), None
    owners = {out.storage: node for node in survey.optimized for out in survey.nodes[node].created.outputs[:1]}
    freezing = timeline.select((RequiresGradSet,))
    others = survey.select(StorageWritten, GradSet, GradAccumulated, OptimizerStepped)
    for seq, event in merge(freezing, others, key=itemgetter(0)):
        yield None
        match event:
            case RequiresGradSet(node=node, requires_grad=False) if node in survey.optimized:
                frozen[node] = _Frozen(numbers_without_shape(timeline.memory_value(node, 0, seq)))
            case RequiresGradSet(node=node) | GradAccumulated(node=node):
                frozen.pop(node, None)
            case GradSet(node=node, how="zero") if node in frozen:
                frozen[node].is_cleared, cleared = True, event
            case StorageWritten(storage=storage) if owners.get(storage) in frozen:
                one, now = frozen[owners[storage]], numbers_without_shape(event.value)
                one.has_moved, one.numbers = one.has_moved or now != one.numbers, now
            case OptimizerStepped(parameters=stepped):
                for node in frozen.keys() & set(stepped):
                    one = frozen[node]
                    if one.has_moved and one.is_cleared:
                        one.moves.append((seq, event))
                    one.has_moved = False
    moved = {node: one.moves for node, one in frozen.items() if len(one.moves) >= _FEWEST_MOVES}
    if moved and cleared is not None:
        yield _frozen_finding(survey, moved, cleared)


def _frozen_finding(survey: Survey, moved: dict[int, list[tuple[int, OptimizerStepped]]], cleared: GradSet) -> Finding:
    timeline, node = survey.timeline, min(moved)
    (seq, step), *later = moved[node]
    others = f" and {len(moved) - 1} more" if len(moved) > 1 else ""
    text = titled(f"{step.kind} moves {{}}{others} in {len(later) + 1} steps, though frozen", label(timeline, node))
    options = options_of(timeline, node, seq)
    acting = [f"{name} {options[name]}" for name in ("momentum", "weight_decay", "betas") if options.get(name)]
    frames = timeline.stack(cleared.stack)
    moves = " and ".join(acting) or "its state"
    what = f"its .grad is not None but zeros{at_text(frames)}, so the step moves it by {moves}"
    part = Finding("gradient", what, seq, node)
    fix = "zero_grad(set_to_none=True), or an optimizer that has only the trained parameters"
    at = frames[0] if frames else innermost(timeline.info(node))
    numbers = (Number("steps", len(later) + 1, seq),)
    return Finding("frozen-moved", text, seq, node, (part,), fix, at, numbers, edit=keeping_none(timeline, at))


# Elements whose gradient a hook sets to zero, but which weight decay still shrinks


def decayed(survey: Survey) -> Iterator[Finding | None]:
    """Yield parameters with a hook that zeroes a part of the gradient, if the optimizer decays all elements."""
    timeline, seen = survey.timeline, set[int]()
    for seq, ran in timeline.select((HookRan,)):
        if ran.when != "tensor" or ran.value is None or ran.node in seen or ran.node not in survey.optimized:
            continue
        yield None
        seen.add(ran.node)
        effects = hooks_of(timeline, ran.node, ran.output_nr, ran.pass_nr, seq)
        effect = next((one for one in effects if one.seq == seq), None)
        lost = _zeroed(effect.before, effect.after) if effect is not None else 0
        step = next_step(timeline, ran.node, seq)
        decay = options_of(timeline, ran.node, step).get("weight_decay") if step else None
        if effect is not None and lost and isinstance(decay, float | int) and decay:
            yield _decayed_finding(timeline, effect, lost, step, decay)


def _zeroed(before: Value | None, after: Value | None) -> int:
    """Return how many more zeros a gradient has after a hook; 0 if the hook has set all of it to zero."""
    stats = [value.statistics() if value is not None else None for value in (before, after)]
    if stats[0] is None or stats[1] is None or after is None or stats[1].zero == after.size:
        return 0
    return max(0, stats[1].zero - stats[0].zero)


def _decayed_finding(timeline: Timeline, effect: HookEffect, lost: int, step: int, decay: float) -> Finding:
    node, event = effect.ran.node, timeline.event(step)
    frames = timeline.stack(event.stack) if isinstance(event, OptimizerStepped) else ()
    call = frames[0] if frames else None
    construction = assignment(timeline, call, receiver(timeline, call, "step"))
    kind = event.kind if isinstance(event, OptimizerStepped) else ""
    text = titled("weight decay changes the elements of {} that its hook freezes", label(timeline, node))
    zeroed = f"the hook {shown(effect.ran.name)} makes {lost:,} of its gradients zero{effect.registered(timeline)}"
    part = Finding("hook", f"{zeroed}, but {shown(kind)} has weight_decay={number(decay)}", effect.seq, node)
    fix = "use weight_decay=0 for this parameter, in a group of its own, or write the old rows back after the step"
    edit = with_keyword(timeline, construction, kind, "weight_decay", "0.0")
    return Finding("decayed", text, step, node, (part,), fix, construction or call, suspected=True, edit=edit)


# Elements that the program has set to zero, with masked gradients, and that the momentum of the optimizer moves again

_MOST_MASKED = 1.1
"""The most zeros of a masked gradient, as a multiple of the pruned weights: others may be zero by themselves."""


@dataclass(slots=True)
class _Pruned:
    """A parameter after event `seq`, in which the program set elements to zero; `zeros` counts all its zeros then.

    `gradient_zeros` counts those of the gradient that backward gave it. `masked` is the event that set at least as many
    elements of the gradient to zero as are pruned, since the last step; 0 without one. `moves` are pairs of such an
    event and the step after which fewer weights were zero; empty if the program has set them to zero again.
    """

    zeros: int
    seq: int
    gradient_zeros: int = 0
    masked: int = 0
    moves: list[tuple[int, int]] = field(default_factory=list)


def pruned_moved(survey: Survey) -> Iterator[Finding | None]:
    """Yield the first pruned parameter that steps move from zero although the program masks its gradient.

    Momentum from before the pruning does that. If the program masks the weights after each step, too, all is well.
    """
    timeline, pruned, zeros = survey.timeline, dict[int, _Pruned](), dict[int, int]()
    owners = {out.storage: node for node in survey.optimized for out in survey.nodes[node].created.outputs[:1]}
    is_step = False
    written = survey.select(StorageWritten, DataSet, GradSet, GradAccumulated, OptimizerStepped)
    for seq, event in merge(timeline.select((OptimizerStarted, HookRan)), written, key=itemgetter(0)):
        yield None
        match event:
            case OptimizerStarted():
                is_step = True
            case OptimizerStepped(parameters=stepped):
                is_step = False
                for node in pruned.keys() & set(stepped):
                    one = pruned[node]
                    if one.masked and zeros[node] < one.zeros:
                        one.moves.append((one.masked, seq))
                    one.masked = 0
            case StorageWritten(storage=storage, value=value) if storage in owners:
                _note_write(pruned, zeros, owners[storage], seq, value, is_step=is_step)
            case DataSet(node=node, value=value) if node in survey.optimized:
                _note_write(pruned, zeros, node, seq, value, is_step=is_step)
            case GradAccumulated(node=node) if node in pruned:
                pruned[node].gradient_zeros = zeros_of(grad_left(event))
            case GradSet(node=node, value=value) if node in pruned:
                one, count = pruned[node], zeros_of(value)
                if event.how not in ("assigned", "in place") or count < one.zeros:
                    one.masked = 0
                elif 0 < count - one.gradient_zeros <= one.zeros:  # else it masks others: a training of other rows
                    one.masked = seq
            case HookRan(node=node, value=value) if node in pruned:
                one, count = pruned[node], zeros_of(value)
                one.masked = seq if one.zeros <= count <= _MOST_MASKED * one.zeros else one.masked
    found = {node: one for node, one in pruned.items() if len(one.moves) >= _FEWEST_MOVES}
    if found:
        yield _pruned_finding(survey, found, zeros)


def zeros_of(value: Value | None) -> int:
    """Return how many elements of a value are zero; 0 if that is unknown."""
    stats = value.statistics() if value is not None else None
    return stats.zero if stats is not None else 0


def _note_write(
    pruned: dict[int, _Pruned], zeros: dict[int, int], node: int, seq: int, value: Value, *, is_step: bool
) -> None:
    """Update what is known of a parameter after a write to it, by a step or by the program."""
    before, zeros[node] = zeros.get(node, 0), zeros_of(value)
    if is_step:
        return
    if before < zeros[node] < value.size:
        pruned[node] = _Pruned(zeros[node], seq)  # for the first time, or again after a step
    elif node in pruned and zeros[node] < pruned[node].zeros:
        del pruned[node]


def _pruned_finding(survey: Survey, found: dict[int, _Pruned], zeros: dict[int, int]) -> Finding:
    timeline, node = survey.timeline, min(found)
    one, others = found[node], f" and {len(found) - 1} more" if len(found) > 1 else ""
    masked, seq = one.moves[0]
    step, mask = timeline.event(seq), timeline.event(masked)
    frames = timeline.stack(step.stack) if isinstance(step, OptimizerStepped) else ()
    kind = shown(step.kind) if isinstance(step, OptimizerStepped) else "the step"
    text = titled(f"{kind} moves pruned elements of {{}}{others} from zero again", label(timeline, node))
    options = options_of(timeline, node, seq)
    acting = [f"{name} {options[name]}" for name in ("momentum", "betas") if options.get(name)]
    by = f"; its state from before ({acting[0]}) moves them" if acting else ""
    grads = timeline.stack(mask.stack) if isinstance(mask, GradSet) else ()
    what = f"{one.zeros:,} weights were zero, now {zeros[node]:,}, though the gradient is masked{at_text(grads)}{by}"
    part = Finding("gradient", what, seq, node, at=grads[0] if grads else None)
    fix = "set them to zero again after each step(), as the program did before it, or make the optimizer anew"
    numbers = (Number("weights set to zero", one.zeros, one.seq), Number("steps", len(one.moves), seq))
    at = frames[0] if frames else innermost(timeline.info(node))
    return Finding("pruned-moved", text, seq, node, (part,), fix, at, numbers)

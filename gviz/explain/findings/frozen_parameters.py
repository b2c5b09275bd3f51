"""Frozen parameters and elements that momentum or weight decay still changes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import merge
from operator import itemgetter

from gviz.events import (
    GradAccumulated,
    GradSet,
    HookRan,
    OptimizerStepped,
    RequiresGradSet,
    StorageWritten,
)
from gviz.explain.display_names import label, titled
from gviz.explain.edit import (
    keeping_none,
    with_keyword,
)
from gviz.explain.finding import Finding, Number
from gviz.explain.hook_effects import HookEffect, hooks_of
from gviz.explain.parameter_updates import next_step, numbers_without_shape, options_of
from gviz.explain.program_text import (
    assignment,
    receiver,
)
from gviz.explain.source_frames import at_text, innermost
from gviz.explain.survey import Survey
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

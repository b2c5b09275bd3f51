"""The result of a backward pass in the parameters, and the losses and gradients from pass to pass."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from math import hypot, nan
from typing import Literal

import numpy as np

from gviz.events import (
    BackwardFinished,
    BackwardStarted,
    GradAccumulated,
    GradSet,
    NodeCreated,
    OptimizerStepped,
    RequiresGradSet,
)
from gviz.explain.backward_passes import (
    PassesOfLoss,
    leaves_of_pass,
    loss_at,
    passes_by_loss,
    root_value,
    start_of_pass,
)
from gviz.explain.grad_history import CLEARED
from gviz.source.call_stack import Frame
from gviz.system.cooperative_work import LongWork, WorkProgress, finished
from gviz.trace.graph_state import Phase
from gviz.trace.timeline import Timeline
from gviz.values.number_text import counted
from gviz.values.value_text import bad_text, norm


@dataclass(frozen=True, slots=True)
class ModuleGradient:
    """The norm of the accumulated gradients of the parameters directly in one module.

    It is None if no gradient is known. A leaf that is in no module counts as a module of its own. `bad` lists bad
    elements: ``64 nan``.
    """

    module: str
    length: float | None
    bad: str = ""


@dataclass(frozen=True, slots=True)
class PassResult:
    """The end of a backward pass: where it began, and which leaves that require a gradient have one.

    `root` is the node at which the pass began (0: several, or not recorded), `loss` the one number of the loss, and
    `at` the line that called ``backward()``. `bad` are those of `received` with a nan or an infinity in their gradient.
    If `is_for_inputs` is true, the pass was for some inputs only, so others may well have none. `noun` is the word for
    the leaves. Those of `received` that this pass did not reach are `earlier`: their gradients were there before.
    `frozen` are the parameters that require no gradient.
    """

    pass_nr: int
    root: int
    loss: float | None
    at: Frame | None
    received: tuple[int, ...]
    missing: tuple[int, ...]
    bad: tuple[int, ...]
    modules: tuple[ModuleGradient, ...]
    noun: Literal["parameter", "leaf"] = "parameter"
    is_for_inputs: bool = False
    earlier: tuple[int, ...] = ()
    frozen: tuple[int, ...] = ()

    @property
    def verdict(self) -> str:
        """The main result in words: ``6 of 8 parameters have a gradient, 2 have none``, or ``2 are frozen``."""
        have, lack, frozen = len(self.received), len(self.missing), len(self.frozen)
        if not have + lack:
            return "nothing requires a gradient" + (f": {frozen_text(frozen)}" if frozen else "")
        count = have + lack + (frozen if self.noun == "parameter" else 0)
        all_of_them = f"{counted(count, self.noun)} {_has(count)}"
        if have == count:
            text = f"{'all ' if have > 1 else ''}{all_of_them} a gradient"
        elif not have:
            text = f"{'none of ' if count > 1 else ''}{all_of_them} {'a' if count > 1 else 'no'} gradient"
        else:
            text = f"{have} of {counted(count, self.noun)} {_has(have)} a gradient"
            text += f", {lack} {_has(lack)} none" if lack else ""
        if self.earlier:
            text += f", {len(self.earlier)} of them not from this pass"
        text += f", {len(self.bad)} of them not finite" if self.bad else ""
        if not frozen:
            return text
        return (
            f"{text}, {frozen} {_is(frozen)} frozen" if self.noun == "parameter" else f"{text}, {frozen_text(frozen)}"
        )


def frozen_text(count: int) -> str:
    """Return ``2 parameters are frozen``."""
    return f"{counted(count, 'parameter')} {_is(count)} frozen"


def _has(count: int) -> str:
    return "has" if count == 1 else "have"


def _is(count: int) -> str:
    return "is" if count == 1 else "are"


def pass_result(timeline: Timeline, n: int) -> PassResult | None:
    """Return the result of the pass that ended with event `n`; None for other events, failed and nested passes."""
    return timeline.once(_pass_result, n)


def _pass_result(timeline: Timeline, n: int) -> PassResult | None:
    event = timeline.event(n) if 0 < n <= len(timeline) else None
    if not isinstance(event, BackwardFinished) or event.error or timeline.at(n).pass_nr not in (0, event.pass_nr):
        return None
    start = start_of_pass(timeline, event.pass_nr)
    began = timeline.event(start) if start else None
    if not isinstance(began, BackwardStarted):
        return None
    received, missing, bad, modules = _gradients(timeline, n)
    loss = loss_at(timeline, start)
    at = next(iter(timeline.stack(began.stack)), None)
    root = root_of_pass(timeline, event.pass_nr)
    number = loss[1] if loss is not None else None
    kinds = {timeline.info(node).created.kind for node in (*received, *missing)}
    noun: Literal["parameter", "leaf"] = "parameter" if "parameter" in kinds else "leaf"
    is_for_inputs = bool(began.inputs)
    reached = {one.node for _, one in timeline.select((GradAccumulated,), start, n) if one.pass_nr == event.pass_nr}
    earlier = tuple(node for node in received if node not in reached)
    frozen = frozen_parameters(timeline, n)
    return PassResult(
        event.pass_nr, root, number, at, received, missing, bad, modules, noun, is_for_inputs, earlier, frozen
    )


def root_of_pass(timeline: Timeline, pass_nr: int) -> int:
    """Return the node at which a pass began, or the loss that it is a multiple of; 0 for several or unknown ones."""
    start = start_of_pass(timeline, pass_nr)
    began = timeline.event(start) if start else None
    if not isinstance(began, BackwardStarted) or len(began.roots) != 1 or began.roots[0][0] not in timeline.nodes:
        return 0
    loss = loss_at(timeline, start)
    return loss[0] if loss is not None else began.roots[0][0]


def last_pass(timeline: Timeline, n: int) -> int:
    """Return the event that ended the last whole backward pass by moment `n`, 0 if there is none."""
    for phase in reversed(timeline.phases):
        if phase.kind == "backward" and phase.start <= n and (end := _end_of(timeline, phase, n)):
            return end
    return 0


def _end_of(timeline: Timeline, phase: Phase, n: int) -> int:
    ends = timeline.select((BackwardFinished,), phase.start, min(phase.end, n) + 1)
    return max((seq for seq, event in ends if event.pass_nr == phase.pass_nr and not event.error), default=0)


def trained_leaves(timeline: Timeline, n: int) -> tuple[int, ...]:
    """Return the leaves at moment `n` that require a gradient and are still referenced, in order of creation."""
    return _trained_and_frozen(timeline, n)[0]


def frozen_parameters(timeline: Timeline, n: int) -> tuple[int, ...]:
    """Return the parameters at moment `n` that require no gradient and are still referenced."""
    return _trained_and_frozen(timeline, n)[1]


def _trained_and_frozen(timeline: Timeline, n: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    leaves = timeline.once(_leaves_of_iteration, timeline.iteration_at(n).index) if timeline.iterations else ()
    freed = timeline.nodes.freed(n)
    there = [created for born, created in leaves if born <= n and created.node not in freed]
    states = timeline.at(n).states([created.node for created in there])  # one may be frozen since it was made
    trained, frozen = list[int](), list[int]()
    for created, state in zip(there, states, strict=True):
        if created.requires_grad if state is None else state.requires_grad:
            trained.append(created.node)
        elif created.kind == "parameter":
            frozen.append(created.node)
    return tuple(trained), tuple(frozen)


def freezing_line(timeline: Timeline, node: int, n: int) -> tuple[int, Frame | None]:
    """Return the event by moment `n` that froze a parameter, and its line; its creation if it was made frozen."""
    events = ((seq, timeline.event(seq)) for seq in reversed(timeline.events_of(node)) if seq <= n)
    for seq, event in events:
        if isinstance(event, RequiresGradSet):
            return seq, next(iter(timeline.stack(event.stack)), None)
    info = timeline.info(node)
    return info.born, next(iter(info.frames), None)


def _leaves_of_iteration(timeline: Timeline, index: int) -> tuple[tuple[int, NodeCreated], ...]:
    """Return the leaves of this iteration, and those made by the end of the first one, where models are made.

    Of those that require no gradient only parameters count: the others are data.
    """
    first, here = timeline.iterations[0], timeline.iterations[index - timeline.iterations[0].index]
    nodes = np.asarray(timeline.nodes[:], np.int64)
    is_leaf = np.isin(timeline.nodes.origins.op, _leaf_ops(timeline))
    births = [(timeline.nodes.born(node), node) for node in nodes[is_leaf].tolist()]
    near = [node for born, node in births if born <= first.end or here.start <= born <= here.end]
    leaves = sorted({*near, *(set(timeline.nodes.of(here)) & {node for _, node in births})})
    creations = timeline.nodes.all_created(leaves)
    return tuple(
        (timeline.nodes.born(node), created)
        for node, created in creations
        if created.requires_grad or created.kind == "parameter"
    )


def _leaf_ops(timeline: Timeline) -> list[int]:
    """Return the numbers of the operations that represent tensors which no operation made."""
    numbers, first = np.unique(timeline.nodes.origins.op, return_index=True)
    creations = (timeline.nodes.created(timeline.nodes[place]) for place in first.tolist())
    return [number for number, created in zip(numbers.tolist(), creations, strict=True) if created.kind != "op"]


_Gradients = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[ModuleGradient, ...]]


def _gradients(timeline: Timeline, n: int) -> _Gradients:
    """Return, at a moment, the leaves with a gradient, without one, and with a bad one; and the gradients by module.

    The largest norm is first; a module with a nan comes before it.
    """
    nodes = trained_leaves(timeline, n)
    received, missing, bad = list[int](), list[int](), list[int]()
    lengths, bad_kinds = dict[str, list[float | None]](), dict[str, str]()
    for node, state in zip(nodes, timeline.at(n).states(list(nodes)), strict=True):
        gradient = state.outputs[0].grad if state is not None and state.outputs else None
        if gradient is None:
            missing.append(node)
            continue
        received.append(node)
        module = module_of(timeline, node)
        lengths.setdefault(module, []).append(norm(gradient))
        if bad_kind := bad_text(gradient):
            bad.append(node)
            bad_kinds.setdefault(module, bad_kind)
    modules = [ModuleGradient(path, _together(parts), bad_kinds.get(path, "")) for path, parts in lengths.items()]
    modules.sort(key=lambda one: (not one.bad, one.length is None, -(one.length or 0.0)))
    return tuple(received), tuple(missing), tuple(bad), tuple(modules)


def _together(lengths: Sequence[float | None]) -> float | None:
    known = [length for length in lengths if length is not None]
    return hypot(*known) if known else None


def module_of(timeline: Timeline, node: int) -> str:
    """Return the path of a parameter's module, from its name; for a leaf in no module its own name."""
    info = timeline.info(node)
    return info.name.rpartition(".")[0] or info.name or f"#{node}"


# From pass to pass


Series = tuple[str, tuple[float | None, ...]]
"""The norms of the accumulated gradients of a module, by its name: None where it got none, nan for a bad one."""


@dataclass(frozen=True, slots=True)
class LossProgress:
    """One loss of a program over its backward passes, and the gradients of the modules that they reach.

    `losses` are None if a pass did not begin at one known number. If `before_step` is true, several passes accumulate
    gradients for one step, and `modules` has the norms after the last of them only.
    """

    name: str
    losses: tuple[float | None, ...]
    modules: tuple[Series, ...]
    before_step: bool = False

    @property
    def known_losses(self) -> tuple[float, ...]:
        """Return the losses that are known numbers."""
        return tuple(loss for loss in self.losses if loss is not None)


@dataclass(frozen=True, slots=True)
class Progress:
    """Losses and gradients over the backward passes of a recording, in order: one entry for each pass shown.

    `ends` are the events that ended the passes, and `names` their losses. `modules` has a series for each module with a
    parameter that requires a gradient. `by_loss` has the same by loss, and `others` are modules that no pass reaches.
    For a long recording some passes are left out; `passes` counts all, and `loss_count` all losses.
    """

    passes: int
    ends: tuple[int, ...]
    names: tuple[str, ...]
    losses: tuple[float | None, ...]
    modules: tuple[Series, ...]
    by_loss: tuple[LossProgress, ...]
    others: tuple[str, ...] = ()
    loss_count: int = 1


MOST_PASSES = 60
"""The most passes that are examined, spread evenly over a longer recording."""
_MOST_LOSSES = 6
"""The most losses that are examined: those with the most passes."""
_FEWEST_PASSES = 12
"""The most passes of a loss that are examined if there are many losses."""


def loss_curves(timeline: Timeline, most: int) -> list[tuple[str, list[float | None]]]:
    """Return the values of each loss with its name, at most `most` of each."""
    groups = _frequent(passes_by_loss(timeline))
    return [(one.name, [root_value(timeline, phase.start) for phase in _spread(one.phases, most)]) for one in groups]


def progress(timeline: Timeline, n: int = 0, most: int = MOST_PASSES) -> Progress:
    """Return the progress up to moment `n` (0: the end), of at most `most` passes."""
    return finished(reading_progress(timeline, n, most))


@dataclass(frozen=True, slots=True)
class _Pass:
    """What is shown of a pass; `counts` is False if further passes add to its gradients before the step."""

    end: int
    group: int
    loss: float | None
    norms: dict[str, float | None]
    reached: frozenset[str]
    counts: bool


def reading_progress(timeline: Timeline, n: int = 0, most: int = MOST_PASSES) -> LongWork[Progress]:
    """Compute `progress` cooperatively."""
    n = n or len(timeline)
    all_groups = passes_by_loss(timeline, n)
    groups = _frequent(all_groups)
    room = most if len(groups) < 2 else max(most // len(groups), min(_FEWEST_PASSES, most))
    last_ones = [_before_steps(timeline, one.phases, n) for one in groups]
    chosen = list[tuple[Phase, int]]()
    for at, (one, last) in enumerate(zip(groups, last_ones, strict=True)):
        phases = one.phases if len(one.phases) <= room else [phase for phase in one.phases if phase in last]
        chosen += [(phase, at) for phase in _spread(phases, room)]
    chosen.sort(key=lambda pair: pair[0].start)
    passes = list[_Pass]()
    for at, (phase, group) in enumerate(chosen):
        yield WorkProgress("reading backward pass", at, len(chosen))
        if end := _end_of(timeline, phase, n):
            norms = {one.module: nan if one.bad else one.length for one in _gradients(timeline, end)[3]}
            its_modules = frozenset(module_of(timeline, node) for node in leaves_of_pass(timeline, phase))
            loss = root_value(timeline, phase.start)
            passes.append(_Pass(end, group, loss, norms, its_modules, phase in last_ones[group]))
    ends = [one.end for one in passes]
    leaves = dict.fromkeys(node for end in {*ends[:1], *ends[-1:]} for node in trained_leaves(timeline, end))
    modules = dict.fromkeys(
        [*(module_of(timeline, node) for node in sorted(leaves)), *(key for one in passes for key in one.norms)]
    )
    by_loss = []
    for group, of_group in enumerate(groups):
        its_passes = [one for one in passes if one.group == group]
        if its_passes:
            reached = set(modules) if len(all_groups) == 1 else set[str]().union(*(one.reached for one in its_passes))
            series = _series([one for one in its_passes if one.counts], [name for name in modules if name in reached])
            before_step = len(last_ones[group]) < len(of_group.phases)
            losses = tuple(one.loss for one in its_passes)
            by_loss.append(LossProgress(of_group.name, losses, series, before_step))
    shown = {name for one in by_loss for name, _ in one.modules}
    others = tuple(name for name in modules if name not in shown)
    return Progress(
        sum(len(one.phases) for one in all_groups), tuple(ends), tuple(groups[one.group].name for one in passes),
        tuple(one.loss for one in passes), _series(passes, [*modules]), tuple(by_loss), others, len(all_groups),
    )  # fmt: skip


def _series(passes: Sequence[_Pass], modules: Sequence[str]) -> tuple[Series, ...]:
    return tuple((name, tuple(one.norms.get(name) for one in passes)) for name in modules)


def _frequent(groups: Sequence[PassesOfLoss]) -> list[PassesOfLoss]:
    """Return the losses with the most passes, in order."""
    most = sorted(groups, key=lambda one: -len(one.phases))[:_MOST_LOSSES]
    return [one for one in groups if one in most]


def _before_steps(timeline: Timeline, phases: Sequence[Phase], n: int) -> set[Phase]:
    """Return the passes of a loss without those to whose gradients its next pass adds before an optimizer uses them."""
    steps = [seq for seq, _ in timeline.select((OptimizerStepped,), phases[0].start, n + 1)]
    stepped = [bisect_left(steps, phase.end) for phase in phases]
    if not steps or stepped[0] == stepped[-1]:
        return {*phases}
    last = set[Phase]()
    for phase, following, here, there in zip(
        phases, (*phases[1:], None), stepped, (*stepped[1:], len(steps)), strict=True
    ):
        if here < there or (following is not None and _clears(timeline, phase.end, following.start)):
            last.add(phase)
    return last


def _clears(timeline: Timeline, start: int, stop: int) -> bool:
    """Return whether a ``.grad`` is cleared between two moments."""
    return any(event.how in CLEARED for _, event in timeline.select((GradSet,), start, stop))


def _spread(phases: Sequence[Phase], most: int) -> Sequence[Phase]:
    """Return the first and the last, and as many between them as there is room for."""
    if len(phases) <= most:
        return phases
    return [phases[round(at * (len(phases) - 1) / (most - 1))] for at in range(most)]

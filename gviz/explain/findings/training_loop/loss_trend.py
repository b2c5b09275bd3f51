"""The trend of a loss: one that grows without end, and the data whose size is a reason for it, or one that does not
fall.

Idea. With a learning rate that is too large, each step leads further away than the one before: the loss grows by orders
of magnitude, whether or not it has reached inf. The largest rate that converges falls with the square of the inputs'
size, so data of rms 1,800 needs a rate a million times smaller than data of rms 1.8.

Example. Areas of 600 to 3,000, numbers of rooms and ages go into ``nn.Linear(3, 1)``, with SGD and a rate of 0.01: the
losses are 3932, 1.3e+13, 6.7e+22. The data needs to be standardized; a smaller rate would train the rooms too slowly.

A program without an optimizer, ``w -= lr * w.grad``, can do the same. The direction and the rate of its steps are read
from how the leaves differ between two passes.

Limits. Losses of several kinds may balance each other, a search for a learning rate raises the rate on purpose, and an
optimizer that maximizes is to raise its objective: all three are left out. So are steps by hand along the gradient.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import hypot, isfinite, sqrt
from statistics import fmean

import numpy as np

from gviz.events import DataSet, GradCaptured, OptimizerStarted, OptimizerStepped, StorageWritten, grad_left
from gviz.events.optimizer_options import option_text
from gviz.explain.backward_passes import divergence_bound, leaves_of_pass, loss_at, passes_by_loss, row_text
from gviz.explain.display_names import label, label_at, titled
from gviz.explain.finding import Finding, Number
from gviz.explain.findings.custom_functions.custom_backward_rule import REVERSAL
from gviz.explain.operation_sets import LAYER_PRODUCTS
from gviz.explain.optimizer_construction import rate_line
from gviz.explain.parameter_updates import growth, maximizes, options_of, rates_of, rms, step_of
from gviz.explain.recording_survey import Survey
from gviz.explain.source_frames import at_text, innermost
from gviz.explain.tracking import ancestors
from gviz.trace.graph_state import Phase
from gviz.trace.timeline import Timeline
from gviz.values.number_text import number
from gviz.values.plain_text import shown
from gviz.values.value import Array, Value
from gviz.values.value_text import norm

_FEWEST = 6
"""The fewest passes that show a divergence."""

_RISES = 3
"""The number of passes at the end that must each have a larger loss than the one before."""

_GROWN = 10.0
"""How many times its size a parameter has at the end if the steps diverge. Else something else may raise the loss."""

_LARGE = 30.0
"""The root mean square of data from which on its size is a reason. Standardized data has 1."""


def diverging(survey: Survey) -> Iterator[Finding | None]:
    """Yield the loss of a training loop that grows to a thousand times its start and still rises at the end."""
    timeline = survey.timeline
    if len({event.stack for _, event in survey.passes}) != 1 or len(survey.passes) < _FEWEST:
        return
    steps = {event.stack for _, event in survey.select(OptimizerStepped) if event.parameters}
    if len(steps) > 1:
        return
    yield None
    losses = [one for seq, _ in survey.passes if (one := loss_at(timeline, seq)) is not None]
    values = [value for _, value in losses]
    if len(values) < len(survey.passes) or not all(isfinite(value) and value > 0 for value in values):
        return
    end = values[-_RISES - 1 :]
    if values[-1] <= divergence_bound(values) or end != sorted(end):
        return
    if steps and not _rises_on_purpose(timeline):
        known = survey.optimized & survey.nodes.keys()
        pairs = [(survey.nodes[node].value, timeline.memory_value(node, 0, survey.end)) for node in known]
        rate = _rate_of_optimizer(timeline)
        finding = replace(_finding(survey, losses[-1][0], values, rate), suspected=not _grow(pairs))
        if _sizes_grow(survey, losses[0][0], losses[-1][0]):
            return  # a sum over all data so far
        step = next((event for _, event in timeline.select((OptimizerStarted,))), None)
        if step is not None and not finding.suspected:
            finding = replace(finding, at=rate_line(timeline, step) or finding.at)
        yield finding
    elif not steps and (updates := _updates_by_hand(survey)) and not _are_on_purpose(updates):
        pairs = [*zip(updates[0].before, updates[-1].after, strict=False)]
        finding = _finding(survey, losses[-1][0], values, _rate_of_updates(updates), "the update")
        is_certain = _grow(pairs) and _rate_of_updates(updates) is not None and _overshoot(*updates[-2:])
        yield replace(finding, suspected=not is_certain)


def _grow(pairs: Sequence[tuple[Value | None, Value | None]]) -> bool:
    """Return whether the steps have made a parameter many times as large."""
    sizes = (growth(before, after) for before, after in pairs)
    return any(size is not None and size.factor > _GROWN for size in sizes)


_MORE = 1.5
"""How many times as many elements a loss has at the end as at first if it is computed from more and more data."""


def _sizes_grow(survey: Survey, first: int, last: int) -> bool:
    """Return whether a loss is computed from more elements than another one was."""
    values = ([survey.nodes[node].value for node in survey.history(root)] for root in (first, last))
    before, after = (max((value.size for value in some if value is not None), default=0) for some in values)
    return after > _MORE * before


def _rate_of_optimizer(timeline: Timeline) -> float | None:
    """Return the learning rate that all groups of an optimizer have in all its steps."""
    events = (event for _, event in timeline.select((OptimizerStarted,)))
    rates = {rate for event in events for rate in rates_of(event)}
    return rates.pop() if len(rates) == 1 else None


# Updates by hand: how the leaves of a pass differ from those of the next


@dataclass(frozen=True, slots=True)
class _Update:
    """What happened between two passes: the leaves `before` and `after`, as they were when these began.

    `change` has the changes of all elements. `along` is the sum of the products of all changes and their gradients:
    above 0 if the leaves move along the gradient. `rate` is the norm of the changes for a gradient of norm 1. All are
    None if not all elements are stored.
    """

    before: tuple[Value | None, ...]
    after: tuple[Value | None, ...]
    change: Array | None = None
    along: float | None = None
    rate: float | None = None


_Leaves = Sequence[tuple[int, Value | None]]
"""The leaves that a pass reached, in order, and the gradients that they have after it."""

_SAME_RATE = 0.01
"""The relative difference between two rates that are one, as numbers of float32 show it."""


def _updates_by_hand(survey: Survey) -> list[_Update]:
    """Return the first update of a loop without an optimizer, one in its middle and the last two; empty if unknown.

    The leaves may be written to, or the program may make new ones.
    """
    numbers = [event.pass_nr for _, event in survey.passes]
    of_pass: defaultdict[int, list[tuple[int, Value | None]]] = defaultdict(list)
    for _, added in survey.accumulated:
        of_pass[added.pass_nr].append((added.node, grad_left(added)))
    for _, captured in survey.select(GradCaptured):
        of_pass[captured.pass_nr].append((captured.node, captured.value))
    places = sorted({0, len(numbers) // 2, len(numbers) - 3, len(numbers) - 2})
    updates = [_update(survey, at, of_pass[numbers[at]], of_pass[numbers[at + 1]]) for at in places]
    known = [one for one in updates if one is not None]
    return known if len(known) == len(updates) else []


def _update(survey: Survey, at: int, leaves: _Leaves, next_leaves: _Leaves) -> _Update | None:
    """Return the update after the pass of number `at`; None if no leaf changed, or the next pass has others."""
    timeline = survey.timeline
    start, next_start = (seq for seq, _ in survey.passes[at : at + 2])
    before = tuple(timeline.memory_value(node, 0, start) for node, _ in leaves)
    after = tuple(timeline.memory_value(node, 0, next_start) for node, _ in next_leaves)
    shapes = [[value.shape if value is not None else None for value in row] for row in (before, after)]
    if not leaves or shapes[0] != shapes[1] or before == after:
        return None
    along, changes, gradients = 0.0, list[Array](), 0.0
    for old, new, (_, gradient) in zip(before, after, leaves, strict=True):
        arrays = [_array(timeline, value) for value in (old, new, gradient)]
        known = [
            array for array in arrays if array is not None and array.shape == (old.shape if old is not None else ())
        ]
        if len(known) < len(arrays):
            return _Update(before, after)
        change = known[1] - known[0]
        along += float((change * known[2]).sum())
        changes.append(change.ravel())
        gradients = hypot(gradients, float(np.linalg.norm(known[2])))
    change = np.concatenate(changes)
    return _Update(before, after, change, along, float(np.linalg.norm(change)) / gradients if gradients else None)


def _overshoot(one: _Update, other: _Update) -> bool:
    """Return whether an update goes back over what the one before did: each leads to the other side of the minimum.

    A loss that grows because its data or its weight grow has updates in one direction.
    """
    if one.change is None or other.change is None or one.change.shape != other.change.shape:
        return False
    return float(one.change @ other.change) < 0


def _array(timeline: Timeline, value: Value | None) -> Array | None:
    array = timeline.array(value) if value is not None else None
    return array.astype(np.float64) if array is not None and array.dtype.kind == "f" else None


def _are_on_purpose(updates: list[_Update]) -> bool:
    """Return whether most updates go along the gradient, or the last has a higher rate than the first."""
    known = [one.along for one in updates if one.along is not None]
    first, last = updates[0].rate, updates[-1].rate
    rises = first is not None and last is not None and last > 2 * first
    return rises or 2 * sum(one > 0 for one in known) > len(known)


def _rate_of_updates(updates: list[_Update]) -> float | None:
    """Return the rate, if all updates have the same: else they use momentum or the like."""
    rates = [one.rate for one in updates if one.rate is not None]
    is_one = len(rates) == len(updates) and max(rates) - min(rates) <= _SAME_RATE * max(rates)
    return rates[-1] if is_one else None


def _rises_on_purpose(timeline: Timeline) -> bool:
    """Return whether an optimizer maximizes, or its rate is higher at the end than at the start."""
    steps = [event for _, event in timeline.select((OptimizerStarted,))]
    rates = [max((rate for rate in rates_of(step) if rate is not None), default=0.0) for step in steps]
    return any(map(maximizes, steps)) or (bool(rates) and rates[-1] > 2 * rates[0])


def _finding(survey: Survey, root: int, values: list[float], rate: float | None, step: str = "the step") -> Finding:
    timeline = survey.timeline
    count = len(values)
    text = titled(f"{{}} diverges in {count} passes: to {number(values[-1])}", label(timeline, root))
    grew = Finding("grew", f"the loss grew from pass to pass: {row_text(values)}", survey.passes[-1][0], root)
    scale = large_features(timeline, root)
    than = f" than {number(rate, 3)}" if rate is not None else ""
    fix = STANDARDIZE if scale is not None else f"a smaller learning rate{than}, or clip_grad_norm_ before {step}"
    numbers = (Number("first", values[0]), Number("last", values[-1], survey.passes[-1][0]))
    at = innermost(timeline.info(root))
    parts = (scale, grew) if scale is not None else (grew,)
    return Finding("diverging", text, survey.passes[-1][0], root, parts, fix, at, numbers)


STANDARDIZE = "standardize the data: (x - x.mean(0)) / x.std(0); else a much smaller learning rate"


def large_features(timeline: Timeline, root: int) -> Finding | None:
    """Return the fact that data of large numbers meets the first parameters of a model; None for data of usual size."""
    for node in ancestors(timeline, root):
        info = timeline.info(node)
        if info.op.base_name not in LAYER_PRODUCTS:
            continue
        sources = [timeline.info(source) for source, _ in info.created.inputs if source]
        if not any(source.created.requires_grad for source in sources):
            continue
        for source in sources:
            value = source.created.first_value
            stats = value.statistics() if value is not None else None
            if source.created.requires_grad or stats is None or value is None or not isfinite(stats.rms):
                continue
            if stats.rms < _LARGE or len(value.shape) < 2:
                continue
            array = timeline.array(value)
            columns = ""
            if array is not None and array.ndim == 2 and 1 < array.shape[1] <= _MOST_COLUMNS:
                each = [sqrt(float((array[:, at].astype(float) ** 2).mean())) for at in range(array.shape[1])]
                columns = f"; its columns have {', '.join(number(size, 3) for size in each)}"
            name = label_at(timeline, source.node)
            into = f"goes into {label(timeline, node)}"
            text = f"{name} of rms {number(stats.rms, 3)} {into}{columns}"
            return Finding("scale", text, info.born, source.node, at=innermost(source))
    return None


_MOST_COLUMNS = 6


# Parameters that one optimizer step made many times as large

LEAP = 10
"""A step is too large if it makes a parameter this many times as large, and larger than this."""

Leap = tuple[float, float, int, int]
"""A parameter's value after a step and before it, the parameter, and the event."""


def parameter_leap(timeline: Timeline, node: int, n: int) -> Finding | None:
    """Return the leap that led furthest, of the parameters of a node, in the last write to each before event `n`."""
    leaves = (source for source in ancestors(timeline, node) if timeline.info(source).created.kind != "op")
    leap = max((leap for leaf in leaves for leap in _last_leap(timeline, leaf, n)), default=None)
    if leap is None:
        return None
    after, before, leaf, seq = leap
    step = step_of(timeline, leaf, seq)
    frames, kind = (timeline.stack(step.stack), shown(step.kind)) if step is not None else ((), "optimizer")
    text = (
        f"the step of {kind}{at_text(frames)} took {label(timeline, leaf)} from rms {number(before)} to {number(after)}"
    )
    return Finding("leapt", text, seq, leaf, at=frames[0] if frames else None)


def _last_leap(timeline: Timeline, leaf: int, n: int) -> Iterator[Leap]:
    """Yield the last step that wrote to a leaf, if it was too large."""
    seqs = (seq for seq in reversed(timeline.events_of(leaf)) if seq < n)
    seq = next((seq for seq in seqs if isinstance(timeline.event(seq), StorageWritten | DataSet)), 0)
    if not seq or step_of(timeline, leaf, seq) is None:
        return
    before, after = (rms(timeline.memory_value(leaf, 0, at)) for at in (seq - 1, seq))
    if before is not None and after is not None and 0 < before * LEAP <= after and after >= LEAP:
        yield after, before, leaf, seq


# ----------------------------------------------------------------------------------------------------------------------
# A loss that is no smaller after many steps.

# A loss that does not fall, in a program with one loss and one optimizer: what is known of its gradients is reported

_FEWEST_LOSSES = 24
"""The fewest passes after which a loss that is not smaller is no accident of single batches."""

_FALLEN = 0.98

_DEVIATIONS = 2.0
"""The standard deviations by which a loss must be above what counts as fallen."""


def not_falling(survey: Survey) -> Iterator[Finding | None]:
    """Yield the loss of a training loop if its last quarter is no smaller than its first, with what is sure about it.

    Programs with several losses or optimizers are left out: theirs may balance each other, as those of a GAN do. So are
    losses that reach 0 or less, such as those of a policy, and those whose target a model makes: it moves, as the
    values of Q-learning do. So are losses that differ so much from pass to pass that the means of two quarters do not
    show whether they fall, and those of a network that reverses a gradient. If a loop trains several models one after
    the other, the loss of the last one is examined.
    """
    timeline = survey.timeline
    steps = {event.stack for _, event in survey.select(OptimizerStepped) if event.parameters}
    calls = {event.stack for _, event in survey.passes}
    if len(steps) != 1 or len(calls) != 1 or len(survey.passes) < _FEWEST_LOSSES or timeline.failures:
        return
    yield None
    phases = _of_last_model(timeline, passes_by_loss(timeline)[-1].phases)
    if len(phases) < _FEWEST_LOSSES or any(REVERSAL.search(name) for name in survey.by_op):
        return
    known = [one for phase in phases if (one := loss_at(timeline, phase.start)) is not None]
    values = [value for _, value in known]
    if len(values) < len(phases) or not all(isfinite(value) and value > 0 for value in values):
        return
    quarter = len(values) // 4
    first, last = (fmean(part) for part in (values[:quarter], values[-quarter:]))
    # the spread from one pass to the next; a steady rise or fall adds little to it
    spread = sqrt(fmean((one - other) ** 2 for one, other in pairwise(values)) / 2)
    noise = _DEVIATIONS * spread * sqrt(2 / quarter)
    root = known[-1][0]
    if last - noise > _FALLEN * first and not (
        _has_made_target(survey, root) or _sizes_grow(survey, known[0][0], root)
    ):
        yield _not_falling_finding(survey, root, first, last, len(values))


def _of_last_model(timeline: Timeline, phases: Sequence[Phase]) -> Sequence[Phase]:
    """Return the passes that reach a leaf that the last of them reaches, such as those of the last fold."""
    leaves = {*leaves_of_pass(timeline, phases[-1])}
    return [phase for phase in phases if not leaves.isdisjoint(leaves_of_pass(timeline, phase))]


def _has_made_target(survey: Survey, root: int) -> bool:
    """Return whether a loss compares with the untracked result of a module that has parameters."""
    waiting, seen, given = [root], {root}, list[int]()
    while waiting:
        record = survey.nodes.get(waiting.pop())
        if record is None or record.created.scope in survey.scopes:
            continue  # within the model
        for source in survey.sources(record):
            if not source.created.requires_grad and source.created.kind == "op":
                given.append(source.node)
            elif source.node not in seen:
                seen.add(source.node)
                waiting.append(source.node)
    made = (survey.nodes[node] for node in (*given, *ancestors(survey.timeline, *given)) if node in survey.nodes)
    in_modules = (one for one in made if one.created.kind == "op" and one.created.scope in survey.scopes)
    return any(source.created.kind == "parameter" for one in in_modules for source in survey.sources(one))


def _not_falling_finding(survey: Survey, root: int, first: float, last: float, count: int) -> Finding:
    timeline, numbers = survey.timeline, (number(first), number(last))
    verb = "grows" if last > first / _FALLEN else "does not fall"
    text = titled(f"{{}} {verb} in {count} passes: from {numbers[0]} to {numbers[1]}", label(timeline, root))
    latest = {event.node: (seq, event) for seq, event in survey.accumulated if event.node in survey.optimized}
    sizes = {node: size for node, (_, event) in latest.items() if (size := norm(event.part)) is not None}
    sure = f"{len(latest)} of {len(survey.optimized)} parameters of the optimizer get a gradient"
    if sizes:
        most, least = max(sizes, key=sizes.__getitem__), min(sizes, key=sizes.__getitem__)
        ends = (f"|g| {number(sizes[node])} at {label(timeline, node)}" for node in (most, least))
        sure += f": {', '.join(ends)}"
    seq = next(reversed([seq for seq, _ in survey.select(OptimizerStepped)]))
    rates = {options_of(timeline, node, seq).get("lr") for node in list(latest)[:1]} - {None}
    sure += f"; lr is {option_text(rates.pop())}" if rates else ""
    part = Finding("share", sure, survey.passes[-1][0], root)
    fix = "a smaller learning rate" if verb == "grows" else "fit one batch first: if that fails, look at data and loss"
    row = (Number("first quarter", first), Number("last quarter", last))
    at = innermost(timeline.info(root))
    return Finding("not-falling", text, survey.passes[-1][0], root, (part,), fix, at, row, suspected=True)

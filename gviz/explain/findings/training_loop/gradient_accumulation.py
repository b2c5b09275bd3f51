"""Backward passes that add up before one step: a sum that should be a mean, parts of different sizes, a rest."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isfinite, prod

from gviz.events import BackwardStarted, GradAccumulated, GradSet, OptimizerStepped
from gviz.explain.display_names import label_at
from gviz.explain.finding import Finding, Number
from gviz.explain.findings.training_loop.gradient_clipping import clips
from gviz.explain.grad_history import CLEARED
from gviz.explain.operation_sets import LOSSES, RESHAPING, SAME_NUMBERS
from gviz.explain.program_text import ProgramText, called_name
from gviz.explain.recording_survey import NodeRecord, Survey
from gviz.explain.source_edit import Change, Edit, rewritten
from gviz.source.call_stack import Frame
from gviz.trace.timeline import Timeline
from gviz.values.value import Value
from gviz.values.value_text import norm

# Passes after the last step: the last, incomplete group of an accumulation


def left_over(survey: Survey) -> Iterator[Finding]:
    """Yield the passes after the last step, if a step followed each full group of passes before, all of one call."""
    timeline = survey.timeline
    groups: list[list[BackwardStarted]] = [[]]
    last = 0
    for seq, event in survey.select(BackwardStarted, OptimizerStepped):
        if isinstance(event, BackwardStarted):
            groups[-1].append(event)
        elif groups[-1]:
            groups.append([])
            last = seq
    *full, rest = groups
    counts, calls = {len(group) for group in full}, {event.stack for group in groups for event in group}
    if not rest or len(full) < 2 or len(counts) != 1 or len(calls) != 1 or not len(rest) < min(counts):
        return
    if not timeline.finished or timeline.failures:
        return
    step = timeline.event(last)
    assert isinstance(step, OptimizerStepped)
    (count,), frames = counts, timeline.stack(step.stack)
    text = f"no step uses the gradients of the last {len(rest)} backward pass{'es' * (len(rest) != 1)}"
    part = Finding("used", f"every other step came after {count} passes", last, next(iter(step.parameters), 0))
    fix = "call step() once more after the loop"
    numbers, at = (Number("passes", len(rest)),), frames[0] if frames else None
    yield Finding("left-over", text, last, 0, (part,), fix, at, numbers, suspected=True)


# Several passes of one call before each step, each of a mean: their sum is larger by their number


def summed_passes(survey: Survey) -> Iterator[Finding | None]:
    """Yield a call of backward that runs several times before each step, for the mean of a part each time."""
    timeline = survey.timeline
    groups: list[list[BackwardStarted]] = [[]]
    for _, event in survey.select(BackwardStarted, OptimizerStepped):
        yield None
        if isinstance(event, BackwardStarted):
            groups[-1].append(event)
        elif groups[-1]:
            groups.append([])
    groups = groups[: -1 if survey.optimized else 0]
    counts = {len(group) for group in groups}
    calls = {event.stack for group in groups for event in group}
    roots = [survey.nodes.get(node) for group in groups for event in group for node, _ in event.roots[:1]]
    if len(groups) < 2 or len(counts) != 1 or len(calls) != 1 or min(counts) < 2:
        return
    if any(record is None or not _is_mean(record) for record in roots) or not _adds_up(survey, groups[0]):
        return
    if divided_passes(survey):
        return
    (count,), (call,) = counts, calls
    frames, last = timeline.stack(call), roots[0]
    at, number_of = frames[0] if frames else None, f"{count} backward passes"
    assert last is not None
    text = f"the gradients of {number_of} add up before each step"
    mean = f"each begins at a mean, as {label_at(timeline, last.node)}: the sum is {count} times that of all parts"
    part = Finding("root", mean, last.seq, last.node)
    fix = f"divide each loss by the number of parts: (loss / {count}).backward()"
    edit = divided(timeline, at, count)
    numbers = (Number("passes", count),)
    yield Finding("summed-passes", text, last.seq, last.node, (part,), fix, at, numbers, suspected=True, edit=edit)


def divided_passes(survey: Survey) -> set[int]:
    """Return the passes whose gradients the program has divided by a number before the step used them.

    ``p.grad.div_(samples)`` makes a mean of a sum. One factor holds for all parameters: one over a whole number, or the
    same in several steps. The factor of a clipping is neither.
    """
    return survey.timeline.once(_divided_passes, survey.end)


def _divided_passes(timeline: Timeline, end: int) -> set[int]:
    latest: dict[int, tuple[Value, tuple[int, ...]]] = {}
    reached: defaultdict[int, set[int]] = defaultdict(set)
    factors: defaultdict[tuple[int, ...], dict[int, float]] = defaultdict(dict)
    for _, event in timeline.select((GradAccumulated, GradSet), 1, end + 1):
        if isinstance(event, GradAccumulated):
            earlier = latest[event.node][1] if event.value is not None and event.node in latest else ()
            latest[event.node] = event.value or event.part, (*earlier, event.pass_nr)
            reached[event.pass_nr].add(event.node)
        elif not isinstance(event, GradSet):
            continue
        elif event.value is None or event.how in CLEARED:
            latest.pop(event.node, None)
        elif event.node in latest:
            before, passes = latest[event.node]
            latest[event.node] = event.value, passes
            was, size = norm(before), norm(event.value)
            if was and size and size <= _HALF * was and not clips(timeline, event.stack):
                factors[passes][event.node] = was / size
    common: dict[tuple[int, ...], float] = {}
    for passes, each in factors.items():
        least, most = min(each.values()), max(each.values())
        if each.keys() == reached[passes[-1]] and most - least <= _ALIKE * most:
            common[passes] = most
    is_whole = all(abs(one - round(one)) <= _WHOLE for one in common.values())
    is_constant = len(common) > 1 and max(common.values()) - min(common.values()) <= _ALIKE * max(common.values())
    return {one for passes in common for one in passes} if is_whole or is_constant else set()


_HALF = 0.501
"""The largest factor by which a sum becomes a mean."""

_ALIKE, _WHOLE = 1e-3, 0.02
"""How far factors may be apart, relative to them, and how far one over a factor may be from a whole number."""


def _is_mean(record: NodeRecord) -> bool:
    return record.op == "mean" or (
        record.op in LOSSES and dict(record.created.attrs).get("reduction", "mean") == "mean"
    )


def _adds_up(survey: Survey, group: list[BackwardStarted]) -> bool:
    """Return whether the passes of a group add to the same gradients, and nothing clears them in between."""
    numbers = {event.pass_nr for event in group[1:]}
    added = [event for _, event in survey.accumulated if event.pass_nr in numbers]
    return bool(added) and all(event.value is not None for event in added)


# Means of parts with different numbers of targets: the mean over the parts is not the mean over the targets

_UNEVEN = 1.1
"""How much larger the greatest number of targets must be than the least."""

_SAME_FACTOR = 0.02

_MOST_NODES = 60
"""The most nodes of one loss that are examined for a mean, and those of one sum for a mask."""

_OVER_CLASSES = ("nll_loss", "nll_loss2d", "cross_entropy", "nll_loss_nd")


@dataclass(frozen=True, slots=True)
class _Mean:
    """A mean of targets in the loss of a pass: its last node, its weight in the loss, and how many targets it counts.

    `is_sum` is true for a mean by hand: a sum of what a mask selects, and a factor. Its weight is that of the mean.
    """

    record: NodeRecord
    weight: float
    count: int
    is_sum: bool


def uneven_means(survey: Survey) -> Iterator[Finding | None]:
    """Yield a call of backward for means of several parts before a step, if the parts count different targets."""
    group: list[BackwardStarted] = []
    for _, event in survey.select(BackwardStarted, OptimizerStepped):
        yield None
        if isinstance(event, BackwardStarted):
            group.append(event)
            continue
        if len(group) > 1 and len({started.stack for started in group}) == 1:
            means = _uneven_parts(survey, group)
            if means and _adds_up(survey, group):
                yield _uneven_finding(survey, group[-1], means)
                return
        group = []


def _uneven_parts(survey: Survey, group: Sequence[BackwardStarted]) -> list[_Mean]:
    """Return the means that one line makes in all passes of a group, with one weight and different numbers of targets.

    A program may weight each part by its number of targets.
    """
    by_line: defaultdict[int, list[_Mean]] = defaultdict(list)
    for started in group:
        lines = set(by_line)
        means = list(_means_of_targets(survey, started))
        for mean in means:
            by_line[mean.record.created.stack].append(mean)
        if not means or (lines and lines.isdisjoint(by_line)):
            return []
    for means in by_line.values():
        counts, weights = [mean.count for mean in means], [mean.weight for mean in means]
        is_each = len(means) == len(group) and len({mean.is_sum for mean in means}) == 1
        if not is_each or max(counts) <= _UNEVEN * min(counts):
            continue
        if max(weights) - min(weights) <= _SAME_FACTOR * max(weights):
            return means
    return []


def _means_of_targets(survey: Survey, started: BackwardStarted) -> Iterator[_Mean]:
    """Yield the means of targets whose multiples add up to the loss of a pass, by the numbers of all."""
    seeds = [_number(value) for value in started.seeds[:1]]
    root = survey.nodes.get(started.roots[0][0]) if len(started.roots) == 1 else None
    waiting = [(root, abs(seeds[0] if seeds else 1.0))] if root is not None else []
    for _ in range(_MOST_NODES):
        if not waiting:
            return
        record, weight = waiting.pop()
        if not weight or not _number(record.value):
            continue
        tracked = [one for one in survey.sources(record) if one.created.requires_grad]
        reduction = dict(record.created.attrs).get("reduction", "mean")
        if record.op in ("add", "sub"):
            waiting += [(one, weight) for one in tracked]
        elif record.op in ("mul", "div", "neg") or record.op in RESHAPING:
            value, source = _number(record.value), _number(tracked[0].value) if len(tracked) == 1 else 0.0
            if value and source:
                waiting.append((tracked[0], weight * abs(value / source)))
        elif record.op in _OVER_CLASSES and (count := _counted_targets(survey, record)):
            is_sum = reduction in ("sum", 2)
            yield _Mean(record, weight * count if is_sum else weight, count, is_sum)
        elif record.op in ("sum", "mean") and (count := _selected(survey, record)):
            is_sum = record.op == "sum"
            yield _Mean(record, weight * count if is_sum else weight, count, is_sum)


def _number(value: Value | None) -> float:
    """Return a known finite number; 0 otherwise."""
    stats = value.statistics() if value is not None and value.size == 1 else None
    return stats.mean if stats is not None and not stats.nan and not stats.inf and isfinite(stats.mean) else 0.0


def _selected(survey: Survey, reduced: NodeRecord) -> int:
    """Return the number of elements that a sum or mean gets from a mask of 0 and 1; 0 without such a mask.

    A mean counts only what an index by a mask has selected: it would divide by the zeros, too.
    """
    record = reduced
    for _ in range(_MOST_NODES):
        sources = list(survey.sources(record))
        tracked = [one for one in sources if one.created.requires_grad]
        if record.op in _BY_MASK and len(sources) > 1 and _ones(sources[-1]):
            return prod(record.shape)
        if record.op in _OVER_CLASSES and reduced.op == "sum":
            return _counted_targets(survey, record)
        masks = [one for one in sources if not one.created.requires_grad and _ones(one) is not None]
        if record.op in ("mul", "where", "masked_fill") and masks and reduced.op == "sum":
            ones = _ones(masks[0]) or 0
            return prod(masks[0].shape) - ones if record.op == "masked_fill" else ones
        is_carried = record.op in _CARRYING_MASKED or record is reduced
        if len(tracked) != 1 or not is_carried or (record.op == "mean" and record is not reduced):
            return 0
        record = tracked[0]
    return 0


_BY_MASK = frozenset({"masked_select", "index", "getitem"})
_CARRYING_MASKED = frozenset({"sum", "neg", "mul", "div", "pow", "square", "abs", *SAME_NUMBERS})
"""Operations between a sum and what a mask has selected."""


def _ones(record: NodeRecord) -> int | None:
    """Return how many elements of a mask are not 0; None if it has other numbers than 0 and 1."""
    stats = record.value.statistics() if record.value is not None else None
    if record.value is None or stats is None or record.value.size < 2 or stats.min < 0 or stats.max > 1:
        return None
    ones = record.value.size - stats.zero
    is_mask = record.value.dtype == "bool" or abs(stats.mean * record.value.size - ones) <= _ROUNDED * ones
    return ones if is_mask and ones else None


_ROUNDED = 1e-4


def _counted_targets(survey: Survey, record: NodeRecord) -> int:
    """Return the number of targets that a loss counts; 0 if it is unknown."""
    timeline, attrs = survey.timeline, dict(record.created.attrs)
    values = [timeline.memory_value(node, nr, record.seq) for node, nr in record.created.inputs[1:2] if node]
    if not values or values[0] is None or not values[0].dtype.startswith("int"):
        return 0
    array, stats, ignored = timeline.array(values[0]), values[0].statistics(), attrs.get("ignore_index", -100)
    if array is not None:
        return int((array != ignored).sum())
    if stats is None or not isinstance(ignored, int):
        return 0
    if ignored == 0:
        return values[0].size - stats.zero
    return values[0].size if not stats.min <= ignored <= stats.max else _total_weight(record)


def _total_weight(record: NodeRecord) -> int:
    """Return the number of targets by which a mean was divided, which is an output of ``nll_loss``; 0 if unknown."""
    outputs = record.created.outputs[1:2] if len(record.created.inputs) < _WITH_WEIGHT else ()
    return round(next(map(_number, (output.value for output in outputs)), 0.0))


_WITH_WEIGHT = 3


def _uneven_finding(survey: Survey, started: BackwardStarted, means: Sequence[_Mean]) -> Finding:
    timeline, last, counts = survey.timeline, means[-1], [mean.count for mean in means]
    frames, root = timeline.stack(started.stack), survey.nodes[started.roots[0][0]]
    text = f"means over {min(counts)} to {max(counts)} targets add up with one weight"
    each = f"the {len(counts)} parts before a step count {', '.join(map(str, counts[:8]))} targets"
    larger = f"{each}: a target in a small part has a larger weight"
    part = Finding("root", larger, last.record.seq, last.record.node, at=survey.at(last.record))
    fix = "reduction='sum' for each part, divided by the number of targets of all parts together"
    if last.record.op not in _OVER_CLASSES:
        fix = "divide the sum of each part by the number of targets of all parts of the step together"
    numbers = (Number("least", min(counts)), Number("most", max(counts)))
    at = survey.at(root) or (frames[0] if frames else None)
    return Finding("uneven-means", text, root.seq, root.node, (part,), fix, at, numbers, suspected=True)


# What the program's source code shows


def divided(timeline: Timeline, at: Frame | None, count: int) -> Edit | None:
    """Replace ``loss.backward()`` with ``(loss / 4).backward()``."""

    def change(text: ProgramText) -> Change:
        def known(part: ast.expr) -> str | None:
            if not (
                isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and called_name(part) == "backward"
            ):
                return None
            whole, value = text.segment(part), text.segment(part.func.value)
            return f"({value} / {count}){whole.removeprefix(value)}"

        return known

    return rewritten(timeline, at, change)

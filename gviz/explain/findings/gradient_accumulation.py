"""Backward passes that add up before one step: a sum that should be a mean, parts of different sizes, a rest."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Sequence
from math import isfinite, prod

from gviz.events import (
    BackwardStarted,
    GradAccumulated,
    GradSet,
    OptimizerStepped,
)
from gviz.explain.display_names import label_at
from gviz.explain.edit import Change, Edit, rewritten
from gviz.explain.finding import Finding, Number
from gviz.explain.findings.gradient_clearing import CLEARED
from gviz.explain.findings.gradient_clipping import clips
from gviz.explain.operation_sets import LOSSES
from gviz.explain.program_text import (
    ProgramText,
    called_name,
)
from gviz.explain.recording_overview import NodeRecord, Survey
from gviz.source.site import Frame
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


def uneven_means(survey: Survey) -> Iterator[Finding | None]:
    """Yield a call of backward for means of several parts before a step, if the parts count different targets."""
    timeline = survey.timeline
    group: list[BackwardStarted] = []
    for _, event in survey.select(BackwardStarted, OptimizerStepped):
        yield None
        if isinstance(event, BackwardStarted):
            group.append(event)
            continue
        losses: list[NodeRecord] = []
        if len({started.stack for started in group}) == 1:
            losses = [record for started in group if (record := _mean_of_targets(survey, started)) is not None]
        is_known = bool(losses) and len(losses) == len(group) and _have_one_factor(survey, group, losses)
        counts = [count for record in losses if (count := _counted_targets(timeline, record))] if is_known else []
        if counts and len(counts) == len(group) and max(counts) > _UNEVEN * min(counts) and _adds_up(survey, group):
            yield _uneven_finding(survey, group[-1], losses, counts)
            return
        group = []


def _mean_of_targets(survey: Survey, started: BackwardStarted) -> NodeRecord | None:
    """Return the mean of a loss over classes at which a pass began, also if it was divided by the number of parts."""
    record = survey.nodes.get(started.roots[0][0]) if len(started.roots) == 1 else None
    while record is not None and record.op in ("div", "mul") and not record.shape:
        record = next((one for one in survey.sources(record) if one.created.requires_grad), None)
    is_mean = record is not None and dict(record.created.attrs).get("reduction", "mean") in ("mean", 1)
    return record if record is not None and is_mean and record.op in _OVER_CLASSES else None


def _have_one_factor(survey: Survey, group: Sequence[BackwardStarted], losses: Sequence[NodeRecord]) -> bool:
    """Return whether all passes began at the same multiple of their loss, by the numbers of both.

    A program may weight each part by its number of targets.
    """
    factors = list[float]()
    for started, record in zip(group, losses, strict=True):
        root = survey.nodes[started.roots[0][0]]
        values = [*started.seeds[:1], root.value, record.value]
        stats = [value.statistics() for value in values if value is not None and value.size == 1]
        sizes = [one.mean if one is not None else 0.0 for one in stats]
        if len(sizes) < 2 or not all(isfinite(size) and size for size in sizes):
            return False
        factors.append(prod(sizes[:-1]) / sizes[-1])
    return max(factors) - min(factors) <= _SAME_FACTOR * max(map(abs, factors))


_SAME_FACTOR = 0.02

_OVER_CLASSES = ("nll_loss", "nll_loss2d", "cross_entropy", "nll_loss_nd")


def _counted_targets(timeline: Timeline, record: NodeRecord) -> int:
    """Return the number of targets that count; 0 if they are unknown."""
    values = [timeline.memory_value(node, nr, record.seq) for node, nr in record.created.inputs[1:2] if node]
    array = timeline.array(values[0]) if values and values[0] is not None else None
    ignored = dict(record.created.attrs).get("ignore_index", -100)
    return int((array != ignored).sum()) if array is not None else 0


def _uneven_finding(
    survey: Survey, started: BackwardStarted, losses: Sequence[NodeRecord], counts: Sequence[int]
) -> Finding:
    timeline, last = survey.timeline, losses[-1]
    frames, root = timeline.stack(started.stack), survey.nodes[started.roots[0][0]]
    text = f"means over {min(counts)} to {max(counts)} targets add up with one weight"
    each = f"the {len(counts)} parts before a step count {', '.join(map(str, counts[:8]))} targets"
    part = Finding("root", f"{each}: a target in a small part has a larger weight", last.seq, last.node)
    fix = "reduction='sum' for each part, divided by the number of targets of all parts together"
    numbers = (Number("least", min(counts)), Number("most", max(counts)))
    at = survey.at(root) or (frames[0] if frames else None)
    return Finding("uneven-means", text, root.seq, root.node, (part,), fix, at, numbers, suspected=True)


# What the text of the program says


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

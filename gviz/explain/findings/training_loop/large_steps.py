"""A learning rate so large that the first steps make parameters larger and larger, until a number is inf or nan.

Idea. The operation in which the first inf appears is correct, and so are its inputs' gradients: the parameters are too
large. If they have grown many times from the first steps on, while the rate did not change, it is the rate. The line to
change is the one that makes the optimizer.

Example. ``SGD(net.parameters(), lr=1.5, momentum=0.9)``: the rms of a weight goes from 0.18 to 1e31 in 6 steps.

Large features make steps too large at any usual rate. Then the finding names them, and the remedy is to standardize.

Limits. A training that worked for a while has another reason: a sample that is an outlier, or a rate that rises. So has
one whose first gradient is already huge, as of a sum over all elements. First weights that are too large are a kind of
their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite

from gviz.explain.backward_passes import (
    divergence_bound,
    growing_losses,
    passes_by_loss,
    root_value,
    row_text,
)
from gviz.explain.display_names import label
from gviz.explain.finding import Finding, Number
from gviz.explain.findings.gradient_values.nan_origin import first_bad_number
from gviz.explain.findings.gradient_values.nan_remedies import LEAPT
from gviz.explain.findings.training_loop.learning_rate import OptimizerRates, rates_by_optimizer
from gviz.explain.findings.training_loop.loss_trend import STANDARDIZE
from gviz.explain.optimizer_construction import rate_line
from gviz.explain.parameter_updates import Growth, growth
from gviz.explain.recording_survey import Survey
from gviz.explain.source_frames import own_frame
from gviz.values.number_text import number
from gviz.values.plain_text import shown

_GROWN = 100.0
"""How many times its size a parameter has at the end if its steps are too large."""

_GROWN_ALONE = 1e6
"""The same if no number became inf or nan: a target that grows makes parameters grow, too."""

_MOST_STEPS = 200
"""A training that takes more steps to diverge does so for another reason, such as a target that grows with it."""

_EARLY, _DOUBLED = 10, 2.0
"""A rate that is too large makes a parameter this many times as large in the first of its steps."""

_ORDINARY = 100.0
"""A first gradient above this many times its parameter is itself too large."""

_MANY = 5
"""The size of the first gradient is no reason if this many steps each made the parameters larger."""


@dataclass(frozen=True, slots=True)
class _ParameterGrowth:
    """How a parameter grew by a number of steps of an optimizer: from before the first to after the last."""

    leaf: int
    steps: OptimizerRates
    growth: Growth
    count: int


def large_steps(survey: Survey) -> Iterator[Finding | None]:
    """Yield the optimizer whose first steps have made its parameters so large that a number became inf or nan.

    All units may die before that. Then the loss is finite, but many times as large as at first.
    """
    timeline = survey.timeline
    fallen = None if timeline.error_index.first_bad() else _fallen_back(survey)
    if not timeline.error_index.first_bad() and fallen is None:
        return
    steps = yield from survey.once(rates_by_optimizer)
    if not steps:
        return
    origin = next(iter(first_bad_number(survey)), None)
    yield None
    if origin is None or origin.suspected:
        origin, fallen = None, fallen or _fallen_back(survey)
    elif origin.kind not in ("nan-born", "nan-born-backward"):
        return
    elif any(part.kind == "older" for part in origin.parts):
        return  # of a time that is not recorded
    elif _has_worked(survey, origin.event):
        return
    if origin is None and fallen is None:
        return
    end = origin.event if origin is not None else survey.end
    growths = [one for each in steps if (one := _largest(survey, each, end)) is not None]
    largest = max(growths, key=lambda one: one.growth.after, default=None)
    if largest is None or largest.count > _MOST_STEPS:
        return
    is_enough = origin is not None or largest.growth.factor > _GROWN_ALONE
    data = next((part for part in origin.parts if part.kind == "scale"), None) if origin is not None else None
    if is_enough and _is_of_rate(survey, largest, data):
        yield _finding(survey, largest, origin, data, fallen)


def _has_worked(survey: Survey, n: int) -> bool:
    """Return whether all losses of the passes before event `n` had fallen: parameters may grow to where they belong."""
    rows = list[list[float]]()
    for group in passes_by_loss(survey.timeline):
        values = [root_value(survey.timeline, phase.start) for phase in group.phases if phase.start < n]
        rows.append([value for value in values if value is not None and isfinite(value)])
    return all(row[-1] < row[0] for row in rows if row) and any(rows)


def _fallen_back(survey: Survey) -> tuple[float, float] | None:
    """Return the first and the last loss, if the last is many times as large, and no more the largest of all."""
    losses = [root_value(survey.timeline, seq) for seq, _ in survey.passes]
    known = [abs(value) for value in losses if value is not None and isfinite(value)]
    if len(known) < len(losses) or len(known) < _MANY or not divergence_bound(known) < known[-1] < max(known):
        return None
    return known[0], known[-1]


def _largest(survey: Survey, steps: OptimizerRates, n: int) -> _ParameterGrowth | None:
    """Return the parameter of an optimizer that its steps before event `n` have made the largest."""
    timeline, known = survey.timeline, list[_ParameterGrowth]()
    ends = [seq for seq in steps.ends if seq < n]
    if not ends:
        return None
    for leaf in steps.parameters & survey.nodes.keys():
        values = (timeline.memory_value(leaf, 0, seq) for seq in (steps.seqs[0], *ends[-2:]))
        size = growth(*values)
        if size is not None and size.factor > _GROWN:
            known.append(_ParameterGrowth(leaf, steps, size, len(ends)))
    return max(known, key=lambda one: one.growth.after, default=None)


def _is_of_rate(survey: Survey, one: _ParameterGrowth, data: Finding | None) -> bool:
    """Return whether the rate is the reason of a growth: it began at once, with a gradient of ordinary size.

    Of large data, the gradient is large, too.
    """
    timeline, steps, leaf = survey.timeline, one.steps, one.leaf
    if steps.is_maximizing or max(steps.rates) > 2 * steps.rates[0]:
        return False
    start, *early = [timeline.memory_value(leaf, 0, seq) for seq in (steps.seqs[0], *steps.ends[:_EARLY])]
    grew = [growth(start, value) for value in early]
    if not any(each is None or each.factor > _DOUBLED for each in grew):
        return False
    first = [event for seq, event in survey.accumulated if event.node == leaf and seq < steps.seqs[0]]
    gradient = growth(start, first[-1].part) if first else None  # compared to its parameter in the same way
    return data is not None or one.count >= _MANY or (gradient is not None and gradient.factor <= _ORDINARY)


def _finding(
    survey: Survey,
    one: _ParameterGrowth,
    origin: Finding | None,
    data: Finding | None,
    losses: tuple[float, float] | None,
) -> Finding:
    timeline, steps, leaf, end = survey.timeline, one.steps, one.leaf, survey.end
    count, rate, rows = one.count, number(steps.rates[0], 3), list[Finding]()
    text = f"training diverges: the steps of {shown(steps.first.kind)} at lr {rate} are too large"
    grew = f"rms of {label(timeline, leaf)} {number(one.growth.before, 2)} -> {number(one.growth.after, 2)}"
    after = f"; the loss {number(losses[0], 3)} -> {number(losses[1], 3)}" if losses is not None else ""
    if origin is not None:
        end, bad = origin.event, "inf" if "inf " in f"{origin.text} " else "nan"
        after = f"; first {bad} at {origin.where}" if origin.where else ""
        if values := growing_losses(timeline, end):
            rows = [Finding("grew", f"the loss grew from pass to pass: {row_text(values)}", end)]
        rows += [part for part in origin.parts if part.kind == "leapt"]
        rows.append(Finding("computed", origin.text, end, origin.node, origin.parts[:1], at=origin.at))
    where = origin.at if origin is not None else None
    size = f"lr {rate}: {grew} in {count:,} step{'s' * (count != 1)}{after}"
    parts = (Finding("size", size, end, leaf, at=where), *((data,) if data is not None else ()), *rows)
    fix = f"{LEAPT}: a tenth of {rate} first"
    if data is not None:
        text = f"training diverges: lr {rate} of {shown(steps.first.kind)} is too large for such large data"
        fix = STANDARDIZE
    at = rate_line(timeline, steps.first) or own_frame(timeline.stack(steps.first.stack))
    numbers = (Number("before", one.growth.before, steps.seqs[0]), Number("after", one.growth.after, end))
    return Finding("large-steps", text, end, leaf, parts, fix, at, numbers)

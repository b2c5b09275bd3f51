"""Predictions that the last function of a model keeps away from their targets.

Idea. A relu gives nothing below 0, a sigmoid nothing outside 0 to 1, a tanh nothing outside -1 to 1. If such a function
is the last one of a model, and the targets of its loss lie outside of what it can give, no training reaches them.

Example. ``F.mse_loss(torch.sigmoid(net(x)), y)`` with ``y`` of mean 40: the sigmoid is 1 everywhere, and has no
gradient any more. Scores of classes after a relu are at least 0: with ``binary_cross_entropy_with_logits`` no
probability is below one half.

Limits. A target may be noisy, so a few elements outside, or many that are just outside, are no finding: it takes a
fifth of them, and a tenth of the target's variance. Values that were not kept are judged by their mean and extremes
only. A clamp is left out, because it limits on purpose.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

import numpy as np

from gviz.explain.display_names import label, label_at, titled
from gviz.explain.finding import Finding, Number
from gviz.explain.findings.loss.broadcast import is_error
from gviz.explain.recording_survey import NodeRecord, Survey
from gviz.explain.source_edit import without_call
from gviz.values.number_text import number

_RANGES = {
    "relu": (0.0, inf), "softplus": (0.0, inf), "exp": (0.0, inf), "abs": (0.0, inf), "square": (0.0, inf),
    "sigmoid": (0.0, 1.0), "hardsigmoid": (0.0, 1.0), "softmax": (0.0, 1.0),
    "tanh": (-1.0, 1.0), "softsign": (-1.0, 1.0), "cos": (-1.0, 1.0), "sin": (-1.0, 1.0),
    "log_softmax": (-inf, 0.0), "logsigmoid": (-inf, 0.0),
}  # fmt: skip
"""What each function can give."""

_LOSSES = {"mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"}
_SHARE = 0.2
"""The part of the targets outside from which on it is a finding."""

_EXCESS = 0.1
"""The part of the target's variance that the mean square of what is outside must have."""

_SLACK = 0.05
"""How far outside an element counts, as a part of the range or of the largest target."""


def unreachable_targets(survey: Survey) -> Iterator[Finding | None]:
    """Yield losses with targets that the last function of the prediction cannot give: each line once."""
    seen: set[int] = set()
    for record in survey.ops(*_LOSSES, "sub"):
        created = record.created
        if created.stack in seen or not created.requires_grad or len(created.inputs) < 2:
            continue
        pair = list(survey.sources(record))[:2]
        data = [one for one in pair if not one.created.requires_grad and one.created.kind != "parameter"]
        tracked = [one for one in pair if one.created.requires_grad and one.created.kind == "op"]
        if len(data) != 1 or len(tracked) != 1 or not is_error(survey, record):
            continue
        yield None
        seen.add(created.stack)
        if not is_error(survey, record, only=True):
            continue  # the difference is also something else, as a residual is
        last = survey.unwrapped(tracked[0])
        if last.op in _RANGES and (share := _outside(survey, data[0], *_RANGES[last.op])) >= _SHARE:
            yield _finding(survey, record, last, data[0], share)


def _outside(survey: Survey, target: NodeRecord, low: float, high: float) -> float:
    """Return the part of a target that is outside a range; of statistics only, a half or nothing."""
    value = target.value
    stats = value.statistics() if value is not None else None
    if value is None or not value.size or not target.shape or "int" in value.dtype:
        return 0.0
    if stats is None or stats.nan or stats.inf:
        return 0.0
    slack = _SLACK * (high - low if inf not in (-low, high) else max(abs(stats.min), abs(stats.max)))
    low, high = low - slack, high + slack
    array = survey.timeline.array(value)
    if array is not None:
        beyond = array - np.clip(array, low, high)
        is_noise = (beyond**2).mean() < _EXCESS * array.var()
        return 0.0 if is_noise else float((beyond != 0).mean())
    return 0.5 if not low <= stats.mean <= high else 0.0


def _finding(survey: Survey, record: NodeRecord, last: NodeRecord, target: NodeRecord, share: float) -> Finding:
    timeline = survey.timeline
    low, high = _RANGES[last.op]
    gives = f"at least {low:g}" if high == inf else f"at most {high:g}" if low == -inf else f"{low:g} to {high:g}"
    text = titled(f"{{}} gives {gives}, which does not reach the targets", label(timeline, last.node))
    stats = target.value.statistics() if target.value is not None else None
    span = f"{number(stats.min)} .. {number(stats.max)}" if stats is not None else "outside"
    beyond = f"{label_at(timeline, target.node)} is {span}: {share:.0%} of it is outside"
    part = Finding("target", beyond, target.seq, target.node)
    fix = f"leave out the {last.op} after the last layer, or scale the targets into its range"
    at = survey.at(last)
    edit = without_call(timeline, at, last.op)
    numbers = (Number("outside", share, target.seq),)
    return Finding("unreachable-target", text, record.seq, last.node, (part,), fix, at, numbers, edit=edit)


def rectified_scores(survey: Survey) -> Iterator[Finding | None]:
    """Yield losses of scores after a relu, which are never negative: each line once.

    In a cross entropy the other classes may still be higher, so it is a note.
    """
    timeline, seen = survey.timeline, set[int]()
    for record in survey.ops("binary_cross_entropy_with_logits", "log_softmax"):
        first = next(survey.sources(record), None)
        if record.created.stack in seen or first is None or not record.created.requires_grad:
            continue
        yield None
        seen.add(record.created.stack)
        relu = survey.unwrapped(first)
        is_binary = record.op != "log_softmax"
        if relu.op != "relu" or not relu.created.requires_grad or not (is_binary or _is_of_classes(survey, record)):
            continue
        text = titled("the scores of {} come from a relu: none is negative", label(timeline, record.node))
        never = "no probability is below 0.5" if is_binary else "a class can only rise above the others, never sink"
        part = Finding("operand", f"{label_at(timeline, relu.node)}: {never}", relu.seq, relu.node)
        fix = "leave out the relu after the last layer: the loss takes scores of any sign"
        at = survey.at(relu)
        edit = without_call(timeline, at, "relu")
        yield Finding(
            "rectified-scores", text, record.seq, relu.node, (part,), fix, at, suspected=not is_binary, edit=edit
        )


def _is_of_classes(survey: Survey, record: NodeRecord) -> bool:
    """Return whether a loss of classes takes these log-probabilities."""
    users = (survey.timeline.info(node).op.base_name for node in survey.timeline.nodes.users(record.node))
    return any(op in ("nll_loss", "nll_loss2d") for op in users)

"""A mask over the weights of a softmax, whose rows no longer add up to one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import prod

import numpy as np

from gviz.explain.display_names import label, label_at, titled
from gviz.explain.finding import Finding
from gviz.explain.operation_sets import DROPOUTS, RESHAPING, SAME_NUMBERS, WEIGHTED_SUMS
from gviz.explain.recording_survey import NodeRecord, Survey
from gviz.explain.source_edit import softmax_last
from gviz.explain.source_frames import innermost
from gviz.values.number_text import number

_MASKS = ("mul", "masked_fill", "where", "add", "sub", "setitem", "index_put")
_HIDDEN = -100.0
"""A number in a mask for scores: at most this, or -inf. No weight of a softmax is below 0."""


def masked_after_softmax(survey: Survey) -> Iterator[Finding | None]:
    """Yield masks over a softmax whose result serves as weights: with rows below one, or with -inf for a weight."""
    for record in survey.ops(*_MASKS):
        yield None
        if not record.created.requires_grad:
            continue
        sources = list(survey.sources(record))
        softmax = next((one for one in map(survey.unwrapped, sources) if one.op == "softmax"), None)
        masks = [one for one in sources if not one.created.requires_grad]
        tracked = [one for one in sources if one.created.requires_grad]
        first = _before_dropouts(survey, tracked[0]) if masks and len(tracked) == 1 else None
        if first is not None and _has_scores_hidden(record, first):
            if _multiplies(survey, record):
                yield _score_mask_finding(survey, first, record, masks)
        elif softmax is None or softmax.shape != record.shape or record.op not in ("mul", "masked_fill", "where"):
            continue
        elif masks and _weights(survey, record) and (lost := _lost_weight(survey, softmax, record, masks)):
            yield _masked_finding(survey, softmax, record, lost)


def _before_dropouts(survey: Survey, record: NodeRecord) -> NodeRecord | None:
    """Return the softmax behind a view, a copy or a dropout; None for any other tensor."""
    record = survey.unwrapped(record)
    while record.op in DROPOUTS and (source := next(survey.sources(record), None)) is not None:
        record = survey.unwrapped(source)
    return record if record.op == "softmax" else None


def _has_scores_hidden(record: NodeRecord, softmax: NodeRecord) -> bool:
    """Return whether an operation has made weights of -inf or large negative numbers of those of a softmax."""
    stats = [one.value.statistics() if one.value is not None else None for one in (record, softmax)]
    if stats[0] is None or stats[1] is None or record.shape != softmax.shape or stats[1].inf:
        return False
    return bool(stats[0].inf) or stats[0].min <= _HIDDEN


def _multiplies(survey: Survey, record: NodeRecord) -> bool:
    """Return whether a tensor is a factor of a product, at once or after views and dropouts."""
    waiting, seen = [record.node], {record.node}
    while waiting and len(seen) < _MOST_USERS:
        for node in survey.timeline.nodes.users(waiting.pop()):
            user = survey.nodes.get(node)
            if user is None or not user.created.requires_grad or node in seen:
                continue
            if user.op in WEIGHTED_SUMS | {"mul"}:
                return True
            if user.op in SAME_NUMBERS | DROPOUTS:
                seen.add(node)
                waiting.append(node)
    return False


_MOST_USERS = 20


def _score_mask_finding(
    survey: Survey, softmax: NodeRecord, record: NodeRecord, masks: Sequence[NodeRecord]
) -> Finding:
    """Return the finding about a mask for scores that was written into the weights of a softmax."""
    timeline, at, first_at = survey.timeline, survey.at(record), survey.at(softmax)
    stats = record.value.statistics() if record.value is not None else None
    hidden = "-inf" if stats is None or stats.inf else number(stats.min)
    names = label(timeline, record.node), label(timeline, softmax.node)
    text = titled(f"{{}} writes {hidden} into the weights of {{}}, after the softmax", *names)
    size = f"{stats.inf} of {prod(record.shape)} weights are" if stats is not None and stats.inf else "weights are"
    means = f"{size} {hidden}, where a hidden position has the weight 0: a softmax makes 0 of such scores"
    parts = (
        Finding("mask", means, record.seq, record.node),
        Finding("first", f"{label_at(timeline, softmax.node)} came before it", softmax.seq, softmax.node, at=first_at),
    )
    edit = None
    if not stats or not stats.inf or _leaves_rows(survey, record, masks):
        edit = softmax_last(timeline, first_at, at)
    fix = "mask the scores, before the softmax, which makes weights of 0 of them"
    return Finding("masked-after-softmax", text, record.seq, record.node, parts, fix, at, edit=edit)


def _leaves_rows(survey: Survey, record: NodeRecord, masks: Iterable[NodeRecord]) -> bool:
    """Return whether it is known that each row keeps a weight: softmax of a row of -inf is nan."""
    values = [one.value for one in (record, *masks) if one.value is not None]
    for value in values:
        array = survey.timeline.array(value) if value.shape else None
        if array is None:
            continue
        hidden = array if value.dtype == "bool" else np.isinf(array)
        if hidden.ndim and value.dtype != "bool":
            return not bool(hidden.all(-1).any())
        if hidden.ndim and record.op == "masked_fill":
            return not bool(hidden.all(-1).any())
    return False


_KEEPING = RESHAPING | DROPOUTS | {"permute", "contiguous"}
"""Operations between weights and their product. Those of an einsum may exchange dimensions."""


def _weights(survey: Survey, record: NodeRecord) -> bool:
    """Return whether a node is a factor of a matrix product, as attention weights are, not divided by its sum."""
    users = [survey.nodes[node] for node in survey.timeline.nodes.users(record.node) if node in survey.nodes]
    if any(user.op in ("sum", "div", "norm", "softmax") for user in users):
        return False
    return any(user.op in WEIGHTED_SUMS or (user.op in _KEEPING and _weights(survey, user)) for user in users)


def _lost_weight(survey: Survey, softmax: NodeRecord, record: NodeRecord, masks: Sequence[NodeRecord]) -> str:
    """Return ``8 of 10 rows add up to 0.2 .. 0.81``; empty if all rows add up to one, or are masked as a whole."""
    array = survey.timeline.array(record.value) if record.value is not None else None
    before = survey.timeline.array(softmax.value) if softmax.value is not None else None
    dim = dict(softmax.created.attrs).get("dim")
    if not isinstance(dim, int):
        return ""
    if array is None or before is None or array.shape != before.shape:
        return (
            _lost_on_average(survey, softmax, record, masks) if dim % len(record.shape) == len(record.shape) - 1 else ""
        )
    kept = (array == 0) | np.isclose(array, before, rtol=1e-3, atol=1e-6)
    sums = array.sum(axis=dim)
    below = sums[(sums > 0) & (sums < 0.99)]
    if not below.size or not kept.all():
        return ""
    low, high = (number(float(each)) for each in (below.min(), below.max()))
    return f"{below.size} of {sums.size} rows add up to {low if low == high else f'{low} .. {high}'}, not to 1"


def _lost_on_average(survey: Survey, softmax: NodeRecord, record: NodeRecord, masks: Sequence[NodeRecord]) -> str:
    """Return ``the rows add up to 0.52 on average``, from the statistics of a mask of zeros and ones; else empty.

    If the mask hid only whole rows, its zeros would be as many as the elements of these rows, and the others would
    still add up to 1. A weight of the softmax that is 0 may have been masked before it.
    """
    row = record.shape[-1]
    mask = next((one.value for one in masks if one.shape and one.shape[-1] == row and one.value is not None), None)
    stats = [one.statistics() if one is not None else None for one in (softmax.value, record.value, mask)]
    if mask is None or stats[0] is None or stats[1] is None or stats[2] is None or record.op == "where":
        return ""
    zeros, ones = stats[2].zero, round(stats[2].mean * mask.size)
    hidden = ones if record.op == "masked_fill" else zeros
    if stats[0].zero or zeros + ones != mask.size or (stats[2].min, stats[2].max) != (0, 1) or not hidden % row:
        return ""
    mean, left = stats[1].mean * row, 1 - hidden // row * row / mask.size
    return f"the rows add up to {number(mean, 3)} on average, not to 1" if mean < _LESS * left else ""


_LESS = 0.9999


def _masked_finding(survey: Survey, softmax: NodeRecord, record: NodeRecord, lost: str) -> Finding:
    timeline = survey.timeline
    names = label(timeline, record.node), label(timeline, softmax.node)
    text = titled("{} masks the weights of {} after the softmax", *names)
    part = Finding("sum", lost, record.seq, record.node)
    fix = "mask the scores before it: scores.masked_fill(~mask, -inf), or divide each row by its sum"
    return Finding(
        "masked-after-softmax", text, record.seq, record.node, (part,), fix, innermost(timeline.info(record.node))
    )

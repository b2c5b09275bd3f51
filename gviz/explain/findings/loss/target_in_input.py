"""Targets that the model gets as a part of its input, so that it can copy them."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import numpy as np

from gviz.events import Output
from gviz.explain.display_names import label, label_at, titled
from gviz.explain.finding import Finding
from gviz.explain.findings.loss.shifted_labels import predicts_earlier_tokens
from gviz.explain.operation_sets import CLASS_LOSSES, LOSSES_OF_PAIRS, SAME_NUMBERS
from gviz.explain.recording_survey import NodeRecord, Survey
from gviz.explain.tracking import ancestors
from gviz.trace.timeline import Timeline
from gviz.values.value import Value


def target_in_input(survey: Survey) -> Iterator[Finding | None]:
    """Yield targets that are one place in the windows of a series that the model gets, in the same memory.

    A target that is a column of other data may be a small exercise. Labels of tokens are `_copied_tokens`.
    """
    yield from _copied_tokens(survey)
    timeline, seen = survey.timeline, set[int]()
    for record in survey.ops("sub", *LOSSES_OF_PAIRS):
        pair = list(survey.sources(record))[:2]
        data = [one for one in pair if not one.created.requires_grad and one.shape]
        tracked = [one for one in pair if one.created.requires_grad and one.created.kind == "op"]
        if record.created.stack in seen or len(data) != 1 or len(tracked) != 1 or not survey.roots:
            continue
        yield None
        seen.add(record.created.stack)
        target = data[0].created.outputs[0]  # a tensor with a shape has an output
        for node in ancestors(timeline, tracked[0].node):
            source = survey.nodes.get(node)
            if source is None or source.created.requires_grad or not source.created.outputs:
                continue
            if source.created.outputs[0].storage != target.storage:
                continue
            if (column := _column_of(source.created.outputs[0], target)) is not None:
                yield _in_input_finding(survey, record, data[0], source, *column)
                break


_FEWEST_TOKENS, _FEWEST_BY_STATISTICS = 8, 3
"""The fewest tokens of a pass; the fewest passes, if only statistics are known, which another order shares."""


_REORDERING = {"flip", "fliplr", "flipud", "sort", "rot90", "roll", "cat"}


def _copied_tokens(survey: Survey) -> Iterator[Finding | None]:
    """Yield labels of a cross entropy that are, in every pass, the indices that an embedding of the model got."""
    timeline, pairs = survey.timeline, list[tuple[NodeRecord, NodeRecord, NodeRecord]]()
    for record in survey.ops(*CLASS_LOSSES):
        yield None
        sources = list(survey.sources(record))
        labels = next((one for one in sources if "int" in (one.value.dtype if one.value else "")), None)
        if labels is None or labels.value is None or not record.created.requires_grad:
            continue
        if labels.value.size < _FEWEST_TOKENS:
            return
        indices = (
            source
            for node in ancestors(timeline, record.node)
            if (one := survey.nodes.get(node)) is not None and one.op == "embedding"
            for source in survey.sources(one)
        )
        same = next((one for one in indices if _are_equal(timeline, one, labels.value)), None)
        if same is None or _has_sliced_scores(survey, record):
            return
        pairs.append((record, labels, same))
    if not pairs:
        return
    record, labels, same = pairs[0]
    is_known = labels.value is not None and timeline.array(labels.value) is not None
    if not is_known and (len(pairs) < _FEWEST_BY_STATISTICS or _is_reordered(survey, labels, same)):
        return
    if not is_known and predicts_earlier_tokens(survey):
        return
    how = "are what the model gets, token by token" if is_known else "have the numbers that the model gets"
    text = titled(f"the labels of {{}} {how}", label(timeline, record.node))
    often = f"in each of {len(pairs)} passes" if len(pairs) > 1 else "in the one pass"
    equals = "equals" if is_known else "has the same least, largest and mean number as"
    equal = f"{label_at(timeline, labels.node)} {equals} {label(timeline, same.node)} {often}"
    part = Finding("target", equal, labels.seq, labels.node)
    fix = "to predict the next token, labels one place later: x, y = tokens[:, :-1], tokens[:, 1:]"
    yield Finding("target-in-input", text, record.seq, record.node, (part,), fix, survey.at(labels), suspected=True)


def _has_sliced_scores(survey: Survey, loss: NodeRecord) -> bool:
    """Return whether a loss takes scores of some places only, which may be those before each token of its labels."""
    nodes = (survey.nodes[node] for node in ancestors(survey.timeline, loss.node) if node in survey.nodes)
    return any(
        record.op in _SLICING
        and record.created.requires_grad
        and len(record.shape) > 2
        and any(prod(source.shape) > prod(record.shape) for source in survey.sources(record))
        for record in nodes
    )


_SLICING = {"slice", "getitem", "index", "narrow"}


def _is_reordered(survey: Survey, labels: NodeRecord, indices: NodeRecord) -> bool:
    """Return whether labels went through an operation that changes the order of their elements, and indices did not."""
    timeline = survey.timeline
    common = {indices.node, *ancestors(timeline, indices.node)}
    nodes = {labels.node, *ancestors(timeline, labels.node)} - common
    return any(survey.nodes[node].op in _REORDERING for node in nodes if node in survey.nodes)


def _are_equal(timeline: Timeline, one: NodeRecord, given: Value) -> bool:
    """Return whether two tensors of whole numbers are equal; if they were not kept, whether their statistics are."""
    value = one.value
    if value is None or value.size != given.size or "int" not in value.dtype:
        return False
    own, other = timeline.array(value), timeline.array(given)
    if own is not None and other is not None:
        return bool((own.ravel() == other.ravel()).all()) and len(np.unique(own)) > 1
    stats = value.statistics()
    return stats is not None and stats == given.statistics() and stats.min < stats.max


def _column_of(whole: Output, part: Output) -> tuple[int, int] | None:
    """Return the dimension, after the first, and the index at which one tensor is another, by their memory.

    Windows that overlap, and a part of them, never fill a memory in its order: they have strides.
    """
    if whole.value is None or part.value is None or whole.strides is None or part.strides is None:
        return None
    shape, strides = whole.value.shape, whole.strides
    layout = [(size, step) for size, step in zip(part.value.shape, part.strides, strict=True) if size > 1]
    for dim in range(1, len(shape)):
        rest = [(n, s) for at, (n, s) in enumerate(zip(shape, strides, strict=True)) if at != dim and n > 1]
        index, left = divmod(part.offset - whole.offset, strides[dim]) if strides[dim] else (0, 1)
        is_window = strides[dim] in [step for _, step in rest]  # neighbours overlap
        if is_window and shape[dim] > 2 and rest == layout and not left and 0 <= index < shape[dim]:
            return dim, index
    return None


def _in_input_finding(
    survey: Survey, record: NodeRecord, target: NodeRecord, source: NodeRecord, dim: int, index: int
) -> Finding:
    timeline = survey.timeline
    text = titled("the target of {} is a part of what the model gets", label(timeline, record.node))
    place = f"[{', '.join([':'] * dim + [str(index)])}]"
    same = f"{label_at(timeline, target.node)} is {label(timeline, source.node)}{place}, in the same memory"
    part = Finding("target", f"{same}: the model can copy it", target.seq, target.node)
    named = next((one for one in _views_of(survey, target) if survey.timeline.info(one.node).name), target)
    fix = "a target that is not in the input: for the next step of a series one place later"
    return Finding("target-in-input", text, record.seq, record.node, (part,), fix, survey.at(named), suspected=True)


def _views_of(survey: Survey, record: NodeRecord) -> Iterator[NodeRecord]:
    """Yield the tensors that a view was made from, one after the other."""
    while record.op in SAME_NUMBERS and (source := next(survey.sources(record), None)) is not None:
        record = source
        yield record

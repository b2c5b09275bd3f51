"""Losses that compute something unintended: shapes that broadcast, sums, softmax twice, attached targets, cut terms."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from math import isclose

import numpy as np

from gviz.events import GradCaptured, OptimizerStepped, Output
from gviz.explain.display_names import innermost, label, label_at, titled, why_cut
from gviz.explain.edit import (
    Edit,
    divided_by_mask,
    operand,
    renamed_call,
    switch_of,
    with_argument,
    with_keyword,
    without_call,
    wrapped,
)
from gviz.explain.finding import Finding, Number
from gviz.explain.findings.error import gradients_taken
from gviz.explain.findings.group_softmax import softmax_of_other_groups
from gviz.explain.findings.optimizer_step import divided_passes
from gviz.explain.operation_sets import (
    DROPOUTS,
    ELEMENTWISE_PAIRS,
    LISTS,
    LOSSES,
    LOSSES_OF_PAIRS,
    RESHAPING,
    SAME_NUMBERS,
    SOFTMAXES,
)
from gviz.explain.parameter_updates import options_of
from gviz.explain.program_source import assignment, called_at, called_function, line_text, numbers_read
from gviz.explain.recording_overview import NodeRecord, Survey
from gviz.explain.tracking import CREATE_GRAPH, ancestors, descendants, loses_tracking, mend
from gviz.source.site import Frame
from gviz.source.syntax import ARITHMETIC
from gviz.trace.timeline import Timeline
from gviz.values.number_text import number, shape_text
from gviz.values.plain_text import shown
from gviz.values.value import Array, Value

# A column against a row of as many elements: (n,1) with (n,) gives (n,n), and a loss of every pair


def broadcast(survey: Survey) -> Iterator[Finding | None]:
    """Yield elementwise operations where neither input has the shape of the result, or a vector meets the columns."""
    yield from _by_column(survey)
    reported: set[int] = set()
    for record in survey.ops(*ELEMENTWISE_PAIRS):
        yield None
        pair = [_before_widening(survey, source) for source in survey.sources(record)][:2]
        if len(pair) != 2 or record.node in reported:
            continue
        if not record.created.requires_grad:
            meeting = _weighed_row(survey, record, pair)
            if meeting is not None:
                reported.add(meeting.record.node)
                yield _weights_finding(survey, record, pair, meeting)
            continue
        if record.op in _DIFFERENCES and _is_one_prediction_for_each(survey, record, *pair):
            yield _target_finding(survey, record, *pair)
        if len(record.shape) == 2 and record.shape[0] != record.shape[1]:
            continue
        if _column_and_row(*(source.shape for source in pair)):
            if not _is_outer(survey, record, pair):
                yield _broadcast_finding(survey, record, pair)
        elif record.op in _DIFFERENCES and _is_one_target_for_each(survey, record, *pair):
            yield _target_finding(survey, record, *pair)


# A number for each sample against images whose width happens to be the number of samples


def _by_column(survey: Survey) -> Iterator[Finding | None]:
    """Yield products of images with a vector that was looked up by an index of samples, and meets their columns.

    ``alpha[t] * x`` with ``t`` of shape (16,) and ``x`` of shape (16,1,16,16) raises no error. The index is one of
    samples if the program makes another one for each batch.
    """
    timeline, seen = survey.timeline, set[int]()
    are_samples: dict[int, bool] = {}  # by the call stack of an index
    for record in survey.ops("mul", "div", "add", "sub", "rsub"):
        shape = record.shape
        if record.created.stack in seen or len(shape) < _IMAGES or shape[0] != shape[-1] or shape[0] < 2:
            continue
        yield None
        pair = list(survey.sources(record))[:2]
        vector = next((one for one in pair if one.shape == shape[-1:]), None)
        images = next((one for one in pair if one.shape == shape), None)
        index = _looked_up_by(survey, vector) if vector is not None else None
        if vector is None or images is None or index is None:
            continue
        stack = index.created.stack
        if stack not in are_samples:
            are_samples[stack] = _is_of_samples(survey, index)
        if not are_samples[stack]:
            continue
        seen.add(record.created.stack)
        names = label(timeline, vector.node), label(timeline, images.node)
        text = titled(f"{{}} {shape_text(vector.shape)} meets the columns of {{}} {shape_text(shape)}", *names)
        by = f"it has one number for each element of {label_at(timeline, index.node)}, which is another in each batch"
        part = Finding("operand", f"{by}; shapes are matched from the right", index.seq, index.node)
        fix = f"if it belongs to the rows of the batch: .view({', '.join(['-1', *['1'] * (len(shape) - 1)])})"
        yield Finding("broadcast", text, record.seq, record.node, (part,), fix, survey.at(record), suspected=True)


_IMAGES = 3
"""The least rank of a batch of rows with columns."""


def _looked_up_by(survey: Survey, vector: NodeRecord) -> NodeRecord | None:
    """Return the index of whole numbers by which a vector, or what it is computed from, was looked up in a table."""
    record: NodeRecord | None = vector
    while record is not None and record.shape == vector.shape and not record.created.requires_grad:
        sources = [one for one in survey.sources(record) if one.shape]
        if record.op in _LOOKUPS and len(sources) == 2:
            index = sources[1]
            is_whole = index.value is not None and "int" in index.value.dtype
            return index if index.shape == vector.shape and is_whole else None
        record = sources[0] if len(sources) == 1 else None
    return None


_LOOKUPS = ("getitem", "index", "gather", "index_select", "take")


def _is_of_samples(survey: Survey, index: NodeRecord) -> bool:
    """Return whether the line that made an index has made one with other numbers, too, and one that is no order."""
    alike = (record for record in survey.nodes.values() if record.created.stack == index.created.stack)
    values = {(value.data, value.stats): value for record in alike if (value := record.value) is not None}
    arrays = [array for value in values.values() if (array := survey.timeline.array(value)) is not None]
    return len(values) > 1 and any(sorted(array.tolist()) != list(range(array.size)) for array in arrays)


_DIFFERENCES = {"sub", *LOSSES_OF_PAIRS}


_POWERS = {"pow", "square", "abs"}


def is_error(survey: Survey, record: NodeRecord, *, only: bool = False) -> bool:
    """Return whether a node is a loss, or a difference that an error is made from: with `only`, nothing else."""
    users = [survey.timeline.info(node).op.base_name for node in survey.timeline.nodes.users(record.node)]
    if only:
        return record.op != "sub" or (bool(users) and all(op in _ERRORS for op in users))
    return record.op != "sub" or any(op in _POWERS for op in users)


def _is_one_target_for_each(survey: Survey, record: NodeRecord, one: NodeRecord, other: NodeRecord) -> bool:
    """Check whether a column or a row of data is the target of every element of a square matrix of predictions.

    Data of that shape in a normalization is computed from the matrix itself, and requires a gradient as it does.
    """
    data, trained = sorted((one, other), key=lambda each: each.created.requires_grad)
    if len(record.shape) != 2 or len({*record.shape}) != 1 or trained.shape != record.shape:
        return False
    n = record.shape[0]
    if data.shape not in ((n, 1), (n,)) or n < 2:
        return False
    if data.created.requires_grad or data.created.kind == "parameter" or trained.created.kind != "op":
        return False
    return is_error(survey, record) and trained.node not in ancestors(survey.timeline, data.node)


def _target_finding(survey: Survey, record: NodeRecord, one: NodeRecord, other: NodeRecord) -> Finding:
    """Return the finding about one target for several predictions, or several targets for one.

    The first are most likely scores of classes, the second has a column for each part of what is to be summed.
    """
    timeline = survey.timeline
    data, trained = sorted((one, other), key=lambda each: each.created.requires_grad)
    names = label(timeline, trained.node), label(timeline, data.node)
    text = titled(f"{{}} is {shape_text(trained.shape)}, but its target {{}} is {shape_text(data.shape)}", *names)
    each = f"each target is compared with {trained.shape[0]} predictions"
    fix = "for classes cross_entropy, which takes one index for each row"
    parts: tuple[Finding, ...] = ()
    if trained.shape != record.shape:
        each = f"each prediction is compared with {data.shape[1]} targets"
        fix = "a sum over dim=1, keepdim=True, of what has a column for each part"
        if (wide := _widening_operand(survey, data)) is not None:
            columns = f"its {data.shape[1]} columns come from {label_at(timeline, wide.node)}"
            parts = (Finding("target", columns, wide.seq, wide.node, at=survey.at(wide)),)
    parts = (Finding("operand", f"the shapes broadcast: {each}", data.seq, data.node), *parts)
    fix = f"a target of the shape of the prediction; {fix}"
    return Finding("broadcast", text, record.seq, record.node, parts, fix, survey.at(record), suspected=True)


def _is_one_prediction_for_each(survey: Survey, record: NodeRecord, one: NodeRecord, other: NodeRecord) -> bool:
    """Check whether a column of predictions is compared with a matrix of data: several targets for each of them.

    Several predictions for one target, as those of two critics, may be meant.
    """
    data, trained = sorted((one, other), key=lambda each: each.created.requires_grad)
    if data.created.requires_grad or trained.created.kind != "op" or data.created.kind == "parameter":
        return False
    if len(data.shape) != 2 or data.shape[1] < 2 or trained.shape != (data.shape[0], 1) or data.shape[0] < 2:
        return False
    return is_error(survey, record) and trained.node not in ancestors(survey.timeline, data.node)


def _widening_operand(survey: Survey, record: NodeRecord) -> NodeRecord | None:
    """Return the first operand with several columns that met a single column on the way to a tensor."""
    found, narrow = None, (record.shape[0], 1)
    for _ in range(_MOST_SUMMANDS):
        sources = list(survey.sources(record))
        wide = [one for one in sources if one.shape == record.shape]
        if len(wide) != 1:
            break
        if any(one.shape == narrow for one in sources):
            found = wide[0]
        record = wide[0]
    return found


def _before_widening(survey: Survey, record: NodeRecord) -> NodeRecord:
    """Return the argument of a loss function before it was expanded."""
    source = next(survey.sources(record), None) if record.op == "expand" else None
    return record if source is None else _before_widening(survey, source)


def _is_outer(survey: Survey, record: NodeRecord, pair: list[NodeRecord]) -> bool:
    """Return whether the program wants every pair of elements, as a matrix of differences or a table of products does.

    It does if it makes the column on the same line (``x[:, None] - x``), if both are one tensor, if the result meets
    data of its own shape, or if it is multiplied as a matrix.
    """
    if survey.unwrapped(pair[0]).node == survey.unwrapped(pair[1]).node:
        return True
    at = survey.at(record)
    column = max(pair, key=lambda one: len(one.shape))
    made = survey.at(column) if column.op in _MAKING_COLUMNS else None
    if at is not None and made is not None and (made.path, made.line) == (at.path, at.line):
        return not _is_mean_error(survey, record)
    waiting, seen = [record.node], {record.node}
    while waiting and len(seen) < _MOST_SUMMANDS:
        for user in (survey.nodes.get(node) for node in survey.timeline.nodes.users(waiting.pop())):
            if user is None or user.node in seen:
                continue
            seen.add(user.node)
            others = [one for one in survey.sources(user) if one.shape == record.shape and one.node not in seen]
            if user.op in _WEIGHTED or any(_is_given(one) for one in others):
                return True
            if user.shape == record.shape:
                waiting.append(user.node)
    return False


def _is_mean_error(survey: Survey, record: NodeRecord) -> bool:
    """Return whether a difference to data is only averaged after its square: ``((p - y[:, None]) ** 2).mean()``."""
    if record.op != "sub" or not any(map(_is_given, survey.sources(record))):
        return False
    users = survey.timeline.nodes.users
    ends = [survey.timeline.info(end) for error in users(record.node) for end in users(error)]
    is_number = all(end.op.base_name in ("mean", "sum") and _is_number(end.created.first_value) for end in ends)
    return is_error(survey, record, only=True) and bool(ends) and is_number


def _is_number(value: Value | None) -> bool:
    return value is not None and not value.shape


_MAKING_COLUMNS = {"unsqueeze", "getitem", "view", "reshape"}


def _is_given(record: NodeRecord) -> bool:
    """Return whether a tensor is data."""
    return not record.created.requires_grad and record.created.kind != "parameter"


def _column_and_row(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    row, column = sorted((one, other), key=len)
    return len(row) == 1 and row[0] > 1 and column == (row[0], 1)


def _broadcast_finding(survey: Survey, record: NodeRecord, pair: list[NodeRecord]) -> Finding:
    timeline = survey.timeline
    one, other = (shape_text(source.shape) for source in pair)
    n = max(chain.from_iterable(source.shape for source in pair))
    text = titled(f"{{}}: {one} with {other} becomes ({n},{n})", label(timeline, record.node))
    left, right = (f"{label(timeline, source.node)} is {shape_text(source.shape)}" for source in pair)
    every = f"{left} and {right}: every element meets every other"
    parts = (Finding("operand", every, pair[0].seq, pair[0].node),)
    fix = "squeeze(-1) the column, or unsqueeze(-1) the row, so that both have the same shape"
    at = innermost(timeline.info(record.node))
    column = next((nr for nr, source in enumerate(pair) if len(source.shape) == 2), 0)
    edit = operand(timeline, at, column, ".squeeze(-1)")
    return Finding("broadcast", text, record.seq, record.node, parts, fix, at, edit=edit)


# The same of data, before a loss takes the mean of its product with a trained row
#
# ``adv = returns - value.detach()`` of (n,) and (n,1) is (n,n), and nothing that is trained has been used. In
# ``(adv * log_prob).mean()`` each log-probability then gets the mean of a column of `adv`. Such a product of a matrix
# of pairs and a row is only a mistake if all its elements are added up: a sum over one dimension may be a kernel's.

_ON_DATA = {*ARITHMETIC, "neg", "abs", "clamp", "exp", "tanh", "sign", "relu", "detach", *SAME_NUMBERS}
_ON_PRODUCTS = {"add", "sub", "mul", "div", "neg", "clamp", "minimum", "maximum", "pow", "square", "abs", "where"}


@dataclass(frozen=True, slots=True)
class _Meeting:
    """The first operation that combines a matrix of pairs with a trained row or column, and that operand.

    `shapes` are those of everything that the matrix met on the way, with it.
    """

    record: NodeRecord
    trained: NodeRecord
    shapes: frozenset[tuple[int, ...]]


def _weighed_row(survey: Survey, record: NodeRecord, pair: list[NodeRecord]) -> _Meeting | None:
    """Return where a matrix that a column and a row of data make meets a trained row whose mean is a loss."""
    if len(record.shape) != 2 or not _column_and_row(*(source.shape for source in pair)):
        return None
    n, users = record.shape[0], survey.timeline.nodes.users
    waiting, seen, shapes = [record], {record.node}, set[tuple[int, ...]]()
    while waiting and len(seen) < _MOST_SUMMANDS:
        one = waiting.pop(0)
        for user in (survey.nodes[node] for node in users(one.node) if node in survey.nodes):
            if user.node in seen:
                continue
            seen.add(user.node)
            others = [_before_widening(survey, other) for other in survey.sources(user) if other.node not in seen]
            trained = next((other for other in others if other.created.requires_grad), None)
            if trained is None and user.shape == record.shape and user.op in _ON_DATA:
                shapes.update(other.shape for other in others if other.value is not None and other.value.size > 1)
                waiting.append(user)
                continue
            is_vector = trained is not None and trained.shape in ((n,), (n, 1)) and user.op in ELEMENTWISE_PAIRS
            if trained is None or not is_vector or not _is_added_up(survey, user) or _is_outer(survey, record, pair):
                continue
            return _Meeting(user, trained, frozenset({*shapes, trained.shape}))
    return None


def _is_added_up(survey: Survey, record: NodeRecord) -> bool:
    """Return whether all elements of a product are added up to a number."""
    waiting, seen = [record], {record.node}
    while waiting and len(seen) < _MOST_SUMMANDS:
        one = waiting.pop()
        if not one.shape:
            return one.op in ("mean", "sum", *LOSSES_OF_PAIRS)
        for node in survey.timeline.nodes.users(one.node):
            user = survey.nodes.get(node)
            if user is None or node in seen or not user.created.requires_grad:
                continue
            seen.add(node)
            if not user.shape or (user.shape == record.shape and user.op in _ON_PRODUCTS):
                waiting.append(user)
    return False


def _weights_finding(survey: Survey, record: NodeRecord, pair: list[NodeRecord], meeting: _Meeting) -> Finding:
    """Return the finding about a matrix of data, with the edit after which everything that it meets has its shape."""
    timeline, at = survey.timeline, survey.at(record)
    found, n = _broadcast_finding(survey, record, pair), record.shape[0]
    row, column = sorted((0, 1), key=lambda nr: len(pair[nr].shape))
    trained = f"{label(timeline, meeting.trained.node)} {shape_text(meeting.trained.shape)}"
    met = f"{label_at(timeline, meeting.record.node)} combines it with {trained}: each of these meets {n} numbers"
    part = Finding("used", met, meeting.record.seq, meeting.record.node, at=survey.at(meeting.record))
    edit = None
    if meeting.shapes <= {(n,)}:
        edit = operand(timeline, at, column, ".squeeze(-1)")
    elif meeting.shapes <= {(n, 1)}:
        edit = operand(timeline, at, row, ".unsqueeze(-1)")
    return replace(found, parts=(*found.parts, part), at=at, edit=edit)


# A sum over the batch: its gradients are larger than those of the mean by the batch size

FEWEST_ROWS = 16
"""The batch size from which on a sum instead of a mean changes the learning rate noticeably."""


def summed_loss(survey: Survey) -> Iterator[Finding]:
    """Yield losses that sum over the first dimension, and from which an optimizer's parameters get their gradients.

    A program that divides these gradients before the step has its mean.
    """
    timeline = survey.timeline
    last_step = max((seq for seq, _ in survey.select(OptimizerStepped)), default=0)
    accumulated = ((seq, event) for seq, event in survey.accumulated if event.node in survey.optimized)
    training = {event.pass_nr for seq, event in accumulated if seq < last_step}  # a later one reads gradients of data
    training -= divided_passes(survey)
    roots = dict.fromkeys(node for _, event in survey.passes if event.pass_nr in training for node, _ in event.roots)
    for record in (survey.nodes[node] for node in roots if node in survey.nodes):
        source = next(survey.sources(record), None)
        if source is None or not _adds_up(record) or not source.shape or source.shape[0] < FEWEST_ROWS:
            continue
        if is_weighted_mean(survey, record):
            continue
        rows = source.shape[0]
        text = titled(f"{{}} adds up {rows} rows, and does not take their mean", label(timeline, record.node))
        size = f"it adds up {shape_text(source.shape)}: every gradient is {rows} times that of the mean"
        part = Finding("operand", size, source.seq, source.node)
        fix = f"mean() or reduction='mean'; if the sum is meant, a learning rate {rows} times smaller"
        at, numbers = innermost(timeline.info(record.node)), (Number("rows", rows, source.seq),)
        yield Finding("summed-loss", text, record.seq, record.node, (part,), fix, at, numbers, suspected=True)


def is_weighted_mean(survey: Survey, record: NodeRecord) -> bool:
    """Return whether a sum adds up products with weights that add up to one: ``(w * error).sum()``."""
    source = next(survey.sources(record), None)
    if source is None or source.op != "mul":
        return False
    factors = (one.value for one in survey.sources(source))  # a factor that is broadcast adds up to more than one
    known = ((one.size, one.statistics()) for one in factors if one is not None and one.shape == source.shape)
    return any(
        stats is not None and stats.min >= 0 and isclose(stats.mean * size, 1.0, rel_tol=_NEARLY_ONE)
        for size, stats in known
    )


_NEARLY_ONE = 1e-2
"""The relative error up to which weights add up to one: a transport plan does so after some iterations."""


def _adds_up(record: NodeRecord) -> bool:
    return not record.shape and (record.op == "sum" or dict(record.created.attrs).get("reduction") == "sum")


# A softmax of a softmax: cross_entropy takes logits

_TWICE = {
    "log_softmax": {*SOFTMAXES, "sigmoid"},
    "softmax": SOFTMAXES,
    "binary_cross_entropy_with_logits": {"sigmoid", "softmax"},
}
"""The operation -> the operations that must not make its input."""


def softmax_twice(survey: Survey) -> Iterator[Finding]:
    """Yield operations that take logits and got probabilities."""
    timeline = survey.timeline
    for record in survey.ops(*_TWICE):
        first = next(survey.sources(record), None)
        before = survey.unwrapped(first) if first is not None else None
        if before is None or before.op not in _TWICE[record.op]:
            continue
        if record.op == before.op == "log_softmax":  # the second log_softmax changes nothing
            continue
        names = label(timeline, record.node), label(timeline, before.node)
        text = titled("{} takes logits, but gets {}", *names)
        first_at = innermost(timeline.info(before.node))
        part = Finding(
            "first", f"{label_at(timeline, before.node)} took it first", before.seq, before.node, at=first_at
        )
        fix = f"give it the input of that {before.op}: cross_entropy and the losses with logits apply it themselves"
        at = innermost(timeline.info(record.node))
        edit = without_call(timeline, survey.at(before), before.op)
        yield Finding("softmax-twice", text, record.seq, record.node, (part,), fix, at, edit=edit)


# nll_loss or ctc_loss of an input that is no log probability of its classes

_LOSSES = ("nll_loss", "nll_loss2d", "ctc_loss", "kl_div")
_PROBABILITIES = {"softmax", "sigmoid"}
_ROWS = {"getitem", "index", "index_select", "slice", "clone", "contiguous"}
_SLACK = 0.01
"""How far above 0 the logarithm of a probability may be: that of ``log(p + 0.001)`` is."""


def no_log_probabilities(survey: Survey) -> Iterator[Finding]:
    """Yield losses whose input is above 0 somewhere, or sums to one along another dimension than the classes."""
    for record in survey.ops(*_LOSSES):
        first = next(survey.sources(record), None)
        finding = (
            (_too_great(survey, record, first) or _wrong_dimension(survey, record, first))
            if first is not None
            else None
        )
        if finding is not None:
            yield finding
    yield from _kl_of_probabilities(survey)


def _kl_of_probabilities(survey: Survey) -> Iterator[Finding]:
    """Yield ``kl_div`` whose first argument has probabilities. The operations that it consists of are recorded."""
    yield from _cross_terms(survey)
    products = _by_line(survey.ops("mul"))
    for record in survey.ops("div", "mean", "sum", "sub"):
        if "log_target" not in dict(record.created.attrs):
            continue
        for product in products.get(record.created.stack, ()):
            if not product.seq < record.seq:
                continue
            tracked = [one for one in survey.sources(product) if one.created.requires_grad]
            is_input = len(tracked) == 1 and not _is_kl_target(survey, tracked[0], record)
            finding = _too_great(survey, record, tracked[0]) if is_input else None
            if finding is not None:
                yield finding
                break


def _is_kl_target(survey: Survey, record: NodeRecord, end: NodeRecord) -> bool:
    """Return whether a node is the target of the ``kl_div`` that ends with another node: of its ``xlogy``, too."""
    users = (survey.nodes[node] for node in survey.timeline.nodes.users(record.node) if node in survey.nodes)
    return any(user.op == "xlogy" and user.created.stack == end.created.stack for user in users)


def _by_line(nodes: Iterable[NodeRecord]) -> dict[int, list[NodeRecord]]:
    """Return nodes by the call that made them, in order."""
    lines: defaultdict[int, list[NodeRecord]] = defaultdict(list)
    for record in nodes:
        lines[record.created.stack].append(record)
    return lines


def _cross_terms(survey: Survey) -> Iterator[Finding]:
    """Yield the same on the built-in engine: ``xlogy(target, target) - target * input``."""
    of_line = _by_line(survey.nodes.values()) if survey.by_op.get("xlogy") else {}
    for record in survey.ops("sub"):
        pair = list(survey.sources(record))[:2]
        if [one.op for one in pair] != ["xlogy", "mul"]:
            continue
        targets = {node for node, _ in pair[0].created.inputs}
        inputs = [one for one in survey.sources(pair[1]) if one.node not in targets]
        if len(targets) == len(inputs) == 1 and inputs[0].created.requires_grad:
            line = of_line[record.created.stack]
            finding = _too_great(survey, max(line, key=lambda one: one.seq), inputs[0])
            if finding is not None and not any("log_target" in dict(one.created.attrs) for one in line):
                yield finding


def _too_great(survey: Survey, record: NodeRecord, first: NodeRecord) -> Finding | None:
    stats = first.value.statistics() if first.value is not None else None
    if stats is None or not stats.max > _SLACK:  # nan: no element is finite
        return None
    before, loss = survey.unwrapped(first), label(survey.timeline, record.node)
    names = loss, label(survey.timeline, before.node)
    if before.op in _PROBABILITIES:
        text = titled("{} takes log-probabilities, but {} has probabilities", *names)
        fix = f"log_softmax in the place of {before.op}{_instead(record, ', or cross_entropy of what went into it')}"
    else:
        text = titled("{} takes log-probabilities, but {} has numbers above 0", *names)
        fix = f"log_softmax before it{_instead(record, ', or cross_entropy, which takes scores as they are')}"
    most = f"{label_at(survey.timeline, before.node)} reaches {number(stats.max)}, and no such logarithm is above 0"
    part = Finding("operand", most, first.seq, first.node, at=innermost(survey.timeline.info(before.node)))
    finding = _log_probability_finding(survey, record, text, part, fix)
    return replace(finding, edit=renamed_call(survey.timeline, survey.at(before), "softmax", "log_softmax"))


def _instead(record: NodeRecord, loss: str) -> str:
    """Return another loss that takes this input; empty for ctc_loss and kl_div, which have no such alternative."""
    return "" if record.op in ("ctc_loss", "kl_div") else loss


def _wrong_dimension(survey: Survey, record: NodeRecord, first: NodeRecord) -> Finding | None:
    first = _of_rows(survey, first)
    before = _of_rows(survey, next(survey.sources(first), first)) if first.op == "log" else first
    rank, dim = len(before.shape), dict(before.created.attrs).get("dim")
    if record.op in ("ctc_loss", "kl_div") or before.op not in SOFTMAXES or not rank or not isinstance(dim, int):
        return None
    classes, dim, timeline = min(1, rank - 1), dim % rank, survey.timeline
    if dim == classes:
        return None
    text = titled(f"{{}} has its classes in dimension {classes}, but gets those of {dim}", label(timeline, record.node))
    cause = f"{label_at(timeline, before.node)} makes probabilities that add up to 1 along dimension {dim}"
    at = survey.at(before)
    part = Finding("operand", cause, before.seq, before.node, at=at)
    edit = with_keyword(timeline, at, before.op, "dim", str(classes))
    finding = _log_probability_finding(survey, record, text, part, f"{before.op}(..., dim={classes})")
    return replace(finding, at=at or finding.at, edit=edit)


def _of_rows(survey: Survey, record: NodeRecord) -> NodeRecord:
    """Return the node whose rows or copy a node is, with the same dimensions."""
    source = next(survey.sources(record), None) if record.op in _ROWS else None
    if source is None or len(source.shape) != len(record.shape):
        return record
    return _of_rows(survey, source)


def _log_probability_finding(survey: Survey, record: NodeRecord, text: str, part: Finding, fix: str) -> Finding:
    at = innermost(survey.timeline.info(record.node))
    return Finding("no-log-probabilities", text, record.seq, record.node, (part,), fix, at)


# A softmax or a normalization over one element: its result does not depend on it


def one_element(survey: Survey) -> Iterator[Finding | None]:
    """Yield lines whose softmax or normalization is always over one element.

    Attention over a sequence of one key is such a softmax, too. It is left out: its input is a product of two results.
    One score for each element of a sequence comes from a layer with one output.
    """
    lines: defaultdict[tuple[object, ...], list[NodeRecord]] = defaultdict(list)
    for record in survey.ops(*SOFTMAXES, "native_layer_norm", "native_group_norm", "sub"):
        yield None
        if record.created.requires_grad and (record.op != "sub" or len(record.shape) > 1):
            layer = record.created.inputs[1:] if record.op == "native_group_norm" else ()
            lines[record.created.stack, record.op, layer].append(record)
    for each in lines.values():
        if all(_is_of_one(survey, record) for record in each):
            yield _one_element_finding(survey, each[0])


def _is_of_one(survey: Survey, record: NodeRecord) -> bool:
    attrs, shape = dict(record.created.attrs), record.shape
    if record.op == "native_layer_norm":
        sizes = attrs.get("normalized_shape")
        return isinstance(sizes, tuple | list) and bool(sizes) and all(size == 1 for size in sizes)
    if record.op == "native_group_norm":
        return bool(_groups(record)) and _groups(record) == attrs.get("C") and attrs.get("HxW") == 1
    if record.op == "sub":  # x - x.mean(1, keepdim=True)
        pair = [*survey.sources(record)]
        is_mean = len(pair) == 2 and pair[1].op == "mean" and pair[1].shape == pair[0].shape == shape
        return is_mean and survey.unwrapped(pair[0]) in map(survey.unwrapped, survey.sources(pair[1]))
    dim = attrs.get("dim")
    if not isinstance(dim, int) or len(shape) < 2 or not -len(shape) <= dim < len(shape) or shape[dim] != 1:
        return False
    return len(shape) == 2 or (dim % len(shape) == len(shape) - 1 and _is_layer_output(survey, record))


def _groups(record: NodeRecord) -> int:
    """Return the number of groups of a group norm; 0 if it is unknown."""
    groups = dict(record.created.attrs).get("group")
    return groups if isinstance(groups, int) else 0


def _is_layer_output(survey: Survey, record: NodeRecord) -> bool:
    """Return whether the input of an operation is the product of data and a parameter."""
    product = next(iter(survey.sources(record)), None)
    while product is not None and product.op not in _WEIGHTED | {"linear"}:
        if product.op not in SAME_NUMBERS | {"add", "mul", "div"}:
            return False
        product = next(iter(survey.sources(product)), None)
    leaves = map(survey.unwrapped, survey.sources(product)) if product is not None else ()
    return any(leaf.created.kind != "op" and leaf.created.requires_grad for leaf in leaves)


def _one_element_finding(survey: Survey, record: NodeRecord) -> Finding:
    timeline, (always, fix) = survey.timeline, _OF_ONE[record.op]
    at, edit = innermost(timeline.info(record.node)), None
    competing = [dim for dim, size in enumerate(record.shape) if dim and size > 1]
    if record.op in SOFTMAXES and len(record.shape) > 2 and len(competing) == 1:
        dim = competing[0]
        fix = f"the dimension over which the scores compete: dim={dim}, of size {record.shape[dim]}"
        edit = with_keyword(timeline, at, record.op, "dim", f"{dim}")
    text = titled(f"{{}} is over one element each: its result is always {always}", label(timeline, record.node))
    groups = _groups(record)
    counted = f", and {groups} group{'s' * (groups != 1)} of 1 channel" * bool(groups)
    shape = f"it has the shape {shape_text(record.shape)}{counted}: what goes in does not matter, and gets no gradient"
    part = Finding("size", shape, record.seq, record.node)
    if groups > 1:
        fewer = _fewer_groups(groups)
        fix = f"{fewer} group{'s' * (fewer != 1)} of {groups // fewer} channels, or normalize before the pooling"
        at, edit = _with_groups(survey, record, fewer)
    return Finding("one-element", text, record.seq, record.node, (part,), fix, at, edit=edit)


_CHANNELS = 4
"""The least channels of a group that a fix proposes: their mean and deviation still leave something to learn."""


def _fewer_groups(channels: int) -> int:
    """Return the most groups, with equal numbers of channels, that are not too small."""
    return max((groups for groups in range(1, channels // _CHANNELS + 1) if channels % groups == 0), default=1)


def _layer_line(survey: Survey, record: NodeRecord) -> Frame | None:
    """Return the line that made the layer of a normalization, if it has a weight."""
    weight = next((one for one in survey.sources(record) if one.created.kind == "parameter"), None)
    return survey.at(weight) if weight is not None else None


def _with_groups(survey: Survey, record: NodeRecord, groups: int) -> tuple[Frame | None, Edit | None]:
    """Return the line that gives a normalization its number of groups, and the edit that gives it another one."""
    timeline, at = survey.timeline, innermost(survey.timeline.info(record.node))
    layer = _layer_line(survey, record)
    alike = [one for one in survey.ops("native_group_norm") if layer is not None and _layer_line(survey, one) == layer]
    if all(_is_of_one(survey, one) and _groups(one) == _groups(record) for one in alike):
        edit = with_argument(timeline, layer, "GroupNorm", 0, "num_groups", str(groups))
        if edit is not None:
            return layer, edit
    return at, with_argument(timeline, at, "group_norm", 1, "num_groups", str(groups))


_OF_ONE = {
    "softmax": ("1", "sigmoid for a single score, or a column for each class"),
    "log_softmax": ("0", "binary_cross_entropy_with_logits for a single score, or a column for each class"),
    "native_layer_norm": ("its bias", "normalize over more elements, or leave the normalization out"),
    "native_group_norm": ("its bias", "normalize over more elements, or leave the normalization out"),
    "sub": ("0", "the mean over a dimension of more elements"),
}
"""By operation: what it gives for one element, and what to write instead."""


# A target that depends on the trained parameters: the gradient flows into it, too


def attached_target(survey: Survey) -> Iterator[Finding]:
    """Yield losses whose second argument requires a gradient as well."""
    timeline = survey.timeline
    yield from _swapped(survey)
    for record in survey.ops(*LOSSES_OF_PAIRS):
        pair = list(survey.sources(record))[:2]
        if len(pair) == 2 and all(source.created.requires_grad and source.created.kind == "op" for source in pair):
            target = survey.unwrapped(pair[1])
            names = label(timeline, record.node), label(timeline, target.node)
            text = titled("{} sends a gradient into its target, {}", *names)
            part = Finding("target", f"the target is {label_at(timeline, target.node)}", target.seq, target.node)
            at = innermost(timeline.info(record.node))
            edit = operand(timeline, at, 1, ".detach()") if pair[0] is not pair[1] else None
            fix = _DETACH_TARGET
            parts = (part,)
            yield Finding("attached-target", text, record.seq, target.node, parts, fix, at, suspected=True, edit=edit)
    yield from _bootstrapped_targets(survey)


def _swapped(survey: Survey) -> Iterator[Finding]:
    """Yield losses with two different arguments whose target is trained, while their input is data.

    ``kl_div`` is left out: with a trained target it is the reverse divergence, which may be intended.
    """
    timeline, ends = survey.timeline, dict[int, NodeRecord]()
    for record in survey.ops("div"):
        if "label_smoothing" in dict(record.created.attrs):
            ends.setdefault(record.created.stack, record)
    for record in survey.ops("binary_cross_entropy", "binary_cross_entropy_with_logits", "mul"):
        pair = list(survey.sources(record))[:2]
        if record.op == "mul":
            pair = _of_cross_entropy(survey, record, pair, ends.get(record.created.stack))
        if len(pair) < 2 or pair[0].created.requires_grad or not pair[1].created.requires_grad:
            continue
        text = "the target of this loss is trained and its input is data: they are swapped"
        target = f"the target is {label_at(timeline, pair[1].node)}, the input {label_at(timeline, pair[0].node)}"
        part = Finding("target", target, pair[1].seq, pair[1].node)
        at = innermost(timeline.info(record.node))
        fix = "pass the prediction first, and the target second"
        yield Finding("swapped", text, record.seq, pair[1].node, (part,), fix, at)


def _of_cross_entropy(
    survey: Survey, product: NodeRecord, pair: list[NodeRecord], end: NodeRecord | None
) -> list[NodeRecord]:
    """Return input and target of a cross_entropy with probabilities as targets, by its product; empty for another one.

    PyTorch does not record the log_softmax of data: there, the input is known from the last operation of the call,
    `end`.
    """
    of_call = [one.op == "log_softmax" and one.created.stack == product.created.stack for one in pair]
    if any(of_call):
        return sorted(pair, key=lambda one: one.op != "log_softmax")
    if len(pair) != 1 or (0, 0) not in product.created.inputs:
        return []
    data = [one for one in survey.sources(end) if not one.created.requires_grad] if end is not None else []
    return [*data[:1], *pair]


_DETACH_TARGET = "target.detach(), if the prediction is to come to the target and not the target to the prediction"
_ERRORS = {"pow", "square", "abs", "mul"}
"""Operations that make an error from a difference."""


def _bootstrapped_targets(survey: Survey) -> Iterator[Finding]:
    """Yield squares of the difference of a prediction and ``reward + gamma * prediction``, if both are trained.

    The difference of two results of one model, as in a siamese network, may be intended. A target is recognized by the
    data that is added.
    """
    timeline = survey.timeline
    for record in survey.ops("sub"):
        pair = list(survey.sources(record))[:2]
        tracked = [one for one in pair if one.created.requires_grad and one.created.kind == "op"]
        users = (timeline.info(node) for node in timeline.nodes.users(record.node))
        if len(tracked) < 2 or not any(user.op.base_name in _ERRORS for user in users):
            continue
        targets = [one for one in pair if _adds_data(survey, survey.unwrapped(one))]
        if len(targets) != 1 or not _are_calls_of_one_model(survey, *pair):
            continue
        target = survey.unwrapped(targets[0])
        prediction = survey.unwrapped(pair[1] if targets[0] is pair[0] else pair[0])
        names = label(timeline, record.node), label(timeline, target.node)
        text = titled("{} sends a gradient into its target, {}", *names)
        same = f"the target comes from the parameters that also make {label_at(timeline, prediction.node)}"
        parts = (Finding("target", same, prediction.seq, prediction.node),)
        at, number = innermost(timeline.info(target.node)), 0 if targets[0] is pair[0] else 1
        edit = operand(timeline, survey.at(record), number, ".detach()")
        fix = _DETACH_TARGET
        yield Finding("attached-target", text, record.seq, target.node, parts, fix, at, suspected=True, edit=edit)


def _adds_data(survey: Survey, record: NodeRecord) -> bool:
    """Return whether a node is the sum of data, with one element for each row, and a trained tensor."""
    sources = list(survey.sources(record))
    data = [one for one in sources if not one.created.requires_grad and one.created.kind != "parameter"]
    return record.op == "add" and len(sources) == 2 and len(data) == 1 and bool(data[0].shape)


def _are_calls_of_one_model(survey: Survey, one: NodeRecord, other: NodeRecord) -> bool:
    """Return whether two nodes come from the same parameters and from no common result, as two calls of a model do."""
    inputs = [{one.node, *ancestors(survey.timeline, one.node)}, {other.node, *ancestors(survey.timeline, other.node)}]
    common = [survey.nodes[node] for node in inputs[0] & inputs[1] if node in survey.nodes]
    trained = [record for record in common if record.created.requires_grad]
    return bool(trained) and all(record.created.kind != "op" for record in trained)


# A loss that reaches the parameters of another part, which has a loss of its own: an advantage that is not detached

_MOST_PRODUCTS = 200


def reaches_other_part(survey: Survey) -> Iterator[Finding | None]:
    """Yield products of results of two models, if one result is also compared with data; each line once.

    ``(log_prob * (ret - value)).mean() + (ret - value).pow(2).mean()`` trains the critic by the first term, too.
    """
    timeline, seen = survey.timeline, set[int]()
    for record in survey.ops("mul"):
        if record.created.stack in seen or len(seen) > _MOST_PRODUCTS:
            continue
        yield None
        pair = [one for one in survey.sources(record) if one.created.requires_grad and one.created.kind == "op"]
        if len(pair) != 2 or any(one.created.during[0] for one in pair):  # a gradient is used: by a meta-learner
            continue
        seen.add(record.created.stack)
        inputs = [{one.node, *ancestors(timeline, one.node)} for one in pair]
        trained = [_trained(survey, nodes) for nodes in inputs]
        if not all(trained) or trained[0] & trained[1]:
            continue
        for one, nodes, parameters in zip(pair, inputs, trained, strict=True):
            own = _own_error(survey, nodes)
            if own is not None and _has_own_loss(survey, own, record):
                yield _reaching_finding(survey, record, one, own, len(parameters))
                break


def _trained(survey: Survey, nodes: set[int]) -> set[int]:
    creations = (survey.nodes[node].created for node in nodes if node in survey.nodes)
    return {created.node for created in creations if created.kind != "op" and created.requires_grad}


def _own_error(survey: Survey, nodes: set[int]) -> NodeRecord | None:
    """Return an error of one of these results against data: the square or the like of a difference.

    An error that is one of the results itself does not count: the product gives it a weight.
    """
    for node in sorted(nodes, reverse=True):
        if node not in survey.nodes or survey.nodes[node].created.kind != "op":
            continue
        for user in (survey.nodes[one] for one in survey.timeline.nodes.users(node) if one in survey.nodes):
            others = [one for one in survey.sources(user) if one.node != node]
            is_data = bool(others) and not any(one.created.requires_grad for one in others)
            if not user.created.requires_grad:
                continue
            if user.op in LOSSES_OF_PAIRS and is_data and user.node not in nodes:
                return user
            ends = [survey.nodes[one] for one in survey.timeline.nodes.users(user.node) if one in survey.nodes]
            ends = [end for end in ends if end.node not in nodes]
            if user.op == "sub" and is_data and user.shape and any(end.op in ("pow", "square", "abs") for end in ends):
                return user
    return None


def _has_own_loss(survey: Survey, own: NodeRecord, product: NodeRecord) -> bool:
    """Return whether an error reaches a number before it meets what the product makes, or is only added to that.

    Otherwise they have one loss.
    """
    users = survey.timeline.nodes.users
    if product.node in ancestors(survey.timeline, own.node):
        return False
    seen, waiting = descendants(survey.timeline, product.node), [own.node]
    while waiting:
        record = survey.nodes.get(waiting.pop())
        if record is None or not record.created.requires_grad:
            continue
        if not record.shape:
            return True
        for user in users(record.node):
            if user not in seen:
                seen.add(user)
                waiting.append(user)
            elif user != product.node and user in survey.nodes and _is_only_added(survey, survey.nodes[user]):
                return True
    return False


def _is_only_added(survey: Survey, record: NodeRecord) -> bool:
    """Return whether a node adds two terms and is only added up and averaged on its way to a number."""
    if record.op not in ("add", "sub"):
        return False
    while record.shape:
        users = [survey.nodes[node] for node in survey.timeline.nodes.users(record.node) if node in survey.nodes]
        tracked = [user for user in users if user.created.requires_grad]
        if len(tracked) != 1 or tracked[0].op not in {"add", "sub", *_CARRYING_ONE_TERM}:
            return False
        record = tracked[0]
    return True


def _reaching_finding(survey: Survey, record: NodeRecord, one: NodeRecord, own: NodeRecord, count: int) -> Finding:
    timeline, at = survey.timeline, survey.at(record)
    name = timeline.info(one.node).name
    names = label(timeline, record.node), label(timeline, one.node)
    text = titled("{} sends a gradient into {}, which has its own loss", *names)
    trained = f"the {count} parameters" if count > 1 else "the parameter"
    trains = f"{label_at(timeline, own.node)} trains {trained} behind it, too"
    part = Finding("beside", trains, own.seq, own.node, at=survey.at(own))
    what = f"{name}.detach()" if name.isidentifier() else "detach() it"
    fix = f"{what} in this product, if this loss is not to train what makes it"
    edit = wrapped(timeline, at, name, ".detach()") if name.isidentifier() else None
    return Finding("reaches-other-part", text, record.seq, record.node, (part,), fix, at, suspected=True, edit=edit)


# A softmax whose rows were masked afterwards: they no longer add up to one

_WEIGHTED = {"matmul", "bmm", "mm", "mv", "einsum"}


def masked_after_softmax(survey: Survey) -> Iterator[Finding | None]:
    """Yield products of a softmax and a mask of zeros and ones that serve as weights, with rows below one."""
    for record in survey.ops("mul", "masked_fill", "where"):
        yield None
        sources = list(survey.sources(record))
        softmax = next((one for one in map(survey.unwrapped, sources) if one.op == "softmax"), None)
        if softmax is None or softmax.shape != record.shape or not record.created.requires_grad:
            continue
        masks = [one for one in sources if not one.created.requires_grad]
        if masks and _weights(survey, record) and (lost := _lost_weight(survey, softmax, record)):
            yield _masked_finding(survey, softmax, record, lost)


def _weights(survey: Survey, record: NodeRecord) -> bool:
    """Return whether a node is a factor of a matrix product, as attention weights are, not divided by its sum."""
    users = [survey.nodes[node] for node in survey.timeline.nodes.users(record.node) if node in survey.nodes]
    if any(user.op in ("sum", "div", "norm", "softmax") for user in users):
        return False
    return any(user.op in _WEIGHTED or (user.op in RESHAPING and _weights(survey, user)) for user in users)


def _lost_weight(survey: Survey, softmax: NodeRecord, record: NodeRecord) -> str:
    """Return ``8 of 10 rows add up to 0.2 .. 0.81``; empty if all rows add up to one, or are masked as a whole."""
    array = survey.timeline.array(record.value) if record.value is not None else None
    before = survey.timeline.array(softmax.value) if softmax.value is not None else None
    dim = dict(softmax.created.attrs).get("dim")
    if array is None or before is None or array.shape != before.shape or not isinstance(dim, int):
        return ""
    kept = (array == 0) | np.isclose(array, before, rtol=1e-3, atol=1e-6)
    sums = array.sum(axis=dim)
    below = sums[(sums > 0) & (sums < 0.99)]
    if not below.size or not kept.all():
        return ""
    low, high = (number(float(each)) for each in (below.min(), below.max()))
    return f"{below.size} of {sums.size} rows add up to {low if low == high else f'{low} .. {high}'}, not to 1"


def _masked_finding(survey: Survey, softmax: NodeRecord, record: NodeRecord, lost: str) -> Finding:
    timeline = survey.timeline
    names = label(timeline, record.node), label(timeline, softmax.node)
    text = titled("{} masks the weights of {} after the softmax", *names)
    part = Finding("sum", lost, record.seq, record.node)
    fix = "mask the scores before it: scores.masked_fill(~mask, -inf), or divide each row by its sum"
    return Finding(
        "masked-after-softmax", text, record.seq, record.node, (part,), fix, innermost(timeline.info(record.node))
    )


# A softmax over another dimension than the one over which its weights are summed


def softmax_of_other_dim(survey: Survey) -> Iterator[Finding | None]:
    """Yield a softmax that is the left factor of a matrix product, and does not add up to one along its rows.

    A product sums over the last dimension of its left factor. Weights that are divided or transposed before it are
    left out. The same of groups of rows is `softmax_of_other_groups`.
    """
    yield from softmax_of_other_groups(survey)
    seen = set[int]()
    for record in survey.ops("softmax"):
        yield None
        dim, rank = dict(record.created.attrs).get("dim"), len(record.shape)
        if not isinstance(dim, int) or rank < 2 or dim % rank == rank - 1 or record.created.stack in seen:
            continue
        if record.shape[-1] < 2 or (product := _left_of_product(survey, record)) is None:
            continue
        seen.add(record.created.stack)
        timeline = survey.timeline
        text = titled(
            "{} sums to 1 over dim {}, but its product sums over the last", label(timeline, record.node), f"{dim}"
        )
        part = Finding("used", f"{label_at(timeline, product.node)} is that product", product.seq, product.node)
        at = survey.at(record)
        fix = "softmax over the dimension of what is attended to: dim=-1"
        edit = with_keyword(timeline, at, "softmax", "dim", "-1")
        yield Finding("softmax-dim", text, record.seq, record.node, (part,), fix, at, suspected=True, edit=edit)


def _left_of_product(survey: Survey, record: NodeRecord) -> NodeRecord | None:
    """Return the matrix product whose left factor is this node, at once or after a dropout or a change of its batch."""
    for node in survey.timeline.nodes.users(record.node):
        user = survey.nodes.get(node)
        if user is None or not user.created.inputs or user.created.inputs[0][0] != record.node:
            continue
        if user.op in ("matmul", "bmm", "mm"):
            return user
        keeps_rows = user.op in DROPOUTS or user.op in {*RESHAPING, "expand", "mul"}
        if keeps_rows and user.shape[-2:] == record.shape[-2:]:
            product = _left_of_product(survey, user)
            if product is not None:
                return product
    return None


# A term of a loss that sends no gradient, because its path to the parameters is cut

_SUMMING = {"add", "sub", *LISTS}
_CARRYING_ONE_TERM = {"sum", "mean", "mul", "div", "neg", *RESHAPING}
"""Operations whose result is one term of a loss if their input is."""
_MOST_SUMMANDS = 200
"""The most terms of one loss that are examined."""


def cut_summand(survey: Survey) -> Iterator[Finding | None]:
    """Yield, for each line that makes the root of a pass, the terms that were made from parameters and are cut."""
    roots = [survey.nodes[node] for _, event in survey.passes for node, _ in event.roots if node in survey.nodes]
    for root in {record.created.stack: record for record in roots}.values():
        yield None
        for record, others in _untracked_summands(survey, root):
            lost = _cut_of_term(survey, record, others)
            if lost:
                yield _summand_finding(survey, root, record, lost)


def _untracked_summands(survey: Survey, root: NodeRecord) -> Iterator[tuple[NodeRecord, list[NodeRecord]]]:
    """Yield the untracked terms of a loss, each with the tracked ones next to it.

    A term inside one call is no part of the program's sum: the ``kl_div`` of the built-in engine adds one that depends
    on the target only.
    """
    waiting, seen = [root], {root.node}
    while waiting and len(seen) < _MOST_SUMMANDS:
        record = waiting.pop()
        sources = list(survey.sources(record))
        tracked = [source for source in sources if source.created.requires_grad]
        if record.op in _SUMMING:
            results = (one for one in sources if tracked and _is_result(one))
            yield from ((one, tracked) for one in results if one.created.stack != record.created.stack)
        elif record.op not in _CARRYING_ONE_TERM or len(tracked) != 1:
            continue
        waiting += [source for source in tracked if source.node not in seen]
        seen.update(source.node for source in tracked)


def _is_result(record: NodeRecord) -> bool:
    return record.created.kind == "op" and not record.created.requires_grad


def _cut_of_term(survey: Survey, record: NodeRecord, others: list[NodeRecord]) -> int:
    """Return where the path from the parameters to a term is cut.

    It is 0 if there is no cut, or if the term was made from the other terms. Such a term may be deliberate:
    ``x + (y - x).detach()``, ``x - x.max().detach()``.
    """
    timeline = survey.timeline
    before = [record.node, *ancestors(timeline, record.node)]
    if any(one.node in before for one in others):
        return 0
    lost = (node for node in before if loses_tracking(timeline, node))
    cut = next((node for node in lost if not survey.optimized.isdisjoint(ancestors(timeline, node))), 0)
    cut = cut or next((node for node in before if _is_taken_gradient(timeline, node)), 0)
    return cut or next((node for node in before if _has_trained_numbers(survey, node)), 0)


_FROM_ARRAYS = {"from_numpy", "tensor", "as_tensor", "FloatTensor", "Tensor"}
_DETACHED = re.compile(r"([A-Za-z_]\w*)\.detach\(")


@dataclass(frozen=True, slots=True)
class _Array:
    """An array with the numbers of trained results: its name, the line that detached it, and one that made data of it.

    `source` is the name of the result.
    """

    name: str
    detached: Frame
    made: Frame
    source: str


def _array_of_results(timeline: Timeline, node: int) -> _Array | None:
    """Return the array from which data of several numbers was made, if a line had detached the array from a result.

    Data is recorded when it is first used: the line that made it is that of its variable.
    """
    info = timeline.info(node)
    value, at = info.created.first_value, innermost(info)
    if info.created.kind != "constant" or value is None or value.size < 2:
        return None
    made = assignment(timeline, at, info.name) or at
    if made is None or not called_at(timeline, made, *_FROM_ARRAYS):
        return None
    read = numbers_read(timeline, made)
    match = _DETACHED.search(line_text(timeline, read[1])) if read is not None else None
    return _Array(read[0], read[1], made, match[1]) if read is not None and match is not None else None


def _has_trained_numbers(survey: Survey, node: int) -> bool:
    """Return whether data has the numbers of a result that the trained parameters made."""
    array = _array_of_results(survey.timeline, node)
    if array is None:
        return False
    for record in survey.ops("detach"):
        at, source = survey.at(record), next(survey.sources(record), None)
        if at is None or source is None or (at.path, at.line) != (array.detached.path, array.detached.line):
            continue
        return not survey.optimized.isdisjoint({source.node, *ancestors(survey.timeline, source.node)})
    return False


def _is_taken_gradient(timeline: Timeline, node: int) -> bool:
    """Return whether a node is a result of ``autograd.grad``, which the built-in engine records as new data."""
    created = timeline.info(node).created
    if created.kind != "constant" or created.first_value is None or dict(created.attrs).get("grad_of"):
        return False
    born = timeline.nodes.born(node)
    return timeline.once(_gradients_taken, 0).get(created.first_value, born) < born


def _gradients_taken(timeline: Timeline, _: int) -> dict[Value, int]:
    return gradients_taken(timeline)


def _summand_finding(survey: Survey, root: NodeRecord, record: NodeRecord, lost: int) -> Finding:
    timeline = survey.timeline
    cut = timeline.info(lost)
    names = label(timeline, record.node), label(timeline, root.node)
    text = titled("{} is a part of {}, but brings no gradient", *names)
    part = Finding("cut", f"cut at {label_at(timeline, lost)}: {why_cut(cut)}", cut.born, lost, at=innermost(cut))
    how = mend(timeline, cut)
    fix, edit = how.fix, how.edit
    array = _array_of_results(timeline, lost)
    if array is not None:
        name = array.name
        of = f"the numbers of {shown(array.source)}, without its history"
        numbers = f"{label_at(timeline, lost)} is made of {shown(name)}: {of}"
        part, edit = Finding("copied", numbers, cut.born, lost, at=array.detached), None
        fix = f"index the tensor itself, and not {shown(name)}: tensor[rows] keeps the path to the parameters"
    elif cut.created.kind == "constant":
        text_taken = f"{label_at(timeline, lost)} has no history: it is what autograd.grad gave"
        part, fix = Finding("copied", text_taken, cut.born, lost, at=innermost(cut)), CREATE_GRAPH
        edit = with_keyword(timeline, innermost(cut), "grad", "create_graph", "True")
    at = array.made if array is not None else how.at or innermost(cut)
    suspected = not _is_cut_by_mistake(survey, record, lost)
    return Finding("cut-summand", text, record.seq, record.node, (part,), fix, at, suspected=suspected, edit=edit)


def _is_cut_by_mistake(survey: Survey, record: NodeRecord, lost: int) -> bool:
    """Return whether a term is most likely meant to train: it has ``.data`` of a parameter, or ``autograd.grad``.

    A program that only adds it to the number of the loss says so by `detach` or `no_grad`. The optimizer may also be
    what adds the gradient of the term, with ``weight_decay``.
    """
    timeline = survey.timeline
    if _array_of_results(timeline, lost) is not None:
        return "loss" in called_function(timeline, survey.at(record)).lower()
    between = [timeline.info(node) for node in (record.node, *ancestors(timeline, record.node, up_to={lost}))]
    if any(info.op.base_name == "detach" or info.created.switched_off for info in between):
        return False
    if any(switch_of(timeline, frames) is not None for frames in dict.fromkeys(info.frames for info in between)):
        return False
    cut, sources = timeline.info(lost), timeline.nodes.inputs_by_node.get(lost, ())
    if cut.created.untracked == "data":
        parameters = [node for node in sources if node in survey.optimized]
        return bool(parameters) and not any(_is_decayed(survey, node) for node in parameters)
    return cut.op.name == "grad" or (cut.created.kind == "constant" and _is_of_trained(survey, lost))


def _is_decayed(survey: Survey, node: int) -> bool:
    """Return whether a step has a weight decay for a parameter. AdamW does not count, since it has one by default."""
    steps = survey.select(OptimizerStepped)
    seq, step = next(((seq, step) for seq, step in steps if node in step.parameters), (0, None))
    if step is None or step.kind == "AdamW":
        return False
    return bool(options_of(survey.timeline, node, seq).get("weight_decay"))


def _is_of_trained(survey: Survey, node: int) -> bool:
    """Return whether a result of ``autograd.grad`` depends on trained parameters."""
    timeline = survey.timeline
    value = timeline.info(node).created.first_value
    seq = timeline.once(_gradients_taken, 0).get(value, 0) if value is not None else 0
    captured = timeline.event(seq) if seq else None
    pass_nr = captured.pass_nr if isinstance(captured, GradCaptured) else 0
    roots = [root for _, event in survey.passes if event.pass_nr == pass_nr for root, _ in event.roots]
    return not survey.optimized.isdisjoint(ancestors(timeline, *roots))


# Targets outside of what a loss takes: 0 and 1 where it takes -1 and 1, or the other way round

_SIGNS = {
    "cosine_embedding_loss": "CosineEmbeddingLoss", "hinge_embedding_loss": "HingeEmbeddingLoss",
    "margin_ranking_loss": "MarginRankingLoss", "soft_margin_loss": "SoftMarginLoss",
}  # fmt: skip
"""Losses whose targets are 1 and -1, by function and module. A target of 0 mostly has no gradient."""

_SHARES = {
    "binary_cross_entropy": "BCELoss", "binary_cross_entropy_with_logits": "BCEWithLogitsLoss",
    "multilabel_soft_margin_loss": "MultiLabelSoftMarginLoss",
}  # fmt: skip
"""Losses whose targets are from 0 to 1. Outside of it the loss has no minimum."""


def wrong_targets(survey: Survey) -> Iterator[Finding | None]:
    """Yield losses whose targets are outside of what they take: each line once.

    A loss that autograd does not follow is left out: nothing is trained with it.
    """
    timeline, seen = survey.timeline, set[int]()
    known: dict[tuple[int, str], str] = {}
    for record in survey.nodes.values():
        created = record.created
        if created.kind != "op" or created.stack in seen or created.during[0]:
            continue
        target = _target_of(survey, record)
        if target is None or target.created.requires_grad or not target.shape:
            continue
        yield None
        name = record.op if record.op in _OF_ONE_OPERATION else _loss_called(survey, record, known)
        if name not in _SIGNS and name not in _SHARES:
            continue
        wording = _target_of_signs(survey, target) if name in _SIGNS else _target_of_shares(survey, target)
        if wording is not None:
            seen.add(created.stack)
            yield _wrong_target_finding(timeline, record, target, name, *wording)


_OF_ONE_OPERATION = {"binary_cross_entropy", "binary_cross_entropy_with_logits", "soft_margin_loss"}
"""Losses of these tables that are recorded as one operation, whose second input is the target."""


def _target_of(survey: Survey, record: NodeRecord) -> NodeRecord | None:
    """Return the input of an operation that is the target, if the operation may be of one of these losses.

    Other losses are recorded as the operations that they consist of. PyTorch's recording adds the target to the inputs
    of the last one, which has the margin as an attribute. The built-in engine compares the target with a number
    (``cosine_embedding_loss``, ``hinge_embedding_loss``) or negates it (``margin_ranking_loss``).
    """
    inputs = [survey.nodes.get(node) for node, _ in record.created.inputs]
    if record.op in _OF_ONE_OPERATION:
        return inputs[1] if record.created.requires_grad and len(inputs) > 1 else None
    if "margin" in dict(record.created.attrs):
        return inputs[-1] if record.created.requires_grad and len(inputs) > 1 else None
    if record.op in ("eq", "ne", "neg") and inputs:
        user_op = "mul" if record.op == "neg" else "where"
        users = (survey.nodes.get(user) for user in survey.timeline.nodes.users(record.node))
        here = [user for user in users if user is not None and user.created.stack == record.created.stack]
        return inputs[0] if any(user.op == user_op and user.created.requires_grad for user in here) else None
    pair = [one for one in inputs if one is not None] if record.op == "mul" and record.created.requires_grad else []
    if len(pair) == 2 and any(one.op == "logsigmoid" for one in pair):  # multilabel_soft_margin_loss
        data = [one for one in pair if one.op != "logsigmoid" and one.created.stack != record.created.stack]
        return data[0] if data else None
    return None


def _loss_called(survey: Survey, record: NodeRecord, known: dict[tuple[int, str], str]) -> str:
    """Return the function of these tables that made a node, by the call on its line or by its module.

    `known` has the answers for the call stacks and kinds of modules so far.
    """
    scope = survey.scopes.get(record.created.scope)
    key = record.created.stack, scope.kind if scope is not None else ""
    if key not in known:
        losses = {**_SIGNS, **_SHARES}
        of_module = next((name for name, kind in losses.items() if kind == key[1]), "")
        called = "" if of_module else called_function(survey.timeline, survey.at(record))
        known[key] = of_module or (called if called in losses else "")
    return known[key]


def _target_of_signs(survey: Survey, target: NodeRecord) -> tuple[str, str, str, str] | None:
    """Return the words about a target that has zeros and ones only."""
    stats = target.value.statistics() if target.value is not None else None
    size = target.value.size if target.value is not None else 0
    if stats is None or stats.min != 0 or stats.max != 1 or abs(stats.mean * size - (size - stats.zero)) > 1e-3 * size:
        return None
    counted = f"{stats.zero} of its {size} elements are 0: the loss has no term, or no margin, for these"
    return "1 and -1", "0 and 1", counted, " * 2 - 1"


def _target_of_shares(survey: Survey, target: NodeRecord) -> tuple[str, str, str, str] | None:
    """Return the words about a target with elements below 0 or above 1."""
    stats = target.value.statistics() if target.value is not None else None
    if stats is None or not (stats.min < -_SLACK or stats.max > 1 + _SLACK):
        return None
    span = f"{number(stats.min)} .. {number(stats.max)}"
    is_of_signs = stats.min == -1 and stats.max == 1
    return "0 to 1", span, f"it is {span}: outside of 0 .. 1 the loss has no minimum", " / 2 + 0.5" * is_of_signs


def _wrong_target_finding(
    timeline: Timeline,
    record: NodeRecord,
    target: NodeRecord,
    name: str,
    takes: str,
    gets: str,
    counted: str,
    change: str,
) -> Finding:
    text = f"{name} takes targets of {takes}, but gets {gets}"
    at, named = innermost(timeline.info(record.node)), timeline.info(target.node).name
    part = Finding("target", f"{label_at(timeline, target.node)}: {counted}", target.seq, target.node)
    fix = f"give it {named or 'the target'}{change}" if change else "targets from 0 to 1, or another loss"
    edit = wrapped(timeline, at, named, change) if change and named.isidentifier() else None
    return Finding("wrong-targets", text, record.seq, record.node, (part,), fix, at, edit=edit)


# A target that is a part of the input of the model: it can be copied


def target_in_input(survey: Survey) -> Iterator[Finding | None]:
    """Yield targets that are one place in the windows of a series that the model gets, in the same memory.

    A target that is a column of other data may be a small exercise. Labels of tokens are `copied_tokens`.
    """
    yield from copied_tokens(survey)
    timeline, seen = survey.timeline, set[int]()
    roots = {node for _, event in survey.passes for node, _ in event.roots}
    for record in survey.ops("sub", *LOSSES_OF_PAIRS):
        pair = list(survey.sources(record))[:2]
        data = [one for one in pair if not one.created.requires_grad and one.shape]
        tracked = [one for one in pair if one.created.requires_grad and one.created.kind == "op"]
        if record.created.stack in seen or len(data) != 1 or len(tracked) != 1 or not roots:
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


def copied_tokens(survey: Survey) -> Iterator[Finding | None]:
    """Yield labels of a cross entropy that are, in every pass, the indices that an embedding of the model got."""
    timeline, pairs = survey.timeline, list[tuple[NodeRecord, NodeRecord, NodeRecord]]()
    for record in survey.ops("nll_loss", "nll_loss2d", "cross_entropy"):
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
        if same is None:
            return
        pairs.append((record, labels, same))
    if not pairs:
        return
    record, labels, same = pairs[0]
    is_known = labels.value is not None and timeline.array(labels.value) is not None
    if not is_known and (len(pairs) < _FEWEST_BY_STATISTICS or _is_reordered(survey, labels, same)):
        return
    how = "are what the model gets, token by token" if is_known else "have the numbers that the model gets"
    text = titled(f"the labels of {{}} {how}", label(timeline, record.node))
    often = f"in each of {len(pairs)} passes" if len(pairs) > 1 else "in the one pass"
    equals = "equals" if is_known else "has the same least, largest and mean number as"
    equal = f"{label_at(timeline, labels.node)} {equals} {label(timeline, same.node)} {often}"
    part = Finding("target", equal, labels.seq, labels.node)
    fix = "to predict the next token, labels one place later: x, y = tokens[:, :-1], tokens[:, 1:]"
    yield Finding("target-in-input", text, record.seq, record.node, (part,), fix, survey.at(labels), suspected=True)


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


# The mean of a masked loss that also counts the masked elements
#
# ``(loss * mask).mean()`` divides by the number of all elements, so that the loss and every gradient shrink with the
# share of padding, which differs between batches. The intended mean is ``(loss * mask).sum() / mask.sum()``. A label of
# 0 and 1 is no such mask: only a mask of data that ends sequences, or that a comparison of data has made, counts. A
# mask that is made from the prediction, as in a one-sided loss, belongs to the loss.

_COMPARISONS = {"ne", "lt", "le", "gt", "ge", "not_equal", "less", "less_equal", "greater", "greater_equal"}
_OF_ELEMENTS = {"nll_loss", "nll_loss2d", "cross_entropy", "kl_div", "pow", "square", "abs", *LOSSES}
"""Operations that give a loss for each element."""


def masked_mean(survey: Survey) -> Iterator[Finding | None]:
    """Yield means of a loss for each element that a mask has set to zero in part; each line once.

    Two means whose masks keep what the other leaves out, as of positive and negative samples, are the terms of a loss.
    """
    seen: set[int] = set()
    candidates: list[tuple[NodeRecord, NodeRecord, NodeRecord, tuple[int, int]]] = []
    for record in survey.ops("mean"):
        if record.created.stack in seen or not record.created.requires_grad or record.shape:
            continue
        product = survey.unwrapped(next(survey.sources(record), record))
        if product.op not in ("mul", "masked_fill"):
            continue
        yield None
        seen.add(record.created.stack)
        sources = list(survey.sources(product))
        losses = [one for one in sources if one.created.requires_grad]
        masks = [one for one in sources if not one.created.requires_grad and one.shape]
        if len(losses) == len(masks) == 1 and survey.unwrapped(losses[0]).op in _OF_ELEMENTS:
            kept = _kept_count(survey, masks[0], is_fill=product.op == "masked_fill")
            if kept is not None and _is_part_of_loss(survey, record):
                candidates.append((record, losses[0], masks[0], kept))
    counts = [kept for *_, kept in candidates]
    for record, loss, mask, (count, size) in candidates:
        if (size - count, size) not in counts:
            yield _masked_mean_finding(survey, record, loss, mask, (count, size))


def _kept_count(survey: Survey, mask: NodeRecord, *, is_fill: bool) -> tuple[int, int] | None:
    """Return how many elements a mask keeps, and of how many; None if it keeps all or none, or is no such mask."""
    value = mask.value
    stats = value.statistics() if value is not None else None
    if value is None or stats is None or stats.min != 0 or stats.max != 1 or stats.nan:
        return None
    ones = value.size - stats.zero
    if abs(stats.mean * value.size - ones) > 1e-3 * value.size:
        return None
    sources = [survey.nodes[node] for node in ancestors(survey.timeline, mask.node) if node in survey.nodes]
    if any(one.created.requires_grad or one.op in ("tril", "triu") for one in (mask, *sources)):
        return None
    array = survey.timeline.array(value)
    ends_rows = array is not None and _ends_rows(array.astype(bool) ^ is_fill)
    if not ends_rows and not any(one.op in _COMPARISONS for one in _conversions(survey, mask)):
        return None
    return (stats.zero if is_fill else ones), value.size


def _ends_rows(kept: Array) -> bool:
    """Return whether every row keeps a beginning, of at least two different lengths."""
    if kept.ndim < 2 or kept.shape[-1] < 2:
        return False
    rows = kept.reshape(-1, kept.shape[-1])
    return bool((rows[:, 1:] <= rows[:, :-1]).all()) and len(np.unique(rows.sum(axis=1))) > 1


def _conversions(survey: Survey, record: NodeRecord) -> Iterator[NodeRecord]:
    """Yield a mask, and the masks that it converts, views or combines."""
    waiting, seen = [record], {record.node}
    while waiting:
        one = waiting.pop()
        yield one
        if one.op in SAME_NUMBERS or one.op in _CONVERTING:
            waiting += [source for source in survey.sources(one) if source.node not in seen]
            seen.update(source.node for source in survey.sources(one))


_CONVERTING = {"float", "to", "type_as", "double", "half", "bool", "logical_not", "logical_and", "bitwise_and"}


def _is_part_of_loss(survey: Survey, record: NodeRecord) -> bool:
    """Return whether a pass began at a mean, or at a sum or a multiple of it.

    A quotient by another result, such as the mean of the mask, may normalize it.
    """
    roots = {node for _, event in survey.passes for node, _ in event.roots}
    nodes, waiting, seen = survey.timeline.nodes, [record.node], {record.node}
    while waiting:
        node = waiting.pop()
        if node in roots:
            return True
        for user in nodes.users(node):
            one = survey.nodes.get(user)
            if one is None or user in seen or one.op not in {*_SUMMING, *_CARRYING_ONE_TERM}:
                continue
            others = [source for source in survey.sources(one) if source.node not in seen]
            if one.op not in ("div", "mul") or not any(source.created.kind == "op" for source in others):
                seen.add(user)
                waiting.append(user)
    return False


def _masked_mean_finding(
    survey: Survey, record: NodeRecord, loss: NodeRecord, mask: NodeRecord, kept: tuple[int, int]
) -> Finding:
    timeline, (count, size) = survey.timeline, kept
    text = titled("{} also counts the elements that the mask sets to 0", label(timeline, record.node))
    named = label(timeline, mask.node)
    part = Finding(
        "mask", f"{named} keeps {count} of {size} elements: the loss is {number(count / size, 3)} of their mean",
        record.seq, record.node,
    )  # fmt: skip
    name = timeline.info(mask.node).name
    divisor = f"{name}.sum()" if name.isidentifier() else "mask.sum()"
    fix = f".sum() / {divisor} instead of .mean()"
    at = innermost(timeline.info(record.node))
    is_factor = next(survey.sources(record), record).op == "mul" and mask.shape == loss.shape
    edit = divided_by_mask(timeline, at, name) if is_factor and name.isidentifier() else None
    return Finding("masked-mean", text, record.seq, record.node, (part,), fix, at, suspected=True, edit=edit)

"""Shapes that do not match and are broadcast: ``(n, 1)`` and ``(n,)`` give ``(n, n)`` errors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain

from gviz.explain.display_names import label, label_at, titled
from gviz.explain.finding import Finding
from gviz.explain.operation_sets import (
    ELEMENTWISE_PAIRS,
    LOSSES_OF_PAIRS,
    RESHAPING,
    SAME_NUMBERS,
    WEIGHTED_SUMS,
)
from gviz.explain.recording_survey import NodeRecord, Survey
from gviz.explain.source_edit import (
    operand,
    wrapped,
)
from gviz.explain.source_frames import innermost
from gviz.explain.tracking import ancestors
from gviz.source.parsing import ARITHMETIC
from gviz.values.number_text import shape_text
from gviz.values.value import Value

_MOST_NODES = 200
"""The most nodes that are followed from one meeting of shapes."""


# A column against a row of as many elements: (n,1) with (n,) gives (n,n), and a loss of every pair


def broadcast(survey: Survey) -> Iterator[Finding | None]:
    """Yield elementwise operations where neither input has the shape of the result, or a vector meets the columns."""
    yield from _by_column(survey)
    yield from _by_index(survey)
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


# A column of indices against rows that have one index each: ``dist.log_prob(actions)`` with (n,1) actions


def _by_index(survey: Survey) -> Iterator[Finding | None]:
    """Yield lookups that take each index for each row, where a loss adds up all of these pairs; each line once.

    ``Categorical(logits).log_prob(actions)`` with ``actions`` of shape (n,1) and ``logits`` of (n,k) gathers (n,n)
    numbers, and so does ``logits[torch.arange(n), actions]``.
    """
    timeline, seen = survey.timeline, set[int]()
    for record in survey.ops("gather", "index"):
        if record.created.stack in seen or not record.created.requires_grad or record.created.during[0]:
            continue
        yield None
        operands = _rows_and_index(survey, record)
        if operands is None:
            continue
        rows, index, shapes = operands
        looked_up = _named_result(survey, record)
        if not _column_and_row(*shapes) or not _is_sum_of_pairs(survey, record):
            continue
        seen.add(record.created.stack)
        n = record.shape[0]
        text = titled(
            f"{{}}: {shape_text(shapes[0])} with {shape_text(shapes[1])} becomes ({n},{n})",
            label(timeline, looked_up.node),
        )
        of_rows = f"{label(timeline, rows.node)} is {shape_text(rows.shape)}"
        of_index = f"the index {label(timeline, index.node)} is {shape_text(index.shape)}"
        every = f"{of_rows} and {of_index}: every index is looked up in every row"
        parts = (Finding("operand", every, index.seq, index.node),)
        is_column = len(shapes[1]) == 2
        one = "squeeze(-1) the index" if is_column else "squeeze(1) the rows"
        fix = f"{one}, so that each row has one index"
        name, at = timeline.info(index.node).name, survey.at(record)
        edit = wrapped(timeline, at, name, ".squeeze(-1)") if is_column and name.isidentifier() else None
        yield Finding("broadcast", text, record.seq, record.node, parts, fix, at, edit=edit)


def _rows_and_index(
    survey: Survey, record: NodeRecord
) -> tuple[NodeRecord, NodeRecord, tuple[tuple[int, ...], tuple[int, ...]]] | None:
    """Return what an index looks up, the index of the program, and the shapes of both without what they choose from."""
    sources = list(survey.sources(record))
    if record.op == "index":
        if len(sources) != 3 or len(record.shape) != 2 or len(sources[0].shape) != 2:
            return None
        rows, order, index = sources
        is_each = order.value is not None and order.value.counts_up and len(order.shape) == 1
        is_index = index.value is not None and "int" in index.value.dtype and not index.value.counts_up
        return (rows, index, (order.shape, index.shape)) if is_each and is_index else None
    if len(sources) != 2 or sources[0].op != "expand" or not _is_last(record) or len(record.shape) != 3:
        return None
    if survey.at(sources[0]) != survey.at(record):
        return None  # the program repeats the rows itself
    rows, index = _before_widening(survey, sources[0]), sources[1]
    while (source := next(survey.sources(index), None)) is not None and index.op in _INDEX_STEPS:
        if index.shape != record.shape and survey.at(index) != survey.at(record):
            break
        index = source
    shapes = rows.shape[:-1], index.shape
    return rows, index, shapes


_INDEX_STEPS = {"broadcast_tensors", "expand", "broadcast_to", *SAME_NUMBERS}


def _is_last(record: NodeRecord) -> bool:
    """Return whether a gather is along the last dimension."""
    return dict(record.created.attrs).get("dim") in (-1, len(record.shape) - 1)


def _named_result(survey: Survey, record: NodeRecord) -> NodeRecord:
    """Return the last tensor that a call made of a lookup by reshaping it only."""
    while True:
        users = [survey.nodes[node] for node in survey.timeline.nodes.users(record.node) if node in survey.nodes]
        same = [user for user in users if user.op in RESHAPING and survey.at(user) == survey.at(record)]
        if len(same) != 1:
            return record
        record = same[0]


def _is_sum_of_pairs(survey: Survey, record: NodeRecord) -> bool:
    """Return whether a loss adds up all elements of a lookup, after products and sums with rows and columns only.

    Data with a number for each pair shows that the pairs are wanted, unless it was looked up in the same way. So does
    an operation between the pairs, such as `logsumexp`.
    """
    pairs = _named_result(survey, record)
    if len(pairs.shape) != 2 or pairs.shape[0] != pairs.shape[1]:
        return False
    waiting, seen, is_added_up = [pairs], {pairs.node}, False
    while waiting and len(seen) < _MOST_NODES:
        one = waiting.pop()
        for user in (survey.nodes.get(node) for node in survey.timeline.nodes.users(one.node)):
            if user is None or user.node in seen or not user.created.requires_grad:
                continue
            seen.add(user.node)
            others = [other for other in survey.sources(user) if other.node != one.node]
            if any(other.shape == pairs.shape and _is_data_of_pairs(survey, other) for other in others):
                return False
            if not user.shape and user.op in ("mean", "sum"):
                is_added_up = True
            elif user.shape == pairs.shape and user.op in _ON_LOOKUPS:
                waiting.append(user)
            else:
                return False
    return is_added_up


_ON_LOOKUPS = {
    "add", "sub", "mul", "div", "neg", "exp", "log", "clamp", "minimum", "maximum", "min", "pow", "square", *RESHAPING,
}  # fmt: skip


def _is_data_of_pairs(survey: Survey, record: NodeRecord) -> bool:
    """Return whether a tensor is data that is no lookup itself, as the log-probabilities of an earlier policy are."""
    for _ in range(_MOST_NODES):
        if record.created.requires_grad or record.op in ("gather", "index"):
            return False
        tensors = [one for one in survey.sources(record) if one.shape]
        if record.op not in _ON_LOOKUPS | SAME_NUMBERS | {"detach"} or len(tensors) != 1:
            return True
        record = tensors[0]
    return True


_DIFFERENCES = {"sub", *LOSSES_OF_PAIRS}


_POWERS = {"pow", "square", "abs"}


def is_error(survey: Survey, record: NodeRecord, *, only: bool = False) -> bool:
    """Return whether a node is a loss, or a difference that an error is made from: with `only`, nothing else."""
    nodes = survey.timeline.nodes.users(record.node)
    users = [survey.nodes[node].op for node in nodes if node in survey.nodes]
    if only:
        return record.op != "sub" or (bool(users) and all(op in ERRORS for op in users))
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
    for _ in range(_MOST_NODES):
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
    data of its own shape, if it is multiplied as a matrix, or if the program also makes all pairs of one of the two
    tensors with itself: an energy distance has ``x - x.T`` for its ``x - y``.
    """
    if survey.unwrapped(pair[0]).node == survey.unwrapped(pair[1]).node:
        return True
    if any(_has_pairs_with_itself(survey, one, record) for one in pair):
        return True
    at = survey.at(record)
    column = max(pair, key=lambda one: len(one.shape))
    made = survey.at(column) if column.op in _MAKING_COLUMNS else None
    if at is not None and made is not None and (made.path, made.line) == (at.path, at.line):
        return not _is_mean_error(survey, record)
    waiting, seen = [record.node], {record.node}
    while waiting and len(seen) < _MOST_NODES:
        for user in (survey.nodes.get(node) for node in survey.timeline.nodes.users(waiting.pop())):
            if user is None or user.node in seen:
                continue
            seen.add(user.node)
            others = [one for one in survey.sources(user) if one.shape == record.shape and one.node not in seen]
            if user.op in WEIGHTED_SUMS or any(_is_given(one) for one in others):
                return True
            if user.shape == record.shape:
                waiting.append(user.node)
    return False


def _has_pairs_with_itself(survey: Survey, operand: NodeRecord, record: NodeRecord) -> bool:
    """Return whether the operation of a record is also applied to all pairs of elements of one operand: ``x - x.T``.

    What it is applied to may be views of the operand, such as ``x[:, None] - x``.
    """
    base = survey.unwrapped(operand).node
    waiting, seen = [base], {base}
    while waiting and len(seen) < _MOST_NODES:
        for user in (survey.nodes.get(node) for node in survey.timeline.nodes.users(waiting.pop())):
            if user is None or user.node in seen:
                continue
            seen.add(user.node)
            sources = [_before_widening(survey, source) for source in survey.sources(user)]
            is_of_one = len(sources) > 1 and all(survey.unwrapped(one).node == base for one in sources)
            is_of_pairs = user.op == record.op or user.op in _OF_ALL_PAIRS
            if is_of_one and is_of_pairs and user.shape == record.shape != sources[0].shape:
                return True
            if survey.unwrapped(user).node == base:
                waiting.append(user.node)
    return False


_OF_ALL_PAIRS = {*WEIGHTED_SUMS, "cdist", "_cdist_forward"}


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
    suspected = all(source.created.requires_grad for source in pair)  # all pairs of two predictions, as for a ranking
    return Finding("broadcast", text, record.seq, record.node, parts, fix, at, suspected=suspected, edit=edit)


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
    while waiting and len(seen) < _MOST_NODES:
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
    while waiting and len(seen) < _MOST_NODES:
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


ERRORS = {"pow", "square", "abs", "mul"}
"""Operations that make an error from a difference."""

"""A softmax over another dimension, or over other groups of rows, than the one over which its weights are summed."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gviz.explain.display_names import label, label_at, titled
from gviz.explain.finding import Finding
from gviz.explain.operation_sets import DROPOUTS, RESHAPING, SAME_NUMBERS
from gviz.explain.program_text import called_name, expression, parameters_around
from gviz.explain.recording_survey import NodeRecord, Survey, dimensions_named
from gviz.explain.source_edit import with_dim
from gviz.source.call_stack import Frame
from gviz.values.number_text import number
from gviz.values.value import Array


def softmax_of_other_dim(survey: Survey) -> Iterator[Finding | None]:
    """Yield a softmax that is the left factor of a matrix product, and does not add up to one along its rows.

    A product sums over the last dimension of its left factor. Weights that are divided or transposed before it are
    left out, and so are those that the program also adds up along their rows: a soft assignment, as in NetVLAD. That
    of groups of rows is `softmax_of_other_groups`.
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
        if _is_summed_along_rows(survey, record):
            continue
        seen.add(record.created.stack)
        timeline = survey.timeline
        text = titled(
            "{} sums to 1 over dim {}, but its product sums over the last", label(timeline, record.node), f"{dim}"
        )
        part = Finding("used", f"{label_at(timeline, product.node)} is that product", product.seq, product.node)
        at = survey.at(record)
        fix = "softmax over the dimension of what is attended to: dim=-1"
        edit = with_dim(timeline, at, "softmax", "-1")
        yield Finding("softmax-dim", text, record.seq, record.node, (part,), fix, at, suspected=True, edit=edit)


def _is_summed_along_rows(survey: Survey, record: NodeRecord) -> bool:
    """Return whether the program adds up a softmax over its last dimension: it does not expect a sum of one there."""
    rank = len(record.shape)
    users = (survey.nodes.get(node) for node in survey.timeline.nodes.users(record.node))
    sums = (user for user in users if user is not None and user.op in ("sum", "mean"))
    return any(rank - 1 in dimensions_named(dict(one.created.attrs).get("dim"), rank) for one in sums)


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


# ----------------------------------------------------------------------------------------------------------------------
# Weights of a softmax over groups that are summed over other groups, as those of the edges of a graph.
#
# Idea. A softmax over groups divides the exponential of each row by the sum over the rows with the same index. If rows
# are then weighted and added up by another index, the weights of a sum do not add up to one. The recording shows both
# indices: the one of the normalization and the one of the sum.
#
# Example. Attention over the edges of a graph that is normalized over ``edge_index[0]``, the sources, and whose
# messages are added up at ``edge_index[1]``, the destinations.
#
# Limits. A source that shares what it has among its neighbours is normalized so on purpose, so this is a note. Two
# indices without known elements count as different only if they are different parts of one memory, or number the same
# range.

_SUMS = ("index_add", "scatter_add", "scatter_reduce", "index_put", "index_reduce")
_GATHERS = frozenset({"index", "getitem", "index_select", "gather", "take_along_dim"})
_OF_SUMS = RESHAPING | {
    "add", "clamp", "clamp_min", "maximum", "where", "masked_fill", "nan_to_num", "log", "reciprocal", "pow", "div",
    "mul", "clone", "contiguous", "transpose", "alias",
}  # fmt: skip
"""What a program does to the sums of groups before it divides by them."""

_OF_INDICES = RESHAPING | {"expand_as", "clone", "contiguous", "alias", "to", "long", "getitem", "repeat"}
_MOST = 12
"""The most operations on a path."""


@dataclass(frozen=True, slots=True)
class _Index:
    """One output of a node that numbers the groups of rows."""

    record: NodeRecord
    output: int


@dataclass(frozen=True, slots=True)
class _Sum:
    """A sum of rows by an index, and the rows."""

    record: NodeRecord
    index: _Index
    rows: NodeRecord


def softmax_of_other_groups(survey: Survey) -> Iterator[Finding | None]:
    """Yield weights that add up to one over one index and are summed over another: each line once."""
    sums = {one.record.node: one for one in _sums(survey)}
    if len(sums) < 2:
        return
    seen = set[int]()
    for record in survey.ops("div", "mul", "exp"):
        if record.created.stack in seen or not record.created.requires_grad or record.created.during[0]:
            continue
        yield None
        normalized = _normalization(survey, record, sums)
        if normalized is not None:
            seen.add(record.created.stack)
            used = _other_sum(survey, record, normalized, sums)
        else:
            normalized, used = _divided_sums(survey, record, sums)
            seen |= {record.created.stack} if used is not None else set()
        if normalized is not None and used is not None:
            yield _finding(survey, record, normalized, used)


def _sums(survey: Survey) -> Iterator[_Sum]:
    """Yield the sums of rows by an index."""
    for record in survey.ops(*_SUMS):
        attrs, inputs = dict(record.created.attrs), record.created.inputs
        if attrs.get("reduce", "sum") not in ("sum", "add") or (
            record.op == "index_put" and not attrs.get("accumulate")
        ):
            continue
        index, rows = None, None
        for node, nr in inputs[1:]:
            one = survey.nodes.get(node)
            if one is not None and nr < len(one.created.outputs):
                value = one.created.outputs[nr].value
                if value is not None and "int" in value.dtype:
                    index = _Index(one, nr)
                elif value is not None:
                    rows = one
        if index is not None and rows is not None and record.created.requires_grad:
            yield _Sum(record, _unwrapped(survey, index), rows)


def _unwrapped(survey: Survey, index: _Index) -> _Index:
    """Return the index before it was reshaped, copied or expanded to several columns."""
    while index.record.op in _OF_INDICES and index.record.created.inputs:
        node, nr = index.record.created.inputs[0]
        source, own = survey.nodes.get(node), index.record.value
        value = source.created.outputs[nr].value if source is not None and nr < len(source.created.outputs) else None
        if source is None or value is None or own is None or (value.size != own.size and "getitem" in index.record.op):
            return index
        if value.size > own.size:
            return index
        index = _Index(source, nr)
    return index


# What is normalized over an index


def _normalization(survey: Survey, record: NodeRecord, sums: dict[int, _Sum]) -> _Sum | None:
    """Return the sum that weights are divided by in their groups: ``e / e_sum[index]``, ``exp(x - log_sum[index])``."""
    pair = list(survey.sources(record))[:2]
    if record.op == "exp":
        if len(pair) != 1 or pair[0].op != "sub":
            return None
        sides = list(survey.sources(pair[0]))[:2]
        return _gathered(survey, sides[1], sums) if len(sides) == 2 else None
    if len(pair) != 2:
        return None
    for factor, other in (pair, pair[::-1])[: 1 if record.op == "div" else 2]:
        if (normalized := _gathered(survey, other, sums)) is not None:
            return normalized if _are_equal(survey, normalized.rows, factor) else None
    return None


def _are_equal(survey: Survey, one: NodeRecord, other: NodeRecord) -> bool:
    """Return whether two tensors are one, or the same function of one that a program computes twice."""
    one, other = survey.unwrapped(one), survey.unwrapped(other)
    if one.node == other.node:
        return True
    sources = [[survey.unwrapped(source).node for source in survey.sources(each)] for each in (one, other)]
    return one.op == other.op == "exp" and bool(sources[0]) and sources[0] == sources[1]


def _gathered(survey: Survey, record: NodeRecord, sums: dict[int, _Sum]) -> _Sum | None:
    """Return the sum of exponentials that was looked up by the index by which it was summed."""
    for gather in _before(survey, record, _GATHERS):
        sources = gather.created.inputs
        node, nr = sources[-1]
        index = survey.nodes.get(node)
        if len(sources) < 2 or index is None or nr >= len(index.created.outputs):
            continue
        looked_up = _unwrapped(survey, _Index(index, nr))
        summed = survey.nodes.get(sources[0][0])
        for one in _before(survey, summed, frozenset(_SUMS)) if summed is not None else ():
            known = sums.get(one.node)
            if known is not None and _is_exponential(survey, known.rows) and _are_same(survey, known.index, looked_up):
                return known
    return None


def _before(survey: Survey, record: NodeRecord, names: frozenset[str]) -> Iterator[NodeRecord]:
    """Yield the nearest nodes of some operations from which a tensor was computed, as sums are before a division."""
    waiting, count = [record], 0
    while waiting and count < _MOST:
        one, count = waiting.pop(0), count + 1
        if one.op in names and one.created.kind == "op":
            yield one
        elif one.op in _OF_SUMS and one.created.kind == "op":
            waiting += survey.sources(one)


def _is_exponential(survey: Survey, record: NodeRecord) -> bool:
    waiting, count = [record], 0
    while waiting and count < _MOST:
        one, count = waiting.pop(0), count + 1
        if one.op in ("exp", "exp2"):
            return True
        if one.op in SAME_NUMBERS | {"mul", "masked_fill", "where", "add", "clamp"} | DROPOUTS:
            waiting += survey.sources(one)
    return False


# How weights are used


def _other_sum(survey: Survey, weights: NodeRecord, normalized: _Sum, sums: dict[int, _Sum]) -> _Sum | None:
    """Return the weighted sum by another index; None if there is none, or one by the index of the normalization too.

    Weights that are themselves summed by the other index are most likely normalized again.
    """
    found: list[_Sum] = []
    waiting, seen = [(weights, False)], {weights.node}
    while waiting and len(seen) < 50:
        record, is_product = waiting.pop()
        for node in survey.timeline.nodes.users(record.node):
            user = survey.nodes.get(node)
            if user is None or user.node in seen or user.created.during[0]:
                continue
            seen.add(user.node)
            if user.node in sums:
                if not is_product or _are_same(survey, normalized.index, sums[user.node].index) is not False:
                    return None
                found.append(sums[user.node])
            elif user.op in SAME_NUMBERS or user.op in DROPOUTS:
                waiting.append((user, is_product))
            elif user.op == "mul" and not is_product and _is_weighted(survey, user, record):
                waiting.append((user, True))
    return found[0] if found and not _adds_up(survey, weights, found[0]) else None


def _is_weighted(survey: Survey, product: NodeRecord, weights: NodeRecord) -> bool:
    """Return whether a product is one of weights and rows, and not of two weights."""
    others = [one for one in survey.sources(product) if one.node != weights.node]
    if len(others) != 1 or product.value is None or weights.value is None:
        return False
    other = survey.unwrapped(others[0])
    return product.value.size > weights.value.size or other.op in _GATHERS or others[0].op in _GATHERS


def _divided_sums(survey: Survey, record: NodeRecord, sums: dict[int, _Sum]) -> tuple[_Sum | None, _Sum | None]:
    """Return two sums, if one is divided by the other and only the first is weighted: of ``e`` and of ``e * x``."""
    pair = list(survey.sources(record))[:2]
    if record.op != "div" or len(pair) != 2:
        return None, None
    names = frozenset(_SUMS)
    over, under = (next(_before(survey, one, names), None) for one in pair)
    if over is None or under is None or over.node not in sums or under.node not in sums:
        return None, None
    used, normalized = sums[over.node], sums[under.node]
    product, weights = survey.unwrapped(used.rows), survey.unwrapped(normalized.rows)
    if product.op != "mul" or not _is_exponential(survey, weights):
        return None, None
    if not any(_are_equal(survey, weights, one) for one in survey.sources(product)):
        return None, None
    return (normalized, used) if _are_same(survey, normalized.index, used.index) is False else (None, None)


# Whether two indices are the same


def _are_same(survey: Survey, one: _Index, other: _Index) -> bool | None:
    """Return whether two indices divide rows into the same groups; None if that is not known."""
    if (one.record.node, one.output) == (other.record.node, other.output):
        return True
    outputs = [each.record.created.outputs[each.output] for each in (one, other)]
    first, second = outputs
    if first.value is None or second.value is None or first.value.size != second.value.size:
        return None
    arrays = [survey.timeline.array(each.value) if each.value is not None else None for each in outputs]
    if arrays[0] is not None and arrays[1] is not None:
        return bool((_groups(arrays[0]) == _groups(arrays[1])).all())
    if first.storage == second.storage:
        return first.offset == second.offset
    stats = [each.value.statistics() if each.value is not None else None for each in outputs]
    if stats[0] is None or stats[1] is None or stats[0] == stats[1]:
        return None
    return False if (stats[0].min, stats[0].max) == (stats[1].min, stats[1].max) else None


def _groups(index: Array) -> Array:
    """Return an index with its groups numbered in the order in which they appear."""
    _, first, inverse = np.unique(index.ravel(), return_index=True, return_inverse=True)
    order: Array = first.argsort().argsort()
    return order[inverse.ravel()]


def _sums_of_groups(survey: Survey, weights: NodeRecord, index: _Index) -> Array | None:
    """Return what the weights of each group add up to."""
    value = index.record.created.outputs[index.output].value
    rows = survey.timeline.array(weights.value) if weights.value is not None else None
    groups = survey.timeline.array(value) if value is not None else None
    if rows is None or groups is None or not rows.size or rows.shape[0] != groups.size:
        return None
    groups = _groups(groups)
    found = np.zeros((int(groups.max()) + 1, *rows.shape[1:]))
    np.add.at(found, groups, rows)
    return found


def _adds_up(survey: Survey, weights: NodeRecord, used: _Sum) -> bool:
    sums = _sums_of_groups(survey, weights, used.index)
    return sums is not None and bool(np.isclose(sums, 1, atol=1e-2).all())


# What is reported


def _finding(survey: Survey, record: NodeRecord, normalized: _Sum, used: _Sum) -> Finding:
    timeline = survey.timeline
    text = titled("{} adds up to 1 over one index, and is summed over another", label(timeline, record.node))
    indices = [label_at(timeline, one.index.record.node) for one in (normalized, used)]
    if normalized.index.record is used.index.record:
        indices = [
            f"output {one.index.output} of {name}" for one, name in zip((normalized, used), indices, strict=True)
        ]
    sums = _sums_of_groups(survey, record, used.index)
    spread = f": the weights of a sum add up to {number(float(sums.min()))} .. {number(float(sums.max()))}" if (
        sums is not None
    ) else ""  # fmt: skip
    over = Finding("sum", f"it is normalized over {indices[0]}, and summed over {indices[1]}{spread}",
                   normalized.record.seq, normalized.record.node, at=survey.at(normalized.record))  # fmt: skip
    then = Finding("used", f"{label_at(timeline, used.record.node)} is that sum", used.record.seq, used.record.node,
                   at=survey.at(used.record))  # fmt: skip
    fix = "normalize over the index by which the rows are summed, for a graph the destination of each edge"
    at = _line_of_index(survey, normalized)
    return Finding("softmax-dim", text, record.seq, record.node, (over, then), fix, at, suspected=True)


def _line_of_index(survey: Survey, normalized: _Sum) -> Frame | None:
    """Return the line where the program chooses the index: that of the call of the outermost function that gets it."""
    timeline, frames = survey.timeline, survey.timeline.stack(normalized.record.created.stack)
    at = survey.at(normalized.record)
    if at is None or at not in frames:
        return at
    function, position = normalized.record.op, 1  # index_add(dim, index, rows)
    chosen = at
    for frame in frames[frames.index(at) :]:
        running = expression(timeline, frame)
        calls = (part for part in ast.walk(running) if isinstance(part, ast.Call)) if running is not None else ()
        call = next((part for part in calls if called_name(part).rstrip("_") == function), None)
        if call is None:
            break
        chosen = frame
        values = call.args[position : position + 1] + [one.value for one in call.keywords if one.arg == "index"]
        parameters = parameters_around(timeline, frame)
        name = values[0].id if values and isinstance(values[0], ast.Name) else ""
        if name not in parameters:
            break
        function, position = frame.function.rpartition(".")[2], parameters.index(name)
        position -= parameters[0] == "self"
    return chosen

"""Attention masks that are the wrong way round: they show what they should hide.

Idea. Whatever applies a mask (`masked_fill` with -inf, `where`, an assignment, an attention function), what it hides is
one array of true and false. Two patterns in it are the opposite of what attention needs:

* Of a square mask, every position sees only itself and what comes later, or only what comes later: the triangle of a
  causal mask is the wrong one.
* Of a mask over the keys of each sample, as many elements are visible as the data has padding at the ends of its rows,
  and the real ones are hidden.

Only attention counts: a softmax of what is masked whose result weights values. A triangle may also limit which end
belongs to which start of a span, and a policy of a game may hide the fields that are taken. If the softmax is over the
rows, the mask is one of keys and queries, and its triangle is the other one.

Functions disagree about what True means: in `scaled_dot_product_attention` it takes part, in `MultiheadAttention` and
the transformer layers it is hidden, and so it is in `masked_fill`.

Limits. Large arrays have only statistics in a trace. A triangle is then computed again from what it was made of, and
must have the recorded number of zeros; of a padding mask the counts are compared, and the finding is a note.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gviz.explain.display_names import label, label_at, titled
from gviz.explain.finding import Finding
from gviz.explain.findings.loss.inverted_loss_mask import keeps_ignored
from gviz.explain.findings.loss.shifted_labels import shifts_of_labels
from gviz.explain.operation_sets import DROPOUTS, SAME_NUMBERS, is_fused_attention
from gviz.explain.program_text import line_text
from gviz.explain.recording_survey import NodeRecord, Survey
from gviz.explain.source_edit import Edit, inverted, renamed_call
from gviz.source.call_stack import Frame
from gviz.values.number_text import shape_text
from gviz.values.value import Array, Stats, Value

_LOW = -100.0
"""A score at or below this is hidden: the softmax of others is 1 in comparison."""

_LEAST = 3
"""The least length at which a triangle is no accident."""

_MOST = 1 << 22
"""The most elements of a mask that is computed again."""


@dataclass(frozen=True, slots=True)
class _Use:
    """A use of a mask by an operation; `shows` if True means that an element takes part."""

    record: NodeRecord
    mask: NodeRecord
    shows: bool


def inverted_masks(survey: Survey) -> Iterator[Finding | None]:
    """Yield the lines that apply a causal mask of the wrong triangle, or a padding mask that shows the padding.

    A program with masks for both directions attends to the future on purpose, and so does one that predicts earlier
    tokens from later ones. One whose labels are no tokens of its input may do so: the carry of an addition comes from
    the right. Masks of a loss are `keeps_ignored`.
    """
    yield from keeps_ignored(survey)
    lines: dict[int, list[_Use]] = {}
    triangles: dict[int, tuple[int, str]] = {}  # by the call stack of a use: the diagonal of what is hidden, and where
    for use in _uses(survey):
        yield None
        lines.setdefault(use.record.created.stack, []).append(use)
    for stack, uses in lines.items():
        yield None
        hidden = _hidden(survey, uses[0])
        if hidden is not None and (triangle := _triangle(hidden)) is not None:
            diagonal, side = triangle
            is_turned = _dimension(survey, uses[0]) == _QUERIES
            triangles[stack] = (-diagonal, _OTHER_SIDE[side]) if is_turned else triangle
    batches = _batches(survey) if lines else {}
    is_causal_somewhere = any(side == "later" for _, side in triangles.values())
    for stack, uses in lines.items():
        yield None
        diagonal, side = triangles.get(stack, (0, ""))
        if side == "earlier" and not is_causal_somewhere and _dimension(survey, uses[0]) in (_KEYS, _QUERIES):
            shifts = shifts_of_labels(survey)
            if min(shifts or {0}) >= 0:
                is_other_task = shifts is not None and max(shifts or {0}) <= 0
                yield replace(_causal_finding(survey, uses[0], diagonal), suspected=is_other_task)
        elif not side and (padding := _shown_padding(survey, uses, batches)) is not None:
            yield _padding_finding(survey, uses[0], padding)


# Where masks are used


def _uses(survey: Survey) -> Iterator[_Use]:
    """Yield the uses of masks: by fills with a low number, as arguments of attention, and as sums of 0 and -inf."""
    booleans = [record for record in survey.nodes.values() if _is_bool(record)]
    of_attention = {record.created.stack for record in survey.ops("_safe_softmax")}
    for record in survey.nodes.values():
        inputs = [survey.nodes.get(node) for node, _ in record.created.inputs]
        if record.created.during[0]:
            continue
        if is_fused_attention(record.op) or (record.op in SAME_NUMBERS and record.created.stack in of_attention):
            # where attention consists of several operations, its mask is a further input of the last one
            masks = [one for one in inputs[1:] if one is not None and _is_bool(one)]
            yield from (_Use(record, mask, shows=True) for mask in masks)
        elif record.op == "where" and len(inputs) > 1:
            attrs = dict(record.created.attrs)  # a plain number is there, not among the inputs
            one, other = inputs[1], inputs[2] if len(inputs) > 2 else None
            is_low = [
                _is_low(one) or _is_low_number(attrs.get("self")),
                _is_low(other) or _is_low_number(attrs.get("other")),
            ]
            if inputs[0] is not None and any(is_low):
                yield _Use(record, inputs[0], shows=is_low[1])
        elif record.op in ("masked_fill", "setitem") and len(inputs) > 1:
            mask, low = inputs[1], dict(record.created.attrs).get("value")
            is_low_fill = _is_low(inputs[2] if len(inputs) > 2 else None) or _is_low_number(low)
            if mask is not None and _is_bool(mask) and is_low_fill:
                yield _Use(record, mask, shows=False)
        elif _is_of_scores(record):
            yield _source_of(survey, record, booleans)


def _is_bool(record: NodeRecord) -> bool:
    return record.value is not None and record.value.dtype == "bool"


def _is_low(record: NodeRecord | None) -> bool:
    """Return whether a tensor has only numbers that hide a score, as ``torch.tensor(-inf)`` does."""
    value = record.value if record is not None else None
    stats = value.statistics() if value is not None else None
    return stats is not None and value is not None and value.size > 0 and (stats.inf == value.size or stats.max <= _LOW)


def _is_low_number(number: object) -> bool:
    return isinstance(number, int | float) and number <= _LOW


def _is_of_scores(record: NodeRecord) -> bool:
    """Return whether a tensor has only 0 and a number that hides what it is added to, and no other tensor has it."""
    value = record.value
    if value is None or record.created.requires_grad or len(value.shape) < 2 or "float" not in value.dtype:
        return False
    if record.created.kind == "op" and record.op not in ("triu", "tril", "mul", "log", "fill"):
        return False
    stats = value.statistics()
    if stats is None or stats.nan or stats.max != 0 or not 0 < stats.zero < value.size:
        return False
    others = value.size - stats.zero - stats.inf
    return (stats.inf > 0 and not others) or (
        not stats.inf and stats.min <= _LOW and _is_close(stats, others, value.size)
    )


def _is_close(stats: Stats, others: int, size: int) -> bool:
    """Return whether all numbers but the zeros are the least one."""
    return abs(stats.mean * size - stats.min * others) <= 1e-3 * abs(stats.min)


def _source_of(survey: Survey, mask: NodeRecord, booleans: list[NodeRecord]) -> _Use:
    """Return the use of the mask of booleans that a module or function has made a mask of 0 and -inf from."""
    end = bisect_left(booleans, mask.seq, key=lambda record: record.seq)
    for record in reversed(booleans[max(end - _LOOKED_BACK, 0) : end]):
        shows = _shows(survey, record, mask) if record.shape == mask.shape else None
        if shows is not None:
            return _Use(mask, record, shows)
    return _Use(mask, mask, shows=False)


_LOOKED_BACK = 200


def _shows(survey: Survey, source: NodeRecord, added: NodeRecord) -> bool | None:
    """Return whether a mask of booleans is true where another has 0, or false there; None if it is neither."""
    one, other = (survey.timeline.array(each.value) if each.value is not None else None for each in (source, added))
    if one is not None and other is not None:
        is_zero = other == 0
        return True if (one == is_zero).all() else False if (one != is_zero).all() else None
    counts = [each.value.statistics() if each.value is not None else None for each in (source, added)]
    if counts[0] is None or counts[1] is None or source.value is None or 2 * counts[1].zero == source.value.size:
        return None
    false, zero = counts[0].zero, counts[1].zero
    return True if source.value.size - false == zero else False if false == zero else None


# The softmax of what is masked

_KEYS, _QUERIES = -1, -2
"""The dimensions of scores over which a softmax can be."""

_OTHER_SIDE = {"earlier": "later", "later": "earlier"}
_OF_SCORES = SAME_NUMBERS | {
    "add", "sub", "mul", "div", "baddbmm", "masked_fill", "where", "setitem", "clamp", "tanh", "tril", "triu",
}  # fmt: skip
_OF_WEIGHTS = SAME_NUMBERS | DROPOUTS | {"mul", "div", "masked_fill", "where", "nan_to_num"}
_WEIGHTED_SUMS = {"mm", "bmm", "matmul", "einsum", "mv", "dot", "baddbmm"}
_MOST_FOLLOWED = 100


def _dimension(survey: Survey, use: _Use) -> int:
    """Return over which dimension of the masked scores attention has its softmax: `_KEYS` for the last; 0 for none."""
    if is_fused_attention(use.record.op) or (use.record is not use.mask and use.record.op in SAME_NUMBERS):
        return _KEYS
    waiting, seen = [(use.record, False)], {use.record.node}
    while waiting and len(seen) < _MOST_FOLLOWED:
        record, is_turned = waiting.pop()
        for user in _users(survey, record):
            if is_fused_attention(user.op):
                return _KEYS
            if user.op in ("softmax", "_safe_softmax"):
                dim = dict(user.created.attrs).get("dim", _KEYS)
                dim = dim - len(user.shape) if isinstance(dim, int) and dim >= 0 else dim
                if isinstance(dim, int) and _weights_values(survey, user):
                    return {_KEYS: _QUERIES, _QUERIES: _KEYS}.get(dim, dim) if is_turned else dim
            elif user.op in _OF_SCORES and user.node not in seen:
                turns = _turns(user, record)
                if turns is not None:
                    seen.add(user.node)
                    waiting.append((user, is_turned ^ turns))
    return _KEYS if len(seen) == 1 and _is_made_for_a_module(survey, use.record) else 0


def _is_made_for_a_module(survey: Survey, record: NodeRecord) -> bool:
    """Return whether a tensor has only 0 and -inf, and no recorded user: a module uses it in one of several steps."""
    stats = record.value.statistics() if record.value is not None else None
    if stats is None or record.value is None or record.created.requires_grad or next(_users(survey, record), None):
        return False
    return stats.zero + stats.inf == record.value.size


def _users(survey: Survey, record: NodeRecord) -> Iterator[NodeRecord]:
    users = (survey.nodes.get(node) for node in survey.timeline.nodes.users(record.node))
    return (user for user in users if user is not None and not user.created.during[0])


def _turns(user: NodeRecord, record: NodeRecord) -> bool | None:
    """Return whether an operation exchanges the last two dimensions; None if it moves another one, or cuts them."""
    attrs, dims = dict(user.created.attrs), len(record.shape)
    if user.op == "t":
        return True
    if user.op == "transpose":
        pair = [attrs.get(name) for name in ("dim0", "dim1")]
        ends = {one % dims for one in pair if isinstance(one, int)}
        return True if ends == {dims - 1, dims - 2} else None if ends & {dims - 1, dims - 2} else False
    if user.op == "permute":
        order = attrs.get("dims")
        last = [one % dims for one in order][-2:] if isinstance(order, list | tuple) else []
        return {(dims - 2, dims - 1): False, (dims - 1, dims - 2): True}.get(tuple(last))
    return False


def _weights_values(survey: Survey, softmax: NodeRecord) -> bool:
    """Return whether the result of a softmax is a factor of a sum of values, which are not parameters."""
    waiting, seen = [softmax], {softmax.node}
    while waiting and len(seen) < _MOST_FOLLOWED:
        record = waiting.pop()
        for user in _users(survey, record):
            if user.op in _WEIGHTED_SUMS:
                others = [one for one in survey.sources(user) if one.node != record.node]
                if not any(_is_parameter(survey, one) for one in others):
                    return True
            elif user.op == "mul" and user.value is not None and record.value is not None:
                if user.value.size > record.value.size:  # one weight for all features of a value
                    return True
                waiting += [user] * (user.node not in seen)
            elif user.op in _OF_WEIGHTS and user.node not in seen:
                waiting.append(user)
            seen.add(user.node)
    return False


def _is_parameter(survey: Survey, record: NodeRecord) -> bool:
    while record.op in ("t", "transpose") and (source := next(survey.sources(record), None)) is not None:
        record = source
    return record.created.kind == "parameter"


# What a mask hides


def _hidden(survey: Survey, use: _Use) -> Array | None:
    """Return true where a mask hides an element; None if that is not known."""
    array = _elements(survey, use.mask, use.record.seq, {})
    if array is None or not array.size:
        return None
    if array.dtype != bool:
        return array <= _LOW
    return ~array if use.shows else array


def _triangle(hidden: Array) -> tuple[int, str] | None:
    """Return the diagonal at which a square mask ends, and which side it hides; None for any other mask."""
    if hidden.ndim < 2 or hidden.shape[-1] != hidden.shape[-2] or hidden.shape[-1] < _LEAST:
        return None
    n = hidden.shape[-1]
    slices = hidden.reshape(-1, n, n)
    every = np.ones((n, n), bool)
    for side, diagonal, pattern in (
        ("earlier", 0, np.tril(every)), ("earlier", -1, np.tril(every, -1)),
        ("later", 1, np.triu(every, 1)), ("later", 0, np.triu(every)),
    ):  # fmt: skip
        if (slices == pattern).all(axis=(1, 2)).any():
            return diagonal, side
    return None


def _elements(survey: Survey, record: NodeRecord, n: int, known: dict[int, Array | None]) -> Array | None:
    """Return the elements of an untracked tensor at moment `n`: as kept, or computed from what it was made of."""
    if record.node not in known:
        known[record.node] = None
        value = survey.timeline.memory_value(record.node, 0, n)
        array = survey.timeline.array(value) if value is not None else None
        if array is None and value is not None and value.size <= _MOST:
            array = _made_of_numbers(value)
            if array is None and record.created.kind == "op":
                array = _computed(survey, record, value, n, known)
        known[record.node] = array
    return known[record.node]


def _made_of_numbers(value: Value) -> Array | None:
    """Return the elements of a tensor that its statistics determine: all are equal, or count from 0."""
    stats, shape = value.statistics(), value.shape
    if stats is None:
        return None
    if stats.inf == value.size:
        return np.full(shape, -np.inf)
    if not (stats.nan or stats.inf) and stats.min == stats.max:
        return np.full(shape, stats.min).astype(bool if value.dtype == "bool" else float)
    is_range = len(shape) == 1 and value.counts_up and "int" in value.dtype
    return np.arange(shape[0]) if is_range else None


def _computed(survey: Survey, record: NodeRecord, value: Value, n: int, known: dict[int, Array | None]) -> Array | None:
    """Return the result of an operation, run again, if it has as many zeros as the recorded value."""
    from gviz.rerun.node_forward import result_again  # the engine, which few answers need

    arrays = [_elements(survey, source, n, known) for source in survey.sources(record)]
    given = [array for array in arrays if array is not None]
    if not given or len(given) < len(record.created.inputs):
        return None
    result, stats = result_again(survey.timeline, survey.timeline.info(record.node), given), value.statistics()
    if result is None or stats is None or result.shape != record.shape:
        return None
    return result if int((result == 0).sum()) == stats.zero else None


# Padding


@dataclass(frozen=True, slots=True)
class _Padding:
    """Data whose padding a mask shows: its node, and how many elements are visible and hidden.

    `is_known` if the elements of the data were kept, and all of its zeros are at the ends of rows.
    """

    data: NodeRecord
    visible: int
    hidden: int
    is_known: bool


def _shown_padding(survey: Survey, uses: list[_Use], batches: _Batches) -> _Padding | None:
    """Return the data whose padding is exactly what each of the first uses of a mask shows."""
    found: _Padding | None = None
    is_known = True
    for use in uses[:_LEAST]:
        found = _of_batch(survey, use, batches)
        if found is None or not _dimension(survey, use):
            return None
        is_known &= found.is_known
    return replace(found, is_known=is_known) if found is not None else None


def _of_batch(survey: Survey, use: _Use, batches: _Batches) -> _Padding | None:
    """Return the data with as many elements of padding as a mask over the keys of each sample shows."""
    mask, value = _without_ones(survey, use.mask), survey.timeline.memory_value(use.mask.node, 0, use.record.seq)
    stats = value.statistics() if value is not None else None
    shape = tuple(size for size in mask.shape if size > 1)
    if stats is None or value is None or len(shape) != 2 or shape[1] < _LEAST:
        return None
    size = shape[0] * shape[1]
    shown = value.size - stats.zero if use.shows else stats.zero  # a sum of 0 and -inf shows where it is 0
    if value.size != size or not 0 < shown < size or 2 * shown == size:
        return None
    known = [*batches.get(shape, ()), *batches.get(shape[::-1], ())]
    for record in [one for one in known if one.seq <= use.record.seq][-_MOST_BATCHES:]:
        data = survey.timeline.memory_value(record.node, 0, use.record.seq)
        per_element = data.size // size if data is not None else 0
        padding = data.statistics() if data is not None else None
        if data is None or padding is None or not per_element or padding.zero != shown * per_element:
            continue
        at_ends = _is_at_ends(survey.timeline.array(data), is_turned=record.shape[:2] != shape)
        if at_ends is not False:
            return _Padding(record, shown, size - shown, at_ends is True)
    return None


def _is_at_ends(data: Array | None, *, is_turned: bool) -> bool | None:
    """Return whether the zeros of data are all at the ends of its rows, or all at their starts; None if not known."""
    if data is None:
        return None
    is_real = data != 0 if data.ndim == 2 else (data != 0).any(axis=-1)
    is_real = is_real.T if is_turned else is_real
    return bool((is_real[:, :-1] >= is_real[:, 1:]).all() or (is_real[:, :-1] <= is_real[:, 1:]).all())


def _without_ones(survey: Survey, mask: NodeRecord) -> NodeRecord:
    """Return a mask before it was given dimensions of one element, or copied along others."""
    while mask.op in SAME_NUMBERS and (source := next(survey.sources(mask), None)) is not None:
        if source.value is None or mask.value is None or source.value.size != mask.value.size:
            break
        mask = source
    return mask


_Batches = Mapping[tuple[int, ...], list[NodeRecord]]
_MOST_BATCHES = 50


def _batches(survey: Survey) -> _Batches:
    """Return data by its first two sizes: indices of an embedding whose padding is 0, and numbers with features."""
    indices = {
        source.node
        for record in survey.ops("embedding")
        if dict(record.created.attrs).get("padding_idx") in (None, -1, 0)
        for source in list(survey.sources(record))[1:2]
    }
    batches: dict[tuple[int, ...], list[NodeRecord]] = {}
    for record in survey.nodes.values():
        if record.created.requires_grad or record.value is None or len(record.shape) not in (2, 3):
            continue
        is_data = len(record.shape) == 3 and "float" in record.value.dtype
        if record.node in indices or is_data:
            batches.setdefault(record.shape[:2], []).append(record)
    return batches


# What is reported


def _causal_finding(survey: Survey, use: _Use, diagonal: int) -> Finding:
    timeline, at = survey.timeline, survey.at(use.record)
    text = titled(
        "{} shows only what comes later: the causal mask is the wrong way round", label(timeline, use.mask.node)
    )
    n = use.mask.shape[-1]
    sees = "position 0 sees all positions after it" if diagonal == 0 else "position 0 sees all positions"
    last = f"position {n - 1} none" if diagonal == 0 else f"position {n - 1} sees only itself"
    stats = use.record.value.statistics() if use.record.value is not None else None
    has_nan = stats is not None and bool(stats.inf or stats.nan)  # a large finite number hides all of a row alike
    last += ", and its softmax is nan" * (diagonal == 0 and has_nan)
    part = Finding("mask", f"{label_at(timeline, use.mask.node)} {shape_text(use.mask.shape)}: {sees}, {last}",
                   use.mask.seq, use.mask.node, at=survey.at(use.mask))  # fmt: skip
    fix, edit = f"hide the others: {_advice(use)}", inverted(timeline, at, timeline.info(use.mask.node).name)
    if diagonal:
        fix, edit = _other_triangle(survey, use.mask)
    return Finding("inverted-mask", text, use.record.seq, use.record.node, (part,), fix, at, edit=edit)


def _other_triangle(survey: Survey, mask: NodeRecord) -> tuple[str, Edit | None]:
    """Return how to make the other triangle of a mask that shows its diagonal, and the edit."""
    maker = _triangle_maker(survey, mask)
    if maker is None:
        return "the other triangle, as .transpose(-2, -1) of the mask has it", None
    old, new = ("tril", "triu") if maker.op == "tril" else ("triu", "tril")
    diagonal = dict(maker.created.attrs).get("diagonal", 0)
    if diagonal:
        other = -diagonal if isinstance(diagonal, int) else f"-({diagonal})"
        return f"{new} with diagonal={other} where the mask is made with {old} and diagonal={diagonal}", None
    return f"{new} where the mask is made with {old}", renamed_call(survey.timeline, survey.at(maker), old, new)


def _triangle_maker(survey: Survey, mask: NodeRecord) -> NodeRecord | None:
    """Return the operation that made the triangle of a mask."""
    waiting, seen = [mask], {mask.node}
    while waiting:
        record = waiting.pop()
        if record.op in ("tril", "triu"):
            return record
        sources = [source for source in survey.sources(record) if source.node not in seen]
        seen.update(source.node for source in sources)
        waiting += sources
    return None


def _padding_finding(survey: Survey, use: _Use, padding: _Padding) -> Finding:
    timeline, at = survey.timeline, survey.at(use.record)
    mask = _without_ones(survey, use.mask)
    text = titled("{} hides the real elements and shows the padding", label(timeline, mask.node))
    counted = (
        f"{label(timeline, padding.data.node)} has {padding.visible} elements of padding: exactly these are visible"
    )
    part = Finding("mask", f"{counted}, and {padding.hidden} are hidden", padding.data.seq, padding.data.node)
    parts = (part, Finding("made", f"the mask is {label_at(timeline, mask.node)}", mask.seq, mask.node))
    edit = _inverted_at(survey, at, mask) or _inverted_at(survey, at, use.mask)
    fix, suspected = _advice(use), not padding.is_known
    return Finding("inverted-mask", text, use.record.seq, use.record.node, parts, fix, at, (), suspected, edit=edit)


def _inverted_at(survey: Survey, at: Frame | None, mask: NodeRecord) -> Any:
    name = survey.timeline.info(mask.node).name
    return inverted(survey.timeline, at, name) if name or "=" in line_text(survey.timeline, at) else None


def _advice(use: _Use) -> str:
    """Return what True means where a mask is used."""
    if use.shows:
        return "~mask: here True takes part in attention, and False is hidden"
    return "~mask: here True is hidden, and False takes part in attention"

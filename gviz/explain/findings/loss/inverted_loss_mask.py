"""Masks of a loss that are the wrong way round: they keep exactly the elements that the labels mark as ignored.

Idea. Labels have a value for "no label", such as -100. Before the labels are an index, a program replaces it, and
afterwards a mask leaves these elements out. If the product with the mask keeps them instead, the loss is that of the
replacement only.

Example. ``mask = labels == -100``, ``logps = scores.gather(2, labels.masked_fill(mask, 0)...)`` and
``(logps * mask).sum(-1)``: the sum is over the prompt, and every answer has the same.

Limits. The value is known to be ignored if it is below 0, if the program replaces it in the index, or if the loss
itself ignores it. If the targets are another tensor than the labels, as in ``cross_entropy(scores[m], ids[m])``, the
mask may be meant: in masked language models for example. So it must be the only use of the scores and of the labels,
and the model must not get the mask. For the padding of an embedding that is a note, unless the targets are tokens of
that embedding. A mask of several conditions is left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from gviz.explain.display_names import label, label_at, titled
from gviz.explain.finding import Finding
from gviz.explain.operation_sets import CLASS_LOSSES, SAME_NUMBERS
from gviz.explain.recording_survey import NodeRecord, Survey
from gviz.explain.source_edit import Edit, inverted
from gviz.explain.tracking import ancestors, descendants
from gviz.values.number_text import number

_NEGATIONS = {"logical_not", "bitwise_not", "invert"}
_VIEWS = SAME_NUMBERS - {"clone", "index"}
_CONVERSIONS = _VIEWS | {"type_as", "bool", "long", "int", "expand", "expand_as"}
_FILLS = {"masked_fill", "where", "setitem", "index_put", "clamp", "clamp_min", "maximum", "mul", "abs"}
"""Operations that replace some of the labels before they are an index."""

_OF_INDEX = _CONVERSIONS | _FILLS | {"clone"}
_OF_LABELS = CLASS_LOSSES | {"gather", "index", "getitem", "take_along_dim"}
_SELECTING = {"index", "getitem", "masked_select", "index_select"}
_PLACES = {"nonzero", "argwhere", "where"}
"""Operations that give the places where a mask is true, if the mask is their only input."""

_COPIES = _VIEWS | {"clone", "roll", "index", "index_select", "masked_select", "unbind"}
_BETWEEN = SAME_NUMBERS | {"neg", "mul", "div", "log", "exp", "sub", "clamp"}
"""Operations between what is looked up for each label and the mask."""

_MOST_BETWEEN = 12
_MOST_LABELS = 60
_MOST_USES = 5_000
_TRIES = 3
"""The calls of a line that are looked at."""


@dataclass(frozen=True, slots=True)
class _Condition:
    """What a mask is true for: where `labels` are `ignored`, or where they are not; without a number, where `mask` is.

    `mask` is the result of the comparison, or the data that the mask was made from.
    """

    mask: NodeRecord
    labels: NodeRecord | None
    ignored: float
    is_equal: bool


@dataclass(frozen=True, slots=True)
class _Kept:
    """A selection of elements of a tracked tensor: those where `mask` is true, or false."""

    record: NodeRecord
    loss: NodeRecord
    mask: NodeRecord
    if_true: bool


def keeps_ignored(survey: Survey) -> Iterator[Finding | None]:
    """Yield products with masks that keep only the elements which the labels mark as ignored: each line once."""
    tries = Counter[int]()
    for record in survey.ops("mul", "masked_fill", "where", *_SELECTING):
        if not record.created.requires_grad or tries[record.created.stack] >= _TRIES:
            continue
        kept = _kept(survey, record)
        condition = _condition(survey, kept.mask) if kept is not None else None
        if kept is None or condition is None or condition.is_equal != kept.if_true:
            continue
        yield None
        tries[record.created.stack] += 1
        why = _why_ignored(survey, kept, condition)
        if why and not survey.roots.isdisjoint(descendants(survey.timeline, record.node)):
            tries[record.created.stack] = _TRIES
            yield _finding(survey, kept, condition, suspected=why in ("padding", "unlabelled"))


def _kept(survey: Survey, record: NodeRecord) -> _Kept | None:
    """Return which elements of its tracked input an operation keeps, if a mask decides it."""
    sources, attrs = list(survey.sources(record)), dict(record.created.attrs)
    tracked = next((one for one in sources if one.created.requires_grad), None)
    masks = [one for one in sources if not one.created.requires_grad and one.shape]
    if tracked is None or not masks:
        return None
    if record.op == "mul":
        return _Kept(record, tracked, masks[0], if_true=True) if _is_mask(masks[0]) else None
    if record.op == "where":
        is_first = len(sources) > 1 and sources[1] is tracked
        other = [one for one in sources[1:] if one is not tracked]
        is_zero = _is_zero(other[0]) if other else attrs.get("other" if is_first else "self") == 0
        return _Kept(record, tracked, sources[0], if_true=is_first) if is_zero else None
    if record.op == "masked_fill":
        is_zero = _is_zero(sources[2]) if len(sources) > 2 else attrs.get("value") == 0
        return _Kept(record, tracked, masks[0], if_true=False) if is_zero else None
    mask = _selecting_mask(survey, record) if sources[0] is tracked else None
    return _Kept(record, tracked, mask, if_true=True) if mask is not None else None


def _selecting_mask(survey: Survey, record: NodeRecord) -> NodeRecord | None:
    """Return the mask at whose true places a selection reads its first input; None if it is another selection."""
    found = list[NodeRecord]()
    for one in list(survey.sources(record))[1:]:
        place: NodeRecord | None = one
        for _ in range(_MOST_BETWEEN):
            if place is None or place.value is None or place.value.dtype == "bool":
                break
            inputs = place.created.inputs
            is_view = place.op in _VIEWS | {"index", "unbind"} or (place.op in _PLACES and len(inputs) == 1)
            place = next(survey.sources(place), None) if is_view and inputs else None
        if place is None or place.value is None or place.value.dtype != "bool":
            return None
        found.append(place)
    is_one = record.op in _SELECTING and bool(found) and all(one is found[0] for one in found)
    return found[0] if is_one else None


def _is_mask(record: NodeRecord) -> bool:
    """Return whether a tensor has zeros and ones only."""
    value = record.value
    stats = value.statistics() if value is not None else None
    if value is None or stats is None:
        return False
    ones = value.size - stats.zero
    return value.dtype == "bool" or (
        stats.min >= 0 and stats.max == 1 and abs(stats.mean * value.size - ones) < 1e-3 * value.size
    )


def _is_zero(record: NodeRecord) -> bool:
    stats = record.stats
    return stats is not None and stats.min == stats.max == 0


def _number(record: NodeRecord | None) -> float | None:
    stats = record.value.statistics() if record is not None and record.value is not None else None
    return stats.mean if stats is not None and record is not None and not record.shape else None


def _condition(survey: Survey, mask: NodeRecord) -> _Condition | None:
    """Return the comparison that a mask comes from; what it is made of, if that is no comparison of labels."""
    is_equal, record = True, mask
    for _ in range(_MOST_BETWEEN):
        sources, attrs = list(survey.sources(record)), dict(record.created.attrs)
        second = _number(sources[1]) if len(sources) > 1 else None
        if second is None and len(sources) == 1 and isinstance(attrs.get("other"), int | float):
            second = float(attrs["other"])
        if record.op in ("eq", "ne", "lt", "ge") and sources and second is not None:
            if record.op in ("eq", "ne") and _is_mask(sources[0]) and second in (0, 1):
                is_equal ^= (record.op == "eq") is (second == 0)
                record = sources[0]
                continue
            if sources[0].value is None or "int" not in sources[0].value.dtype:
                return None
            if record.op in ("eq", "ne"):
                return _Condition(record, sources[0], second, is_equal is (record.op == "eq"))
            is_below = _Condition(record, sources[0], -1.0, is_equal is (record.op == "lt"))
            return is_below if second == 0 else None
        if record.op in _NEGATIONS:
            is_equal, record = not is_equal, sources[0]
        elif record.op in ("sub", "rsub") and len(sources) == 2 and 1 in map(_number, sources):
            is_equal, record = not is_equal, max(sources, key=lambda one: len(one.shape))
        elif record.op in _CONVERSIONS and sources:
            record = sources[0]
        else:
            break
    return _Condition(record, None, 0.0, is_equal) if _is_mask(record) else None


def _looked_up(survey: Survey, kept: _Kept) -> tuple[NodeRecord, NodeRecord] | None:
    """Return the operation that looks up a number for each label, and its labels."""
    record = kept.loss
    for _ in range(_MOST_BETWEEN):
        sources = list(survey.sources(record))
        tracked = next((one for one in sources if one.created.requires_grad), None)
        labels = next((one for one in sources[:0:-1] if one.value is not None and "int" in one.value.dtype), None)
        if _is_of_labels(record) and labels is not None and labels.shape:
            return record, labels
        if record.op not in _BETWEEN or tracked is None:
            return None
        record = tracked
    return None


def _is_of_labels(record: NodeRecord) -> bool:
    """Return whether an operation looks up a number for each label; a loss may end with the view of its result."""
    return record.op in _OF_LABELS or "ignore_index" in dict(record.created.attrs)


def _looked_up_after(survey: Survey, kept: _Kept) -> tuple[NodeRecord, NodeRecord] | None:
    """Return the operation that looks up a label for each row that a mask has chosen, and all labels."""
    waiting = [kept.record]
    for _ in range(_MOST_BETWEEN):
        users = [survey.nodes[node] for one in waiting for node in survey.timeline.nodes.users(one.node)]
        for user in users:
            for labels in list(survey.sources(user))[1:] if _is_of_labels(user) else ():
                chosen = labels
                while _selecting_mask(survey, chosen) is None and chosen.op in _VIEWS and chosen.created.inputs:
                    chosen = survey.nodes[chosen.created.inputs[0][0]]
                mask = _selecting_mask(survey, chosen)
                is_of_classes = chosen.value is not None and "int" in chosen.value.dtype
                if mask is not None and is_of_classes and _is_same_mask(survey, mask, kept.mask):
                    return user, next(survey.sources(chosen))
        waiting = [one for one in users if one.op in _BETWEEN | {"log_softmax", "softmax"}]
    return None


def _is_same_mask(survey: Survey, one: NodeRecord, other: NodeRecord) -> bool:
    first, second = _condition(survey, one), _condition(survey, other)
    if first is None or second is None or first.is_equal is not second.is_equal:
        return False
    if first.labels is None or second.labels is None:
        return first.mask is second.mask
    bases = (_made_from(survey, each, _VIEWS).keys() for each in (first.labels, second.labels))
    return first.ignored == second.ignored and not next(bases).isdisjoint(next(bases))


def _why_ignored(survey: Survey, kept: _Kept, condition: _Condition) -> str:
    """Return why the kept elements are surely to be left out; empty if that is not known."""
    found = _looked_up(survey, kept) or _looked_up_after(survey, kept)
    if found is None:
        return ""
    operation, index = found
    chain = _made_from(survey, index, _OF_INDEX)
    if any(_is_filled_alike(survey, one, condition) for one in _fills(survey, chain)):
        return "replaced"
    if condition.labels is None:
        return ""
    if _made_from(survey, condition.labels, _VIEWS).keys().isdisjoint(chain):
        if condition.ignored >= 0 or not _is_only_use(survey, kept, operation, condition):
            return ""
        return _why_unlabelled(survey, kept, condition, index)
    ignore_index = dict(operation.created.attrs).get("ignore_index")
    if ignore_index is not None or operation.op in CLASS_LOSSES:
        if ignore_index == condition.ignored:
            return "ignored"
    elif condition.ignored < 0:
        return "replaced"
    return _why_padding(survey, kept, operation, condition)


def _why_unlabelled(survey: Survey, kept: _Kept, condition: _Condition, targets: NodeRecord) -> str:
    """Return why places without a label are not to be learned, if their targets are another tensor.

    The labels may also mark the places that the model does not see: then its input was made with the same mask.
    """
    if condition.labels is None:
        return ""
    labels, own = _made_from(survey, condition.labels, _OF_INDEX), _made_from(survey, targets, _COPIES)
    fills = [*_fills(survey, labels), *_writes(survey, labels)]
    makers = {condition.mask.node, *labels, *(fill.node for fill in fills)}
    makers |= set(ancestors(survey.timeline, *makers))
    makers -= {*own, *ancestors(survey.timeline, *own)}
    shaped = {node for node in makers if node in survey.nodes and survey.nodes[node].shape}
    if not shaped.isdisjoint(ancestors(survey.timeline, kept.loss.node)):
        return ""
    return "erased" if fills and not own.keys().isdisjoint(labels) else "unlabelled"


def _writes(survey: Survey, labels: dict[int, NodeRecord]) -> Iterator[NodeRecord]:
    """Yield the operations that write a number to a part of some labels."""
    for record in labels.values():
        users = [survey.nodes[node] for node in survey.timeline.nodes.users(record.node) if node in survey.nodes]
        parts = [one for one in users if one.op in _VIEWS and _storage(one) == _storage(record)]
        users += [survey.nodes[node] for one in parts for node in survey.timeline.nodes.users(one.node)]
        yield from (one for one in users if one.op in ("setitem", "fill") and _storage(one) == _storage(record))


def _storage(record: NodeRecord) -> int | None:
    return record.created.outputs[0].storage if record.created.outputs else None


def _why_padding(survey: Survey, kept: _Kept, operation: NodeRecord, condition: _Condition) -> str:
    """Return whether the kept elements are padding, and surely so: their targets are tokens of the same embedding."""
    if condition.labels is None or condition.ignored < 0 or len(condition.labels.shape) < 2:
        return ""
    targets, before = _made_from(survey, condition.labels, _COPIES), set(ancestors(survey.timeline, kept.loss.node))
    padded = [one for one in targets.values() if dict(one.created.attrs).get("padding_value") == condition.ignored]
    lookups = [one for one in survey.ops("embedding") if _has(one, "padding_idx", condition.ignored)]
    losses = [one for one in survey.nodes.values() if _has(one, "ignore_index", condition.ignored)]
    indices = (list(survey.sources(one))[1:] for one in lookups if one.node in before)
    is_token = any(not targets.keys().isdisjoint(_made_from(survey, one, _COPIES)) for few in indices for one in few)
    is_only_use = bool(padded or lookups or losses) and _is_only_use(survey, kept, operation, condition)
    if is_only_use and (padded or is_token):
        return "padded"
    is_used_once = len([*survey.timeline.nodes.users(kept.loss.node)]) == 1
    return "padding" if is_only_use or (lookups and is_used_once) else ""


def _has(record: NodeRecord, name: str, number_: float) -> bool:
    return dict(record.created.attrs).get(name) == number_


def _is_only_use(survey: Survey, kept: _Kept, operation: NodeRecord, condition: _Condition) -> bool:
    """Return whether nothing else of a loss uses the scores behind a selection, or the labels of its mask."""
    timeline, record, after = survey.timeline, kept.loss, kept.record

    def is_in_a_loss(one: NodeRecord) -> bool:
        return one.created.requires_grad and not survey.roots.isdisjoint(descendants(timeline, one.node))

    for _ in range(_MOST_BETWEEN):
        users = [survey.nodes[node] for node in timeline.nodes.users(record.node) if node in survey.nodes]
        if any(one is not after and is_in_a_loss(one) for one in users):
            return False
        source = next((one for one in survey.sources(record) if one.created.requires_grad), None)
        if source is None or not (record.op in _BETWEEN | {"log_softmax"} or _is_of_labels(record)):
            break
        record, after = source, record
    labels = _made_from(survey, condition.labels, _VIEWS) if condition.labels is not None else {}
    before = (survey.nodes.get(node) for node in ancestors(timeline, kept.record.node))
    lines = {one.created.stack for one in before if one is not None and one.created.requires_grad}
    lines |= {kept.record.created.stack, operation.created.stack}
    waiting, seen = [*labels], {*labels}
    while waiting and len(seen) < _MOST_USES:
        for one in map(survey.nodes.get, timeline.nodes.users(waiting.pop())):
            if one is None or one.node in seen:
                continue
            seen.add(one.node)
            is_divisor = one.op in ("div", "mul") and not one.shape
            if not one.created.requires_grad:
                waiting.append(one.node)
            elif one.created.stack not in lines and not is_divisor and is_in_a_loss(one):
                return False
    return True


def _made_from(survey: Survey, record: NodeRecord, through: frozenset[str] | set[str]) -> dict[int, NodeRecord]:
    """Return a tensor and the tensors of whole numbers that it was made from by some operations."""
    found, waiting = {record.node: record}, [record]
    while waiting and len(found) < _MOST_LABELS:
        one = waiting.pop()
        if one.op not in through:
            continue
        for source in survey.sources(one):
            is_label = source.value is not None and "int" in source.value.dtype and bool(source.shape)
            if is_label and source.node not in found:
                found[source.node] = source
                waiting.append(source)
    return found


def _fills(survey: Survey, chain: dict[int, NodeRecord]) -> Iterator[NodeRecord]:
    """Yield the operations that replace some labels on the way to an index, or in place."""
    for node, record in chain.items():
        if record.op in ("masked_fill", "where"):
            yield record
        for user in survey.timeline.nodes.users(node):
            one = survey.nodes.get(user)
            if one is not None and one.op in ("setitem", "index_put", "masked_fill") and one.created.outputs:
                written = one.created.inputs[0][0] == node
                is_in_place = one.created.outputs[0].storage == record.created.outputs[0].storage
                if written and is_in_place:
                    yield one


def _is_filled_alike(survey: Survey, fill: NodeRecord, condition: _Condition) -> bool:
    """Return whether labels are replaced exactly where a condition is true."""
    masks = [one for one in survey.sources(fill) if one.value is not None and one.value.dtype == "bool"]
    if len(masks) != 1:
        return False
    own, is_true = _condition(survey, masks[0]), True
    if fill.op == "where":  # the labels are the second or the third argument
        sources = list(survey.sources(fill))
        is_label = [_is_label(one) for one in sources[1:]]
        is_true = not (is_label and is_label[0]) if len(sources) > 2 else "self" in dict(fill.created.attrs)
    if own is None:
        return False
    is_same = own.mask.node == condition.mask.node
    if own.labels is not None and condition.labels is not None:
        bases = (_made_from(survey, one, _VIEWS | {"clone"}).keys() for one in (own.labels, condition.labels))
        is_same = own.ignored == condition.ignored and not next(bases).isdisjoint(next(bases))
    return is_same and (own.is_equal is is_true) is True


def _is_label(record: NodeRecord) -> bool:
    stats = record.value.statistics() if record.value is not None else None
    return stats is not None and stats.min < stats.max


def _finding(survey: Survey, kept: _Kept, condition: _Condition, *, suspected: bool) -> Finding:
    timeline, record = survey.timeline, kept.record
    mask = condition.mask
    text = titled("{} keeps only what is ignored: its mask is the wrong way round", label(timeline, record.node))
    stats = kept.mask.value.statistics() if kept.mask.value is not None else None
    parts: list[Finding] = []
    if stats is not None and kept.mask.value is not None:
        count = kept.mask.value.size - stats.zero if kept.if_true else stats.zero
        where = f"where {label_at(timeline, mask.node)} is true"
        if condition.labels is not None:
            is_below = mask.op in ("lt", "ge")
            what = "below 0" if is_below else number(condition.ignored)
            where = f"where {label_at(timeline, condition.labels.node)} is {what}"
        counted = f"it keeps {count} of {kept.mask.value.size} elements, {where}: these have no label"
        parts.append(Finding("mask", counted, kept.mask.seq, kept.mask.node, at=survey.at(kept.mask)))
    parts.append(
        Finding("made", f"the mask is {label_at(timeline, mask.node)}", mask.seq, mask.node, at=survey.at(mask))
    )
    edit = _edit(survey, kept, condition)
    name = timeline.info(kept.mask.node).name
    fix = f"keep the others: {f'~{name}' if name.isidentifier() else 'the opposite of the mask'}"
    return Finding(
        "inverted-mask", text, record.seq, record.node, tuple(parts), fix, survey.at(record), (), suspected, edit
    )


def _edit(survey: Survey, kept: _Kept, condition: _Condition) -> Edit | None:
    """Return the edit that inverts a mask where it is used once, or where it is made for such uses only."""
    timeline, at = survey.timeline, survey.at(kept.record)
    users = [survey.nodes[node] for node in timeline.nodes.users(kept.mask.node) if node in survey.nodes]
    others = [
        one for one in users if one.op not in ("masked_fill", "setitem", "index_put", "where") or one is kept.record
    ]
    name, value = timeline.info(kept.mask.node).name, kept.mask.value
    if value is not None and value.dtype == "bool" and name.isidentifier() and len(others) == 1:
        return inverted(timeline, at, name)
    made, compared = survey.at(kept.mask), survey.at(condition.mask)
    is_on_its_line = (
        made is not None and compared is not None and (made.path, made.line) == (compared.path, compared.line)
    )
    is_plain = condition.mask.op in ("eq", "ne") and is_on_its_line
    if any(one.op in _NEGATIONS for one in users):
        return None
    if is_plain and len(others) == len(users) and name.isidentifier():
        return inverted(timeline, compared, "")
    return None

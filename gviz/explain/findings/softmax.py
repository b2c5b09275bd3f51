"""Softmax of the wrong thing: of probabilities, over one element or another dimension, masked after it, or missing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from math import prod

import numpy as np

from gviz.explain.display_names import label, label_at, titled
from gviz.explain.edit import (
    Edit,
    renamed_call,
    softmax_last,
    with_argument,
    with_dim,
    without_call,
)
from gviz.explain.finding import Finding
from gviz.explain.findings.group_softmax import softmax_of_other_groups
from gviz.explain.operation_sets import (
    DROPOUTS,
    RESHAPING,
    SAME_NUMBERS,
    SOFTMAXES,
    WEIGHTED_SUMS,
)
from gviz.explain.source_frames import innermost
from gviz.explain.survey import NodeRecord, Survey, dimensions_named
from gviz.source.call_stack import Frame
from gviz.values.number_text import number, shape_text

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
    if _are_weighted_logarithms(survey, before):
        return None
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


def _are_weighted_logarithms(survey: Survey, product: NodeRecord) -> bool:
    """Return whether log-probabilities are multiplied by one weight for each row: an advantage may be negative."""
    for source in survey.sources(product) if product.op == "mul" else ():
        others = [one for one in survey.sources(product) if one is not source]
        of_rows = all(one.shape[-1:] == (1,) and not one.created.requires_grad for one in others)
        if of_rows and survey.unwrapped(source).op == "log_softmax":
            return True
    return False


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
    edit = with_dim(timeline, at, before.op, str(classes))
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
    for record in survey.ops(*SOFTMAXES, "native_layer_norm", "native_group_norm", "sub", *_DIVIDING):
        yield None
        if record.created.requires_grad and (record.op not in {"sub", *_DIVIDING} or len(record.shape) > 1):
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
        is_mean = len(pair) == 2 and pair[1].op in _SUBTRACTED and pair[1].shape == pair[0].shape == shape
        return is_mean and survey.unwrapped(pair[0]) in map(survey.unwrapped, survey.sources(pair[1]))
    if record.op in _DIVIDING:
        return bool(_own_reduction(survey, record))
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
    while product is not None and product.op not in WEIGHTED_SUMS | {"linear", "addmm"}:
        if product.op not in SAME_NUMBERS | {"add", "mul", "div"} | _CHOOSING:
            return False
        product = next(iter(survey.sources(product)), None)
    leaves = map(survey.unwrapped, survey.sources(product)) if product is not None else ()
    return any(leaf.created.kind != "op" and leaf.created.requires_grad for leaf in leaves)


_CHOICES = {"topk", "max", "amax", "gather", "sort"}
_CHOOSING = {*_CHOICES, *SOFTMAXES, "sigmoid"}
"""Operations that choose the best scores of an element, and functions that keep their order."""


# x / x.sum(1, keepdim=True): x by a number that is made of x only, through a sum or a norm over one element

_SUBTRACTED = {"mean", "max", "amax", "logsumexp"}
_DIVIDING = ("div", "mul")
_REDUCING = {"sum", "mean", "norm", "linalg_vector_norm", "max", "amax", "std", "logsumexp", "topk"}
_MADE_OF_ONE = SAME_NUMBERS | _REDUCING | {
    "add", "clamp", "clamp_min", "maximum", "sqrt", "rsqrt", "reciprocal", "pow", "square", "abs", "exp", "div", "mul",
}  # fmt: skip
_MOST_STEPS_BACK = 12
_NEARLY_ONE = 1e-2


def _own_reduction(survey: Survey, record: NodeRecord) -> str:
    """Return the reduction by which a tensor is divided, if that is its own over one element each; else empty.

    A parameter is left out: a layer with one input has weights of one element, and their scale is trained apart.
    """
    pair, value = [*survey.sources(record)], record.value
    stats = value.statistics() if value is not None and value.size > 1 else None
    if len(pair) != 2 or stats is None or stats.inf or abs(stats.rms - 1) > _NEARLY_ONE:
        return ""
    if max(-stats.min, stats.max) > 1 + _NEARLY_ONE:
        return ""
    for one, other in (pair, pair[::-1])[: 2 if record.op == "mul" else 1]:
        if one.shape == record.shape and one.created.requires_grad and other.created.requires_grad:
            name = _reduction_of(survey, other, one)
            if name:
                return name
    return ""


def _reduction_of(survey: Survey, scale: NodeRecord, whole: NodeRecord) -> str:
    """Return the reduction in a number for each element of a tensor, made of this tensor only; else empty."""
    start = survey.unwrapped(whole)
    size, ends, name = prod(whole.shape), {start.node}, ""
    if start.created.kind != "op":
        return ""
    if start.op in ("exp", "abs"):  # the sum may have an exp or abs of its own: x.exp() / x.exp().sum()
        ends |= {source.node for source in survey.sources(start)}
    waiting = [scale]
    for _ in range(_MOST_STEPS_BACK):
        if not waiting:
            return name
        one = waiting.pop()
        if one.node in ends:
            continue
        tracked = [source for source in survey.sources(one) if source.created.requires_grad]
        if one.op not in _MADE_OF_ONE or prod(one.shape) != size or not tracked:
            return ""
        name = name or one.op * (one.op in _REDUCING)
        waiting += tracked
    return ""


def _one_element_finding(survey: Survey, record: NodeRecord) -> Finding:
    timeline, (always, fix) = survey.timeline, _OF_ONE[record.op]
    at, edit = innermost(timeline.info(record.node)), None
    competing = [dim for dim, size in enumerate(record.shape) if dim and size > 1]
    is_chosen = any(survey.unwrapped(source).op in _CHOICES for source in survey.sources(record))
    if record.op in {*SOFTMAXES, *_DIVIDING} and is_chosen:
        fix = (
            "with one choice (top_k = 1), use its weight of the softmax over all scores, and do not normalize it again"
        )
    elif record.op in SOFTMAXES and len(record.shape) > 2 and len(competing) == 1:
        dim = competing[0]
        fix = f"the dimension over which the scores compete: dim={dim}, of size {record.shape[dim]}"
        edit = with_dim(timeline, at, record.op, f"{dim}")
    stats = record.value.statistics() if record.op in _DIVIDING and record.value is not None else None
    always = "1 or -1" if stats is not None and stats.min < 0 else always
    text = titled(f"{{}} is over one element each: its result is always {always}", label(timeline, record.node))
    groups = _groups(record)
    counted = f", and {groups} group{'s' * (groups != 1)} of 1 channel" * bool(groups)
    shape = f"it has the shape {shape_text(record.shape)}{counted}: what goes in does not matter, and gets no gradient"
    if record.op in _DIVIDING:
        own = f"it divides each element by its own {_own_reduction(survey, record).removeprefix('linalg_vector_')}"
        shape = f"{own}, with the shape {shape_text(record.shape)}: what goes in does not matter, and gets no gradient"
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
    **dict.fromkeys(_DIVIDING, ("1", "divide by a sum or norm over more elements, or leave the division out")),
}
"""By operation: what it gives for one element, and what to write instead."""


# A softmax whose rows were masked afterwards: they no longer add up to one


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


# A softmax over another dimension than the one over which its weights are summed


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

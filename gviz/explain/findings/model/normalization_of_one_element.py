"""A softmax or a normalization over one element, whose result does not depend on it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from math import prod

from gviz.explain.display_names import label, titled
from gviz.explain.finding import Finding
from gviz.explain.operation_sets import MATRIX_PRODUCTS, SAME_NUMBERS, SOFTMAXES
from gviz.explain.recording_survey import NodeRecord, Survey
from gviz.explain.source_edit import Edit, with_argument, with_dim
from gviz.explain.source_frames import innermost
from gviz.source.call_stack import Frame
from gviz.values.number_text import shape_text


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
    while product is not None and product.op not in MATRIX_PRODUCTS:
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

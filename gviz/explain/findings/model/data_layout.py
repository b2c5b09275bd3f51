"""Dimensions in another order than the program means: rows of a batch that a view mixes, samples taken for steps."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod

from gviz.events import ScopeEntered
from gviz.explain.display_names import label, label_at, titled
from gviz.explain.finding import Finding
from gviz.explain.operation_sets import ACTIVATIONS, CLASS_LOSSES, ELEMENTWISE, LISTS, LOSSES, RESHAPING, SOFTMAXES
from gviz.explain.program_text import ProgramText
from gviz.explain.recording_survey import NodeRecord, Survey, dimensions_named
from gviz.explain.source_edit import Change, Edit, imported_modules, rewritten, with_batch_first
from gviz.source.call_stack import Frame
from gviz.trace.timeline import Timeline
from gviz.values.number_text import shape_text

_VIEWS = ("view", "reshape", "_reshape_alias", "_unsafe_view")


def mixed_rows(survey: Survey) -> Iterator[Finding | None]:
    """Yield views with the sizes of a transposed tensor, and scores whose classes were not last: each line once.

    ``h.view(batch, -1)`` of a state of shape (2, batch, hidden) puts states of different samples into one row, and
    ``images.view(-1, 3, 32, 32)`` of images (n, 32, 32, 3) mixes their colours. Only views that the program itself
    calls are reported: a layer of a library orders its dimensions on purpose.
    """
    seen: set[int] = set()
    for record in survey.ops(*_VIEWS):
        source = next(survey.sources(record), None)
        if source is None or record.created.stack in seen or record.created.during[0]:
            continue
        yield None
        order, is_certain = _meant_order(source.shape, record.shape), False
        if not order:
            order, is_certain = _order_for_classes(survey, record, source)
        edit = _as_permuted(survey.timeline, survey.at(record), order) if order else None
        if edit is not None:
            seen.add(record.created.stack)
            yield replace(_mixed_finding(survey, record, source, order, edit), suspected=not is_certain)


def _meant_order(before: tuple[int, ...], after: tuple[int, ...]) -> tuple[int, ...]:
    """Return the order of dimensions that a view has the sizes of; empty for a view that keeps its rows.

    A view that is a permutation has the same sizes in another order. Of equal sizes the first comes first, as height
    and width do in ``(n, h, w, 3)`` as ``(n, 3, h, w)``. Else two neighbours are exchanged, and two or all that
    follow are joined: heads ``(batch, heads, time, size)`` as ``(batch, time, heads * size)``.
    """
    count = len(before)
    if count < 3 or before == after:
        return ()
    if sorted(after) == sorted(before) and min(before) > 1:
        rest = [*range(count)]
        for place, size in enumerate(after):
            rest.insert(place, rest.pop(next(at for at in range(place, count) if before[rest[at]] == size)))
        return tuple(rest)
    if after in _joined(before):
        return ()
    for at in range(count - 2):
        one, other = before[at : at + 2]
        order = (*range(at), at + 1, at, *range(at + 2, count))
        if one != other and min(one, other) > 1 and after in _joined([before[dim] for dim in order]):
            return order  # the exchange of two equal sizes cannot be seen
    return ()


def _joined(sizes: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yield the sizes with two neighbours joined, or with all joined from some dimension on."""
    for at in range(len(sizes) - 1):
        yield (*sizes[:at], sizes[at] * sizes[at + 1], *sizes[at + 2 :])
        yield (*sizes[:at], prod(sizes[at:]))


# Scores of classes (n, classes, steps) as rows of classes, without the permutation before

_OVER_CLASSES = SOFTMAXES | CLASS_LOSSES
_SCORES = ELEMENTWISE | ACTIVATIONS | {
    "add", "mul", "div", "sub", "clone", "contiguous", "to", "float", "half", "upsample_nearest2d",
    "upsample_bilinear2d", "upsample_linear1d", "upsample_nearest1d",
}  # fmt: skip
"""Operations after a layer that keep its channels in dimension 1."""

_OF_CHANNELS = (
    "convolution",
    "conv1d",
    "conv2d",
    "conv3d",
    "native_batch_norm",
    "batch_norm",
    "native_group_norm",
    "max_pool2d_with_indices",
)


def _order_for_classes(survey: Survey, record: NodeRecord, source: NodeRecord) -> tuple[tuple[int, ...], bool]:
    """Return the order with dimension 1 last, if a loss takes the last dimension of a view for classes.

    The second element is whether dimension 1 surely has the classes: the labels, a softmax or a layer of channels show
    it. Else a last dimension that is no multiple of the classes cannot have been split into them.
    """
    before, after = source.shape, record.shape
    if len(before) < 3 or len(after) < 2 or min(before[1], prod(before[2:])) < 2 or not record.created.requires_grad:
        return (), False
    order = (0, *range(2, len(before)), 1)
    if after[-1] != before[1] or before[-1] == before[1] or not _is_joined([before[dim] for dim in order], after):
        return (), False
    loss = _loss_of_classes(survey, record)
    if loss is None:
        return (), False
    is_certain = _has_channels(survey, source) or _has_labels(survey, loss, (before[0], *before[2:]))
    return (order if is_certain or before[-1] % before[1] else ()), is_certain


def _is_joined(sizes: Sequence[int], after: tuple[int, ...]) -> bool:
    """Return whether neighbouring sizes, but for the last, joined are the sizes of a view."""
    rest = list(sizes[:-1])
    for size in after[:-1]:
        joined = 1
        while rest and joined < size:
            joined *= rest.pop(0)
        if joined != size:
            return False
    return not rest or prod(rest) == 1


def _loss_of_classes(survey: Survey, record: NodeRecord) -> NodeRecord | None:
    """Return the first loss or softmax that takes the last dimension of scores for classes."""
    waiting, seen, classes = [record], {record.node}, record.shape[-1]
    while waiting and len(seen) < _MOST_FOLLOWED:
        one = waiting.pop(0)
        for node in survey.timeline.nodes.users(one.node):
            user = survey.nodes.get(node)
            if user is None or node in seen or not user.created.requires_grad:
                continue
            seen.add(node)
            if user.op in SOFTMAXES:
                dim = dict(user.created.attrs).get("dim")
                if isinstance(dim, int) and dim % len(user.shape) == len(user.shape) - 1:
                    end = (survey.nodes.get(each) for each in survey.timeline.nodes.users(node))
                    return next((one for one in end if one is not None and one.op in _OVER_CLASSES), user)
            elif user.op in _OVER_CLASSES or user.op == "gather":
                return user if len(one.shape) == 2 else None
            elif user.shape[-1:] == (classes,) and (user.op in _SCORES or user.op in (*_VIEWS, "index", "getitem")):
                waiting.append(user)
    return None


def _has_channels(survey: Survey, record: NodeRecord) -> bool:
    """Return whether scores have their classes in dimension 1: of a softmax over it, or of a layer of channels."""
    one: NodeRecord | None = record
    while one is not None:
        if one.op in SOFTMAXES:
            return dict(one.created.attrs).get("dim") in (1, 1 - len(one.shape))
        if one.op in _OF_CHANNELS:
            return True
        if one.op not in _SCORES and one.op not in (*RESHAPING, "flatten"):
            return False
        one = next((each for each in survey.sources(one) if each.shape[:2] == record.shape[:2]), None)
    return False


def _has_labels(survey: Survey, loss: NodeRecord, shape: tuple[int, ...]) -> bool:
    """Return whether the labels of a loss come from a tensor with one for each sample and step."""
    labels = _whole_numbers(survey, loss)
    while labels is not None and labels.shape != shape:
        is_view = labels.op in RESHAPING or labels.op in ("flatten", "contiguous", "to", "long", "clone")
        labels = next(survey.sources(labels), None) if is_view else None
    return labels is not None


def _mixed_finding(
    survey: Survey, record: NodeRecord, source: NodeRecord, order: tuple[int, ...], edit: Edit
) -> Finding:
    timeline = survey.timeline
    shapes = shape_text(source.shape), shape_text(record.shape)
    text = titled(f"{{}} views {shapes[0]} as {shapes[1]}: its rows are mixed", label(timeline, record.node))
    moved = (
        f"the sizes are those of {permutation(order)}, but a view of {label_at(timeline, source.node)} moves no element"
    )
    part = Finding("operand", moved, source.seq, source.node)
    fix = f"{permutation(order)} before it, and reshape instead of view"
    at = survey.at(record)
    return Finding("mixed-rows", text, record.seq, record.node, (part,), fix, at, suspected=True, edit=edit)


# A layer for sequences that takes the samples for time steps

_STEPWISE = ("RNN", "LSTM", "GRU", "MultiheadAttention")
"""The layers whose first two dimensions have different roles: layers of a transformer consist of them."""

_MOST_FOLLOWED = 300

_FEWEST_STEPS = 4
"""Shorter sequences of labels may equal their neighbours by chance."""


def samples_as_steps(survey: Survey) -> Iterator[Finding | None]:
    """Yield layers made without ``batch_first=True`` whose dimension 0 is that of the samples in the loss.

    Idea. Such a layer reads its input as (time, batch, features). From the prediction in a loss, the way back to the
    layer shows where each dimension comes from. If the rows of the prediction are the steps of the layer, and its
    batch was reduced on the way, the program means (batch, time, features).

    Example. ``out[:, -1]`` of ``nn.LSTM(5, 8)`` for data of shape (32, 10, 5) has 32 rows, one for each time step of
    the layer: each state depends on the samples before it. For data of shape (10, 32, 5), ``out[-1]`` has the rows of
    the batch.

    Limits. Where every step is a prediction (``logits.view(-1, classes)``), nothing shows which dimension is time,
    unless the target is the input one step later. A mean over the batch is a note: attention between the rows of a
    table takes one on purpose.
    """
    seen: set[int] = set()
    reported: set[str] = set()
    for record in survey.ops(*LOSSES, "nll_loss", "sub"):
        if record.created.stack in seen or not record.created.requires_grad:
            continue
        prediction = next(survey.sources(record), None)
        if prediction is None or not prediction.shape or prediction.shape[0] < 2:
            continue
        yield None
        seen.add(record.created.stack)
        for one, axes, is_selected in _results_before(survey, prediction):
            scope = _sequence_layer(survey, one)
            if scope is None or scope.name in reported or not _reads_steps_first(survey, one, scope):
                continue
            are_labels = _are_labels_along_batch(survey, record, one, scope)
            if are_labels or _are_rows_of_steps(one, axes):
                reported.add(scope.name)
                finding = _steps_finding(survey, record, prediction, one, scope)
                yield replace(finding, suspected=not (is_selected or are_labels))


_Axis = tuple[int, int]
"""A dimension in the order of the elements: the product of the sizes before it, and its own size."""

_Axes = tuple[_Axis | None, ...]
"""For each dimension of a prediction: the one of an earlier tensor that it is; None if unknown."""


def _axes(shape: tuple[int, ...]) -> tuple[_Axis, ...]:
    return tuple((prod(shape[:dim]), size) for dim, size in enumerate(shape))


def _results_before(survey: Survey, prediction: NodeRecord) -> Iterator[tuple[NodeRecord, _Axes, bool]]:
    """Yield the results of sequence layers that a prediction depends on, with its dimensions in each of them.

    The last element is whether the program selects one element of a dimension on the way, such as the last step.
    """
    waiting: list[tuple[NodeRecord, int, _Axes, bool]] = [(prediction, 0, _axes(prediction.shape), False)]
    seen = {prediction.node}
    while waiting and len(seen) < _MOST_FOLLOWED:
        record, nr, axes, is_selected = waiting.pop()
        if _sequence_layer(survey, record) is not None:
            if nr == 0:
                yield record, axes, is_selected
            continue
        is_selected = is_selected or record.op == "select"
        for position, (node, output) in enumerate(record.created.inputs):
            source = survey.nodes.get(node)
            if source is None or node in seen or source.created.kind != "op":
                continue
            before = tuple(_axis_before(record, source, position, axis) for axis in axes)
            if any(before):
                seen.add(node)
                waiting.append((source, output, before, is_selected))


_PRODUCT_OPERANDS = {"mm": 0, "matmul": 0, "linear": 0, "addmm": 1, "bmm": 0}
"""By operation: the operand that has the rows of the result."""

_REDUCTIONS = {"sum", "mean", "amax", "amin", "max", "min", "logsumexp", "select"}
_SAME_DIMENSIONS = ELEMENTWISE | ACTIVATIONS | SOFTMAXES | LISTS | {
    "slice", "clone", "contiguous", "to", "float", "native_layer_norm", "native_batch_norm", "add", "mul",
}  # fmt: skip


def _axis_before(record: NodeRecord, source: NodeRecord, position: int, axis: _Axis | None) -> _Axis | None:
    """Return the dimension of an operand that a dimension of the result is; None if unknown."""
    if axis is None or (len(source.created.outputs) > 1 and source.op in LISTS):
        return None
    shape, before, attrs = record.shape, source.shape, dict(record.created.attrs)
    if record.op in RESHAPING and record.op != "expand":
        return axis
    if record.op in _PRODUCT_OPERANDS:
        return axis if position == _PRODUCT_OPERANDS[record.op] and axis[0] * axis[1] <= prod(shape[:-1]) else None
    if axis not in _axes(shape):
        return None
    dim = next(number for number, one in enumerate(_axes(shape)) if one == axis and one[1] == shape[number])
    if record.op in ("transpose", "t", "permute"):
        dim = _order(record, len(shape))[dim]
    elif record.op in _REDUCTIONS:
        gone = dimensions_named(attrs.get("dim"), len(before))
        if not gone:
            return None
        if not attrs.get("keepdim"):
            kept = [number for number in range(len(before)) if number not in gone]
            if dim >= len(kept):
                return None
            dim = kept[dim]
        elif dim in gone:
            return None
    elif record.op == "stack":
        stacked = dimensions_named(attrs.get("dim", 0), len(shape))
        if dim in stacked:
            return None
        dim -= dim > min(stacked, default=0)
    elif record.op in _SAME_DIMENSIONS or record.op == "expand":
        dim += len(before) - len(shape)
    else:
        return None
    return _axes(before)[dim] if 0 <= dim < len(before) and before[dim] == axis[1] else None


def _order(record: NodeRecord, count: int) -> list[int]:
    """Return the dimension of the operand for each of a transposed result."""
    attrs, order = dict(record.created.attrs), [*range(count)]
    if record.op == "permute":
        dims = attrs.get("dims")
        return [dim % count for dim in dims] if isinstance(dims, list | tuple) and len(dims) == count else order
    pair = (0, count - 1) if record.op == "t" else (attrs.get("dim0"), attrs.get("dim1"))
    if isinstance(pair[0], int) and isinstance(pair[1], int):
        order[pair[0]], order[pair[1]] = order[pair[1]], order[pair[0]]
    return order


def _sequence_layer(survey: Survey, record: NodeRecord) -> ScopeEntered | None:
    """Return the call of a layer for sequences that made a node."""
    scope = survey.scopes.get(record.created.scope)
    while scope is not None and scope.kind not in _STEPWISE:
        scope = survey.scopes.get(scope.parent)
    return scope


def _reads_steps_first(survey: Survey, result: NodeRecord, scope: ScopeEntered) -> bool:
    """Return whether a layer gave a result of the shape (time, batch, features): it turns others at the end."""
    if len(result.shape) != 3 or dict(result.created.attrs).get("batch_first"):
        return False
    if result.op in ("transpose", "permute") and _order(result, 3)[:2] == [1, 0]:
        return False
    return any(
        source.shape[:2] == result.shape[:2] and len(source.shape) == 3 and _sequence_layer(survey, source) != scope
        for source in _inputs_of(survey, scope)
    )


def _are_rows_of_steps(result: NodeRecord, axes: _Axes) -> bool:
    """Return whether the rows of a prediction are the steps of a layer, and its batch is no dimension of it."""
    steps, batch, _ = _axes(result.shape)
    if axes[0] != steps or batch[1] < 2:
        return False
    return not any(axis and axis[0] < batch[0] * batch[1] and batch[0] < axis[0] * axis[1] for axis in axes[1:])


def _are_labels_along_batch(survey: Survey, loss: NodeRecord, result: NodeRecord, scope: ScopeEntered) -> bool:
    """Return whether the labels of a loss are the input of a layer one place later in its dimension of the batch."""
    tokens = next((one for one in _inputs_of(survey, scope) if one.op == "embedding"), None)
    labels, ids = _whole_numbers(survey, loss), _whole_numbers(survey, tokens) if tokens is not None else None
    if labels is None or ids is None or ids.value is None or labels.value is None or ids.shape != result.shape[:2]:
        return False
    given, wanted = survey.timeline.array(ids.value), survey.timeline.array(labels.value)
    if given is None or wanted is None or given.size != wanted.size or given.shape[1] < _FEWEST_STEPS:
        return False
    wanted = wanted.reshape(given.shape)
    return bool((given[:, 1:] == wanted[:, :-1]).all() and (given[1:] != wanted[:-1]).any())


def _whole_numbers(survey: Survey, record: NodeRecord) -> NodeRecord | None:
    """Return the first input of an operation that has an integer type."""
    return next((one for one in survey.sources(record) if one.value is not None and "int" in one.value.dtype), None)


def _inputs_of(survey: Survey, scope: ScopeEntered) -> Iterator[NodeRecord]:
    """Yield the tensors that the operations of a call of a layer use."""
    for record in survey.nodes.values():
        if record.created.scope == scope.scope:
            yield from survey.sources(record)


def _steps_finding(
    survey: Survey, record: NodeRecord, prediction: NodeRecord, result: NodeRecord, scope: ScopeEntered
) -> Finding:
    timeline, (steps, batch, _) = survey.timeline, result.shape
    loss = label(timeline, record.node)
    text = titled(f"{scope.kind} takes the {steps} samples of {{}} for time steps", loss)
    read = f"it reads {shape_text(result.shape)} as (time, batch, features): {steps} steps of {batch} sequences"
    parts = (
        Finding("operand", read, result.seq, result.node),
        Finding(
            "target", f"{loss} has a prediction for each step, of shape {shape_text(prediction.shape)}", record.seq
        ),
    )
    line = _line_of_layer(survey, scope)
    made = with_batch_first(timeline, line)
    at, edit = line or survey.at(result), made[1] if made is not None else None
    return Finding("batch-first", text, result.seq, result.node, parts, "batch_first=True", at, edit=edit)


def _line_of_layer(survey: Survey, scope: ScopeEntered) -> Frame | None:
    """Return the line that made a layer, or the one around it."""
    weights = (one for one in _inputs_of(survey, scope) if one.created.kind == "parameter")
    return next((line for weight in weights if (line := survey.at(weight)) is not None), None)


# What the program's source code shows


def _as_permuted(timeline: Timeline, at: Frame | None, order: tuple[int, ...]) -> Edit | None:
    """Replace ``h.view(n, -1)`` with ``h.transpose(0, 1).reshape(n, -1)``, for any order of dimensions.

    A function of a module, such as ``torch.reshape(h, (n, -1))``, gets another first argument.
    """
    by = permutation(order)

    def change(text: ProgramText) -> Change:
        modules = imported_modules(text)

        def known(part: ast.expr) -> str | None:
            match part:
                case ast.Call(func=ast.Attribute(value=value, attr="reshape"), args=[first, *_]) if (
                    text.segment(value) in modules
                ):
                    old = text.segment(first)
                    simple = isinstance(first, ast.Name | ast.Call | ast.Attribute | ast.Subscript)
                    whole, head = text.segment(part), text.segment(part.func)
                    tail = whole.removeprefix(head).replace(old, f"{old if simple else f'({old})'}.{by}", 1)
                    return f"{head}{tail}"
                case ast.Call(func=ast.Attribute(value=value, attr="view" | "reshape")):
                    inner = text.segment(part)[len(text.segment(part.func)) :]
                    return f"{text.segment(value)}.{by}.reshape{inner}"
            return None

        return known

    return rewritten(timeline, at, change)


def permutation(order: tuple[int, ...]) -> str:
    """Return ``transpose(0, 1)`` for an exchange of two dimensions, or else ``permute(1, 2, 0)``."""
    moved = [dim for dim, source in enumerate(order) if dim != source]
    return f"transpose({moved[0]}, {moved[1]})" if len(moved) == 2 else f"permute{order}"

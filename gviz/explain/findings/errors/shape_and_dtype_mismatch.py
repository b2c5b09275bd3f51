"""Mismatches: tensors whose shapes, numbers of features or dtypes do not fit together.

PyTorch's message has the sizes, but neither the names of the tensors nor the line that chose the sizes. The trace has
both. This file looks for a tensor with a size from the message: on the failing line, or as the weight of a module whose
call failed. The line that created the weight is the line that chose its size. For example::

    mat1 and mat2 shapes cannot be multiplied (2x676 and 400x10)

was raised in the call of ``Net.fc``. Its weight has the shape (10,400) and was created by ``nn.Linear(400, 10)``: that
line needs 676. `_MESSAGES` has a row for each message. If a row finds no tensor that fits, the finding lists the
tensors on the failing line with their shapes. An edit is offered only where one change is clearly meant; any other fix
is only described.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from itertools import islice, takewhile
from math import prod
from typing import NamedTuple

from gviz.events import BackwardStarted, ScopeEntered, ScopeLeft
from gviz.explain.display_names import label_at, op_title, titled
from gviz.explain.finding import Finding
from gviz.explain.program_errors import MOST_READ, Failure
from gviz.explain.program_text import (
    ProgramText,
    arguments,
    called_lines,
    called_name,
    is_at,
    statement_at,
)
from gviz.explain.source_edit import (
    SEQUENCE_LAYERS,
    Change,
    Edit,
    operand,
    renamed_call,
    rewritten,
    with_batch_first,
    with_keyword,
    with_suffix,
    without_in_place,
)
from gviz.explain.source_frames import innermost
from gviz.source.call_stack import Frame
from gviz.trace.graph_state import NodeInfo
from gviz.trace.timeline import Timeline
from gviz.values.number_text import shape_text
from gviz.values.plain_text import file_line, shown
from gviz.values.value import Value

Shape = tuple[int, ...]

KIND = "mismatch"
_MOST_OPERANDS = 4


class _Mismatch(NamedTuple):
    """What a message means.

    The `title` has ``{}`` in place of each of the `names`. `fix` describes what to write instead, and `edit` does it if
    possible. `about` are the tensors that do not fit together, None for each that is unknown. `at` is the line to
    change if it is not the one that failed.
    """

    title: str
    names: tuple[str, ...] = ()
    fix: str = ""
    edit: Edit | None = None
    about: tuple[NodeInfo | None, ...] = ()
    at: Frame | None = None


@dataclass(frozen=True, slots=True)
class _Layer:
    """A module whose call failed: its path, its class and its weight."""

    path: str
    kind: str
    weight: NodeInfo

    @property
    def name(self) -> str:
        """Its path, with its class unless the path is the class: ``Net.fc``, ``Sequential.2 (Linear)``."""
        path, last = shown(self.path), self.path.rpartition(".")[2]
        return f"{path} ({shown(self.kind)})" if last.isdigit() else path

    @property
    def at(self) -> Frame | None:
        """The line that created it."""
        return innermost(self.weight)


def explain(failure: Failure) -> Finding | None:
    """Return the finding about a mismatch, with the tensors and the line that chose the size; None for other errors."""
    message = failure.message[:MOST_READ]
    if (mismatch := _samples_as_steps(failure, message)) is not None:
        return _finding(failure, mismatch)
    for pattern, read in _MESSAGES:
        match = re.search(pattern, message, re.DOTALL)
        if match is not None and (mismatch := read(failure, match)) is not None:
            return _finding(failure, mismatch)
    if failure.error not in _ERRORS or "state_dict" in failure.message or not failure.says(_SHAPE_MESSAGES):
        return None
    operands = _first_operands(failure)
    if not operands:
        return None
    return _finding(failure, _Mismatch("the shapes do not fit together", (), _COMPARE, None, operands))


_COMPARE = "compare these shapes with what the operation needs"
_ERRORS = ("RuntimeError", "ValueError", "IndexError")
_SHAPE_MESSAGES = (
    r"must match the size of tensor|shapes? .*cannot be multiplied|[Mm]ismatch in shape|could not broadcast"
    r"|size mismatch|[Ee]xpected size for|[Ss]izes? of tensors? must match|shape of the mask|does not broadcast"
    r"|D tensors expected|must have same (?:size|shape)|must be broadcastable|inconsistent tensor size"
    r"|invalid for input of size"
)


def _finding(failure: Failure, mismatch: _Mismatch) -> Finding:
    text = titled(mismatch.title, *mismatch.names)
    operands = [
        Finding(
            "operand",
            f"{label_at(failure.timeline, info.node)} is {_described(info)}",
            info.born,
            info.node,
            at=innermost(info),
        )
        for info in mismatch.about
        if info is not None
    ]
    parts = (*operands, Finding("message", failure.quoted, failure.seq))
    node = operands[0].node if operands else failure.node
    return Finding(KIND, text, failure.seq, node, parts, mismatch.fix, mismatch.at or failure.at, edit=mismatch.edit)


def _described(info: NodeInfo) -> str:
    value = info.created.first_value
    return f"{shape_text(value.shape)} {value.dtype}" if value is not None else "of unknown shape"


# The tensors and the module that a message is about


def _value(info: NodeInfo) -> Value | None:
    return info.created.first_value


def _shape(info: NodeInfo) -> Shape:
    value = _value(info)
    return value.shape if value is not None else ()


def _named_operands(failure: Failure) -> Iterator[NodeInfo]:
    """Yield the tensors whose names are on the failing line. If several have one name, it is the newest.

    Direct operands of the expression that failed come first: in ``net(x) + y``, ``y`` comes before ``x``.
    """
    latest: dict[str, NodeInfo] = {}
    for info in failure.earlier_nodes():
        for name in (info.name, *info.names):
            latest.setdefault(name.rpartition(".")[2], info)
    seen: set[int] = set()
    for one in filter(None, map(latest.get, (*_direct_names(failure), *failure.names_on_its_line()))):
        if one.node not in seen and _value(one) is not None:
            seen.add(one.node)
            yield one


def _first_operands(failure: Failure) -> tuple[NodeInfo, ...]:
    return tuple(islice(_named_operands(failure), _MOST_OPERANDS))


def _expression(failure: Failure) -> ast.expr | None:
    """Return the expression that failed; None if its position is unknown or it extends over several lines."""
    at = failure.at
    if at is None or at.end_line != at.line:
        return None
    written = failure.line.encode()[at.column : at.end_column].decode(errors="replace")
    try:
        return ast.parse(written, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _direct_names(failure: Failure) -> list[str]:
    """Return those operands of the expression that failed that are plain names."""
    match _expression(failure):
        case ast.BinOp(left=left, right=right):
            operands = [left, right]
        case ast.Call(args=args, keywords=keywords):
            operands = [*args, *(one.value for one in keywords)]
        case _:
            operands = []
    return [one.id for one in operands if isinstance(one, ast.Name)]


def _called_name(failure: Failure) -> str:
    """Return the variable that the failing line calls: ``emb`` in ``emb(ids)``, whose weight is ``emb.weight``."""
    match _expression(failure):
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name
    return ""


def _argument(failure: Failure, number: int, keyword: str = "") -> NodeInfo | None:
    """Return the tensor of one argument of the call that failed, if it is a plain name."""
    call = _expression(failure)
    if not isinstance(call, ast.Call):
        return None
    values = [*call.args[number : number + 1], *(one.value for one in call.keywords if one.arg == keyword)]
    name = next((one.id for one in values if isinstance(one, ast.Name)), "")
    return next((one for one in _named_operands(failure) if name in (one.name, *one.names)), None) if name else None


def _only_argument(failure: Failure) -> str:
    """Return the variable ``x`` if the expression that failed is ``net(x)``; otherwise nothing."""
    match _expression(failure):
        case ast.Call(args=[ast.Name(id=name)], keywords=[]):
            return name
    return ""


def _operand(
    failure: Failure, fits: Callable[[Value], bool], *others: NodeInfo, is_vague: bool = False
) -> NodeInfo | None:
    """Return a tensor for which `fits` is true, except the `others`.

    Results of the failing line are tried first, then the tensors that it names, then all others, the newest first. If
    the test is vague, such as one for a number of dimensions, one of these others is returned only if it is the only
    one of the 50 newest that fits.
    """
    skipped = {one.node for one in others}

    def is_operand(info: NodeInfo) -> bool:
        value = _value(info)
        return info.node not in skipped and value is not None and fits(value)

    near = next(filter(is_operand, (*_results_of_line(failure), *_named_operands(failure))), None)
    if near is not None:
        return near
    far = list(filter(is_operand, islice(failure.earlier_nodes(), _MOST_RECENT_NODES if is_vague else None)))
    return far[0] if far and (not is_vague or len(far) == 1) else None


def _results_of_line(failure: Failure) -> Iterator[NodeInfo]:
    """Yield the tensors that the failing line computed before it failed, the newest first."""
    at = failure.at
    is_of_line = (lambda frame: (frame.path, frame.line) == (at.path, at.line)) if at is not None else bool
    return takewhile(lambda info: any(map(is_of_line, info.frames)), failure.earlier_nodes())


def _tensor_of_shape(failure: Failure, shape: Shape, *others: NodeInfo) -> NodeInfo | None:
    """Return a tensor of this shape, except the `others`.

    The transposed weight that a linear layer computes internally does not count: it is not in the user's program.
    """
    skipped = {one.node for one in others}
    every = (*_named_operands(failure), *failure.earlier_nodes())
    visible = (one for one in every if one.name or not (one.op.base_name == "t" and one.created.scope))
    return next((one for one in visible if one.node not in skipped and _shape(one) == shape), None)


def _layers(failure: Failure) -> Iterator[_Layer]:
    """Yield the modules whose calls were running when the error was raised, the innermost first, each with its weight.

    While the error propagates, these calls end one after the other. So their ends are the last events before the one
    that records the error. A call with a result of its own has succeeded: it ended just before the failing line, and
    is skipped.
    """
    timeline = failure.timeline
    before = (timeline.event(seq) for seq in range(failure.seq - 1, 0, -1))
    ends = takewhile(lambda event: isinstance(event, ScopeLeft), before)
    ended_scopes = [event.scope for event in ends if isinstance(event, ScopeLeft)]
    recent = list(islice(failure.earlier_nodes(), _MOST_RECENT_NODES))
    results = (info for info in recent if info.created.kind == "op" and info.op.base_name not in _VIEWS)
    # only results in floating point: a batch norm increases its counter of batches, an integer, before it fails
    computing_scopes = {info.created.scope for info in results if "float" in _described(info)}
    computing_modules = {timeline.contexts.module(scope) for scope in computing_scopes}
    first_nodes = (timeline.info(node) for node in islice(timeline.nodes, _MOST_FIRST_NODES))
    parameters = [info for info in (*failure.earlier_nodes(), *first_nodes) if info.created.kind == "parameter"]
    called = _called_name(failure)
    parameters.sort(key=lambda info: info.name.rpartition(".")[0] != called)  # those of the called variable first
    for scope in reversed(ended_scopes):
        call = timeline.contexts.call(scope)
        if not isinstance(call, ScopeEntered) or scope in computing_scopes:
            continue
        for info in parameters:
            if _is_weight_of(info.name, call.name, computing_modules):
                yield _Layer(call.name, call.kind, info)


def _is_weight_of(name: str, module: str, computing_modules: Collection[str]) -> bool:
    """Return whether a parameter is the weight of the module at a path: ``fc.weight`` of ``Net.fc``.

    A name may begin with the variable of the model: ``net.fc.weight``. So at the top, where a path has no dot,
    ``net.weight`` is the weight of ``Linear``, whatever the variable is called. But ``1.weight`` is not the weight of
    ``Sequential`` if ``Sequential.1`` is one of the modules that have computed something: then it is the weight of
    that module.
    """
    owner, _, own = name.rpartition(".")
    tail = module.partition(".")[2]
    if own not in ("weight", "weight_ih_l0", "in_proj_weight"):
        return False
    if tail:
        return owner == tail or owner.endswith(f".{tail}")
    return f"{module}.{owner}" not in computing_modules


_VIEWS = {"t", "transpose", "permute", "view", "reshape", "expand", "unsqueeze", "squeeze", "contiguous"}
_MOST_RECENT_NODES, _MOST_FIRST_NODES = 50, 1000
"""How many nodes are searched: before an error for results, and from the start of the program for parameters."""


def _layer(failure: Failure, fits: Callable[[Shape], bool]) -> _Layer | None:
    return next((one for one in _layers(failure) if fits(_shape(one.weight))), None)


def _sizes(text: str) -> Shape:
    return tuple(int(size) for size in re.findall(r"-?\d{1,18}", text))


def _name(info: NodeInfo | None, otherwise: str = "the tensor") -> str:
    """Return a tensor as the program calls it, or else by its operation, with its shape: ``pred (5,3)``."""
    if info is None:
        return otherwise
    called = shown(info.name.rpartition(".")[2]) or (op_title(info) if info.created.kind == "op" else otherwise)
    return f"{called} {shape_text(_shape(info))}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"


def _counts_differ(left: int, left_noun: str, right: int, right_noun: str) -> str:
    verb = "does" if left == 1 else "do"
    return f"{_count(left, left_noun)} {verb} not match {_count(right, right_noun)}"


def _wrong_size(
    failure: Failure, layer: _Layer, old: int, new: int, noun: str, input_tensor: NodeInfo | None
) -> _Mismatch:
    """Return the mismatch of a module that expects `old` features or channels (the `noun`), but gets `new` ones."""
    timeline, at = failure.timeline, layer.at
    edit = _with_size(timeline, at, layer.kind, old, new)
    line = f" ({file_line(at.path, at.line)})" if at is not None else ""
    fix = f"let {shown(layer.kind)} expect {_count(new, noun)} instead of {old}{line}, or pass it an input with {old}"
    return _Mismatch(
        f"{{}} expects {_count(old, noun)}, but gets {new}", (layer.name,), fix, edit, (input_tensor, layer.weight)
    )


# Each message


def _product(failure: Failure, match: re.Match[str]) -> _Mismatch | None:
    """``mat1 and mat2 shapes cannot be multiplied (5x8 and 9x1)``."""
    rows, columns, inner, outer = map(int, match.groups())
    first = _operand(failure, lambda value: _flattens_to(value.shape, rows, columns))
    layer = _layer(failure, lambda shape: shape == (outer, inner))
    if layer is not None:
        return _wrong_size(failure, layer, inner, columns, "feature", first)
    second = _tensor_of_shape(failure, (inner, outer), *([first] if first is not None else []))
    return _matrices(failure, first, second) if first is not None and second is not None else None


def _flattens_to(shape: Shape, rows: int, columns: int) -> bool:
    return bool(shape) and shape[-1] == columns and prod(shape[:-1]) == rows


def _matrices(failure: Failure, first: NodeInfo, second: NodeInfo) -> _Mismatch:
    """Return the mismatch of two matrices whose inner sizes differ."""
    left, right = _shape(first), _shape(second)
    title = f"{{}} @ {{}}: {_counts_differ(left[-1], 'column', right[-2], 'row')}"
    names, about = (_name(first, "the first"), _name(second, "the second")), (first, second)
    if left[-1] == right[-1]:
        suffix = ".T" if len(right) == 2 else ".transpose(-2, -1)"
        fix = f"transpose the second: {shape_text((*right[:-2], right[-1], right[-2]))} fits"
        return _Mismatch(title, names, fix, operand(failure.timeline, failure.at, 1, suffix), about)
    if left[-2:-1] == right[-2:-1]:
        fix = f"transpose the first: {shape_text((*left[:-2], left[-1], left[-2]))} fits"
        suffix = ".T" if len(left) == 2 else ".transpose(-2, -1)"
        return _Mismatch(title, names, fix, operand(failure.timeline, failure.at, 0, suffix), about)
    fix = "make the last size of the first equal to the second-to-last size of the second"
    return _Mismatch(title, names, fix, None, about)


def _batches_of_matrices(failure: Failure, match: re.Match[str]) -> _Mismatch | None:
    """``Expected size for first two dimensions of batch2 tensor to be: [2, 8] but got: [2, 5].``."""
    expected, actual = map(_sizes, match.groups())
    first = _operand(failure, lambda value: len(value.shape) == 3 and (value.shape[0], value.shape[2]) == expected)
    others = [] if first is None else [first]
    second = _operand(failure, lambda value: len(value.shape) == 3 and value.shape[:2] == actual, *others)
    return _matrices(failure, first, second) if first is not None and second is not None else None


def _vector(failure: Failure, match: re.Match[str]) -> _Mismatch | None:
    """``size mismatch, got input (5), mat (5x4), vec (3)``."""
    rows, columns, length = map(int, match.groups())
    first = _operand(failure, lambda value: _flattens_to(value.shape, rows, columns))
    second = _tensor_of_shape(failure, (length,))
    if first is None or second is None:
        return None
    fix = "make the number of columns equal to the length of the vector"
    title = f"{{}} @ {{}}: {_counts_differ(columns, 'column', length, 'element')}"
    return _Mismatch(title, (_name(first), _name(second)), fix, None, (first, second))


def _broadcast(failure: Failure, match: re.Match[str]) -> _Mismatch | None:
    """``The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 1``."""
    left, right, dim = map(int, match.groups())
    candidates = [*_named_operands(failure), *islice(failure.earlier_nodes(), 3 * _MOST_OPERANDS)]
    for first in candidates:
        for second in candidates:
            one, other = _shape(first), _shape(second)
            index = dim - max(len(one), len(other))  # from the end, where shapes are aligned
            is_pair = 0 < -index <= min(len(one), len(other)) and (one[index], other[index]) == (left, right)
            if is_pair and first.node != second.node:
                title = f"{{}} does not broadcast with {{}}: {left} against {right}"
                names = _name(first, "a tensor"), _name(second, "a tensor")
                fix, edit = _broadcast_fix(failure, first, second)
                return _Mismatch(title, names, fix, edit, (first, second))
    return None


def _broadcast_fix(failure: Failure, first: NodeInfo, second: NodeInfo) -> tuple[str, Edit | None]:
    """Return how to make two tensors broadcast: add dimensions of size 1, transpose one, or pad a convolution."""
    for number, one, other in ((1, _shape(second), _shape(first)), (0, _shape(first), _shape(second))):
        which = "second" if number else "first"
        if len(one) < len(other) and one == other[: len(one)]:
            suffix = ".unsqueeze(-1)" * (len(other) - len(one))
            fits = shape_text((*one, *[1] * (len(other) - len(one))))
            name = (first, second)[number].name
            is_once = bool(name) and len(re.findall(rf"\b{re.escape(name)}\b", failure.line)) == 1
            edit = with_suffix(failure.timeline, failure.at, name, suffix) if is_once else None
            return f"call {suffix} on the {which}: {fits} fits", edit
        if len(one) == len(other) == 2 and one == other[::-1]:
            return f"transpose the {which}: {shape_text(other)} fits", None
    if (padding := _padding_fix(failure, first, second)) is not None:
        return padding
    return "make the sizes equal, or one of them 1, in each dimension counted from the last", None


_ARGUMENTS_BEFORE_PADDING = 4


def _padding_fix(failure: Failure, *pair: NodeInfo) -> tuple[str, Edit | None] | None:
    """Return the padding with which the result of a convolution has the same image size as the other tensor."""
    for result, other in (pair, pair[::-1]):
        if not op_title(result).startswith("conv"):
            continue
        differences = {size - new for size, new in zip(_shape(other)[2:], _shape(result)[2:], strict=False)}
        difference = differences.pop() if len(differences) == 1 else 0
        if difference <= 0 or difference % 2:
            continue
        inputs = [failure.timeline.info(node) for node, _ in result.created.inputs]
        weight = next((one for one in inputs if one.created.kind == "parameter" and len(_shape(one)) > 2), None)
        if weight is None or set(_shape(weight)[2:]) != {difference + 1}:
            continue
        at, kind = innermost(weight), f"Conv{len(_shape(weight)) - 2}d"
        where = f" ({file_line(at.path, at.line)})" if at is not None else ""
        edit = with_keyword(failure.timeline, at, kind, "padding", str(difference // 2))
        if len(arguments(failure.timeline, at, kind)) > _ARGUMENTS_BEFORE_PADDING:
            edit = None  # the fifth argument is the padding
        return f"use padding={difference // 2} in the convolution{where}: it keeps the size", edit
    return None


def _channels(failure: Failure, match: re.Match[str]) -> _Mismatch | None:
    """``weight of size [8, 3, 3, 3], expected input[2, 1, 8, 8] to have 3 channels, but got 1 channels``."""
    weight, size, (old,), (new,) = map(_sizes, match.groups())
    layer = _layer(failure, lambda shape: shape == weight)
    unbatched = next((one for one in _named_operands(failure) if _shape(one) == size[1:]), None)
    if unbatched is not None and old == 1:
        fix = "add a channel dimension: .unsqueeze(1)"
        title = "{} has no channel dimension, so it is read as a single image"
        return _Mismatch(title, (_name(unbatched, "the input"),), fix, None, (unbatched,))
    images = _tensor_of_shape(failure, size)
    if images is not None and size[-1:] == (old,) and len(size) > 2:
        order = ", ".join(map(str, (0, len(size) - 1, *range(1, len(size) - 1))))
        fix = f"put the channels second: .permute({order})"
        title = "{} has its channels last, but a convolution expects them second"
        return _Mismatch(title, (_name(images, "the input"),), fix, None, (images,))
    return _wrong_size(failure, layer, old, new, "channel", images) if layer is not None else None


def _rank(failure: Failure, match: re.Match[str]) -> _Mismatch | None:
    """``Expected 3D (unbatched) or 4D (batched) input to conv2d, but got input of size: [8, 8]``."""
    least, most, function, size = int(match[1]), int(match[2]), match[3], _sizes(match[4])
    tensor = _tensor_of_shape(failure, size)
    if tensor is None:
        return None
    title = f"{function} expects {least} or {most} dimensions, but {{}} has {len(size)}"
    suffix = ".unsqueeze(0)" * min(least - len(size), 3)
    fix = f"add what is missing, for example a dimension of channels: {suffix}"
    if not suffix:
        fix = "remove dimensions of size 1: .squeeze(...)"
    return _Mismatch(title, (_name(tensor),), fix, None, (tensor,))


def _batch_sizes(failure: Failure, match: re.Match[str]) -> _Mismatch | None:
    """``Expected input batch_size (5) to match target batch_size (4).``."""
    rows, labels = map(int, match.groups())
    target = _operand(failure, lambda value: value.shape[:1] == (labels,) and "int" in value.dtype)
    scores = _operand(failure, lambda value: value.shape[:1] == (rows,) and "float" in value.dtype)
    fix = "pass one label for each row of scores; were rows dropped, or another dimension flattened into the batch?"
    return _Mismatch(
        f"the loss gets {_count(rows, 'row')} of scores, but {_count(labels, 'label')}", (), fix, None, (scores, target)
    )


def _classes_last(failure: Failure, match: re.Match[str]) -> _Mismatch | None:
    """``Expected target size [2, 10], got [2, 5]``: scores (2,5,10), whose classes are not the second dimension."""
    expected, actual = map(_sizes, match.groups())
    if not expected:
        return None
    shape_of_scores = (*actual, expected[-1])
    scores, target = _tensor_of_shape(failure, shape_of_scores), _tensor_of_shape(failure, actual)
    if scores is None or target is None:
        return None
    title = "{} has its classes last, but the loss expects them second"
    edit = with_suffix(failure.timeline, failure.at, scores.name, ".transpose(1, 2)")
    fix = f"{shown(scores.name) or 'scores'}.transpose(1, 2)"
    return _Mismatch(title, (_name(scores, "the scores"),), fix, edit, (scores, target))


def _two_dimensional_labels(failure: Failure, match: re.Match[str]) -> _Mismatch | None:
    """``0D or 1D target tensor expected, multi-target not supported``."""
    del match
    target = _argument(failure, 1, "target")
    if target is None or len(_shape(target)) != 2:
        title = "the loss expects labels in one dimension, one for each row"
        return _Mismatch(title, (), "remove the second dimension of the labels: .squeeze(1)")
    suffix = ".squeeze(1)" if _shape(target)[1] == 1 else ".argmax(1)"
    edit = with_suffix(failure.timeline, failure.at, target.name, suffix)
    title = "the loss expects one label for each row, but {} has a second dimension"
    return _Mismatch(title, (_name(target),), f"{shown(target.name)}{suffix}", edit, (target,))


def _target_size(failure: Failure, match: re.Match[str]) -> _Mismatch | None:
    """``Target size (torch.Size([5])) must be the same as input size (torch.Size([5, 1]))``."""
    target_size, size = map(_sizes, match.groups())
    scores, target = _tensor_of_shape(failure, size), _tensor_of_shape(failure, target_size)
    fix, edit = "give both the same shape", None
    for number, one, other in ((0, size, target_size), (1, target_size, size)):
        if one == (*other, 1):
            suffix = ".squeeze(-1)"
            fix = f"call {suffix} on the {'target' if number else 'prediction'}: {shape_text(other)} fits"
            edit = operand(failure.timeline, failure.at, number, suffix)
    title = f"prediction {shape_text(size)} and target {shape_text(target_size)} must have the same shape"
    return _Mismatch(title, (), fix, edit, (scores, target))


def _embedding_index(failure: Failure, match: re.Match[str]) -> _Mismatch | None:
    """``index out of range in self``: an embedding has too few rows."""
    del match
    layer = next((one for one in _layers(failure) if one.kind == "Embedding"), None)
    tables = (one for one in _named_operands(failure) if len(_shape(one)) == 2 and "float" in _described(one))
    weight = layer.weight if layer is not None else next(tables, None) if "embedding" in failure.line else None
    if weight is None:
        return None
    rows = _shape(weight)[0]
    indices = _operand(failure, lambda value: _invalid_index(value, rows) is not None)
    if indices is None or (value := _value(indices)) is None:
        return None
    index = _invalid_index(value, rows)
    name = layer.name if layer is not None else _name(weight, "the table")
    title = f"{{}} has rows 0 to {rows - 1}, but {{}} contains the index {index}"
    if index is None or index < 0:
        fix = f"use indices from 0 to {rows - 1}: an embedding does not count from the end"
        return _Mismatch(title, (name, _name(indices)), fix, None, (indices, weight))
    fix = f"use {index + 1} rows, or indices below {rows}"
    edit = _with_size(failure.timeline, innermost(weight), "Embedding", rows, index + 1) if layer is not None else None
    return _Mismatch(title, (name, _name(indices)), fix, edit, (indices, weight))


def _invalid_index(value: Value, size: int) -> int | None:
    """Return an element that is not an index from 0 to `size` - 1; None if all are, or if they are not integers."""
    stats = value.statistics() if "int" in value.dtype else None
    if stats is None:
        return None
    return int(stats.max) if stats.max >= size else int(stats.min) if stats.min < 0 else None


_DTYPES = {"Double": "float64", "Float": "float32", "Half": "float16", "BFloat16": "bfloat16", "Long": "int64",
          "Int": "int32", "Short": "int16", "Char": "int8", "Byte": "uint8", "Bool": "bool",
          "double": "float64", "float": "float32", "c10::Half": "float16", "c10::BFloat16": "bfloat16",
          "long": "int64", "long int": "int64", "int": "int32", "short": "int16", "signed char": "int8",
          "unsigned char": "uint8", "bool": "bool"}  # fmt: skip
_CASTS = {"float32": ".float()", "float64": ".double()", "int64": ".long()", "float16": ".half()"}


def _dtype(type_name: str) -> str:
    """Return the dtype that a message calls ``Double``, ``c10::Half`` or ``torch.cuda.FloatTensor``."""
    return _DTYPES.get(type_name.rpartition("torch.")[2].removesuffix("Tensor").removeprefix("cuda."), type_name)


def _different_dtypes(failure: Failure, match: re.Match[str]) -> _Mismatch | None:
    """``mat1 and mat2 must have the same dtype, but got Double and Float``."""
    first, second = map(_dtype, match.groups())
    if "float" in first and "float" not in second:
        first, second = second, first  # convert the integers to floating point, not the other way round
    layer = next((one for one in _layers(failure) if (value := _value(one.weight)) and value.dtype == second), None)
    input_tensor = _operand(failure, lambda value: value.dtype == first, is_vague=True)
    cast = _CASTS.get(second, f".to(torch.{second})")
    if input_tensor is None and layer is not None:
        # data that was only given to the call that failed is in no operation, and so not in the trace
        name = _only_argument(failure)
        edit = with_suffix(failure.timeline, failure.at, name, cast)
        fix = f"{shown(name)}{cast}" if name else f"convert the input: {cast}"
        title = f"the input of {{}} is {first}, but its weight is {second}"
        return _Mismatch(title, (layer.name,), fix, edit, (layer.weight,))
    if input_tensor is None:
        return None
    other = layer.weight if layer is not None else _operand(failure, lambda value: value.dtype == second, input_tensor)
    other_name = f"the weight of {layer.name}" if layer is not None else _name(other, "the other")
    edit = with_suffix(failure.timeline, failure.at, input_tensor.name, cast)
    title = f"{{}} is {first}, but {{}} is {second}"
    fix = f"{shown(input_tensor.name)}{cast}" if input_tensor.name else f"convert the input: {cast}"
    return _Mismatch(title, (_name(input_tensor, "the input"), other_name), fix, edit, (input_tensor, other))


def _target_dtype(needed: str) -> Callable[[Failure, re.Match[str]], _Mismatch | None]:
    """Return the function that explains a message about a target of the wrong dtype: ``expected target dtype ...``."""

    def explain_dtype(failure: Failure, match: re.Match[str]) -> _Mismatch | None:
        is_index = "scalar types: Long" in match[0]
        target = _argument(failure, 0 if is_index else 1, "" if is_index else "target")
        call = _expression(failure)
        role = "the indices" if is_index else "the labels" if needed == "int64" else "the target"
        if needed == "float32" and (target is None or (isinstance(call, ast.Call) and _writes(call))):
            return None  # the program stores floating-point numbers in a tensor of integers
        value = _value(target) if target is not None else None
        if value is not None and value.dtype == needed:
            return None  # another argument has the wrong dtype
        cast = _CASTS[needed]
        if target is None or value is None:
            return _Mismatch(f"{role} must be {needed}", (), f"convert {role}: {cast}")
        edit = with_suffix(failure.timeline, failure.at, target.name, cast)
        title = f"{{}} is {value.dtype}, but {role} must be {needed}"
        return _Mismatch(title, (_name(target),), f"{shown(target.name)}{cast}", edit, (target,))

    return explain_dtype


def _writes(call: ast.Call) -> bool:
    """Return whether a call stores its result in an existing tensor: ``x.add_(y)``, ``torch.add(x, y, out=x)``."""
    return ast.unparse(call.func).endswith("_") or any(keyword.arg == "out" for keyword in call.keywords)


def _view(failure: Failure, match: re.Match[str]) -> _Mismatch | None:
    """``shape '[5, 100]' is invalid for input of size 720``."""
    shape, size = _sizes(match[1]), int(match[2])
    tensor = _operand(failure, lambda value: value.size == size)
    product = prod(one for one in shape if one != -1)
    title = f"{{}} has {_count(size, 'element')}, but the shape {shape_text(shape)} has {product}"
    if -1 in shape:
        title = f"the shape {shape_text(shape)} needs a multiple of {product} elements, but {{}} has {size}"
    first = shape[0] if shape else 0
    fits = first > 0 and size % first == 0 and len(shape) > 1
    fix = f"choose sizes whose product is {size}"
    if fits:
        fix = f"use ({first}, -1): the shape is then {shape_text((first, size // first))}"
    return _Mismatch(title, (_name(tensor),), fix, None, (tensor,))


def _strides(failure: Failure, match: re.Match[str]) -> _Mismatch | None:
    """``view size is not compatible with input tensor's size and stride``."""
    del match
    edit = renamed_call(failure.timeline, failure.at, "view", "reshape")
    title = "view cannot join dimensions that are not contiguous in memory"
    return _Mismatch(title, (), "use reshape instead of view: it copies the elements if necessary", edit)


def _cat(failure: Failure, match: re.Match[str]) -> _Mismatch | None:
    """``Sizes of tensors must match except in dimension 0. Expected size 3 but got size 4 for tensor number 1 ...``."""
    dim, expected, actual = map(int, match.groups())
    call = _expression(failure)
    listed = call.args[0] if isinstance(call, ast.Call) and call.args else None
    names = (
        [one.id for one in listed.elts if isinstance(one, ast.Name)] if isinstance(listed, ast.List | ast.Tuple) else []
    )
    known = {name: info for info in _named_operands(failure) for name in (info.name, *info.names)}
    operands = [known[name] for name in names if name in known]
    title = f"tensors joined in dimension {dim} differ in another dimension: {expected} against {actual}"
    fix, edit, shapes = "make the sizes of all other dimensions equal", None, [_shape(one) for one in operands]
    if isinstance(listed, ast.List | ast.Tuple) and len(operands) == len(listed.elts) and len({*map(len, shapes)}) == 1:
        unequal = [index for index, sizes in enumerate(zip(*shapes, strict=True)) if len({*sizes}) > 1]
        if len(unequal) == 1 and unequal[0] != dim:
            fix = f"use dim={unequal[0]}: only in that dimension do the sizes differ"
            has_dim = isinstance(call, ast.Call) and len(call.args) > 1
            edit = None if has_dim else with_keyword(failure.timeline, failure.at, "cat", "dim", str(unequal[0]))
    return _Mismatch(title, (), fix, edit, tuple(operands[:_MOST_OPERANDS]))


def _stack(failure: Failure, match: re.Match[str]) -> _Mismatch | None:
    """``stack expects each tensor to be equal size, but got [3] at entry 0 and [4] at entry 1``."""
    first, second = shape_text(_sizes(match[1])), shape_text(_sizes(match[2]))
    fix = "use torch.nn.utils.rnn.pad_sequence for sequences of different lengths, or cat to join them end to end"
    if "DataLoader" in failure.line or "loader" in failure.line:
        fix = "give all samples the same shape, or pad them in collate_fn= with torch.nn.utils.rnn.pad_sequence"
    title = f"stack expects equal shapes, but gets {first} and {second}"
    return _Mismatch(title, (), fix, None, _first_operands(failure))


def _single_sample(failure: Failure, match: re.Match[str]) -> _Mismatch | None:
    """``Expected more than 1 value per channel when training, got input size torch.Size([1, 8])``.

    Without tracking, the model is applied, not trained: then the place is the call of the model.
    """
    size = _sizes(match[1])
    layer = next(iter(_layers(failure)), None)
    tensor = _tensor_of_shape(failure, size)
    name = layer.name if layer is not None else "the normalization"
    if layer is not None and tensor is not None and tensor.created.kind == "op" and not tensor.created.requires_grad:
        forwards = [at for at, frame in enumerate(failure.frames) if frame.function.split(".")[-1] == "forward"]
        call = next(iter(failure.frames[forwards[-1] + 1 if forwards else 0 :]), None)
        model = _called(failure.timeline, call)
        title = f"{model or 'the model'} gets one sample in train mode; {{}} needs several"
        fix = f"{model or 'model'}.eval() before this line, in which nothing is trained: it is not tracked"
        return _Mismatch(title, (name,), fix, None, (tensor,), call)
    fix = "call model.eval() to apply the model to one sample; to train it, use two or more (drop_last=True)"
    if next(failure.timeline.select((BackwardStarted,), 1, failure.seq), None) is not None:
        fix = (
            "use drop_last=True in the DataLoader, whose last batch has one sample; if you only evaluate, model.eval()"
        )
    title = f"{{}} needs several samples to train, but gets {shape_text(size)}"
    return _Mismatch(title, (name,), fix, None, (tensor,))


def _called(timeline: Timeline, at: Frame | None) -> str:
    """Return what a line calls, as ``model`` or ``self.net``; empty if it is not a plain name."""
    source = statement_at(timeline, at)
    calls = source[1].parts(ast.Call) if source is not None and at is not None else iter(())
    call = next((call for call in calls if at is not None and is_at(call, at)), None)
    name = ast.unparse(call.func) if call is not None else ""
    return shown(name) if re.fullmatch(r"[A-Za-z_][\w.]*", name) else ""


def _running_mean(failure: Failure, match: re.Match[str]) -> _Mismatch | None:
    """``running_mean should contain 8 elements not 16``."""
    new, old = map(int, match.groups())
    layer = _layer(failure, lambda shape: shape == (old,))
    input_tensor = _operand(failure, lambda value: value.shape[1:2] == (new,) and "float" in value.dtype)
    return _wrong_size(failure, layer, old, new, "feature", input_tensor) if layer is not None else None


def _normalized_shape(failure: Failure, match: re.Match[str]) -> _Mismatch | None:
    """``Given normalized_shape=[8], expected input with shape [*, 8], but got input of size[5, 16]``."""
    old, size = map(_sizes, match.groups())
    layer, input_tensor = _layer(failure, lambda shape: shape == old), _tensor_of_shape(failure, size)
    if layer is None or len(old) != 1 or not size:
        return None
    return _wrong_size(failure, layer, old[0], size[-1], "feature", input_tensor)


def _features(failure: Failure, match: re.Match[str]) -> _Mismatch | None:
    """``input.size(-1) must be equal to input_size. Expected 8, got 10``, and the same for attention: ``was expecting
    embedding dimension of 8, but got 10``.
    """
    old, new = map(int, match.groups())
    layer = _layer(failure, lambda shape: shape[-1:] == (old,))
    input_tensor = _operand(failure, lambda value: value.shape[-1:] == (new,))
    return _wrong_size(failure, layer, old, new, "feature", input_tensor) if layer is not None else None


def _dimension(failure: Failure, match: re.Match[str]) -> _Mismatch | None:
    """``Dimension out of range (expected to be in range of [-2, 1], but got 2)``."""
    lowest, highest, dim = map(int, match.groups())
    ranks = (0, 1) if highest == 0 else (highest + 1,)  # for a tensor without dimensions the range is that of a vector
    tensor = _operand(failure, lambda value: len(value.shape) in ranks, is_vague=True)
    dimensions = "dimension 0" if not highest else f"dimensions 0 to {highest}"
    title = f"{{}} has only {dimensions}, but the program uses dimension {dim}"
    fix = f"use a dimension from {lowest} to {highest} (-1 is the last one)"
    return _Mismatch(title, (_name(tensor),), fix, None, (tensor,))


def _number(failure: Failure, match: re.Match[str]) -> _Mismatch | None:
    """``a Tensor with 5 elements cannot be converted to Scalar``."""
    title = f"a tensor of {match[1]} elements cannot be converted to one number"
    return _Mismatch(title, (), "use .tolist() for all elements, or .mean() or .sum() before .item()")


def _kernel(failure: Failure, match: re.Match[str]) -> _Mismatch | None:
    """``Calculated padded input size per channel: (4 x 4). Kernel size: (5 x 5). Kernel size can't be greater ...``."""
    image, kernel = (" x ".join(map(str, _sizes(text))) for text in match.groups())
    layer = _layer(failure, lambda shape: shape[2:] == _sizes(match[2]))
    fix = "use larger inputs, padding, or fewer pooling layers and strides before it"
    name = layer.name if layer is not None else "the convolution"
    return _Mismatch(f"the kernel of {{}}, {kernel}, is larger than its input, {image}", (name,), fix, None)


def _nothing_left(failure: Failure, match: re.Match[str]) -> _Mismatch | None:
    """``Given input size: (4x1x1). Calculated output size: (4x0x0). Output size is too small``."""
    before, after = (size.replace("x", " x ") for size in match.groups())
    title = f"an input of {before} is too small: the output would be {after}"
    fix = "use larger inputs, or fewer pooling layers and strides before it"
    return _Mismatch(title, (), fix, None, _first_operands(failure)[:1])


def _order_of_dims(failure: Failure, match: re.Match[str]) -> _Mismatch | None:
    """``input.dim() = 3 is not equal to len(dims) = 4``."""
    rank, count = map(int, match.groups())
    tensor = _operand(failure, lambda value: len(value.shape) == rank, is_vague=True)
    title = f"{{}} has {_count(rank, 'dimension')}, but permute gets {count}"
    return _Mismatch(title, (_name(tensor),), "list every dimension of the tensor once", None, (tensor,))


def _number_of_indices(failure: Failure, match: re.Match[str]) -> _Mismatch | None:
    """``too many indices for tensor of dimension 2``."""
    tensor = _operand(failure, lambda value: len(value.shape) == int(match[1]), is_vague=True)
    title = f"{{}} has {_count(int(match[1]), 'dimension')}, but the program uses more indices"
    return _Mismatch(title, (_name(tensor),), "use at most one index for each dimension", None, (tensor,))


def _shape_in_place(failure: Failure, match: re.Match[str]) -> _Mismatch | None:
    """``output with shape [2, 3] doesn't match the broadcast shape [4, 2, 3]``."""
    own, result = (shape_text(_sizes(text)) for text in match.groups())
    title = f"an in-place operation cannot store a result {result} in a tensor {own}"
    edit = without_in_place(failure.timeline, failure.at)
    operands = _first_operands(failure)
    return _Mismatch(title, (), "use the operation that returns a new tensor: a = a + b", edit, operands)


def _recurrent_state(failure: Failure, match: re.Match[str]) -> _Mismatch | None:
    """``Expected hidden size (1, 2, 8), got [1, 3, 8]``."""
    expected, actual = map(_sizes, match.groups())
    state = _tensor_of_shape(failure, actual)
    layer = next((one for one in _layers(failure) if one.kind in ("LSTM", "GRU", "RNN")), None)
    batches = (expected[1:2], actual[1:2])
    others = [] if state is None else [state]
    x = _operand(failure, lambda value: (value.shape[1:2], value.shape[:1]) == batches, *others)
    if layer is not None and x is not None:
        edit = with_keyword(failure.timeline, layer.at, layer.kind, "batch_first", "True")
        title = "{} is read as (time, batch, features), but the state fits batch first"
        fix = f"use batch_first=True in {layer.kind}, if the first dimension of the input is the batch"
        return _Mismatch(title, (_name(x, "the input"),), fix, edit, (x, state))
    title = f"{{}} does not fit this input, which needs a state {shape_text(expected)}"
    fix = "create a state (layers, batch, hidden) for each batch, or pass none to start with zeros"
    return _Mismatch(title, (_name(state, "the state"),), fix, None, (state,))


_SAMPLES_AND_STEPS = (
    r"input batch_size \((?P<steps>\d+)\) to match target batch_size \((?P<samples>\d+)\)",
    r"tensor a \((?P<steps>\d+)\) must match the size of tensor b \((?P<samples>\d+)\) at non-singleton dimension 0",
    r"mask is torch\.Size\(\[(?P<steps>\d+), \d+\]\), but should be \((?P<samples>\d+), \d+\)",
    r"key_padd\w+\.shape\[0\] to be (?P<steps>\d+), but got (?P<samples>\d+)",
)
"""Messages in which two sizes differ that are samples and time steps if a layer without ``batch_first`` swaps them."""


def _samples_as_steps(failure: Failure, message: str) -> _Mismatch | None:
    """Return the mismatch of samples and steps after a layer for sequences that was made without ``batch_first``."""
    match = next((match for pattern in _SAMPLES_AND_STEPS if (match := re.search(pattern, message))), None)
    if match is None or match["samples"] == match["steps"]:
        return None
    sizes = int(match["samples"]), int(match["steps"])
    earlier = [*failure.earlier_nodes()]
    is_inside = "mask" in message  # the layer itself refuses its input, before any operation
    alike = [info for info in reversed(earlier) if len(_shape(info)) == 3 and _shape(info)[:2] == sizes]
    x = next((info for info in alike if is_inside or _enters_sequence_layer(failure.timeline, info)), None)
    first_nodes = (failure.timeline.info(node) for node in islice(failure.timeline.nodes, _MOST_FIRST_NODES))
    parameters = (innermost(info) for info in (*earlier, *first_nodes) if info.created.kind == "parameter")
    lines = dict.fromkeys((*parameters, *called_lines(failure.timeline, failure.at, *SEQUENCE_LAYERS)))
    made = next((made for line in lines if (made := with_batch_first(failure.timeline, line)) is not None), None)
    if x is None or made is None:
        return None
    kind, edit = made
    title = f"{kind} reads {{}} as (time, batch, …), but it is batch first"
    fix = f"use batch_first=True in {kind}, if the first dimension of the input is the batch"
    return _Mismatch(title, (shown(x.name) or "its input",), fix, edit, (x,))


def _enters_sequence_layer(timeline: Timeline, info: NodeInfo) -> bool:
    """Return whether an operation inside a layer for sequences uses a tensor from outside of it."""
    for user in timeline.nodes.users(info.node):
        scope = timeline.info(user).created.scope
        call = timeline.contexts.call(scope) if scope and scope != info.created.scope else None
        if isinstance(call, ScopeEntered) and call.kind in SEQUENCE_LAYERS:
            return True
    return False


def _index_to_gather(failure: Failure, match: re.Match[str]) -> _Mismatch | None:
    """``Index tensor must have the same number of dimensions as input tensor``."""
    del match
    index = _argument(failure, 2, "index")  # torch.gather(source, dim, index), or source.gather(dim, index)
    source = _argument(failure, 0, "input")
    call = _expression(failure)
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name):
        owner = next((one for one in _named_operands(failure) if call.func.value.id == one.name), None)
        index, source = (_argument(failure, 1, "index"), owner) if owner is not None else (index, source)
    missing = len(_shape(source)) - len(_shape(index)) if index is not None and source is not None else 0
    if index is None or source is None or missing < 1:
        return None
    title, names = "the index {} needs as many dimensions as {}", (_name(index), _name(source))
    suffix = ".unsqueeze(-1)" * missing
    edit = with_suffix(failure.timeline, failure.at, index.name, suffix)
    return _Mismatch(title, names, f"{shown(index.name)}{suffix}", edit, (index, source))


def _index_bound(failure: Failure, match: re.Match[str]) -> _Mismatch | None:
    """``index 3 is out of bounds for dimension 1 with size 3``."""
    index, dim, size = map(int, match.groups())
    of_line = [*_results_of_line(failure), *_named_operands(failure)]
    indices = next((one for one in of_line if (value := _value(one)) and _invalid_index(value, size) is not None), None)
    source = next((one for one in of_line if _shape(one)[dim : dim + 1] == (size,)), None)
    fix = f"use indices from 0 to {size - 1}, or make the dimension at least {index + 1} long"
    if not size:
        fix = "index a tensor that is not empty"
    title = f"index {index} is out of range: dimension {dim} has size {size}"
    return _Mismatch(title, (), fix, None, (indices, source))


_N = r"(\d{1,18})"
_SIZE = r"\[([-\d, ]*)\]"
_TORCH_SIZE = rf"torch\.Size\({_SIZE}\)"

_MESSAGES: tuple[tuple[str, Callable[[Failure, re.Match[str]], _Mismatch | None]], ...] = (
    (rf"shapes cannot be multiplied \({_N}x{_N} and {_N}x{_N}\)", _product),
    (rf"batch2 tensor to be: {_SIZE} but got: {_SIZE}", _batches_of_matrices),
    (rf"size mismatch, got input \(\d+\), mat \({_N}x{_N}\), vec \({_N}\)", _vector),
    (
        rf"size of tensor a \({_N}\) must match the size of tensor b \({_N}\) at non-singleton dimension {_N}",
        _broadcast,
    ),
    (rf"weight of size {_SIZE}, expected input{_SIZE} to have {_N} channels, but got {_N} channels", _channels),
    (rf"Expected {_N}D \(unbatched\) or {_N}D \(batched\) input to (\w+), but got input of size: {_SIZE}", _rank),
    (rf"Expected input batch_size \({_N}\) to match target batch_size \({_N}\)", _batch_sizes),
    (rf"Expected target size {_SIZE}, got {_SIZE}", _classes_last),
    (r"0D or 1D target tensor expected, multi-target not supported", _two_dimensional_labels),
    (rf"arget size \({_TORCH_SIZE}\) (?:must be the same as|.* to the) input size \({_TORCH_SIZE}\)", _target_size),
    (r"index out of range in self", _embedding_index),
    (r"must have the same dtype, but got:? (\w+) (?:and|!=) (\w+)", _different_dtypes),
    (r"to have the same dtype, but got: ([\w:]+) != ([\w:]+)", _different_dtypes),
    (r"Input type \(([\w.]+)\) and (?:weight|bias) type \(([\w.]+)\) should be the same", _different_dtypes),
    (
        r"expected target dtype to be Long|expected scalar type Long but found|one of the following scalar types: Long",
        _target_dtype("int64"),
    ),
    (
        r"Float can't be cast to the desired output type Long|Expected floating point type for target",
        _target_dtype("float32"),
    ),
    (rf"shape '{_SIZE}' is invalid for input of size {_N}", _view),
    (r"view size is not compatible with input tensor's size and stride", _strides),
    (rf"Sizes of tensors must match except in dimension {_N}. Expected size {_N} but got size {_N}", _cat),
    (rf"stack expects each tensor to be equal size, but got {_SIZE} at entry 0 and {_SIZE} at entry", _stack),
    (rf"Expected more than 1 value per channel when training, got input size {_TORCH_SIZE}", _single_sample),
    (rf"running_mean should contain {_N} elements not {_N}", _running_mean),
    (rf"normalized_shape={_SIZE}, expected input with shape .*?, but got input of size{_SIZE}", _normalized_shape),
    (rf"must be equal to input_size\. Expected {_N}, got {_N}", _features),
    (rf"was expecting embedding dimension of {_N}, but got {_N}", _features),
    (r"Dimension out of range \(expected to be in range of \[(-?\d+), (-?\d+)\], but got (-?\d+)\)", _dimension),
    (rf"a Tensor with {_N} elements cannot be converted to Scalar", _number),
    (r"input size per channel: \(([\dx ]+)\)\. Kernel size: \(([\dx ]+)\)\. Kernel size can't be greater", _kernel),
    (rf"input\.dim\(\) = {_N} is not equal to len\(dims\) = {_N}", _order_of_dims),
    (rf"too many indices for tensor of dimension {_N}", _number_of_indices),
    (rf"output with shape {_SIZE} doesn't match the broadcast shape {_SIZE}", _shape_in_place),
    (rf"Expected hidden(?:\[\d\])? size \(([\d, ]+)\), got {_SIZE}", _recurrent_state),
    (r"Index tensor must have the same number of dimensions as input tensor", _index_to_gather),
    (rf"index {_N} is out of bounds for dimension {_N} with size {_N}", _index_bound),
    (r"Given input size: \(([\dx]+)\)\. Calculated output size: \(([\dx]+)\)", _nothing_left),
)


# What the program's source code shows


def _with_size(timeline: Timeline, at: Frame | None, kind: str, old: int, new: int) -> Edit | None:
    """Change the first argument of the call that makes a module, if it is the number `old`: ``nn.Linear(676, 10)``."""

    def change(text: ProgramText) -> Change:
        def known(part: ast.expr) -> str | None:
            if not (isinstance(part, ast.Call) and called_name(part) == kind):
                return None
            size = part.args[0] if part.args else next((one.value for one in part.keywords if one.arg in _SIZES), None)
            if not (isinstance(size, ast.Constant) and size.value == old):
                return None
            return text.with_part(part, size, str(new))

        return known

    return rewritten(timeline, at, change)


_SIZES = {
    "in_features", "in_channels", "num_features", "normalized_shape", "input_size", "embed_dim", "num_embeddings",
}  # fmt: skip
"""What the first argument of a layer is called."""

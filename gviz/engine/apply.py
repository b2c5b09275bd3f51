"""How an operation runs: forward on arrays, a node if a gradient may be wanted, an event if somebody listens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from gviz import emit
from gviz.engine import announce_operation, dtypes, messages, watching
from gviz.engine.memory_order import laid_out
from gviz.engine.modes import is_entered, thread
from gviz.engine.node import Edge, Node, next_sequence_nr
from gviz.engine.saved import pack
from gviz.engine.tensor import Tensor, new_tensor
from gviz.values import Array

if TYPE_CHECKING:
    from gviz.emit import Channel
    from gviz.engine.op import Op

Attrs = dict[str, Any]
Memory = Literal["new", "view", "alias", "data"]
"""Whose memory an output has, see `Op`."""
Overlap = Literal["elementwise", "apart", "indexed", "masked", "once", "free"]
"""Which places in memory may meet in a write, see `views.check_overlap`."""

NO_ATTRS: Attrs = {}


def apply(op: Op, tensors: Sequence[Tensor], attrs: Attrs = NO_ATTRS) -> Any:
    """Run `op`, record it if a gradient may be wanted, and tell whoever listens.

    Returns a tensor, or for an op of several outputs what it `returns`, a tuple of them.
    """
    if op.is_plain and not watching.watchers:
        output = _apply_plain(op, tensors)
        channel = emit.channel
        if channel is not None:
            _announce(channel, op, tensors, NO_ATTRS, [output], output._grad_fn)
        return output
    result = compute(op, tensors, attrs)
    if op.several:
        outputs = [new_tensor(np.asarray(array)) for array in result]
    else:
        outputs = [new_tensor(result if result.__class__ is np.ndarray else np.asarray(result))]
    if op.memory != "new":
        _share(op, tensors[0], outputs)
    node = _record(op, tensors, attrs, outputs) if thread.grad_enabled and not op.untracked else None
    channel = emit.channel
    if channel is not None:
        _announce(channel, op, tensors, attrs, outputs, node)
    if watching.watchers:
        _watched(op, tensors, attrs, outputs, node)
    return op.returns(outputs) if op.several else outputs[0]


def _announce(
    channel: Channel,
    op: Op,
    tensors: Sequence[Tensor],
    attrs: Attrs,
    outputs: Sequence[Tensor],
    node: Node | None,
) -> None:
    """Tell who listens what ran, and why it is not tracked if it is not."""
    untracked = "" if node is not None else op.untracked or why_untracked(tensors)
    announce_operation.ran(channel, op, tensors, attrs, outputs, node, untracked)


def _watched(op: Op, tensors: Sequence[Tensor], attrs: Attrs, outputs: Sequence[Tensor], node: Node | None) -> None:
    """Let those who watch see what ran."""
    if node is not None:
        pack(node)
    recorder = watching.recorder()
    if recorder is not None:
        recorder.ran(op, recorder.refs(tensors), attrs, outputs)


def _apply_plain(op: Op, tensors: Sequence[Tensor], _new: Any = object.__new__) -> Tensor:
    """`apply` for the common case, in one piece: one output in memory of its own, no attributes, nobody watching.

    It does what the general way does. A chain of scalars spends a sixth of its time on the calls between those parts.
    """
    result = compute(op, tensors, NO_ATTRS)
    output = new_tensor(result if result.__class__ is np.ndarray else np.asarray(result))
    if not thread.grad_enabled:
        return output
    edges: list[Edge | None] = []
    constants = 0
    for t in tensors:
        if t._base is not None:
            t._refresh()
        if t._grad_fn is not None:
            edges.append((t._grad_fn, t._output_nr))
        elif t._requires_grad:
            edges.append(t._edge())
        else:
            edges.append(None)
            constants += 1
    if constants == len(edges) and not any_requires_grad(tensors):
        return output
    node = output._grad_fn = _new(op.node_class)
    node.sequence_nr = next_sequence_nr()
    node.extras = node.seen = None
    node.next_edges, node.attrs = edges, NO_ATTRS
    node.outputs = ((output._array.shape, output._array.dtype),)
    node.saved = node.versions = ()
    if op.saves_inputs and not constants:
        versions: list[int] = []
        for t in tensors:
            versions.append(t._counter[0])  # noqa: PERF401  # a comprehension takes longer for one or two
        node.saved, node.versions = tensors, versions
    elif op.saved_names:
        op.save(node, tensors, (output,))
    output._requires_grad = True
    return output


def compute(op: Op, tensors: Sequence[Tensor], attrs: Attrs) -> Any:
    """The op's forward on the tensors' arrays. RuntimeError, in PyTorch's words, for shapes that do not fit."""
    arrays = operands(op, tensors)
    try:
        try:
            result = (
                thread.run_quietly(op.forward, *arrays, **attrs) if attrs else thread.run_quietly(op.forward, *arrays)
            )
        except RuntimeError as error:
            if not is_entered(error):
                raise
            with np.errstate(all="ignore"):
                result = op.forward(*arrays, **attrs)
        return laid_out(result, arrays) if op.pointwise else result
    except ValueError as error:
        if thread.grad_enabled:
            edges_of(tensors)  # raises for a view that must not be used: PyTorch looks at that first
        if op.promotes and len(arrays) == 2:
            raise RuntimeError(broadcast_error(arrays[0].shape, arrays[1].shape)) from None
        raise RuntimeError(str(error)) from error


def operands(op: Op, tensors: Sequence[Tensor]) -> list[Array]:
    """The tensors' arrays as the op's forward takes them: of one dtype, if it promotes."""
    # Arithmetic on numpy scalars is ten times as fast as on 0-dimensional arrays.
    arrays, by_scalars = [], op.is_operator
    for t in tensors:
        array = t._array
        arrays.append(array[()] if by_scalars and not array.ndim else array)
    if op.promotes and (op.promotes == "float" or tensors[0]._array.dtype is not tensors[-1]._array.dtype):
        return promoted(arrays, op.promotes)
    return arrays


def why_untracked(tensors: Sequence[Tensor]) -> str:
    """Why autograd would not record an operation on these tensors now; empty if it would."""
    if not thread.grad_enabled:  # a view that must not be recorded may be written here
        off = "inference" if thread.inference else "no_grad"
        return off if any(t.requires_grad for t in tensors) else "inputs"
    edges_of(tensors)  # raises for a view that must not be used
    return "" if any_requires_grad(tensors) else "inputs"


def any_requires_grad(tensors: Sequence[Tensor]) -> bool:
    """Whether an operation on these tensors is recorded.

    It may be although all its edges are None: a view that was made under ``no_grad`` requires grad with its base, but
    has no node through which a gradient could reach it.
    """
    return any(t._requires_grad or (t._base is not None and t._base._requires_grad) for t in tensors)


def edges_of(tensors: Sequence[Tensor]) -> list[Edge | None]:
    """Where the gradients of these tensors go; None for those that require none, and for untracked views."""
    edges: list[Edge | None] = []
    for t in tensors:
        if t._base is not None:
            t._refresh()
        grad_fn = t._grad_fn
        if grad_fn is not None:
            edges.append((grad_fn, t._output_nr))
        else:
            edges.append(t._edge() if t._requires_grad else None)
    return edges


def _record(op: Op, tensors: Sequence[Tensor], attrs: Attrs, outputs: Sequence[Tensor]) -> Node | None:
    """Make the node of an operation and let its outputs come from it; None if no input requires grad."""
    edges = edges_of(tensors)
    if edges.count(None) == len(edges) and not any_requires_grad(tensors):
        return None
    node = start_node(op, edges, tensors, attrs)
    if op.saved_names:
        op.save(node, tensors, outputs)
    set_history(node, outputs, op.differentiable_outputs)
    return node


def start_node(op: Op, edges: list[Edge | None], tensors: Sequence[Tensor], attrs: Attrs) -> Node:
    """A node with its edges and attributes; saving, outputs and history are the caller's."""
    node = op.node_class()
    if op.partial:
        edges = [e if call else None for e, call in zip(edges, op.calls, strict=True)]
    node.next_edges = edges
    node.attrs = attrs | op.sizes(tensors) if op.keeps_sizes else attrs
    return node


def set_history(node: Node, outputs: Sequence[Tensor], differentiable: int | None = None) -> None:
    """Let the first `differentiable` outputs (None: all) come from `node`."""
    if len(outputs) == 1:
        output = outputs[0]
        node.outputs = ((output._array.shape, output._array.dtype),)
        output._grad_fn = node
        output._output_nr = 0
        output._requires_grad = True
        return
    node.outputs = tuple([(t._array.shape, t._array.dtype) for t in outputs])
    for output_nr, output in enumerate(outputs[:differentiable]):
        output._grad_fn = node
        output._output_nr = output_nr
        output._requires_grad = True


def _share(op: Op, base: Tensor, outputs: Sequence[Tensor]) -> None:
    """Tie outputs to the memory of `base`: its version counter, and for views the tensor they are views of."""
    made = "multi" if op.several else "default"
    if not thread.grad_enabled:
        made = "inference" if thread.inference else "no_grad"
    if made == "default" and base._base is not None:
        made = base._creation  # a view of a view that must not be written must not be written either
    for output in outputs:
        if op.memory != "data":
            output._counter = base._counter
        else:  # a writer of its own, but of inference only if the data are
            output._counter = [min(base._counter[0], 0)]
        if op.memory == "view" and not base.is_inference():  # autograd knows nothing of an inference tensor
            output._base = base if base._base is None else base._base
            output._view_version = base._counter[0]
            output._creation = made


def promoted(arrays: Sequence[Array], how: bool | str) -> list[Array]:
    """Bring operands to their common dtype, to a floating one if `how` is ``"float"``."""
    first = arrays[0].dtype
    if first.kind == "f" or how != "float":
        for array in arrays:
            if array.dtype is not first:
                break
        else:
            return list(arrays)
    common = dtypes.promote(arrays)
    if how == "float" and common.kind != "f":
        common = dtypes.get_default_dtype().numpy
    return [a if a.dtype == common else a.astype(common) for a in arrays]


def broadcast_error(a: tuple[int, ...], b: tuple[int, ...]) -> str:
    """PyTorch's words for two shapes that do not broadcast."""
    width = max(len(a), len(b))
    wide_a, wide_b = (1,) * (width - len(a)) + a, (1,) * (width - len(b)) + b
    for dim in reversed(range(width)):
        if wide_a[dim] != wide_b[dim] and 1 not in (wide_a[dim], wide_b[dim]):
            return messages.BROADCAST.format(a=wide_a[dim], b=wide_b[dim], dim=dim)
    return messages.BROADCAST.format(a=a, b=b, dim=0)


def zeros(like: Any, shape: tuple[int, ...]) -> Any:
    """Zeros beside a gradient: an array for an array, a tensor for a tensor; for use inside rules."""
    if isinstance(like, Tensor):
        return new_tensor(np.zeros(shape, like._array.dtype))
    return np.zeros(shape, like.dtype)

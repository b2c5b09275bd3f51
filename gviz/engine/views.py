"""In-place writes, and views that follow writes to their memory.

Note [Views and writes]. A view and its base share one version counter. Writing to a *base* gives it a new ``grad_fn``.
Its views detect this, because the counter has moved past the version at which their own ``grad_fn`` was valid, and make
a new ``AsStridedBackward0`` from the base when they are next used. Writing to a *view* wraps the operation's node in a
``CopySlices`` that becomes the base's ``grad_fn``. In backward, the part of the gradient that the view covers goes
through the operation, and the rest bypasses it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import ref

import numpy as np

from gviz import emit
from gviz.engine import instrumentation, messages, operation_watchers
from gviz.engine.dtypes import castable, of
from gviz.engine.modes import thread
from gviz.engine.node import Edge, Grad, Metadata, Node, pack_saved_tensors, plain_name, released_error, remember_write
from gviz.engine.op import (
    Attrs,
    Op,
    OpNode,
    Overlap,
    compute,
    edges_of,
    only_inference_tensors,
    operands,
    start_node,
    why_untracked,
)
from gviz.engine.ops.strided import Geometry, overlap, overlaps_itself, read_part, repeats, replace_part, rows_overlap
from gviz.engine.pointwise_blocks import BLOCK, fit_blocks, run_in_blocks
from gviz.engine.tensor import Tensor, callbacks, new_tensor
from gviz.events import OpSeen
from gviz.values.value import Array

_HERE = Node()
"""Stands for the view inside a `CopySlices`: its gradient from the inner operation goes nowhere else."""


class CopySlices(Node):
    """The ``grad_fn`` of a base after the operation of `inner` wrote to one of its views."""

    __slots__ = ("geometry", "inner", "writer")
    geometry: Geometry
    inner: Node | None
    writer: Op | None

    @classmethod
    def name(cls) -> str:
        return "torch::autograd::CopySlices"

    def vjp(self, grads: Sequence[Grad | None], create_graph: bool) -> Sequence[Grad | None]:
        """The base's gradient, with the view's part passed through the operation, and its other gradients."""
        g, inner = grads[0], self.inner
        if inner is None:
            raise released_error(self)
        if g is None:
            return [None] * len(self.next_edges)
        into_view, *others = inner.vjp([read_part(g, geometry=self.geometry)], create_graph)
        if (
            into_view is not None
            and 0 not in self.geometry.shape
            and repeats(self.geometry.shape, self.geometry.strides)
        ):
            raise RuntimeError(messages.OVERLAPPING_WRITE)  # PyTorch writes this gradient into an equally expanded one
        through = None if into_view is None else replace_part(g, into_view, geometry=self.geometry)
        return [through, *others]

    def by_argument(self, values: Sequence[Any]) -> Sequence[Any]:
        """In the order of the operation that wrote."""
        return values if self.writer is None else self.writer.by_argument(values)

    def describe(self, number: int) -> OpSeen:
        return OpSeen(number, "copy_slices", "CopySlices", ("self", "src..."), (), ())

    def release(self) -> bool:
        """Releases the inner node with its saved tensors."""
        had = self.inner is not None
        self.inner = None
        return had


def refresh(view: Tensor) -> None:
    """Updates a stale view's ``grad_fn`` from its base, see Note [Views and writes].

    If its base no longer requires grad, the new node has no edge.
    """
    base = view._base
    assert base is not None, "only a view can be stale"
    if view._creation != "default":
        raise RuntimeError(_forbidden(view, "its base or another view of its base has been modified inplace"))
    view._view_version = view._counter[0]
    attrs = {"geometry": Geometry.of(base._array, view._array)}
    node = start_node(read_part, edges_of([base]), [base], attrs)
    node.outputs = (_form(view),)
    _give_history(node, view)
    if emit.channel is not None:
        instrumentation.regenerated(emit.channel, read_part, base, view, node)


callbacks.refresh = refresh


def apply_in_place(
    op: Op,
    tensors: Sequence[Tensor],
    attrs: Attrs,
    check: Callable[[], None] | None = None,
    *,
    rule: Overlap | None = None,
) -> Tensor:
    """Runs `op` and writes its result into the memory of the first tensor. Returns that tensor.

    Raises RuntimeError if memory overlaps against the op's rule or `rule`, see `check_overlap`. After that, `check` may
    refuse values.
    """
    target = tensors[0]
    unknown = "" if op.rules else op.untracked  # autograd then sees only a new version
    if target._array.dtype.kind != "f":
        unknown = "dtype"
    tracked = not unknown and thread.grad_enabled and any(t.requires_grad for t in tensors)
    if tracked and not (target.is_inference() and only_inference_tensors(op, tensors)):
        check_in_place(target)
    untracked = unknown or why_untracked(tensors)
    rule = rule or op.overlap
    check_overlap(target, tensors[1:], rule)
    if op.name in _DEPRECATED and overlaps_itself(target._array):
        _warn_of_expanded(op, rule)
    if check is not None:
        check()
    by_rows = op.pointwise and not target._array.flags.c_contiguous and rows_overlap(target._array)
    arrays = operands(op, tensors) if by_rows or target._array.size > BLOCK else []
    by_rows = by_rows and arrays[0].dtype == target._array.dtype  # else it is converted as a whole before
    in_blocks = bool(arrays) and not by_rows and fit_blocks(op, arrays, target._array)
    if not in_blocks:
        result = np.asarray(compute(op, tensors, attrs))
        _check_fit(result, target._array)
    refused = target.is_inference() and not thread.inference
    if refused:
        if not untracked and op.grad_fn == "CopyBackwards":  # which autograd refuses before it is done
            raise RuntimeError(messages.INFERENCE_IN_PLACE)
        untracked = untracked or "inference"
    channel, recorder = emit.channel, operation_watchers.recorder() if operation_watchers.watchers else None
    refs = recorder.refs(tensors) if recorder is not None else ()
    written = target if untracked or target._base is None else target._base
    edges = [] if channel is None else instrumentation.edges(channel, [written, *tensors[1:]])
    inner = None if untracked else _start_in_place(op, tensors, attrs)
    if in_blocks:
        thread.quietly(run_in_blocks, op, arrays, attrs, target._array)
    elif by_rows:
        thread.quietly(_write_by_rows, op, arrays, attrs, target._array)
    else:
        thread.quietly(_write, target._array, result, op.overlap in ("indexed", "masked", "apart"))
    if not target.is_inference():
        target._counter[0] += 1
    remember_write(target)
    node = None if inner is None else _rebase(op, inner, target)
    if channel is not None:
        instrumentation.in_place(channel, op, target, edges, attrs, node, untracked)
    if inner is not None and operation_watchers.watchers:
        pack_saved_tensors(inner, outputs=True)
    if recorder is not None:
        recorder.wrote(op, refs, attrs, target)
    if refused:  # PyTorch looks when it counts a write that is done
        raise RuntimeError(messages.INFERENCE_IN_PLACE)
    return target


def view_in_place(op: Op, target: Tensor, attrs: Attrs) -> Tensor:
    """Turns `target` itself into the view of its memory that `op` makes, and returns it. Its base is unchanged."""
    refused = target.is_inference() and not thread.inference
    if thread.grad_enabled and target.requires_grad and not target.is_inference():
        check_in_place(target)
    channel, recorder = emit.channel, operation_watchers.recorder() if operation_watchers.watchers else None
    refs = recorder.refs([target]) if recorder is not None else ()
    inputs = [] if channel is None else instrumentation.edges(channel, [target])
    untracked = "inference" if target.is_inference() else why_untracked([target])
    node = None if untracked else start_node(op, edges_of([target]), [target], attrs)
    target._array = compute(op, [target], attrs)
    if not target.is_inference():
        target._counter[0] += 1
    remember_write(target)
    if node is not None:
        node.outputs = (_form(target),)
        target._grad_fn, target._output_nr, target._hooks = node, 0, None  # retain_grad stays with the old node
        target._view_version = target._counter[0]
    if channel is not None:
        instrumentation.became_view(channel, op, target, inputs, attrs, node, untracked)
    if recorder is not None:
        recorder.became(op, refs, attrs, target)
    if refused:
        raise RuntimeError(messages.INFERENCE_IN_PLACE)
    return target


def set_in_place(op: Op, tensors: Sequence[Tensor], array: Array) -> Tensor:
    """Moves the first tensor to the memory of `array`, a part of the last tensor's memory, and returns it.

    Its version increases as by a write, and `op` becomes its history. Views of its old memory keep that memory.
    """
    target = tensors[0]
    refused = target.is_inference() and not thread.inference
    if thread.grad_enabled and any(t.requires_grad for t in tensors) and not all(t.is_inference() for t in tensors):
        check_in_place(target)
    untracked = why_untracked(tensors) or ("inference" if refused else "")
    channel = emit.channel
    edges = [] if channel is None else instrumentation.edges(channel, tensors)
    if operation_watchers.watchers and (recorder := operation_watchers.recorder()) is not None:
        recorder.switched(target, f"{op.name}_()")
    inner = None if untracked else _start_in_place(op, tensors, {})
    if not target.is_inference():
        target._counter[0] += 1
    remember_write(target)
    node = None if inner is None else _rebase(op, inner, target)
    target._array = array
    if node is not None and target._base is None:
        node.outputs = (_form(target),)
    if channel is not None:
        instrumentation.in_place(channel, op, target, edges, {}, node, untracked)
        instrumentation.moved(channel, target, tensors[-1] if len(tensors) > 1 else None)
    if refused:
        raise RuntimeError(messages.INFERENCE_IN_PLACE)
    return target


def check_writable(target: Tensor, *others: object, **named: object) -> None:
    """Raises an error for a forbidden write that would be recorded. PyTorch checks this before other arguments."""
    tensors = [t for t in (target, *others, *named.values()) if isinstance(t, Tensor)]
    if thread.grad_enabled and any(t.requires_grad for t in tensors) and not all(t.is_inference() for t in tensors):
        check_in_place(target)


def check_in_place(target: Tensor) -> None:
    """Raises an error for a recorded write to a leaf, to a view of a leaf, or to a view that must not be written."""
    check_view(target)
    if target.requires_grad and target.grad_fn is None:
        raise RuntimeError(messages.LEAF_IN_PLACE)


def check_view(target: Tensor) -> None:
    """Raises an error for a recorded write to a view of a leaf, or to a view that must not be written."""
    base = target._base
    if base is not None:
        if target._creation != "default":
            raise RuntimeError(_forbidden(target, "is being modified inplace"))
        if target.requires_grad and base._grad_fn is None:
            raise RuntimeError(messages.LEAF_VIEW_IN_PLACE)


def _forbidden(view: Tensor, how: str) -> str:
    node = view._grad_fn
    if node is None:
        message = messages.VIEW_OF_INFERENCE if view._creation == "inference" else messages.VIEW_OF_NO_GRAD
        origin = message.format(how=how)
    else:
        how = _OF_A_VIEW.get(view._creation, messages.OF_VIEW).format(how=how)
        origin = messages.VIEW_OF_OUTPUT.format(output_nr=view._output_nr, name=plain_name(node), how=how)
    return origin + _WHY_FORBIDDEN[view._creation]


_OF_A_VIEW = {"inference": messages.OF_VIEW_OF_INFERENCE, "no_grad": messages.OF_VIEW_OF_NO_GRAD}
_WHY_FORBIDDEN = {
    "inference": messages.INFERENCE_VIEW,
    "no_grad": messages.NO_GRAD_VIEW,
    "multi": messages.MULTI_OUTPUT_VIEW,
    "function": messages.CUSTOM_FUNCTION_VIEW,
}


def _write(array: Array, result: Array, partial: bool) -> None:
    """Write a result; with `partial`, that of an operation which writes only some elements."""
    if overlaps_itself(array) or (partial and not array.flags.c_contiguous and rows_overlap(array)):
        # Unchanged elements must not overwrite new ones in the same memory.
        changed = (result != array) & ~((result != result) & (array != array))
        np.copyto(array, result, where=changed, casting="unsafe")
    else:
        array[...] = result


def _write_by_rows(op: Op, arrays: Sequence[Array], attrs: Attrs, array: Array) -> None:
    """Runs the operation for one row after the other: a row that shares memory with an earlier one reads its results.

    The rows of ``x.unfold(0, 2, 1).add_(1)`` add 1 to the inner elements of `x` twice, as in PyTorch.
    """
    order = sorted(range(array.ndim), key=lambda dim: -abs(array.strides[dim]))
    operands = [np.broadcast_to(a, array.shape).transpose(order) for a in arrays[1:]]
    array = array.transpose(order)
    for row in np.ndindex(array.shape[:-1]):
        array[row] = op.forward(array[row], *[operand[row] for operand in operands], **attrs)


def check_overlap(target: Tensor, others: Sequence[Tensor], rule: Overlap) -> None:
    """Raises RuntimeError for a write with forbidden memory overlap. PyTorch has a rule for each family of functions.

    Most (``elementwise``) write no memory twice, and may read what they write only as the same element. Those that
    write at indices read nothing of what they write (``apart``). ``index_put_`` and similar functions (``indexed``) may
    write memory twice, and so may ``masked_fill_`` (``masked``), which reads its mask as elements. A few (``once``)
    write no memory twice and may read anything. A fill, which has one value, is ``free``, and so are matrix products,
    which PyTorch does not check.
    """
    if rule == "free":
        return
    array = target._array
    if rule in ("elementwise", "apart", "once") and overlaps_itself(array):
        raise RuntimeError(messages.OVERLAPPING_WRITE)
    if rule == "once":
        return
    refused = ("partial",) if rule in ("elementwise", "masked") else ("partial", "full")
    for other in others:
        if rule == "masked" and other._array.dtype.kind != "b":
            continue  # the single value, which is read before
        itself = other is target and not array.size  # overlaps in full, even without memory
        if (itself and "full" in refused) or (
            np.may_share_memory(other._array, array) and overlap(other._array, array) in refused
        ):
            raise RuntimeError(messages.OVERLAPPING_READ)


_DEPRECATED = {"index_put": "tensor[indices] = tensor", "masked_fill": "tensor[mask] = scalar"}
_DEPRECATED["index_fill"] = _DEPRECATED["masked_fill"]
"""Functions that PyTorch still allows on an expanded tensor, and how they are written with brackets."""


def _warn_of_expanded(op: Op, rule: Overlap) -> None:
    # One value at a mask is an `index_put` that becomes a `masked_fill`.
    for name in (op.name, "masked_fill") if rule == "masked" and op.name == "index_put" else (op.name,):
        messages.warn_once(messages.EXPANDED_WRITE.format(name=name, brackets=_DEPRECATED[name]))


def _check_fit(result: Array, own: Array) -> None:
    if result.shape != own.shape:
        raise RuntimeError(messages.OUTPUT_SHAPE.format(own=list(own.shape), result=list(result.shape)))
    if not castable(result.dtype, own.dtype):
        source, target = of(result).tensor_type, of(own).tensor_type
        raise RuntimeError(messages.RESULT_CAST.format(source=source, target=target))


def _start_in_place(op: Op, tensors: Sequence[Tensor], attrs: Attrs) -> Node:
    """Return the op's node, with its inputs saved before the write; self is saved as a copy if a rule needs it."""
    node = start_node(op, edges_of(tensors), tensors, attrs)
    before = list(tensors)
    if op.slots[0] in op.saved_names:
        before[0] = _copy(tensors[0])
    if op.saved_names:
        op.save(node, before, [tensors[0]])
    if operation_watchers.watchers:
        pack_saved_tensors(node, outputs=False)
    return node


def _copy(tensor: Tensor) -> Tensor:
    """Return a copy of the tensor in new memory, with the same grad_fn."""
    copy = new_tensor(tensor._array.copy())
    copy._grad_fn, copy._output_nr, copy._requires_grad = tensor._grad_fn, tensor._output_nr, tensor._requires_grad
    if operation_watchers.watchers and (recorder := operation_watchers.recorder()) is not None:
        recorder.copied(tensor, copy)
    return copy


def _rebase(op: Op, inner: Node, target: Tensor) -> Node:
    """Give the written tensor, or the base of the written view, its new history. Saved outputs get the new version."""
    inner.versions = tuple(
        target._counter[0] if i in op.saved_outputs else version for i, version in enumerate(inner.versions)
    )
    inner.outputs = (_form(target),)
    return rebase(inner, target)


def rebase(node: Node, target: Tensor, output_nr: int = 0) -> Node:
    """Makes the node of a write the grad_fn of the written tensor, or of the written view's base."""
    if target._base is not None:
        return _copy_slices(target, target._base, node)
    _give_history(node, target, output_nr)
    return node


def _form(tensor: Tensor) -> Metadata:
    return tensor._array.shape, tensor._array.dtype


def _copy_slices(view: Tensor, base: Tensor, inner: Node) -> CopySlices:
    node = CopySlices()
    first: Edge | None = base._edge() if base._requires_grad else None
    node.next_edges = [first, *inner.next_edges[1:]]
    inner.next_edges = [first and (_HERE, 0), *inner.next_edges[1:]]
    node.outputs = (_form(base),)
    node.geometry = Geometry.of(base._array, view._array)
    node.inner = inner
    node.writer = inner.op if isinstance(inner, OpNode) else None
    if inner.saved_outputs:
        inner.with_extras().attach = _InView(ref(node), node.geometry)
    _give_history(node, base)
    return node


@dataclass(frozen=True, slots=True)
class _InView:
    """Attaches what an operation wrote to a view to the graph: as a part of the base that was written."""

    written: ref[CopySlices]
    geometry: Geometry

    def __call__(self, tensor: Tensor) -> Tensor:
        node = self.written()
        assert node is not None, "an inner operation lives in the node of its write"
        part = start_node(read_part, [(node, 0)], (), {"geometry": self.geometry})
        part.outputs = (_form(tensor),)
        return tensor._as_output_of(part, 0)


def _give_history(node: Node, tensor: Tensor, output_nr: int = 0) -> None:
    """Make `node` the tensor's new grad_fn. ``retain_grad`` moves to it; hooks stay with the old node."""
    before = tensor._grad_fn
    if tensor._retained and before is not None and before.extras is not None:
        del before.extras.retaining_tensors[tensor._output_nr]
    tensor._grad_fn, tensor._output_nr, tensor._requires_grad = node, output_nr, True
    if tensor._hooks is not None:
        tensor._hooks = None
    if tensor._retained:
        tensor._retained = False
        tensor.retain_grad()

"""Tensors that become another view of their own memory: ``t_``, ``unsqueeze_``, ``resize_`` and the like."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from math import prod
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from gviz import emit
from gviz.engine import announce, announce_memory, messages, watching
from gviz.engine.arguments import sizes
from gviz.engine.layout import checked_format, contiguous_format, is_in, preserve_format, strides_in, suggested
from gviz.engine.layout import memory_format as MemoryFormat
from gviz.engine.memory import address_of, owner_of
from gviz.engine.modes import thread
from gviz.engine.node import Edge
from gviz.engine.op import Op, Rule
from gviz.engine.ops.axes import t, transpose
from gviz.engine.ops.shape import normal_dims, squeeze_all, squeeze_dim, squeeze_dims, unsqueeze_op
from gviz.engine.ops.sliding import as_strided as as_strided_view
from gviz.engine.surface import front
from gviz.engine.tensor import Tensor
from gviz.engine.views import set_in_place, view_in_place
from gviz.values import Array


def _variant(op: Op, grad_fn: str) -> Op:
    """The op under the name that its node has after the tensor itself has become the view."""
    variant = copy(op)
    variant.grad_fn = grad_fn
    variant._compile()
    return variant


_T = _variant(t, "TBackward1")
_TRANSPOSE = _variant(transpose, "TransposeBackward1")
_UNSQUEEZE = _variant(unsqueeze_op, "UnsqueezeBackward1")
_SQUEEZE_ALL = _variant(squeeze_all, "SqueezeBackward3")
_SQUEEZE_DIM = _variant(squeeze_dim, "SqueezeBackward4")
_SQUEEZE_DIMS = _variant(squeeze_dims, "SqueezeBackward5")

VARIANTS = (_T, _TRANSPOSE, _UNSQUEEZE, _SQUEEZE_ALL, _SQUEEZE_DIM, _SQUEEZE_DIMS)
"""Operations that are not in the registry, because they are others under another name."""


@front("t_", function=False)
def t_(self: Tensor) -> Tensor:
    """Become transposed."""
    if self.ndim > 2:
        raise RuntimeError(f"t_() expects a tensor with <= 2 dimensions, but self is {self.ndim}D")
    return view_in_place(_T, self, {})


@front("transpose_", "swapaxes_", "swapdims_", function=False)
def transpose_(self: Tensor, dim0: int, dim1: int) -> Tensor:
    """Become the view with two dimensions exchanged."""
    first, second = normal_dims((dim0, dim1), self.ndim)
    return view_in_place(_TRANSPOSE, self, {"dim0": first, "dim1": second})


@front("unsqueeze_", function=False)
def unsqueeze_(self: Tensor, dim: int) -> Tensor:
    """Become the view with a new dimension of size 1 at `dim`."""
    return view_in_place(_UNSQUEEZE, self, {"dim": normal_dims(dim, self.ndim + 1)[0]})


@front("squeeze_", function=False)
def squeeze_(self: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """Become the view without dimensions of size 1, or without those of `dim` whose size is 1."""
    if dim is None:
        return view_in_place(_SQUEEZE_ALL, self, {})
    dims = normal_dims(dim, self.ndim)
    if isinstance(dim, int):
        return view_in_place(_SQUEEZE_DIM, self, {"dim": dims[0]})
    return view_in_place(_SQUEEZE_DIMS, self, {"dim": dims})


class _Set(Op):
    """Its node keeps a place for what requires no gradient, unlike others without a derivative."""

    def places(self, edges: Sequence[Edge | None]) -> Sequence[Edge | None]:
        return edges


def _no_derivative(g: Any) -> Any:
    raise RuntimeError("derivative for set_ is not implemented")


set_source: Op = _Set(
    "set(self, source)",
    grad_fn="NotImplemented",
    formula="source, in its memory",
    forward=lambda self, source: source,
    rules=(Rule("self", "none", _no_derivative), Rule("source", "none", _no_derivative)),
    public=False,
)
set_nothing: Op = _Set(
    "set(self)",
    grad_fn="NotImplemented",
    formula="no elements",
    forward=lambda self: np.zeros(0, self.dtype),
    rules=(Rule("self", "none", _no_derivative),),
    public=False,
)


@front("set_", function=False)
def set_(
    self: Tensor,
    source: Tensor | None = None,
    storage_offset: int = 0,
    size: Sequence[int] | None = None,
    stride: Sequence[int] | None = None,
) -> Tensor:
    """Lie in the memory of `source`: as it does, or at an offset, of a size, with strides, all counted in elements.

    Without `source`, have no elements. RuntimeError for another dtype, and for places that its memory has not.
    """
    if source is None:
        return set_in_place(set_nothing, (self,), np.zeros(0, self._array.dtype))
    if source._array.dtype != self._array.dtype:
        raise RuntimeError(
            f"Could not set tensor of type {source.dtype.cpp_name} to a tensor of type {self.dtype.cpp_name}"
        )
    array = source._array
    if size is not None:
        steps = strides_in(size, contiguous_format) if stride is None else stride
        array = as_strided_view(source.detach(), size, steps, storage_offset)._array
    return set_in_place(set_source, (self, source), array.view())


@front("resize_", function=False)
def resize_(self: Tensor, *size: Any, memory_format: MemoryFormat | None = None) -> Tensor:
    """Become another shape of the same memory, or of more: new elements are zero. RuntimeError for one with history."""
    if self.requires_grad and not thread.inference:
        raise RuntimeError(messages.RESIZE)
    shape = sizes("resize_", size)
    order = contiguous_format if memory_format is None else checked_format("resize_", memory_format)
    if order is preserve_format:
        raise RuntimeError("Unsupported memory formatPreserve")
    strides = strides_in(shape, order)
    if shape != self._array.shape or not (memory_format is None or is_in(self._array, order)):
        _replace(self, _resized(self._array, shape, strides))
    return self


@front("resize_as_", function=False)
def resize_as_(self: Tensor, the_template: Tensor, *, memory_format: MemoryFormat | None = None) -> Tensor:
    """`resize_` to the shape of another tensor."""
    order = suggested(the_template._array) if memory_format is preserve_format else memory_format
    return resize_(self, the_template.shape, memory_format=order)


def _resized(array: Array, shape: tuple[int, ...], strides: tuple[int, ...]) -> Array:
    memory, size = owner_of(array).ravel("K"), prod(shape)
    start = (address_of(array) - address_of(memory)) // array.itemsize
    if start + size <= memory.size:
        return _laid_out(memory[start : start + size], shape, strides)
    larger = np.zeros(size, array.dtype)
    larger[: memory.size - start] = memory[start:]
    return _laid_out(larger, shape, strides)


def _laid_out(memory: Array, shape: tuple[int, ...], strides: tuple[int, ...]) -> Array:
    if not memory.size:
        return memory.reshape(shape)
    return as_strided(memory, shape, [step * memory.itemsize for step in strides])


def _replace(tensor: Tensor, array: Array) -> None:
    channel, is_in_its_own = emit.channel, np.may_share_memory(tensor._array, array)
    if channel is not None:
        announce.seen(channel, tensor)
    if watching.watchers and (recorder := watching.recorder()) is not None:
        recorder.switched(tensor, "resize_()")
    tensor._array = array
    if not tensor.is_inference():
        tensor._counter[0] += 1
    if channel is not None:
        announce_memory.moved(channel, tensor, tensor if is_in_its_own else None)

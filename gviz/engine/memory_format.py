"""Strides: the order of a tensor's elements in memory, with ``torch.memory_format`` and ``torch.layout``.

All arrays of the engine are strided. Strides count elements here, as in PyTorch. Where an array begins in its memory is
in `array_storage`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Self, TypeVar

import numpy as np
from numpy.lib.stride_tricks import as_strided

from gviz.values.value import Array

# ----------------------------------------------------------------------------------------------------------------------
# The memory order of a new result, as in PyTorch; NumPy sometimes chooses another.
#
# It decides whether a later ``view()`` is possible, so programs can see it.


def laid_out(result: Any, operands: Sequence[Any]) -> Any:
    """The result of a pointwise operation, in the memory order that its operands imply."""
    if result.__class__ is not np.ndarray or result.ndim < 2:
        return result
    for operand in operands:
        if operand.ndim > result.ndim:
            return result
        if operand.__class__ is np.ndarray and not operand.flags.c_contiguous:
            break
    else:
        return result if result.flags.c_contiguous else np.ascontiguousarray(result)
    dims = order_of(result.shape, operands)
    turned = result.transpose(dims)
    return result if turned.flags.c_contiguous else np.ascontiguousarray(turned).transpose(np.argsort(dims))


def order_of(shape: tuple[int, ...], operands: Sequence[Array]) -> list[int]:
    """The dimensions of `shape`, from the longest stride to the shortest.

    The first operand in which two dimensions have different strides decides their order. Operands that are broadcast
    along one of the two are skipped.
    """
    ndim = len(shape)
    strides = [_strides(shape, operand) for operand in operands if operand.ndim]
    order = list(range(ndim))  # from the longest stride to the shortest
    for last in range(ndim - 2, -1, -1):
        at = last
        for other in range(last + 1, ndim):
            longer = _compare(order[other], order[at], shape, strides)
            if longer < 0:
                break
            if longer > 0:
                order[at], order[other] = order[other], order[at]
                at = other
    return order


def _strides(shape: tuple[int, ...], operand: Array) -> list[int]:
    missing = len(shape) - operand.ndim
    own = zip(operand.shape, operand.strides, shape[missing:], strict=True)
    return [0] * missing + [0 if n == 1 and wide != 1 else stride for n, stride, wide in own]


def _compare(one: int, other: int, shape: tuple[int, ...], strides: list[list[int]]) -> int:
    """1 if dimension `one` must have the longer stride, -1 if `other` must, 0 if undecided."""
    for own in strides:
        if not own[one] or not own[other]:
            continue
        if own[one] != own[other]:
            return 1 if own[one] > own[other] else -1
        if shape[one] > shape[other]:
            return 1
    return 0


def strides_of(array: Array) -> tuple[int, ...]:
    """The strides in elements. NumPy's are all 0 for most arrays without elements; PyTorch uses those of C order."""
    if array.size or any(array.strides) or _owner(array).size:
        return tuple([s // array.itemsize for s in array.strides])
    return tuple([prod(max(n, 1) for n in array.shape[d + 1 :]) for d in range(array.ndim)])


def _owner(array: Array) -> Array:
    """Return the array that owns the memory. An array without elements may be an expanded part of one with elements."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def with_strides(array: Array, strides: Sequence[int]) -> Array:
    """`array`, which has no elements, with strides (in elements) that `strides_of` will return."""
    if any(strides):
        return as_strided(array, array.shape, [step * array.itemsize for step in strides])
    return np.ndarray(array.shape, array.dtype, np.zeros(1, array.dtype), 0, strides)


def with_more_dimensions(array: Array, shape: Sequence[int]) -> Array:
    """A view with further dimensions of size 1, and PyTorch's strides; NumPy chooses others for these dimensions."""
    if not array.size:
        return array.reshape(shape)
    base = array.strides[-1] if array.ndim else array.itemsize
    strides, place, length, filled = [base] * len(shape), len(shape) - 1, 1, 1
    for dim in reversed(range(array.ndim)):
        length *= array.shape[dim]
        if not dim or (array.shape[dim - 1] != 1 and array.strides[dim - 1] != length * base):
            while place >= 0 and (filled < length or shape[place] == 1):
                strides[place] = filled * base
                filled, place = filled * shape[place], place - 1
            base, length, filled = array.strides[dim - 1], 1, 1
    return as_strided(array, shape, strides)


def empty_as(model: Array, dtype: Any = None) -> Array:
    """Uninitialized memory with the shape and memory order of `model`; expanded dimensions come last."""
    if not model.size:
        return with_strides(np.empty(model.shape, dtype or model.dtype), strides_of(model))
    if model.flags.c_contiguous:
        return np.empty(model.shape, dtype or model.dtype)
    dims = order_of(model.shape, [model])
    return np.empty([model.shape[d] for d in dims], dtype or model.dtype).transpose(np.argsort(dims))


def in_columns(array: Array) -> Array:
    """Matrices in column-major order, as LAPACK requires."""
    return np.ascontiguousarray(array.swapaxes(-1, -2)).swapaxes(-1, -2)


__all__ = [
    "channels_last",
    "channels_last_3d",
    "contiguous_format",
    "layout",
    "memory_format",
    "preserve_format",
    "sparse_coo",
    "sparse_csr",
    "strided",
]


T = TypeVar("T", bound="_Named")


class _Named:
    __slots__ = ("name",)
    name: str

    def __new__(cls, *args: object) -> Self:
        raise TypeError(f"cannot create 'torch.{cls.__name__}' instances")

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> tuple[Any, ...]:
        return named, (self.name,)


class layout(_Named):  # PyTorch's own spelling, as below
    """The layout of a tensor in memory."""

    __slots__ = ()
    __module__ = "torch"


class memory_format(_Named):
    """The memory order of a new tensor."""

    __slots__ = ()
    __module__ = "torch"


def _instance(kind: type[T], name: str) -> T:
    instance = object.__new__(kind)
    instance.name = name
    return instance


strided = _instance(layout, "strided")
sparse_coo = _instance(layout, "sparse_coo")
sparse_csr = _instance(layout, "sparse_csr")
contiguous_format = _instance(memory_format, "contiguous_format")
preserve_format = _instance(memory_format, "preserve_format")
channels_last = _instance(memory_format, "channels_last")
channels_last_3d = _instance(memory_format, "channels_last_3d")


def named(name: str) -> Any:
    """The layout or memory format called `name`."""
    return globals()[name]


def check(function: str, value: object) -> None:
    """Raises an error if `value` is not a layout, or is one that the engine lacks."""
    if value is None or value is strided:
        return
    if isinstance(value, layout):
        raise NotImplementedError(f"gviz's built-in engine has no {value} tensors: their memory is strided")
    raise TypeError(f"{function}(): argument 'layout' must be torch.layout, not {_typename(value)}")


def checked_format(function: str, value: object) -> memory_format:
    """The argument ``memory_format`` of a function. Raises TypeError if it is not one."""
    if isinstance(value, memory_format):
        return value
    raise TypeError(f"{function}(): argument 'memory_format' must be torch.memory_format, not {_typename(value)}")


def _typename(value: object) -> str:
    kind = type(value)
    return f"torch.{kind.__name__}" if kind.__module__ == "torch" and kind.__name__ in _OURS else kind.__name__


_OURS = ("dtype", "layout", "memory_format")
_LAST = {channels_last: (4, (1, 3, 2, 0)), channels_last_3d: (5, (1, 4, 3, 2, 0))}
"""The number of dimensions of each format, and the dimensions from the shortest stride to the longest."""


def strides_in(shape: Sequence[int], order: memory_format) -> tuple[int, ...]:
    """The strides of a new tensor, in elements.

    Raises RuntimeError if the format is for another number of dimensions.
    """
    dims: Sequence[int] = range(len(shape))[::-1]
    if order in _LAST:
        rank, dims = _LAST[order]
        if len(shape) != rank:
            raise RuntimeError(f"required rank {rank} tensor to use {order.name} format")
    return _packed(shape, dims)


def _packed(shape: Sequence[int], dims: Sequence[int]) -> tuple[int, ...]:
    strides, step = [0] * len(shape), 1
    for dim in dims:
        strides[dim] = step
        step *= max(shape[dim], 1)
    return tuple(strides)


def is_in(array: Array, order: memory_format) -> bool:
    """Whether an array has the memory order of a format; dimensions of size 1 do not count."""
    if order not in _LAST:
        return bool(array.flags.c_contiguous)
    if array.ndim != _LAST[order][0]:
        return False
    expected = strides_in(array.shape, order)
    pairs = zip(array.shape, array.strides, expected, strict=True)
    return not array.size or all(n == 1 or stride == array.itemsize * step for n, stride, step in pairs)


def suggested(array: Array) -> memory_format:
    """The format that the strides of an array suggest, by the same heuristic as PyTorch's."""
    for order, (rank, dims) in _LAST.items():
        if array.ndim == rank and array.size and _speaks_for(array, dims):
            return order
    return contiguous_format


def _speaks_for(array: Array, dims: Sequence[int]) -> bool:
    least, channels = 0, array.strides[1]
    if not channels:
        return False
    for dim in dims:
        if array.strides[dim] < least or (dim == 0 and least == channels):
            return False
        least = array.strides[dim] * max(array.shape[dim], 1)
    return True


def kept_strides(array: Array) -> tuple[int, ...]:
    """The strides, in elements, of a new array with the same memory order as `array` and no gaps."""
    return _packed(array.shape, order_of(array.shape, [array])[::-1])


def zeros_like(array: Array, dtype: Any, order: memory_format = preserve_format) -> Array:
    """Zeros with the shape of `array`, in the memory order of the format."""
    if not array.size and order is preserve_format:
        return empty_as(array, dtype)
    if order is contiguous_format or (array.flags.c_contiguous and order is preserve_format):
        return np.zeros(array.shape, dtype)
    strides = kept_strides(array) if order is preserve_format else strides_in(array.shape, order)
    return zeros(array.shape, dtype, strides)


def zeros(shape: Sequence[int], dtype: Any, strides: Sequence[int]) -> Array:
    """Zeros with these strides, in elements, which must leave no gaps."""
    memory = np.zeros(prod(shape), dtype)
    if not memory.size:
        return memory.reshape(shape)
    return np.ndarray(shape, memory.dtype, memory, 0, [step * memory.itemsize for step in strides])


def copied(array: Array, order: memory_format = preserve_format, dtype: Any = None) -> Array:
    """A copy in the memory order of the format."""
    if not array.size and order is preserve_format:
        return empty_as(array, dtype)
    if order is contiguous_format or (array.flags.c_contiguous and order is preserve_format):
        return np.array(array, dtype, order="C")
    copy = zeros_like(array, dtype or array.dtype, order)
    copy[...] = array
    return copy

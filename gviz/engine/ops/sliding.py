"""Views through memory: windows that slide along a dimension, and any strides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided as strided_view

from gviz.engine.memory import address_of, owner_of
from gviz.engine.op import Example, Op, Rule
from gviz.engine.ops.examples import normal
from gviz.engine.ops.memory import strides_of
from gviz.engine.ops.shape import normal_dims, run
from gviz.engine.ops.strided import Geometry, place_part
from gviz.engine.surface import front
from gviz.engine.tensor import Tensor
from gviz.values import Array

Shape = tuple[int, ...]


def _windows(self: Array, dimension: int, size: int, step: int) -> Array:
    if not self.ndim:
        return strided_view(self, (size,), (self.itemsize,))
    count = (self.shape[dimension] - size) // step + 1
    shape = (*self.shape[:dimension], count, *self.shape[dimension + 1 :], size)
    strides = list(self.strides)
    strides[dimension] *= step
    return strided_view(self, shape, (*strides, self.strides[dimension]), writeable=self.flags.writeable)


def _windows_added(self: Array, sizes: Shape, dimension: int, size: int, step: int) -> Array:
    if not sizes:
        return np.asarray(self.sum(), self.dtype)
    result = np.zeros(sizes, self.dtype)
    moved = np.moveaxis(result, dimension, 0)
    windows = np.moveaxis(self, (dimension, -1), (0, 1))
    for place in range(size):
        moved[place : place + step * (len(windows) - 1) + 1 : step] += windows[:, place]
    return result


unfold_op: Op = Op(
    "unfold(self, *, dimension, size, step)",
    grad_fn="UnfoldBackward0",
    formula="windows of size along dimension of self, step apart",
    forward=_windows,
    rules=(
        Rule(
            "self",
            "g added where the windows look",
            lambda g, self_sym_sizes, dimension, size, step: unfold_back(
                g, sizes=self_sym_sizes, dimension=dimension, size=size, step=step
            ),
        ),
    ),
    memory="view",
    public=False,
    torch="Tensor.unfold",
    examples=lambda: [
        Example((normal(5, 2),), {"dimension": 0, "size": 3, "step": 1}),
        Example((normal(2, 5),), {"dimension": 1, "size": 2, "step": 2}),
    ],
)
unfold_back: Op = Op(
    "unfold_backward(self, *, sizes, dimension, size, step)",
    grad_fn="UnfoldBackwardBackward0",
    formula="0 with self added where the windows look",
    forward=_windows_added,
    rules=(
        Rule(
            "self",
            "the windows of g",
            lambda g, dimension, size, step: unfold_op(g, dimension=dimension, size=size, step=step),
        ),
    ),
    public=False,
    examples=lambda: [Example((normal(3, 2, 3),), {"sizes": (5, 2), "dimension": 0, "size": 3, "step": 1})],
)


def _memory(self: Array) -> Array:
    """All of the memory that an array looks into, flat."""
    return owner_of(self).ravel(order="K")


def _through(self: Array, size: Shape, stride: Shape, storage_offset: int, geometry: Geometry) -> Array:
    memory = _memory(self)
    strides = tuple([n * memory.itemsize for n in stride])
    return strided_view(memory[storage_offset:], size, strides, writeable=self.flags.writeable)


as_strided_op: Op = Op(
    "as_strided(self, *, size, stride, storage_offset, geometry)",
    grad_fn="AsStridedBackward0",
    formula="the memory of self with size and stride",
    forward=_through,
    rules=(Rule("self", "g where the view looks, 0 elsewhere", lambda g, geometry: place_part(g, geometry=geometry)),),
    memory="view",
    public=False,
    examples=lambda: [
        Example(
            (normal(2, 3),),
            {
                "size": (2, 2),
                "stride": (1, 2),
                "storage_offset": 1,
                "geometry": Geometry((2, 3), (3, 1), (2, 2), (1, 2), 1),
            },
        )
    ],
)


@front("unfold", function=False)
def unfold(self: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """All windows of `size` along a dimension, `step` apart, as a view; the window becomes the last dimension."""
    (axis,) = normal_dims(dimension, self.ndim)
    length = self.shape[axis] if self.ndim else 1
    if size > length:
        raise RuntimeError(f"maximum size for tensor at dimension {axis} is {length} but size is {size}")
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    return run(unfold_op, self, dimension=axis, size=size, step=step)


@front("as_strided")
def as_strided(self: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Tensor:
    """The memory of this tensor seen with other sizes and strides, counted in elements."""
    sizes, strides = tuple(size), tuple(stride)
    if len(sizes) != len(strides):
        raise RuntimeError("mismatch in length of strides and shape")
    if any(n < 0 for n in strides):
        raise RuntimeError(
            f"as_strided: Negative strides are not supported at the moment, got strides: {list(strides)}"
        )
    own = offset_of(self._array)
    offset = own if storage_offset is None else storage_offset
    last = 0 if 0 in sizes else sum((n - 1) * s for n, s in zip(sizes, strides, strict=True)) + 1
    item, memory = self._array.itemsize, owner_of(self._array).nbytes
    if (last + offset) * item > memory:
        raise RuntimeError(
            f"setStorage: sizes {list(sizes)}, strides {list(strides)}, storage offset {offset}, and itemsize {item} "
            f"requiring a storage size of {(last + offset) * item} are out of bounds for storage of size {memory}"
        )
    geometry = Geometry(tuple(self.shape), strides_of(self._array), sizes, strides, offset - own)
    attrs: dict[str, Any] = {"size": sizes, "stride": strides, "storage_offset": offset, "geometry": geometry}
    return run(as_strided_op, self, **attrs)


def offset_of(array: Array) -> int:
    """How many elements of its memory lie before the first element of an array."""
    return (address_of(array) - address_of(owner_of(array))) // array.itemsize

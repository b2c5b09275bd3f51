"""Elements picked by an index that is laid out like the result: along one dimension, or in the flat tensor."""

from __future__ import annotations

from typing import Any

import numpy as np

from gviz.engine.apply import apply, broadcast_error
from gviz.engine.op import Example, Op, Rule
from gviz.engine.ops.adding import added, places_along
from gviz.engine.ops.examples import normal
from gviz.engine.ops.kernels import in_rows
from gviz.engine.ops.shape import expand, normal_dims, reshape, run
from gviz.engine.surface import front
from gviz.engine.tensor import Tensor
from gviz.values import Array

Shape = tuple[int, ...]

scatter_along: Op = Op(
    "scatter_along(self, index, *, size, dim)",
    grad_fn="ScatterAddBackward0",
    formula="0 with self added at index along dim",
    forward=lambda self, index, size, dim: _scattered(self, index, size, dim),
    rules=(Rule("self", "g at index", lambda g, index, dim: gather_op(g, index, dim=dim)),),
    public=False,
    examples=lambda: [Example((normal(2, 2), np.array([[0, 0], [2, 1]])), {"size": (2, 3), "dim": 1})],
)
gather_op: Op = Op(
    "gather(self, index, *, dim, sparse_grad=False)",
    grad_fn="GatherBackward0",
    formula="self at index along dim",
    forward=in_rows(lambda self, index, dim, sparse_grad=False: _gathered(self, index, dim)),
    rules=(
        Rule(
            "self",
            "g added at index",
            lambda g, self, index, dim: scatter_along(g, index, size=tuple(self.shape), dim=dim),
        ),
    ),
    public=False,
    torch="gather",
    examples=lambda: [
        Example((normal(2, 3), np.array([[0, 0], [2, 1]])), {"dim": 1}),
        Example((normal(3, 2), np.array([[0], [2]])), {"dim": 0}),
        Example((normal(), np.array([0, 0])), {"dim": 0}),
    ],
)
take_op: Op = Op(
    "take(self, index)",
    grad_fn="TakeBackward0",
    formula="the elements of flat self at index",
    forward=lambda self, index: np.reshape(self, -1)[index],
    rules=(Rule("self", "g added at index", lambda g, self, index: untaken(g, index, size=tuple(self.shape))),),
    public=False,
    torch="take",
    examples=lambda: [Example((normal(2, 3), np.array([[0, 5], [-1, 2]])), {})],
)
untaken: Op = Op(
    "take_backward(self, index, *, size)",
    grad_fn="PutBackward0",
    formula="0 with self added to the flat elements at index",
    forward=lambda self, index, size: _untaken(self, index, size),
    rules=(Rule("self", "g at index", lambda g, index: take_op(g, index)),),
    public=False,
    examples=lambda: [Example((normal(2, 2), np.array([[0, 5], [-1, 2]])), {"size": (2, 3)})],
)


def _gathered(self: Array, index: Array, dim: int) -> Array:
    source, places = np.atleast_1d(self, index)
    return source.reshape(-1)[places_along(places, source.shape, dim)].reshape(index.shape)


def _scattered(self: Array, index: Array, size: Shape, dim: int) -> Array:
    places = places_along(np.atleast_1d(index), size or (1,), dim)
    total = int(np.prod(size))
    return added(total, np.broadcast_to(places, np.shape(self) or (1,)).reshape(-1), np.reshape(self, -1)).reshape(size)


def _untaken(self: Array, index: Array, size: Shape) -> Array:
    total = int(np.prod(size))
    return added(total, np.reshape(index, -1) % max(total, 1), np.reshape(self, -1)).reshape(size)


def check_bounds(index: Tensor, length: int, dim: int, low: int = 0) -> None:
    """RuntimeError, in PyTorch's words, for an index that names what is not there."""
    array = index._array
    if array.size and (array.min() < low or array.max() >= length):
        outside = int(next(i for i in array.reshape(-1) if not low <= i < length))
        raise RuntimeError(f"index {outside} is out of bounds for dimension {dim} with size {length}")


def check_kind(name: str, index: Tensor) -> None:
    """RuntimeError, in PyTorch's words, for an index that is not of integers."""
    if index.dtype.name not in ("int64", "int32"):
        raise RuntimeError(f"{name}(): Expected dtype int32/int64 for index")


@front("gather")
def gather(self: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Tensor:
    """The elements that `index` names along `dim`, in its shape."""
    (axis,) = normal_dims(dim, self.ndim)
    check_kind("gather", index)
    if index._array.size:
        if max(index.ndim, 1) != max(self.ndim, 1):
            raise RuntimeError("Index tensor must have the same number of dimensions as input tensor")
        for d, (n, own) in enumerate(zip(index.shape, self.shape, strict=False)):
            if d != axis and n > own:
                raise RuntimeError(
                    f"Size does not match at dimension {d} expected index {list(index.shape)} to be no larger than "
                    f"self {list(self.shape)} apart from dimension {axis}"
                )
    check_bounds(index, self.shape[axis] if self.ndim else 1, axis)
    return run(gather_op, self, index, dim=axis, sparse_grad=sparse_grad)


def check_flat_index(name: str, self: Tensor, index: Tensor) -> None:
    """An error, in PyTorch's words, for an index into flat elements that are not there."""
    if index.dtype.name != "int64":
        raise RuntimeError(f"{name}(): Expected a long tensor for index, but got {index.dtype.tensor_type}")
    array, size = index._array, self._array.size
    if array.size and (array.min() < -size or array.max() >= size):
        outside = int(next(i for i in array.reshape(-1) if not -size <= i < size))
        raise IndexError(f"out of range: tried to access index {outside} on a tensor of {size} elements.")


@front("take")
def take(self: Tensor, index: Tensor) -> Tensor:
    """The elements at `index` in the flat tensor, in the shape of `index`."""
    check_flat_index("take", self, index)
    result: Tensor = apply(take_op, (self, index))
    return result


@front("take_along_dim")
def take_along_dim(self: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """The elements that `indices` names along `dim`, both broadcast elsewhere; in the flat tensor without `dim`."""
    if indices.dtype.name != "int64":
        raise RuntimeError(
            f"torch.take_along_dim(): dtype of indices should be Long but got {indices.dtype.tensor_type}"
        )
    if dim is None:
        return gather(reshape(self, -1), 0, reshape(indices, -1))
    if indices.ndim != self.ndim:
        raise RuntimeError(
            "torch.take_along_dim(): input and indices should have the same number of dimensions, but got "
            f"{self.ndim} dimensions for input, and {indices.ndim} dimensions for indices"
        )
    (axis,) = normal_dims(dim, self.ndim)
    beside = [(*t.shape[:axis], 1, *t.shape[axis + 1 :]) for t in (self, indices)] if self.ndim else []
    if any(own != other and 1 not in (own, other) for own, other in zip(*beside, strict=True)):
        raise RuntimeError(broadcast_error(*beside))
    return gather(_widened(self, indices, axis), axis, _widened(indices, self, axis))


def _widened(self: Tensor, other: Tensor, axis: int) -> Tensor:
    """A tensor repeated to the size of another, but for one dimension."""
    sizes: list[Any] = [o if n == 1 else n for n, o in zip(self.shape, other.shape, strict=True)]
    sizes[axis] = self.shape[axis]
    return run(expand, self, size=tuple(sizes))

"""Entries of one dimension, named by an index: added to, written, filled, combined."""

from __future__ import annotations

from typing import Any

import numpy as np

from gviz.engine.arguments import fitting
from gviz.engine.op import Example, Op, Rule
from gviz.engine.ops.adding import added_rows
from gviz.engine.ops.examples import normal
from gviz.engine.ops.gathering import check_bounds
from gviz.engine.ops.selecting import at, index_select_op
from gviz.engine.ops.shape import normal_dims
from gviz.engine.ops.variants import Prepared, in_both_ways
from gviz.engine.surface import Number
from gviz.engine.tensor import Tensor
from gviz.values import Array

_INDEX = np.array([2, 0, 2])
_UNIQUE = np.array([2, 0])


def _added(self: Array, source: Array, index: Array, dim: int, alpha: Number) -> Array:
    if not self.ndim:
        return self + alpha * np.reshape(source, ())
    rows = np.moveaxis(np.broadcast_to(source, _shape(self, index, dim)), dim, 0)
    total = np.moveaxis(added_rows(self.shape[dim], np.reshape(index, -1), rows), 0, dim)
    return self + (total if alpha == 1 else self.dtype.type(alpha) * total)


def _written(self: Array, source: Any, index: Array, dim: int) -> Array:
    result = np.array(self)
    if not result.ndim:
        return np.reshape(np.asarray(source, result.dtype), ())
    result[at(dim, np.reshape(index, -1))] = source
    return result


def _shape(self: Array, index: Array, dim: int) -> tuple[int, ...]:
    return (*self.shape[:dim], index.size, *self.shape[dim + 1 :])


def _entries(g: Any, source: Any, index: Any, dim: int) -> Any:
    entries = index_select_op(g, index, dim=dim)
    return entries if entries.shape == source.shape else entries.reshape(source.shape)


index_add_op: Op = Op(
    "index_add(self, source, index, *, dim, alpha=1)",
    grad_fn="IndexAddBackward0",
    formula="self with alpha * source added at the entries index of dim",
    forward=_added,
    rules=(
        Rule("self", "g", lambda g: g),
        Rule(
            "source",
            "alpha * the entries index of g",
            lambda g, source, index, dim, alpha: _entries(g, source, index, dim) * alpha,
        ),
    ),
    public=False,
    torch="index_add",
    overlap="apart",
    examples=lambda: [
        Example((normal(3, 2), normal(3, 2), _INDEX), {"dim": 0, "alpha": 2.5}),
        Example((normal(2, 3), normal(2, 3), _INDEX), {"dim": 1, "alpha": 1}),
    ],
)
index_copy_op: Op = Op(
    "index_copy(self, source, index, *, dim)",
    grad_fn="IndexCopyBackward0",
    formula="self with source as the entries index of dim",
    forward=_written,
    rules=(
        Rule("self", "g, 0 at the entries index", lambda g, index, dim: index_fill_op(g, index, dim=dim, value=0)),
        Rule("source", "the entries index of g", lambda g, source, index, dim: _entries(g, source, index, dim)),
    ),
    public=False,
    torch="index_copy",
    overlap="apart",
    examples=lambda: [Example((normal(2, 3), normal(2, 2), _UNIQUE), {"dim": 1})],
)
index_fill_op: Op = Op(
    "index_fill(self, index, *, dim, value)",
    grad_fn="IndexFillBackward0",
    formula="self with value in the entries index of dim",
    forward=lambda self, index, dim, value: _written(self, value, index, dim),
    rules=(Rule("self", "g, 0 at the entries index", lambda g, index, dim: index_fill_op(g, index, dim=dim, value=0)),),
    public=False,
    torch="index_fill",
    overlap="indexed",
    examples=lambda: [Example((normal(2, 3), _UNIQUE), {"dim": 1, "value": 1.5})],
)
index_fill_with: Op = Op(
    "index_fill(self, value, index, *, dim)",
    grad_fn="IndexFillBackward1",
    formula="self with value in the entries index of dim",
    forward=lambda self, value, index, dim: _written(self, value, index, dim),
    rules=(
        Rule("self", "g, 0 at the entries index", lambda g, index, dim: index_fill_op(g, index, dim=dim, value=0)),
        Rule("value", "the entries index of g, summed", lambda g, index, dim: index_select_op(g, index, dim=dim)),
    ),
    public=False,
    torch="index_fill",
    overlap="free",
    examples=lambda: [Example((normal(2, 3), normal(), _UNIQUE), {"dim": 1})],
)


def _check_vector(name: str, index: Tensor) -> None:
    if index.ndim > 1:
        raise IndexError(
            f"{name}(): Index is supposed to be a vector, but got dim: {index.ndim} with type: "
            f"{index.dtype.tensor_type} and size: {list(index.shape)}"
        )


def check_entries(name: str, self: Tensor, dim: int, index: Tensor, source: Tensor) -> int:
    """The dimension, counted from 0. RuntimeError, IndexError unless `source` fits the entries that `index` names."""
    (axis,) = normal_dims(dim, self.ndim)
    _check_vector(name, index)
    if index.dtype.name not in ("int64", "int32"):
        raise RuntimeError(f"{name}(): Expected dtype int32/int64 for index but got: {index.dtype.tensor_type}")
    if source.dtype is not self.dtype:
        raise RuntimeError(
            f"{name}(): self ({self.dtype.tensor_type}) and source ({source.dtype.tensor_type}) must have the same "
            "scalar type"
        )
    count = source.shape[axis] if source.ndim else 1
    if index._array.size != count:
        raise RuntimeError(
            f"{name}(): Number of indices ({index._array.size}) should be equal to source.size(dim): ({count}), "
            f"for dim: {axis}"
        )
    if _other_sizes(self, axis) != _other_sizes(source, axis) or (self.ndim != source.ndim):
        raise RuntimeError(
            "source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = "
            f"{list(self.shape)} source.shape = {list(source.shape)}"
        )
    return axis


@in_both_ways("index_add")
def index_add(self: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Number = 1) -> Prepared:
    """`alpha` * `source` added to the entries of `dim` that `index` names."""
    axis = check_entries("index_add_", self, dim, index, source)
    attrs = {"dim": axis, "alpha": alpha}
    return index_add_op, (self, source, index), attrs, lambda: check_bounds(index, _length(self, axis), axis)


def _length(self: Tensor, axis: int) -> int:
    return self.shape[axis] if self.ndim else 1


def _check_entries_exist(what: str, self: Tensor, index: Tensor, axis: int, low: int) -> None:
    length = _length(self, axis)
    outside = [i for i in index._array.reshape(-1).tolist() if not low <= i < length]
    if outside:
        raise IndexError(f"{what}index {outside[0]} is out of bounds for dimension {axis} with size {length}")


def _other_sizes(self: Tensor, axis: int) -> list[int]:
    return [n for d, n in enumerate(self.shape) if d != axis]


def _check_not_empty(self: Tensor, index: Tensor) -> None:
    if index._array.size and not self._array.size:
        raise RuntimeError("setStorage: the entries that the index names are out of bounds for storage of size 0")


@in_both_ways("index_copy")
def index_copy(self: Tensor, dim: int, index: Tensor, source: Tensor) -> Prepared:
    """`source` written to the entries of `dim` that `index` names."""
    (axis,) = normal_dims(dim, self.ndim)
    if index.ndim > 1:
        raise IndexError(f"index_copy_(): Index should have dimension 1 or 0 (got {index.ndim})")
    if source.ndim != self.ndim and source.ndim and self.ndim:
        raise IndexError(
            "index_copy_(): When source and destination are not scalars, their dimensionality must match. "
            f"Source dimensionality ({source.ndim}), destination dimensionality ({self.ndim})"
        )
    if index.dtype.name != "int64":
        raise RuntimeError(f"index_copy_(): Expected a long tensor for index, but got {index.dtype.tensor_type}")
    if source.dtype is not self.dtype:
        raise RuntimeError(
            "index_copy_(): self and source expected to have the same dtype, but got (self) "
            f"{self.dtype.tensor_type} and (source) {source.dtype.tensor_type}"
        )
    if _other_sizes(self, axis) != _other_sizes(source, axis):
        raise RuntimeError(
            "index_copy_(): Source/destination tensor must have same slice shapes. Destination slice shape: "
            f"{' '.join(map(str, _other_sizes(self, axis)))} at dimension {axis} and source slice shape: "
            f"{' '.join(map(str, _other_sizes(source, axis)))} at dimension 0."
        )
    count = source.shape[axis] if source.ndim else 1
    if index._array.size != count:
        raise IndexError(
            f"index_copy_(): Number of indices ({index._array.size}) should be equal to source.size(dim) ({count})"
        )
    _check_not_empty(self, index)
    return (
        index_copy_op,
        (self, source, index),
        {"dim": axis},
        lambda: _check_entries_exist("index_copy_(): ", self, index, axis, 0),
    )


@in_both_ways("index_fill")
def index_fill(self: Tensor, dim: int, index: Tensor, value: Tensor | Number) -> Prepared:
    """`value` written to the entries of `dim` that `index` names."""
    if isinstance(value, Tensor) and value.ndim:
        raise RuntimeError(
            f"index_fill_ only supports a 0-dimensional value tensor, but got tensor with {value.ndim} dimension(s)."
        )
    (axis,) = normal_dims(dim, self.ndim)
    if index.dtype.name != "int64":
        raise IndexError("index_fill_(): Expected dtype int64 for index.")
    if index.ndim > 1:
        raise RuntimeError("Index has to be a vector/scalar")
    _check_not_empty(self, index)

    def check() -> None:
        _check_entries_exist("", self, index, axis, -_length(self, axis))

    if isinstance(value, Tensor):
        return index_fill_with, (self, value, index), {"dim": axis}, check
    return index_fill_op, (self, index), {"dim": axis, "value": fitting(value, self.dtype)}, check

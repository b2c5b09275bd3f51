"""Parts of one dimension: an entry or a stretch of it, which are views, or the entries that an index names."""

from __future__ import annotations

from typing import Any

import numpy as np

from gviz.engine.op import Example, Op, Rule
from gviz.engine.ops.adding import added_rows
from gviz.engine.ops.examples import normal
from gviz.engine.ops.shape import normal_dims, run
from gviz.engine.surface import checked, front
from gviz.engine.tensor import Tensor
from gviz.values import Array

Shape = tuple[int, ...]


def _place(g: Array, sizes: Shape, where: Any) -> Array:
    result = np.zeros(sizes, g.dtype)
    result[where] = g
    return result


def at(dim: int, index: Any) -> tuple[Any, ...]:
    """What numpy takes for `index` at dimension `dim` and all of the others."""
    return (*(slice(None),) * dim, index, ...)


select: Op = Op(
    "select(self, *, dim, index)",
    grad_fn="SelectBackward0",
    formula="self, entry index of dim",
    forward=lambda self, dim, index: self[at(dim, index)],
    rules=(
        Rule(
            "self",
            "g at entry index, 0 elsewhere",
            lambda g, self_sym_sizes, dim, index: select_place(g, sizes=self_sym_sizes, dim=dim, index=index),
        ),
    ),
    memory="view",
    public=False,
    torch="select",
    examples=lambda: [Example((normal(2, 3),), {"dim": 1, "index": 2})],
)
select_place: Op = Op(
    "select_backward(self, *, sizes, dim, index)",
    grad_fn="SelectBackwardBackward0",
    forward=lambda self, sizes, dim, index: _place(self, sizes, at(dim, index)),
    rules=(Rule("self", "g at index", lambda g, dim, index: select(g, dim=dim, index=index)),),
    public=False,
    examples=lambda: [Example((normal(2),), {"sizes": (2, 3), "dim": 1, "index": 2})],
)
narrow: Op = Op(
    "slice(self, *, dim, start, end, step)",
    grad_fn="SliceBackward0",
    formula="self[start:end:step] of dim",
    forward=lambda self, dim, start, end, step: self[at(dim, slice(start, end, step))],
    rules=(
        Rule(
            "self",
            "g in start:end:step, 0 elsewhere",
            lambda g, self_sym_sizes, dim, start, end, step: narrow_place(
                g, sizes=self_sym_sizes, dim=dim, start=start, end=end, step=step
            ),
        ),
    ),
    memory="view",
    public=False,
    examples=lambda: [Example((normal(5, 2),), {"dim": 0, "start": 1, "end": 4, "step": 2})],
)
narrow_place: Op = Op(
    "slice_backward(self, *, sizes, dim, start, end, step)",
    grad_fn="SliceBackwardBackward0",
    forward=lambda self, sizes, dim, start, end, step: _place(self, sizes, at(dim, slice(start, end, step))),
    rules=(
        Rule(
            "self",
            "g in start:end:step",
            lambda g, dim, start, end, step: narrow(g, dim=dim, start=start, end=end, step=step),
        ),
    ),
    public=False,
    examples=lambda: [Example((normal(2, 2),), {"sizes": (5, 2), "dim": 0, "start": 1, "end": 4, "step": 2})],
)
index_select_op: Op = Op(
    "index_select(self, index, *, dim)",
    grad_fn="IndexSelectBackward0",
    formula="the entries index of dim of self",
    forward=lambda self, index, dim: self.take(index.reshape(-1), dim) if self.ndim else self.copy(),
    rules=(
        Rule(
            "self",
            "g added at the entries index",
            lambda g, index, self_sym_sizes, dim: entries_placed(g, index, sizes=self_sym_sizes, dim=dim),
        ),
    ),
    public=False,
    torch="index_select",
    examples=lambda: [
        Example((normal(3, 2), np.array([2, 0, 2])), {"dim": 0}),
        Example((normal(2, 3, 20), np.array([1, 1])), {"dim": 1}),
        Example((normal(), np.array([0])), {"dim": 0}),
        Example((normal(3, 2), np.zeros(0, np.int64)), {"dim": 0}),
    ],
)
entries_placed: Op = Op(
    "index_select_backward(self, index, *, sizes, dim)",
    grad_fn="IndexAddBackward0",
    formula="0 with self added at the entries index of dim",
    forward=lambda self, index, sizes, dim: _entries_placed(self, index, sizes, dim),
    rules=(Rule("self", "the entries index of g", lambda g, index, dim: index_select_op(g, index, dim=dim)),),
    public=False,
    examples=lambda: [Example((normal(3, 2), np.array([2, 0, 2])), {"sizes": (3, 2), "dim": 0})],
)


def _entries_placed(self: Array, index: Array, sizes: Shape, dim: int) -> Array:
    if not sizes:
        return self.reshape(())
    rows = added_rows(sizes[dim], np.reshape(index, -1), np.moveaxis(self, dim, 0))
    return np.moveaxis(rows, 0, dim)


@front("select")
def select_front(self: Tensor, dim: int, index: int) -> Tensor:
    """Entry `index` of a dimension, as a view."""
    if not self.ndim:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    (axis,) = normal_dims(dim, self.ndim)
    length = self.shape[axis]
    if not -length <= index < length:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(self.shape)} at dimension {axis}"
        )
    return run(select, self, dim=axis, index=int(index) % length)


def sliced(self: Tensor, axis: int, start: int, end: int, step: int = 1) -> Tensor:
    """A stretch of one dimension, as a view."""
    return run(narrow, self, dim=axis, start=start, end=max(end, start), step=step)


@front("narrow")
def narrow_front(self: Tensor, dim: int, start: int | Tensor, length: int) -> Tensor:
    """The `length` elements of `dim` from `start` on, as a view."""
    if not self.ndim:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    (axis,) = normal_dims(dim, self.ndim)
    first, size = int(start), self.shape[axis]
    if not -size <= first <= size:
        raise IndexError(f"start out of range (expected to be in range of [{-size}, {size}], but got {first})")
    first += size if first < 0 else 0
    if first + length > size:
        raise RuntimeError(f"start ({first}) + length ({length}) exceeds dimension size ({size}).")
    return sliced(self, axis, first, first + length)


@front("index_select")
def index_select(self: Tensor, dim: int, index: Tensor) -> Tensor:
    """The entries of `dim` that `index` names, as a copy."""
    (axis,) = normal_dims(dim, self.ndim)
    if checked(index_select_op, index, 2).ndim > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    if index.dtype.name not in ("int32", "int64"):
        raise RuntimeError("index_select(): Expected dtype int32 or int64 for index")
    array = index._array
    if not self.ndim and array.size != 1:
        raise RuntimeError("index_select(): Index to scalar can have only 1 value, got " + f"{array.size} value(s)")
    length = self.shape[axis] if self.ndim else 1
    if array.size and not (array.min() >= 0 and array.max() < length):
        if axis == 1:  # which PyTorch selects from in another kernel
            outside = next(i for i in array.reshape(-1).tolist() if not 0 <= i < length)
            raise RuntimeError(f"INDICES element is out of DATA bounds, id={outside} axis_dim={length}")
        raise IndexError("index out of range in self")
    return run(index_select_op, self, index, dim=axis)

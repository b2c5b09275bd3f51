"""Elements written or combined at an index that is laid out like them: along one dimension, or in the flat tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from gviz.engine import messages
from gviz.engine.apply import zeros
from gviz.engine.op import Example, Op, Rule
from gviz.engine.ops.adding import added, places_along
from gviz.engine.ops.examples import normal, spaced
from gviz.engine.ops.gathering import check_bounds, check_flat_index, check_kind, gather_op, take_op
from gviz.engine.ops.shape import normal_dims
from gviz.engine.ops.variants import Prepared, in_both_ways
from gviz.engine.surface import Number
from gviz.engine.tensor import Tensor
from gviz.values import Array

_INDEX = np.array([[0, 0], [2, 1]])
_UNIQUE = np.array([[1, 0], [2, 1]])


def _no_derivative(name: str) -> Callable[..., Any]:
    def vjp(g: Any) -> NoReturn:
        raise RuntimeError(messages.NOT_IMPLEMENTED.format(name=name))

    return vjp


def _combined(self: Array, index: Array, src: Any, dim: int, how: Callable[..., None]) -> Array:
    """A copy of `self` in which `how` combined places, given as flat positions, with what `src` has for them."""
    result = np.array(self, order="C")
    own, index = np.atleast_1d(result), np.atleast_1d(index)
    if np.ndim(src):
        src = src[tuple([slice(n) for n in index.shape])].reshape(-1)
    places = places_along(index, own.shape, dim)
    how(own.reshape(-1), np.broadcast_to(places, index.shape).reshape(-1), src)
    return result


def _write(flat: Array, places: Array, src: Any) -> None:
    flat[places] = src


def _add(flat: Array, places: Array, src: Any) -> None:
    flat += added(len(flat), places, np.broadcast_to(np.asarray(src, flat.dtype), places.shape))


def _multiply(flat: Array, places: Array, src: Any) -> None:
    np.multiply.at(flat, places, src)


_REDUCE = {"add": _add, "multiply": _multiply}

scatter_op: Op = Op(
    "scatter(self, src, index, *, dim)",
    grad_fn="ScatterBackward0",
    formula="self with src at index along dim",
    forward=lambda self, src, index, dim: _combined(self, index, src, dim, _write),
    rules=(
        Rule("self", "g, 0 at index", lambda g, index, dim: scatter_value(g, index, dim=dim, value=0)),
        Rule("src", "g at index", lambda g, index, dim: gather_op(g, index, dim=dim)),
    ),
    public=False,
    torch="scatter",
    overlap="apart",
    examples=lambda: [Example((normal(2, 3), normal(2, 2), _UNIQUE), {"dim": 1})],
)
scatter_value: Op = Op(
    "scatter(self, index, *, dim, value)",
    grad_fn="ScatterBackward1",
    formula="self with value at index along dim",
    forward=lambda self, index, dim, value: _combined(self, index, value, dim, _write),
    rules=(Rule("self", "g, 0 at index", lambda g, index, dim: scatter_value(g, index, dim=dim, value=0)),),
    public=False,
    torch="scatter",
    overlap="apart",
    examples=lambda: [Example((normal(2, 3), _INDEX), {"dim": 1, "value": 1.5})],
)
scatter_combined: Op = Op(
    "scatter(self, src, index, *, dim, reduce)",
    grad_fn="NotImplemented",
    formula="self combined with src at index along dim",
    forward=lambda self, src, index, dim, reduce: _combined(self, index, src, dim, _REDUCE[reduce]),
    rules=(Rule("self", "none", _no_derivative("scatter")), Rule("src", "none", _no_derivative("scatter"))),
    public=False,
    overlap="apart",
)
scatter_value_combined: Op = Op(
    "scatter(self, index, *, dim, value, reduce)",
    grad_fn="NotImplemented",
    formula="self combined with value at index along dim",
    forward=lambda self, index, dim, value, reduce: _combined(self, index, value, dim, _REDUCE[reduce]),
    rules=(Rule("self", "none", _no_derivative("scatter")),),
    public=False,
    overlap="apart",
)
scatter_add_op: Op = Op(
    "scatter_add(self, src, index, *, dim)",
    grad_fn="ScatterAddBackward0",
    formula="self with src added at index along dim",
    forward=lambda self, src, index, dim: _combined(self, index, src, dim, _add),
    rules=(
        Rule("self", "g", lambda g: g),
        Rule("src", "g at index", lambda g, index, dim: gather_op(g, index, dim=dim)),
    ),
    public=False,
    torch="scatter_add",
    overlap="apart",
    examples=lambda: [Example((normal(2, 3), normal(2, 2), _INDEX), {"dim": 1})],
)
put_op: Op = Op(
    "put(self, index, source, *, accumulate=False)",
    grad_fn="PutBackward0",
    formula="self with source at the flat positions index",
    forward=lambda self, index, source, accumulate: _put(self, index, source, accumulate),
    rules=(
        Rule("self", "g, 0 at index unless accumulated", lambda g, index, accumulate: _unput(g, index, accumulate)),
        Rule("source", "g at index", lambda g, index, source: _as(take_op(g, index), source)),
    ),
    public=False,
    torch="put",
    overlap="apart",
    examples=lambda: [
        Example((normal(2, 3), np.array([0, -1]), normal(2)), {"accumulate": False}),
        Example((normal(2, 3), np.array([4, 4]), spaced(2)), {"accumulate": True}),
    ],
)


def _put(self: Array, index: Array, source: Array, accumulate: bool) -> Array:
    result = np.array(self, order="C")
    places = np.reshape(index, -1) % max(self.size, 1)
    (_add if accumulate else _write)(result.reshape(-1), places, np.reshape(source, -1))
    return result


def _unput(g: Any, index: Any, accumulate: bool) -> Any:
    return g if accumulate else put_op(g, index, zeros(g, tuple(index.shape)), accumulate=False)


def _as(g: Any, source: Any) -> Any:
    return g.reshape(source.shape)


def check_places(self: Tensor, dim: int, index: Tensor, src: Tensor | None, *, name: str) -> int:
    """`dim` counted from 0. An error, in PyTorch's words, for an index or source that does not fit `self`."""
    (axis,) = normal_dims(dim, self.ndim)
    check_kind(name, index)
    if src is not None and src.dtype is not self.dtype:
        raise RuntimeError(f"{name}(): Expected self.dtype to be equal to src.dtype")
    if index._array.size:
        _check_shapes(self, axis, index, src)
    return axis


def bounds(self: Tensor, index: Tensor, axis: int) -> Callable[[], None]:
    """The check that an index along a dimension names what is there. RuntimeError, in PyTorch's words."""
    return lambda: check_bounds(index, self.shape[axis] if self.ndim else 1, axis)


def _check_shapes(self: Tensor, axis: int, index: Tensor, src: Tensor | None) -> None:
    for name, tensor in (("self", self), ("src", src)):
        if tensor is not None and max(index.ndim, 1) != max(tensor.ndim, 1):
            raise RuntimeError(f"Index tensor must have the same number of dimensions as {name} tensor")
    wide = [d for d in range(min(index.ndim, self.ndim)) if d != axis and index.shape[d] > self.shape[d]]
    beyond = src is not None and any(n > m for n, m in zip(index.shape, src.shape, strict=False))
    if wide or beyond:
        also = "" if src is None else f" and to be no larger size than src {list(src.shape)}"
        raise RuntimeError(
            f"Expected index {list(index.shape)} to be no larger than self {list(self.shape)} apart from dimension "
            f"{axis}{also}"
        )


@in_both_ways("scatter")
def scatter(
    self: Tensor,
    dim: int,
    index: Tensor,
    src: Tensor | Number | None = None,
    *,
    value: Number | None = None,
    reduce: str | None = None,
) -> Prepared:
    """`src` or a number written, or with `reduce` added or multiplied, at the places `index` names along `dim`."""
    source = value if src is None else src
    if reduce not in (None, "add", "multiply"):
        raise RuntimeError("reduce argument must be either add or multiply.")
    axis = check_places(self, dim, index, source if isinstance(source, Tensor) else None, name="scatter")
    check = bounds(self, index, axis)
    if isinstance(source, Tensor):
        if reduce is None:
            return scatter_op, (self, source, index), {"dim": axis}, check
        return scatter_combined, (self, source, index), {"dim": axis, "reduce": reduce}, check
    if reduce is None:
        return scatter_value, (self, index), {"dim": axis, "value": source}, check
    return scatter_value_combined, (self, index), {"dim": axis, "value": source, "reduce": reduce}, check


@in_both_ways("scatter_add")
def scatter_add(self: Tensor, dim: int, index: Tensor, src: Tensor) -> Prepared:
    """`src` added at the places `index` names along `dim`."""
    axis = check_places(self, dim, index, src, name="scatter")
    return scatter_add_op, (self, src, index), {"dim": axis}, bounds(self, index, axis)


@in_both_ways("put")
def put(self: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Prepared:
    """`source` written or added at the places `index` names in the flat tensor."""
    if index.dtype.name == "int64" and source.dtype is not self.dtype:
        raise RuntimeError(
            "put_(): self and source expected to have the same dtype, but got self.dtype = "
            f"{self.dtype.tensor_type} and source.dtype = {source.dtype.tensor_type}"
        )
    if index._array.size != source._array.size:
        raise IndexError(
            "put_(): Expected source and index to have the same number of elements, but got source.numel() = "
            f"{source._array.size}, index.numel() = {index._array.size}"
        )
    return put_op, (self, index, source), {"accumulate": accumulate}, lambda: check_flat_index("put_", self, index)

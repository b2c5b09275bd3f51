"""Elements combined at an index along one dimension by a reduction: sum, product, mean, largest, smallest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gviz.engine import messages
from gviz.engine.apply import broadcast_error, zeros
from gviz.engine.op import Example, Op, Rule
from gviz.engine.ops.adding import places_along
from gviz.engine.ops.comparison import where_op
from gviz.engine.ops.entries import check_entries
from gviz.engine.ops.examples import positive, spaced
from gviz.engine.ops.gathering import gather_op
from gviz.engine.ops.kernels import refuse_unless
from gviz.engine.ops.masking import fill_where
from gviz.engine.ops.scattering import bounds, check_places, scatter_add_op, scatter_value
from gviz.engine.ops.variants import Prepared, in_both_ways
from gviz.engine.tensor import Tensor, new_tensor
from gviz.values import Array

_UFUNC = {"sum": np.add, "mean": np.add, "prod": np.multiply, "amax": np.maximum, "amin": np.minimum}
_INDEX = np.array([[0, 0, 2], [2, 1, 2]])


def _neutral(reduce: str, kind: np.dtype[Any]) -> Any:
    if reduce in ("sum", "mean", "prod"):
        return int(reduce == "prod")
    if kind.kind == "b":
        return reduce == "amin"
    if kind.kind == "f":
        return -np.inf if reduce == "amax" else np.inf
    return np.iinfo(kind).min if reduce == "amax" else np.iinfo(kind).max


def _reduced(self: Array, src: Array, index: Array, dim: int, reduce: str, include_self: bool) -> Array:
    refuse_unless(self.dtype.kind != "b" or reduce != "mean", "scatter_gather_tensor_cpu_reduce_mean", self)
    result = np.array(self, order="C")
    own, index = np.atleast_1d(result), np.atleast_1d(index)
    flat = own.reshape(-1)
    places = np.broadcast_to(places_along(index, own.shape, dim), index.shape).reshape(-1)
    values = np.atleast_1d(src)[tuple([slice(n) for n in index.shape])].reshape(-1)
    if not include_self:
        flat[places] = _neutral(reduce, flat.dtype)
    _UFUNC[reduce].at(flat, places, values)
    if reduce == "mean":
        counts = np.bincount(places, minlength=len(flat)) + include_self
        (np.divide if flat.dtype.kind == "f" else np.floor_divide)(
            flat, np.maximum(counts, 1), out=flat, casting="unsafe"
        )
    return result


def _backward(
    g: Any, self: Any, index: Any, src: Any, result: Any, dim: int, reduce: str, include_self: bool
) -> tuple[Any, Any]:
    if reduce in ("prod", "amax", "amin") and tuple(src.shape) != tuple(index.shape):
        raise RuntimeError(broadcast_error(tuple(src.shape), tuple(index.shape)))
    to_self, to_src = _BACKWARD[reduce](g, self, index, src, result, dim, include_self)
    return to_self if include_self else scatter_value(to_self, index, dim=dim, value=0), to_src


def _sum_backward(g: Any, self: Any, index: Any, src: Any, result: Any, dim: int, include: bool) -> tuple[Any, Any]:
    return g, gather_op(g, index, dim=dim)


def _mean_backward(g: Any, self: Any, index: Any, src: Any, result: Any, dim: int, include: bool) -> tuple[Any, Any]:
    nothing = zeros(g, tuple(self.shape))
    counts = scatter_add_op(nothing + int(include), zeros(g, tuple(index.shape)) + 1, index, dim=dim)
    counts = fill_where(counts, counts == 0, value=1)
    return g / counts, gather_op(g, index, dim=dim) / gather_op(counts, index, dim=dim)


def _extreme_backward(g: Any, self: Any, index: Any, src: Any, result: Any, dim: int, include: bool) -> tuple[Any, Any]:
    nothing = zeros(g, ())
    self_wins = where_op(self == result, nothing + 1, nothing)
    src_wins = where_op(src == gather_op(result, index, dim=dim), nothing + 1, nothing)
    shared = g / scatter_add_op(self_wins, src_wins, index, dim=dim)
    return self_wins * shared, src_wins * gather_op(shared, index, dim=dim)


def _product_backward(g: Any, self: Any, index: Any, src: Any, result: Any, dim: int, include: bool) -> tuple[Any, Any]:
    """As PyTorch: the product without a factor is the product divided by it, or for a zero the product without it."""

    def product(own: Any, factors: Any) -> Any:
        return scatter_reduce_op(own, factors, index, dim=dim, reduce="prod", include_self=include)

    own = fill_where(self, self == 0, value=1)
    is_zero = src == 0
    nothing = zeros(g, ())
    ones_at_zeros = where_op(is_zero, nothing + 1, nothing)
    zeros_at = scatter_add_op(zeros(g, tuple(self.shape)), ones_at_zeros, index, dim=dim)
    alone = ones_at_zeros * gather_op(zeros_at, index, dim=dim) == 1
    without = gather_op(g * product(self, fill_where(src, alone, value=1)), index, dim=dim)
    divided = gather_op(g * result, index, dim=dim) / fill_where(src, is_zero, value=1)
    return g * product(own, src) / own, where_op(alone, without, divided)


_BACKWARD = {
    "sum": _sum_backward,
    "mean": _mean_backward,
    "prod": _product_backward,
    "amax": _extreme_backward,
    "amin": _extreme_backward,
}


def _examples() -> Sequence[Example]:
    attrs = [(reduce, include) for reduce in _UFUNC for include in (True, False)]
    tensors = [positive(2, 3) if reduce == "prod" else spaced(4, 3) for reduce, _ in attrs]
    return [
        Example((t[:2], (t + 0.1)[-2:], _INDEX), {"dim": 1, "reduce": reduce, "include_self": include})
        for t, (reduce, include) in zip(tensors, attrs, strict=True)
    ]


scatter_reduce_op: Op = Op(
    "scatter_reduce(self, src, index, *, dim, reduce, include_self=True)",
    grad_fn="ScatterReduceBackward0",
    formula="self reduced with src at index along dim",
    forward=_reduced,
    rules=(Rule("self, src", "g by its share in result; g at index by its share in result", _backward),),
    public=False,
    torch="scatter_reduce",
    overlap="apart",
    examples=_examples,
)


def _along(index: Any, shape: tuple[int, ...], dim: int) -> Any:
    """An index along one dimension as one for each element: what it is to a scatter."""
    index = index._array if isinstance(index, Tensor) else index
    if not shape:
        return index.reshape(())
    return np.broadcast_to(index.reshape([-1 if d == dim else 1 for d in range(len(shape))]), shape)


def _reduced_entries(
    self: Array, source: Array, index: Array, dim: int, reduce: str, include_self: bool = True
) -> Array:
    messages.warn_once(messages.BETA.format(name="index_reduce"))
    if index.size and self.ndim and not self.shape[dim]:
        if not include_self:
            raise RuntimeError("setStorage: the entries that the index names are out of bounds for storage of size 0")
        raise IndexError(f"select(): index 0 out of range for tensor of size {list(self.shape)} at dimension {dim}")
    if not ((index >= 0) & (index < (self.shape[dim] if self.ndim else 1))).all():
        raise IndexError("index out of range in self")
    refuse_unless(self.dtype.kind != "b" or reduce != "mean", "div_floor_cpu", self)
    return _reduced(self, source, _along(index, source.shape, dim), dim, reduce, include_self)


def _entries_backward(
    g: Any, self: Any, index: Any, source: Any, result: Any, dim: int, reduce: str, include_self: bool
) -> tuple[Any, Any]:
    places = _along(index, tuple(source.shape), dim)
    if reduce == "prod":
        messages.warn_once(messages.BETA.format(name="index_reduce"))
    whole = new_tensor(places.copy()) if isinstance(g, Tensor) else places
    return _backward(g, self, whole, source, result, dim, reduce, include_self)


index_reduce_op: Op = Op(
    "index_reduce(self, source, index, *, dim, reduce, include_self=True)",
    grad_fn="IndexReduceBackward0",
    formula="self reduced with source at the entries index of dim",
    forward=_reduced_entries,
    rules=(Rule("self, source", "g by its share in result; entries index of g by their share", _entries_backward),),
    public=False,
    torch="index_reduce",
    overlap="apart",
    examples=lambda: [
        Example((e.tensors[0], (e.tensors[0] + 0.1)[:, :2], np.array([2, 0])), e.attrs)
        for e in _examples()
        if e.attrs["reduce"] != "sum"
    ],
)


@in_both_ways("index_reduce")
def index_reduce(
    self: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Prepared:
    """`source` combined by prod, mean, amax or amin with the entries of `dim` that `index` names."""
    if reduce == "sum" or reduce not in _UFUNC:
        raise RuntimeError(f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}.")
    axis = check_entries("index_reduce_", self, dim, index, source)
    return index_reduce_op, (self, source, index), {"dim": axis, "reduce": reduce, "include_self": include_self}


@in_both_ways("scatter_reduce")
def scatter_reduce(
    self: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Prepared:
    """`src` combined by sum, prod, mean, amax or amin at the places `index` names along `dim`."""
    if reduce not in _UFUNC:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    axis = check_places(self, dim, index, src, name="scatter")
    attrs = {"dim": axis, "reduce": reduce, "include_self": include_self}
    return scatter_reduce_op, (self, src, index), attrs, bounds(self, index, axis)

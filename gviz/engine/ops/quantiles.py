"""Quantiles: the values below which given parts of the elements lie."""

from __future__ import annotations

from typing import Any

import numpy as np

from gviz.engine import dtypes
from gviz.engine.ops.comparison import where
from gviz.engine.ops.dims import numpy_names, one_dim
from gviz.engine.ops.gathering import gather_op
from gviz.engine.surface import Number, front, number
from gviz.engine.tensor import Tensor


@front("quantile")
@numpy_names
def quantile(
    input: Tensor, q: Tensor | Number, dim: int | None = None, keepdim: bool = False, *, interpolation: Any = None
) -> Tensor:
    """The values below which the parts `q` of the elements lie. They are between two by ``linear`` interpolation."""
    return _quantile("quantile", input, q, dim, keepdim, interpolation or "linear")


@front("nanquantile")
@numpy_names
def nanquantile(
    input: Tensor, q: Tensor | Number, dim: int | None = None, keepdim: bool = False, *, interpolation: Any = None
) -> Tensor:
    """`quantile` of the elements that are numbers."""
    return _quantile("nanquantile", input, q, dim, keepdim, interpolation or "linear")


MODES = ("linear", "lower", "higher", "midpoint", "nearest")


def _quantile(
    name: str, self: Tensor, q: Tensor | Number, dim: int | None, keepdim: bool, interpolation: str
) -> Tensor:
    parts = q if isinstance(q, Tensor) else number(q, self._array)
    _check_quantile(self, parts, interpolation)
    axis = None if dim is None else one_dim(dim, self.ndim)
    ordered = _ordered(self, axis)
    ordered = ordered.view(*_shape(self, axis, keepdim), ordered.shape[-1] if ordered.ndim else 1)
    result = _interpolated(ordered, parts, name, interpolation)
    return result.unsqueeze_(0).transpose_(0, -1).squeeze_(-1) if parts.ndim else result.squeeze_(-1)


def _ordered(self: Tensor, axis: int | None) -> Tensor:
    """The elements in order along the last dimension."""
    lines = self.flatten() if axis is None else self
    if axis is not None and axis < self.ndim - 1:
        lines = self.unsqueeze(-1).transpose(axis, -1)
    values: Tensor = lines.sort().values
    return values


def _shape(self: Tensor, axis: int | None, keepdim: bool) -> list[int]:
    """The shape of one quantile."""
    if axis is None or not self.ndim:
        return [1] * self.ndim if keepdim else []
    kept = [1] if keepdim else []
    return [*self.shape[:axis], *kept, *self.shape[axis + 1 :]]


def _check_quantile(self: Tensor, q: Tensor, interpolation: str) -> None:
    if not self.numel():
        raise RuntimeError("quantile() input tensor must be non-empty")
    if q.ndim > 1:
        raise RuntimeError("quantile() q must be a scalar or 1D tensor")
    if self.dtype not in (dtypes.float32, dtypes.float64):
        raise RuntimeError("quantile() input tensor must be either float or double dtype")
    if self.dtype is not q.dtype:
        raise RuntimeError("quantile() q tensor must be same dtype as the input tensor")
    if interpolation not in MODES:
        listed = "linear, lower, higher, midpoint or nearest"
        raise RuntimeError(f"quantile() interpolation must be one of {listed}, but got {interpolation}")
    if not np.all((q._array >= 0) & (q._array <= 1)):
        words = "values must be in the range [0, 1]" if q.ndim else f"must be in the range [0, 1] but got {q.item():g}"
        raise RuntimeError(f"quantile() q {words}")


def _interpolated(ordered: Tensor, q: Tensor, name: str, interpolation: str) -> Tensor:
    """For each line of `ordered`, the values at the places that the parts `q` mean."""
    parts = q.detach().reshape(-1)
    nan = ordered.detach().isnan()
    if name == "nanquantile":
        ranks = parts * (nan.logical_not().sum(-1, keepdim=True) - 1)
        ranks = ranks.clamp(min=0)
    else:
        last = ordered.shape[-1] - 1
        ranks = (parts * last).expand(*ordered.shape[:-1], parts.numel())
        ranks = where(nan.any(-1, keepdim=True), float(last), ranks)
    if interpolation in ("lower", "higher", "nearest"):
        return _gathered(ordered, _whole(ranks, interpolation))
    below = _gathered(ordered, ranks)
    weights = ranks - ranks.floor() if interpolation == "linear" else ranks * 0 + 0.5
    above = _gathered(ordered, ranks.ceil())
    result: Tensor = below.lerp_(above, weights)
    return result


def _gathered(ordered: Tensor, ranks: Tensor) -> Tensor:
    result: Tensor = gather_op(ordered, ranks.long(), dim=ordered.ndim - 1)
    return result


def _whole(ranks: Tensor, how: str) -> Tensor:
    return ranks.floor() if how == "lower" else ranks.ceil() if how == "higher" else ranks.round()

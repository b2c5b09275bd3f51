"""Which values there are, and how often."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gviz.engine.apply import apply
from gviz.engine.op import Op, Rule
from gviz.engine.ops.dims import one_dim
from gviz.engine.ops.kernels import refuse_unless
from gviz.engine.surface import Number, checked, front
from gviz.engine.tensor import Tensor
from gviz.values import Array


def _unknown(name: str) -> Callable[[Any], Any]:
    def vjp(g: Any) -> Any:
        raise NotImplementedError(f"the derivative for '{name}' is not implemented.")

    return vjp


def _different(self: Array, dim: int | None) -> tuple[Array, Array, Array]:
    values, inverse, counts = np.unique(self, return_inverse=True, return_counts=True, axis=dim, equal_nan=False)
    return values, inverse.reshape(self.shape if dim is None else -1), counts


def _runs(self: Array, dim: int | None) -> tuple[Array, Array, Array]:
    lines = self.ravel() if dim is None else np.moveaxis(self, dim, 0)
    size = len(lines)
    flat = lines.reshape(size, int(np.prod(lines.shape[1:])))
    starts = np.ones(size, np.bool_)
    starts[1:] = np.any(flat[1:] != flat[:-1], axis=1)
    values, inverse = lines[starts], np.cumsum(starts) - 1
    counts = np.diff(np.append(np.flatnonzero(starts), size))
    if dim is None:
        return values, inverse.reshape(self.shape), counts
    return np.moveaxis(values, 0, dim), inverse, counts


def _listing(name: str, grad_fn: str, aten: str, formula: str, forward: Callable[..., Any]) -> Op:
    return Op(
        f"{name}(self, *, dim=None)",
        grad_fn=grad_fn,
        formula=formula,
        forward=forward,
        rules=(Rule("self", "none", _unknown(aten)),),
        outputs=("output", "inverse_indices", "counts"),
        differentiable_outputs=1,
        public=False,
        torch=name,
    )


unique_all = _listing("unique", "Unique2Backward0", "_unique2", "the different values of self", _different)
unique_dim = _listing("unique", "UniqueDimBackward0", "unique_dim", "the different parts of self", _different)
runs = _listing(
    "unique_consecutive",
    "UniqueConsecutiveBackward0",
    "unique_consecutive",
    "self without repetitions in a row",
    _runs,
)


@front("unique")
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The different values in order (or parts along `dim`), where each element is among them, and how often."""
    return _listed(unique_all if dim is None else unique_dim, input, return_inverse, return_counts, dim)


@front("unique_consecutive")
def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """The elements (or parts along `dim`) without those that repeat the one before."""
    return _listed(runs, input, return_inverse, return_counts, dim)


def _listed(op: Op, self: Tensor, inverse: bool, counts: bool, dim: int | None) -> Any:
    if dim is not None and not checked(op, self, 1).ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    axis = None if dim is None else one_dim(dim, self.ndim)
    if axis is not None and 0 in self.shape and self.shape[axis]:
        raise RuntimeError("There are 0 sized dimensions, and they aren't selected, so unique cannot be applied")
    output, inverse_indices, numbers = apply(op, (checked(op, self, 1),), {"dim": axis})
    chosen = [output, *([inverse_indices] if inverse else []), *([numbers] if counts else [])]
    return output if len(chosen) == 1 else tuple(chosen)


def _bincount(self: Array, weights: Array | None, minlength: int) -> Array:
    refuse_unless(self.dtype.kind in "ui", "bincount_cpu", self)
    if self.ndim != 1 or np.any(self < 0):
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if weights is None:
        return np.bincount(self, None, minlength)
    if weights.shape != self.shape:
        raise RuntimeError("weights should be 1-d and have the same length as input")
    kind = weights.dtype if weights.dtype == np.float32 else np.dtype(np.float64)
    counted: Array = np.bincount(self, weights.astype(np.float64), minlength)
    return counted.astype(kind)


bincount_op: Op = Op(
    "bincount(self, weights?, *, minlength=0)",
    grad_fn="",
    formula="how often each number is in self",
    forward=_bincount,
    public=False,
)


@front("bincount")
def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """How often each number from 0 on is in `input`, or the sum of its `weights`."""
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    op, tensors = bincount_op.present((checked(bincount_op, input, 1), weights))
    result: Tensor = apply(op, tensors, {"minlength": minlength})
    return result


def _histc(self: Array, bins: int, min: Number, max: Number) -> Array:
    refuse_unless(self.dtype.kind != "b", "linspace_cpu", self)
    refuse_unless(self.dtype.kind == "f", "histogram_cpu", self)
    low, high = (min, max) if min != max or not self.size else (self.min(), self.max())
    if low == high:
        low, high = low - 1, high + 1
    if not np.isfinite([low, high]).all():
        raise RuntimeError(f"torch.histc: range of [{low:g}, {high:g}] is not finite")
    return np.histogram(self, bins, (low, high))[0].astype(self.dtype)


histc_op: Op = Op(
    "histc(self, *, bins=100, min=0, max=0)",
    grad_fn="",
    formula="how many elements are in each of bins between min and max",
    forward=_histc,
    public=False,
)


@front("histc")
def histc(input: Tensor, bins: int = 100, min: Number = 0, max: Number = 0) -> Tensor:
    """How many elements are in each of `bins` equal parts between `min` and `max` (between their own, if equal)."""
    if bins <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0")
    if min > max:
        raise RuntimeError("torch.histc: max must be larger than min")
    result: Tensor = apply(histc_op, (checked(histc_op, input, 1),), {"bins": bins, "min": min, "max": max})
    return result

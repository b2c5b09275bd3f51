"""Sorted elements, positions in an order, and distinct values: ``sort``, ``topk``, ``searchsorted``, ``unique``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gviz.engine import dtypes, messages
from gviz.engine.functions_and_methods import Number, checked, front, number
from gviz.engine.op import Example, Op, Rule, apply
from gviz.engine.ops._examples import spaced
from gviz.engine.ops._kernels import laid_out_as, refuse_unless
from gviz.engine.ops.extremes import at_indices
from gviz.engine.ops.shape import one_dim
from gviz.engine.tensor import Tensor
from gviz.values.value import Array

# ----------------------------------------------------------------------------------------------------------------------
# Sorted elements, and positions in an order.


def _order(self: Array, dim: int, descending: bool) -> Array:
    """Return the indices that sort the elements: stable, with nan largest."""
    if not descending:
        return np.argsort(self, dim, kind="stable")
    backwards = np.argsort(np.flip(self, dim), dim, kind="stable")
    order: Array = np.flip(self.shape[dim] - 1 - backwards, dim)
    return order


def _sorted(self: Array, dim: int, descending: bool) -> tuple[Array, Array]:
    if not self.ndim:
        return self.copy(), np.zeros((), np.int64)
    order = _order(self, dim, descending)
    return laid_out_as(self, np.take_along_axis(self, order, dim)), laid_out_as(self, order)


def _back(g: Any, indices: Any, self_sym_sizes: tuple[int, ...], dim: int) -> Any:
    return at_indices(g, indices, self_sym_sizes, dim, True)


def _sort(grad_fn: str) -> Op:
    return Op(
        "sort(self, *, dim, descending)",
        grad_fn=grad_fn,
        formula="self in order along dim",
        forward=_sorted,
        rules=(Rule("self", "g at indices", _back),),
        outputs=("values", "indices"),
        differentiable_outputs=1,
        named=True,
        public=False,
        torch="sort" if grad_fn == "SortBackward0" else "",
        examples=lambda: [
            Example((spaced(2, 3),), {"dim": 1, "descending": False}),
            Example((spaced(2, 3),), {"dim": 0, "descending": True}),
            Example((spaced(),), {"dim": 0, "descending": False}),
        ],
    )


sort_op, stable_sort = _sort("SortBackward0"), _sort("SortBackward1")


def _topk(self: Array, k: int, dim: int, largest: bool) -> tuple[Array, Array]:
    values, order = _sorted(self, dim, largest)
    if not self.ndim:
        return values, order
    first = np.arange(k)
    return values.take(first, dim), order.take(first, dim)


topk_op: Op = Op(
    "topk(self, *, k, dim, largest)",
    grad_fn="TopkBackward0",
    formula="the top k of self along dim",
    forward=_topk,
    rules=(Rule("self", "g at indices, else 0", _back),),
    outputs=("values", "indices"),
    differentiable_outputs=1,
    named=True,
    public=False,
    torch="topk",
    differs="which of equal elements are taken is not specified by PyTorch; here the first",
    examples=lambda: [
        Example((spaced(2, 3),), {"k": 2, "dim": 1, "largest": True}),
        Example((spaced(2, 3),), {"k": 1, "dim": 0, "largest": False}),
    ],
)


@front("sort")
def sort(input: Tensor, dim: int | bool = -1, descending: bool = False, *, stable: bool | None = None) -> Any:
    """`input` sorted along `dim`, and the indices of its elements."""
    axis = one_dim(dim, checked(sort_op, input, 1).ndim)
    return apply(sort_op if stable is None else stable_sort, (input,), {"dim": axis, "descending": bool(descending)})


@front("msort")
def msort(input: Tensor) -> Tensor:
    """`input` sorted along its first dimension."""
    result: Tensor = sort(input, 0)[0]
    return result


@front("argsort")
def argsort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
    """The indices that sort the elements along `dim`."""
    result: Tensor = sort(input, dim, descending, stable=stable or None)[1]
    return result


@front("topk")
def topk(input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """The `k` largest (or smallest) elements along `dim`, sorted, and their indices."""
    axis = one_dim(dim, checked(topk_op, input, 1).ndim)
    if not 0 <= k <= (input.shape[axis] if input.ndim else 1):
        raise RuntimeError("selected index k out of range")
    if input._array.dtype.kind == "b":
        raise RuntimeError("topk does not support bool dtypes on CPU")
    return apply(topk_op, (input,), {"k": k, "dim": axis, "largest": largest})


def _searched(self: Array, values: Array, right: bool) -> Array:
    refuse_unless(self.dtype.kind != "b" or values.dtype.kind != "b", "searchsorted_out_cpu", self)
    side: Any = "right" if right else "left"
    if self.ndim == 1:
        return np.asarray(np.searchsorted(self, values, side))
    positions = np.zeros(values.shape, np.int64)
    for place in np.ndindex(self.shape[:-1]):
        positions[place] = np.searchsorted(self[place], values[place], side)
    return positions


searchsorted_op: Op = Op(
    "searchsorted(self, values, *, right)",
    grad_fn="",
    formula="where values belong in self",
    forward=_searched,
    public=False,
)


@front("searchsorted", method=False)
def searchsorted(
    sorted_sequence: Tensor,
    input: Tensor | Number,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Tensor:
    """The positions where the elements of `input` would be inserted in `sorted_sequence`, along the last dimension."""
    values = input if isinstance(input, Tensor) else number(input, sorted_sequence._array)
    _check_search(sorted_sequence, values, right, side)
    for name, tensor in (("input value", values), ("boundary", sorted_sequence)):
        if not tensor._array.flags.c_contiguous:
            messages.warn_once(messages.SEARCH_WITH_GAPS.format(name=name))
    ordered = sorted_sequence if sorter is None else sorted_sequence.detach().gather(-1, sorter)
    result: Tensor = apply(searchsorted_op, (ordered, values), {"right": right or side == "right"})
    return result.to(dtypes.int32) if out_int32 else result


@front("bucketize", method=False)
def bucketize(input: Tensor | Number, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
    """The number of the bucket between `boundaries` for each element of `input`."""
    if boundaries.ndim != 1:
        raise RuntimeError(f"boundaries tensor must be 1 dimension, but got dim({boundaries.ndim})")
    return searchsorted(boundaries, input, out_int32=out_int32, right=right)


def _check_search(ordered: Tensor, values: Tensor, right: bool, side: str | None) -> None:
    if side not in (None, "left", "right"):
        raise RuntimeError(f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}")
    if right and side == "left":
        raise RuntimeError(
            "torch.searchsorted(): side and right can't be set to opposites, got side of left while right was True"
        )
    if ordered.ndim != 1 and ordered.shape[:-1] != values.shape[:-1]:
        raise RuntimeError(
            "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries "
            f"tensor and input value tensor must match, but we got boundaries tensor {list(ordered.shape)} and input "
            f"value tensor {list(values.shape)}"
        )


# ----------------------------------------------------------------------------------------------------------------------
# Distinct values, and their counts.


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
    """The distinct values, sorted (or slices along `dim`); the index of each element among them, and their counts."""
    return _listed(unique_all if dim is None else unique_dim, input, return_inverse, return_counts, dim)


@front("unique_consecutive")
def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """The elements (or slices along `dim`) without consecutive repetitions."""
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
    """The count of each number from 0 on in `input`, or the sum of its `weights`."""
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
    """The number of elements in each of `bins` equal intervals between `min` and `max` (their own range, if equal)."""
    if bins <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0")
    if min > max:
        raise RuntimeError("torch.histc: max must be larger than min")
    result: Tensor = apply(histc_op, (checked(histc_op, input, 1),), {"bins": bins, "min": min, "max": max})
    return result

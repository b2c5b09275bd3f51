"""Elements in order, and where a value belongs in an order."""

from __future__ import annotations

from typing import Any

import numpy as np

from gviz.engine import dtypes, messages
from gviz.engine.apply import apply
from gviz.engine.op import Example, Op, Rule
from gviz.engine.ops.dims import one_dim
from gviz.engine.ops.examples import spaced
from gviz.engine.ops.extremes import at_indices
from gviz.engine.ops.kernels import laid_out_as, refuse_unless
from gviz.engine.surface import Number, checked, front, number
from gviz.engine.tensor import Tensor
from gviz.values import Array


def _order(self: Array, dim: int, descending: bool) -> Array:
    """Where the elements in order are: equal ones as they stood, nan largest."""
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
    """`input` in order along `dim`, and where its elements were."""
    axis = one_dim(dim, checked(sort_op, input, 1).ndim)
    return apply(sort_op if stable is None else stable_sort, (input,), {"dim": axis, "descending": bool(descending)})


@front("msort")
def msort(input: Tensor) -> Tensor:
    """`input` in order along its first dimension."""
    result: Tensor = sort(input, 0)[0]
    return result


@front("argsort")
def argsort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
    """Where the elements in order along `dim` are."""
    result: Tensor = sort(input, dim, descending, stable=stable or None)[1]
    return result


@front("topk")
def topk(input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """The `k` largest (or smallest) elements along `dim` in order, and where they are."""
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
    found = np.zeros(values.shape, np.int64)
    for place in np.ndindex(self.shape[:-1]):
        found[place] = np.searchsorted(self[place], values[place], side)
    return found


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
    """Where the elements of `input` belong in the order of `sorted_sequence`, along its last dimension."""
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
    """Which of the buckets between `boundaries` the elements of `input` are in."""
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

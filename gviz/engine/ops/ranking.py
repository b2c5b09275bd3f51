"""Elements by their rank: medians, the k-th smallest, the most frequent, quantiles."""

from __future__ import annotations

from typing import Any

import numpy as np

from gviz.engine.apply import apply
from gviz.engine.ops.dims import numpy_names, one_dim
from gviz.engine.ops.extremes import extreme_of_all, picked, picking
from gviz.engine.ops.kernels import refuse_unless
from gviz.engine.surface import checked, front
from gviz.engine.tensor import Tensor
from gviz.values import Array


def _ranked(self: Array, dim: int, rank: Any) -> Array:
    """Where the element of this rank along `dim` is; nan are largest, of equals the first is smaller."""
    order = np.argsort(self, dim, kind="stable")
    place: Array = np.take_along_axis(order, np.broadcast_to(rank, _single(self, dim)), dim).squeeze(dim)
    return place


def _single(self: Array, dim: int) -> tuple[int, ...]:
    return (*self.shape[:dim], 1, *self.shape[dim + 1 :])


def _numbers(self: Array, dim: int) -> Array:
    count: Array = np.sum(~np.isnan(self), dim, keepdims=True)
    return count


def _median_place(self: Array, dim: int) -> Array:
    """The lower of two in the middle; the first nan if there is one."""
    refuse_unless(self.dtype.kind != "b", "median_out", self)
    count = _numbers(self, dim)
    size = self.shape[dim]
    return _ranked(self, dim, np.where(count < size, np.minimum(count, size - 1), (size - 1) // 2))


def _nanmedian_place(self: Array, dim: int) -> Array:
    refuse_unless(self.dtype.kind != "b", "median_out", self)
    return _ranked(self, dim, np.maximum(_numbers(self, dim) - 1, 0) // 2)


def _of_all(place: Any) -> Any:
    def forward(self: Array) -> Any:
        refuse_unless(self.dtype.kind != "b", "median_cpu", self)
        flat = self.ravel()
        if not flat.size:
            return np.array(np.nan).astype(self.dtype)
        return flat[place(flat, 0)]

    return forward


def _kth_place(self: Array, dim: int, k: int) -> Array:
    refuse_unless(self.dtype.kind != "b", "kthvalue_cpu", self)
    if not self.size:
        return np.zeros((*self.shape[:dim], *self.shape[dim + 1 :]), np.int64)
    return np.apply_along_axis(_selected, dim, self, k - 1)


def _selected(line: Array, rank: int) -> int:
    """Where the element of this rank is; of equal ones the one that PyTorch's selection comes upon."""
    chosen = int(np.argsort(line, kind="stable")[rank])
    same = np.isnan(line) if line[chosen] != line[chosen] else line == line[chosen]
    return chosen if np.count_nonzero(same) == 1 else _quickselected(line.tolist(), rank)


def _quickselected(values: list[float], rank: int) -> int:
    """PyTorch's quickselect, step by step; nan counts as largest."""
    order = list(range(len(values)))

    def above(a: int, b: int) -> bool:
        x, y = values[order[a]], values[order[b]]
        return x > y or (x != x and y == y)

    def swap(a: int, b: int) -> None:
        order[a], order[b] = order[b], order[a]

    left, right = 0, len(values) - 1
    while right > left + 1:
        swap(left + (right - left) // 2, left + 1)
        for a, b in ((left + 1, right), (left, right), (left + 1, left)):
            if above(a, b):
                swap(a, b)
        i, j = left + 1, right
        while True:
            i = next(n for n in range(i + 1, len(order)) if not above(left, n))
            j = next(n for n in range(j - 1, -1, -1) if not above(n, left))
            if j < i:
                break
            swap(i, j)
        swap(left, j)
        left, right = i if j <= rank else left, j - 1 if j >= rank else right
    if right == left + 1 and above(left, right):
        swap(left, right)
    return order[rank]


def _mode_place(self: Array, dim: int) -> Array:
    """Where the most frequent element is for the last time; of equally frequent ones, the smallest."""
    if not self.size:
        return np.zeros((*self.shape[:dim], *self.shape[dim + 1 :]), np.int64)
    return np.apply_along_axis(_most_frequent, dim, self)


def _most_frequent(line: Array) -> int:
    order = np.argsort(line, kind="stable")
    ordered = line[order]
    ends = np.append(np.flatnonzero(ordered[1:] != ordered[:-1]), len(line) - 1)
    return int(order[ends[np.argmax(np.diff(ends, prepend=-1))]])


median_all = extreme_of_all("median", _of_all(_median_place), "MedianBackward0")
nanmedian_all = extreme_of_all("nanmedian", _of_all(_nanmedian_place), "NanmedianBackward0")
median_dim = picking("median", "MedianBackward1", "median of self over dim", _median_place)
nanmedian_dim = picking("nanmedian", "NanmedianBackward1", "median of the numbers of self over dim", _nanmedian_place)
mode_op = picking("mode", "ModeBackward0", "most frequent element of self over dim", _mode_place)
kthvalue_op = picking("kthvalue", "KthvalueBackward0", "k-th smallest of self over dim", _kth_place, "k, ", k=1)


@front("median")
@numpy_names
def median(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """The median, the lower one of two; with `dim`, values and indices along it."""
    if dim is None:
        return apply(median_all, (checked(median_all, input, 1),))
    return picked(median_dim, input, dim, keepdim)


@front("nanmedian")
@numpy_names
def nanmedian(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """The median of the elements that are numbers."""
    if dim is None:
        return apply(nanmedian_all, (checked(nanmedian_all, input, 1),))
    return picked(nanmedian_dim, input, dim, keepdim)


@front("mode")
@numpy_names
def mode(input: Tensor, dim: int = -1, keepdim: bool = False) -> Any:
    """The most frequent elements along `dim`, and where they are."""
    return picked(mode_op, input, dim, keepdim)


@front("kthvalue")
@numpy_names
def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    """The `k`-th smallest elements along `dim`, and where they are."""
    axis = one_dim(dim, checked(kthvalue_op, input, 1).ndim)
    size = input.shape[axis] if input.ndim else 1
    if size and not 1 <= k <= size:
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {axis}")
    return picked(kthvalue_op, input, dim, keepdim, k=k)

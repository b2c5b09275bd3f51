"""Helpers for forwards on arrays: accepted dtypes, C-ordered results, sums of many values into few places."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from gviz.engine import dtypes
from gviz.engine.broadcasting import broadcast_error
from gviz.engine.memory_format import empty_as
from gviz.values.value import Array

# ----------------------------------------------------------------------------------------------------------------------
# The dtypes that an operation supports, with PyTorch's errors for others; and SciPy's functions, imported late.


Forward = Callable[..., Any]


def only(kinds: str, kernel: str, forward: Forward) -> Forward:
    """`forward` for arrays of these kinds (NumPy's letters).

    Raises NotImplementedError, naming the kernel, for others.
    """

    def checked(self: Array, *others: Array, **attrs: Any) -> Any:
        refuse_unless(self.dtype.kind in kinds, kernel, self)
        return forward(self, *others, **attrs)

    if "f" in kinds:
        checked.__wrapped__ = forward  # type: ignore[attr-defined]  # the function for floating numbers, see `blocks`
    return checked


def refuse_unless(fits: bool, kernel: str, array: Array) -> None:
    """Raises NotImplementedError with PyTorch's text, unless `fits`, for the kernel of this name."""
    if not fits:
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{dtypes.of(array).tensor_type}'")


def in_rows(forward: Forward) -> Forward:
    """`forward` with its result in C order: NumPy keeps the layout of the operands, PyTorch does not always."""

    def laid_out(*arrays: Array, **attrs: Any) -> Array:
        return np.asarray(forward(*arrays, **attrs), order="C")

    return laid_out


def all_in_rows(forward: Forward) -> Forward:
    """`in_rows` for several results."""

    def laid_out(*arrays: Array, **attrs: Any) -> tuple[Array, ...]:
        return tuple([np.asarray(result, order="C") for result in forward(*arrays, **attrs)])

    return laid_out


def laid_out_as(model: Array, array: Array) -> Array:
    """The array in the memory order of `model`."""
    result = empty_as(model, array.dtype)
    result[...] = array
    return result


def check_broadcast(*arrays: Array) -> None:
    """Raises RuntimeError, with PyTorch's text, for arrays that do not broadcast."""
    shape: tuple[int, ...] = ()
    for array in arrays:
        try:
            shape = np.broadcast_shapes(shape, array.shape)
        except ValueError:
            raise RuntimeError(broadcast_error(shape, array.shape)) from None


def at_least(array: Array, low: Any) -> Array:
    """The larger of `array` and `low` for each element, nan where either is; of 0 and -0 the one in `array`."""
    first, second = (array, low) if array.dtype == np.float16 else (low, array)  # which NumPy returns if both are equal
    larger: Array = np.maximum(first, second)
    return larger


def at_most(array: Array, high: Any) -> Array:
    """The smaller of `array` and `high` for each element, like `at_least`."""
    first, second = (array, high) if array.dtype == np.float16 else (high, array)
    smaller: Array = np.minimum(first, second)
    return smaller


def scipy_special(name: str) -> Forward:
    """The function of ``scipy.special``, with the result in the dtype of its last argument, the array."""

    def forward(*args: Any, **attrs: Any) -> Any:
        from scipy import special  # slow to import, and few programs need it

        return np.asarray(getattr(special, name)(*args, **attrs)).astype(args[-1].dtype, copy=False)

    return forward


# ----------------------------------------------------------------------------------------------------------------------
# Sums of many values into few places, where a place may occur several times; used in the backward of gathers.
#
# `numpy.add.at` is correct but slow. Weighted counting is many times faster for single numbers; for rows, sorting and
# summing runs is faster (for 4096 rows of 64: 0.9 ms instead of 2.3).


ROW = 16
"""The width from which rows are added as a whole."""


def added_rows(length: int, index: Array, rows: Array) -> Array:
    """`length` rows of zeros with ``rows[i]`` added to row ``index[i]``, counted from 0."""
    shape = (length, *rows.shape[1:])
    width = prod(shape[1:])
    if rows.dtype.kind == "f" and width < ROW:
        columns = np.arange(width)
        places = index if width == 1 else (index[:, None] * width + columns)
        return added(length * width, places.reshape(-1), rows.reshape(-1)).reshape(shape)
    result = np.zeros(shape, rows.dtype)
    if not len(index):
        return result
    order = np.argsort(index, kind="stable")
    ordered = index[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    kind = None if rows.dtype.kind == "f" else rows.dtype  # passing the dtype makes floats three times as slow
    result[ordered[starts]] = np.add.reduceat(rows[order], starts, axis=0, dtype=kind)
    return result


def added(size: int, places: Array, values: Array) -> Array:
    """`size` zeros with ``values[i]`` added at ``places[i]``; both are flat."""
    if values.dtype.kind == "f":
        return np.bincount(places, values, size).astype(values.dtype, copy=False)
    result = np.zeros(size, values.dtype)
    np.add.at(result, places, values)
    return result


def places_along(index: Array, shape: tuple[int, ...], dim: int) -> Array:
    """The flat positions in `shape` of an index along `dim`, which has as many dimensions and is in bounds."""
    places = np.zeros((1,) * index.ndim, np.intp)
    step = 1
    for d in reversed(range(len(shape))):
        own = index if d == dim else np.arange(index.shape[d]).reshape((-1,) + (1,) * (index.ndim - d - 1))
        places = places + own * step
        step *= shape[d]
    return places

"""Stands in for tensors with only recorded statistics.

Answers what the stored statistics determine; raises NotStored otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from math import nan, sqrt
from typing import Any, Never

import numpy as np

from gviz.errors import NotStored
from gviz.values.value import NUMPY_DTYPES, Stats, Value


class StatisticsProxy(np.lib.mixins.NDArrayOperatorsMixin):
    """Stands for the elements of a tensor in an expression. `of` describes the tensor in the `NotStored` error.

    The minimum, maximum, mean and L2 norm are None if the statistics do not determine them. `recorded` is the tensor's
    value as it was recorded; None for the result of an operation on it.
    """

    recorded: Value | None = None

    def __init__(self, of: str, dtype: np.dtype[Any], shape: tuple[int, ...], stats: Stats) -> None:
        self.of, self.dtype, self.shape = of, dtype, shape
        self.ndim, self.size = len(shape), int(np.prod(shape))
        self.itemsize, self.nbytes = dtype.itemsize, dtype.itemsize * self.size
        self._stats = stats
        self._low, self._high, self._mean = _bounds(stats, dtype)
        self._norm = nan if stats.nan else np.inf if stats.inf else stats.rms * sqrt(self.size) if self.size else 0.0

    def refuse(self, *_: object, **__: object) -> Never:
        """Raise NotStored: the elements are needed."""
        raise NotStored(self.of)

    __array__ = __getitem__ = __iter__ = __contains__ = __bool__ = __float__ = __int__ = refuse

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self.refuse() if name in _ELEMENTS else self.refuse

    def __len__(self) -> int:
        return self.shape[0] if self.shape else self.refuse()

    def __array_function__(self, function: Any, types: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        answer = _ANSWERS.get(function)
        return answer(self) if answer is not None and len(args) == 1 and not named else self.refuse()

    def __array_ufunc__(self, function: np.ufunc, method: str, *args: Any, **named: Any) -> Any:
        answer = _ELEMENTWISE.get(function)
        return answer(self) if answer is not None and method == "__call__" and not named else self.refuse()

    def min(self) -> Any:
        """Return the smallest element."""
        return self._known(self._low)

    def max(self) -> Any:
        """Return the largest element."""
        return self._known(self._high)

    def mean(self) -> float:
        """Return the mean of all elements."""
        return self.refuse() if self._mean is None else self._mean

    def norm(self) -> float:
        """Return the L2 norm of all elements."""
        return self._norm

    def any(self) -> bool:
        """Return whether any element is nonzero."""
        return self._nonzero() > 0

    def all(self) -> bool:
        """Return whether all elements are nonzero."""
        return self._nonzero() == self.size

    def _nonzero(self) -> int:
        return self.size - self._stats.zero

    def _known(self, extreme: float | None) -> Any:
        return self.refuse() if extreme is None or not self.size else self.dtype.type(extreme)

    def _absolute(self) -> StatisticsProxy:
        magnitudes = StatisticsProxy(self.of, self.dtype, self.shape, self._stats)
        magnitudes._low, magnitudes._high, magnitudes._mean = _bounds_of_magnitudes(self._stats, self.dtype)
        return magnitudes

    def _magnitudes(self) -> StatisticsProxy:
        return self._absolute() if self.dtype.kind == "f" else self.refuse()

    def _flags(self, count: int) -> StatisticsProxy:
        """Return a boolean proxy with `count` true elements.

        A complex element with an infinite magnitude may have been nan or too large, so that case raises NotStored.
        """
        if self.dtype.kind == "c" and self._stats.inf:
            self.refuse()
        low, high, share = float(count == self.size), float(count > 0), count / self.size if self.size else nan
        stats = Stats(low, high, share, sqrt(share), 0, 0, self.size - count)
        return StatisticsProxy(self.of, np.dtype(bool), self.shape, stats)


def summarized(of: str, value: Value) -> StatisticsProxy:
    """Return a proxy for a value whose elements were not stored. Raises NotStored without statistics."""
    stats = value.statistics()
    if stats is None:
        raise NotStored(of)
    proxy = StatisticsProxy(of, np.dtype(NUMPY_DTYPES.get(value.dtype, "<f4")), value.shape, stats)
    proxy.recorded = value
    return proxy


_ELEMENTS = {"T", "real", "imag"}
"""Attributes of a tensor that consist of its elements."""

_LARGEST_EXACT = 2.0**53
"""Up to this value a float, in which statistics are stored, represents integers exactly."""

_Bounds = tuple[float | None, float | None, float | None]


def _bounds(stats: Stats, dtype: np.dtype[Any]) -> _Bounds:
    """Return minimum, maximum and mean; None for complex numbers, and for infinities, whose sign is not recorded."""
    if dtype.kind == "c" or (stats.inf and not stats.nan):
        return None, None, None
    if dtype.kind in "iu" and not max(-stats.min, stats.max) < _LARGEST_EXACT:
        return None, None, stats.mean
    return (nan, nan, nan) if stats.nan else (stats.min, stats.max, stats.mean)


def _bounds_of_magnitudes(stats: Stats, dtype: np.dtype[Any]) -> _Bounds:
    if stats.nan:
        return nan, nan, nan
    if stats.inf:
        return None, np.inf, np.inf
    if dtype.kind == "i" and not (-stats.min <= np.iinfo(dtype).max and max(-stats.min, stats.max) < _LARGEST_EXACT):
        return None, None, None  # the smallest integer has no magnitude in its own dtype
    if stats.min >= 0 or dtype.kind == "c":
        return stats.min, stats.max, stats.mean
    if stats.max <= 0:
        return -stats.max, -stats.min, -stats.mean
    return 0.0 if stats.zero else None, max(-stats.min, stats.max), None


_ANSWERS: dict[Any, Callable[[StatisticsProxy], Any]] = {
    np.min: StatisticsProxy.min, np.max: StatisticsProxy.max,
    np.amin: StatisticsProxy.min, np.amax: StatisticsProxy.max,
    np.mean: StatisticsProxy.mean, np.linalg.norm: StatisticsProxy.norm,
    np.any: StatisticsProxy.any, np.all: StatisticsProxy.all,
    np.count_nonzero: StatisticsProxy._nonzero, np.size: lambda one: one.size, np.shape: lambda one: one.shape,
    np.ndim: lambda one: one.ndim,
}  # fmt: skip
"""The numpy functions that the statistics can answer, if called with only the tensor."""

_ELEMENTWISE: dict[np.ufunc, Callable[[StatisticsProxy], StatisticsProxy]] = {
    np.absolute: StatisticsProxy._absolute,
    np.fabs: StatisticsProxy._magnitudes,
    np.isnan: lambda one: one._flags(one._stats.nan),
    np.isinf: lambda one: one._flags(one._stats.inf),
    np.isfinite: lambda one: one._flags(one.size - one._stats.nan - one._stats.inf),
}

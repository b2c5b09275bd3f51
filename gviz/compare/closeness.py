"""When two values count as the same.

The tolerances are those of ``torch.testing.assert_close``: a relative and an absolute one for each dtype, of two dtypes
the wider one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gviz.trace.timeline import Timeline
from gviz.values import Array, Stats, Value

TOLERANCES = {
    "bfloat16": (1.6e-2, 1e-5),
    "float16": (1e-3, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
    "complex64": (1.3e-6, 1e-5),
    "complex128": (1e-7, 1e-7),
}
"""Relative and absolute; a dtype that is not here is compared exactly."""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far values may be apart: ``|a - b| <= atol + rtol * |b|``. None takes what the dtype allows."""

    rtol: float | None = None
    atol: float | None = None

    def of(self, *dtypes: str) -> tuple[float, float]:
        """The relative and the absolute tolerance for values of these dtypes."""
        rtols, atols = zip(*(TOLERANCES.get(dtype, (0.0, 0.0)) for dtype in dtypes), strict=True)
        return (
            max(rtols) if self.rtol is None else self.rtol,
            max(atols) if self.atol is None else self.atol,
        )


EXACT = Tolerance(0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Distance:
    """How far two values of one shape are apart.

    `largest` is the largest absolute difference, at element `where`; `relative` that difference in parts of the second
    value's element (inf for one beside 0). `elements` is how many differ by more than the tolerance. Values of which
    only statistics were kept have no elements to count: `elements` is then 0, and `largest` the difference of the
    statistics.
    """

    largest: float
    relative: float
    where: tuple[int, ...]
    elements: int


def distance(a: Timeline, x: Value, b: Timeline, y: Value, tolerance: Tolerance) -> Distance | None:
    """How far two values of one shape are apart; None if within the tolerance, or if nothing of them was kept."""
    rtol, atol = tolerance.of(x.dtype, y.dtype)
    left, right = a.array(x), b.array(y)
    if left is not None and right is not None:
        return _elementwise(left, right, rtol, atol)
    first, second = x.statistics(), y.statistics()
    return None if first is None or second is None else _of_statistics(first, second, rtol, atol)


def _elementwise(a: Array, b: Array, rtol: float, atol: float) -> Distance | None:
    with np.errstate(all="ignore"):
        apart = ~np.isclose(a, b, rtol=rtol, atol=atol, equal_nan=True)
        if not apart.any():
            return None
        wide = np.result_type(a, b, np.float64)
        gap = np.where(apart, np.abs(a.astype(wide) - b.astype(wide)), -1.0)
        gap = np.where(np.isnan(gap), np.inf, gap)  # a nan on one side only is as far away as can be
        where = np.unravel_index(int(np.argmax(gap)), gap.shape)
        relative = float(gap[where] / np.abs(b[where].astype(wide)))
    place = tuple(int(i) for i in where)
    return Distance(float(gap[where]), relative, place, int(np.count_nonzero(apart)))


def _of_statistics(a: Stats, b: Stats, rtol: float, atol: float) -> Distance | None:
    counts = (a.nan, a.inf, a.zero) == (b.nan, b.inf, b.zero)
    numbers = np.array([(a.min, b.min), (a.max, b.max), (a.mean, b.mean), (a.rms, b.rms)])
    found = _elementwise(numbers[:, 0], numbers[:, 1], rtol, atol)
    if found is None:
        return None if counts else Distance(0.0, 0.0, (), 0)
    return Distance(found.largest, found.relative, (), 0)

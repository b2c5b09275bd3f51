"""When two values count as equal.

The tolerances are those of ``torch.testing.assert_close``: relative and absolute per dtype, and the wider of the two if
the dtypes differ.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gviz.trace.timeline import Timeline
from gviz.values.value import Array, Stats, Value

TOLERANCES = {
    "bfloat16": (1.6e-2, 1e-5),
    "float16": (1e-3, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
    "complex64": (1.3e-6, 1e-5),
    "complex128": (1e-7, 1e-7),
}
"""Relative and absolute tolerance; dtypes without an entry (integers, booleans) must be equal."""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """The allowed difference of values: ``|a - b| <= atol + rtol * |b|``. None uses the tolerance of the dtype.

    With `bitwise`, the same number in other bits, such as 0.0 and -0.0, counts as different.
    """

    rtol: float | None = None
    atol: float | None = None
    bitwise: bool = False

    def of(self, *dtypes: str) -> tuple[float, float]:
        """Return the relative and absolute tolerance for values of these dtypes."""
        rtols, atols = zip(*(TOLERANCES.get(dtype, (0.0, 0.0)) for dtype in dtypes), strict=True)
        return (
            max(rtols) if self.rtol is None else self.rtol,
            max(atols) if self.atol is None else self.atol,
        )


SAME_NUMBERS = Tolerance(0.0, 0.0)
"""Equal as numbers; nan equals nan."""

EXACT = Tolerance(0.0, 0.0, bitwise=True)

_ROUNDING = 1e-5
"""The relative error allowed for a float32 sum, which depends on the order of summation."""


@dataclass(frozen=True, slots=True)
class Distance:
    """The distance between two values of one shape.

    `largest` is the largest absolute difference, at element `where`; `relative` is that difference relative to the
    second value's element (inf if that is 0 or the difference is infinite). `elements` is the number of elements that
    differ by more than the tolerance; if only their bits differ, `largest` is 0. If only statistics were kept,
    `elements` is 0 and `largest` the difference of that `statistic` (0 if only their counts differ).
    """

    largest: float
    relative: float
    where: tuple[int, ...]
    elements: int
    statistic: str = ""


def distance(a: Timeline, x: Value, b: Timeline, y: Value, tolerance: Tolerance) -> Distance | None:
    """Return the distance of two values of one shape; None if within the tolerance, or if no numbers were kept."""
    rtol, atol = tolerance.of(x.dtype, y.dtype)
    left, right = a.array(x), b.array(y)
    if left is not None and right is not None:
        return _elementwise(left, right, rtol, atol, bitwise=tolerance.bitwise)
    first, second = x.statistics(), y.statistics()
    if first is None or second is None:
        return None
    # how sums were computed: an adapter's statistics may differ from those of elements
    same_form = (left is None) == (right is None)
    return _of_statistics(first, second, rtol, atol, of_sums=rtol if same_form else max(rtol, _ROUNDING))


def _elementwise(a: Array, b: Array, rtol: float, atol: float, *, bitwise: bool = False) -> Distance | None:
    with np.errstate(all="ignore"):
        gaps = _gaps(a, b)
        allowed = atol + rtol * np.abs(b.astype(np.result_type(b, np.float64)))
        return _largest(b, gaps, _other_bits(a, b) if bitwise else _beyond(a, b, gaps, allowed))


def _largest(b: Array, gaps: Array, apart: Array) -> Distance | None:
    """Return the largest relevant gap to `b`, None if there is none."""
    if not apart.any():
        return None
    where = np.unravel_index(int(np.argmax(np.where(apart, gaps, -1.0))), gaps.shape)
    largest, expected = float(gaps[where]), abs(complex(b[where]))
    relative = largest / expected if expected and largest < np.inf else np.inf
    place = tuple(int(i) for i in where)
    return Distance(largest, float(relative) if largest else 0.0, place, int(np.count_nonzero(apart)))


def _gaps(a: Array, b: Array) -> Array:
    """Return the absolute differences of elements; integers exactly, because float64 cannot hold large ones."""
    wide = np.result_type(a, b, np.int64)
    if wide.kind == "i":
        a, b = a.astype(wide), b.astype(wide)
        return np.asarray(np.maximum(a, b) - np.minimum(a, b)).view(np.uint64)
    gaps = np.abs(a.astype(np.result_type(wide, np.float64)) - b)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    result: Array = np.where(same, 0.0, np.where(np.isnan(gaps), np.inf, gaps))
    return result  # a nan on one side only is infinitely far away


def _beyond(a: Array, b: Array, gaps: Array, allowed: Array) -> Array:
    """Return which elements differ by more than allowed; infinities and nan are close to nothing else."""
    apart: Array = (gaps > 0) & ((gaps > allowed) | ~np.isfinite(a) | ~np.isfinite(b))
    return apart


def _other_bits(a: Array, b: Array) -> Array:
    """Return which elements differ in their bits after conversion to a common dtype."""
    common = np.result_type(a, b)
    left, right = [np.ascontiguousarray(one, common).view(f"V{common.itemsize}").reshape(one.shape) for one in (a, b)]
    apart: Array = left != right
    return apart


def _of_statistics(a: Stats, b: Stats, rtol: float, atol: float, *, of_sums: float) -> Distance | None:
    """Return the distance of statistics. A mean near 0 may differ by as much as the elements may."""
    counts = (a.nan, a.inf, a.zero) == (b.nan, b.inf, b.zero)
    names = ("min", "max", "mean", "rms")
    mine, other = (np.array([getattr(each, name) for name in names]) for each in (a, b))
    with np.errstate(all="ignore"):
        allowed = atol + np.array([rtol, rtol, of_sums, of_sums]) * np.abs([b.min, b.max, b.rms, b.rms])
        gaps = _gaps(mine, other)
        largest = _largest(other, gaps, _beyond(mine, other, gaps, allowed))
    if largest is None:
        return None if counts else Distance(0.0, 0.0, (), 0)
    return Distance(largest.largest, largest.relative, (), 0, names[largest.where[0]])

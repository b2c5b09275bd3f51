"""Replaces elements by statistics, for many arrays in a few numpy calls.

Processing each array separately takes ten numpy calls, which cost more than the work for a few thousand elements.
Intermediate results are in memory that is used again. A new array of this size is memory new to the process, and its
first use takes ten times as long as the computation.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from msgspec.structs import force_setattr

from gviz.values.value import NUMPY_DTYPES, Array, Stats, Value, decode, statistics

LARGEST = 1 << 15
"""Arrays above this size in bytes are processed one by one: their elements cost more than the calls."""

_BLOCK = 1 << 18
_ORDINARY = {"float32": (1e-16, 1e16), "bfloat16": (1e-16, 1e16), "float64": (1e-140, 1e140)}
"""Between these magnitudes, a square and a sum of squares stay in the range of the dtype."""


def shorten(values: Iterable[Value], limit: int) -> None:
    """Replace elements of more than `limit` bytes by their statistics, in place; `Whole` values are not changed.

    The statistics are set before the elements are removed, so that a concurrent reader always finds one of the two.
    """
    long: defaultdict[str, dict[int, list[Value]]] = defaultdict(dict)
    for value in values:
        data = value.data
        if data is None or len(data) <= limit or (value.__class__ is not Value and value.stays_whole):
            continue
        holders = long[value.dtype]
        same = holders.get(id(data))
        if same is None:
            holders[id(data)] = [value]
        elif same[-1] is not value:  # several may hold the same bytes
            same.append(value)
    for dtype, holders in long.items():
        for some in _blocks(holders.values()):
            for same, stats in zip(some, _statistics_of(dtype, [same[0] for same in some]), strict=True):
                for value in same:
                    force_setattr(value, "stats", stats)
                    force_setattr(value, "data", None)


def _blocks(holders: Iterable[list[Value]]) -> Iterator[list[list[Value]]]:
    """Group the holders into blocks whose bytes fit into the CPU cache together."""
    block: list[list[Value]] = []
    length = 0
    for same in holders:
        block.append(same)
        length += len(same[0].data or b"")
        if length > _BLOCK:
            yield block
            block, length = [], 0
    if block:
        yield block


class _Scratch(threading.local):
    """Memory for intermediate results, by purpose; each thread has its own."""

    def __init__(self) -> None:
        self._memory: dict[str, Array] = {}

    def array(self, purpose: str, dtype: np.dtype[Any], size: int) -> Array:
        """Return an array of any content, which is valid until the next call for this purpose."""
        nbytes = size * dtype.itemsize
        memory = self._memory.get(purpose)
        if memory is None or memory.nbytes < nbytes:
            memory = self._memory[purpose] = np.empty(max(nbytes, _BLOCK + LARGEST), np.uint8)
        return memory[:nbytes].view(dtype)


_scratch = _Scratch()
_WIDE, _TRUTH, _BYTE = np.dtype(np.float64), np.dtype(np.bool_), np.dtype(np.uint8)


def _statistics_of(dtype: str, values: Sequence[Value]) -> list[Stats]:
    arrays = [value.data or b"" for value in values]
    if dtype not in _ORDINARY:
        return [statistics(decode(dtype, value.shape, data)) for value, data in zip(values, arrays, strict=True)]
    sizes = [value.size for value in values]
    return statistics_of_parts(_joined(dtype, sizes, arrays), sizes, *_ORDINARY[dtype])


def _joined(dtype: str, sizes: Sequence[int], arrays: Sequence[bytes]) -> Array:
    """Return the elements of all arrays as one."""
    if dtype not in NUMPY_DTYPES:  # bfloat16, which is converted
        return decode(dtype, (sum(sizes),), b"".join(arrays))
    memory = _scratch.array("elements", _BYTE, sum(map(len, arrays)))
    target, start = memory.data, 0
    for data in arrays:
        end = start + len(data)
        target[start:end] = data
        start = end
    return memory.view(NUMPY_DTYPES[dtype])


def statistics_of_parts(flat: Array, sizes: Sequence[int], smallest: float, largest: float) -> list[Stats]:
    """Return the statistics of concatenated arrays; none may be empty."""
    counts = np.asarray(sizes, np.int64)
    ends = np.cumsum(counts)
    starts = ends - counts
    with np.errstate(all="ignore"):
        # a nan anywhere makes both nan
        low, high = np.minimum.reduceat(flat, starts), np.maximum.reduceat(flat, starts)
        magnitude = np.maximum(-low, high)
        is_usual = (low > -largest) & (magnitude < largest)
        is_tiny = is_usual & (magnitude <= smallest)
        means, rms = _means(flat, starts, counts)
        # Gradients that vanish, and zeros, are as common as others. Their squares are too small for float32. The
        # others are not added in float64, too: their sums would depend on their neighbours here.
        if is_tiny.any() and flat.dtype.itemsize <= 4:
            of_tiny = counts[is_tiny]
            tiny_ends = np.cumsum(of_tiny)
            tiny_starts = tiny_ends - of_tiny
            wide = _scratch.array("wide", _WIDE, int(tiny_ends[-1]))
            places = (tiny_starts, tiny_ends, starts[is_tiny], ends[is_tiny])
            for start, end, at, until in zip(*(place.tolist() for place in places), strict=True):
                wide[start:end] = flat[at:until]
            means[is_tiny], rms[is_tiny] = _means(wide, tiny_starts, of_tiny)
        else:
            is_usual &= ~is_tiny
    is_zero = np.equal(flat, 0, out=_scratch.array("zeros", _TRUTH, flat.size))
    may_be_zero = (low <= 0) & (high >= 0) & is_zero.any()
    columns = (starts, ends, low, high, means, rms, is_usual, may_be_zero)
    return [
        Stats(least, most, mean, root, 0, 0, int(np.count_nonzero(is_zero[start:end])) if zeros else 0)
        if usual
        else statistics(flat[start:end])
        for start, end, least, most, mean, root, usual, zeros in zip(*(c.tolist() for c in columns), strict=True)
    ]


def _means(flat: Array, starts: Array, counts: Array) -> tuple[Array, Array]:
    """Return the mean of each part, and the root of its mean square."""
    squares = np.multiply(flat, flat, out=_scratch.array("squares", flat.dtype, flat.size))
    means = np.add.reduceat(flat, starts).astype(np.float64) / counts
    return means, np.sqrt(np.add.reduceat(squares, starts).astype(np.float64) / counts)

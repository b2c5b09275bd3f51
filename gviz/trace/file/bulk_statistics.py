"""Replaces elements by statistics, for many arrays in a few numpy calls.

Processing each array separately takes ten numpy calls, which cost more than the work for a few thousand elements.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from msgspec.structs import force_setattr

from gviz.values.value import Array, Stats, Value, decode, statistics

LARGEST = 1 << 15
"""Arrays above this size in bytes are processed one by one: their elements cost more than the calls."""

_BLOCK = 1 << 20
_ORDINARY = {"float32": (1e-16, 1e16), "bfloat16": (1e-16, 1e16), "float64": (1e-140, 1e140)}
"""Between these magnitudes, a square and a sum of squares stay in the range of the dtype."""


def shorten(values: Iterable[Value], limit: int) -> None:
    """Replace elements of more than `limit` bytes by their statistics, in place; `Whole` values are not changed.

    The statistics are set before the elements are removed, so that a concurrent reader always finds one of the two.
    """
    long: defaultdict[str, defaultdict[int, list[Value]]] = defaultdict(lambda: defaultdict(list))
    for value in values:
        if value.data is not None and len(value.data) > limit and not value.stays_whole:
            long[value.dtype][id(value.data)].append(value)  # several may hold the same bytes
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


def _statistics_of(dtype: str, values: Sequence[Value]) -> list[Stats]:
    arrays = [value.data or b"" for value in values]
    if dtype not in _ORDINARY:
        return [statistics(decode(dtype, value.shape, data)) for value, data in zip(values, arrays, strict=True)]
    sizes = [value.size for value in values]
    return statistics_of_parts(decode(dtype, (sum(sizes),), b"".join(arrays)), sizes, *_ORDINARY[dtype])


def statistics_of_parts(flat: Array, sizes: Sequence[int], smallest: float, largest: float) -> list[Stats]:
    """Return the statistics of concatenated arrays; none may be empty."""
    ends = np.cumsum(sizes, dtype=np.int64)
    starts = ends - np.asarray(sizes, np.int64)
    with np.errstate(all="ignore"):
        # a nan anywhere makes both nan
        low, high = np.minimum.reduceat(flat, starts), np.maximum.reduceat(flat, starts)
        magnitude = np.maximum(-low, high)
        ordinary = (low > -largest) & (magnitude > smallest) & (magnitude < largest)
        means = np.add.reduceat(flat, starts).astype(np.float64) / sizes
        rms = np.sqrt(np.add.reduceat(flat * flat, starts).astype(np.float64) / sizes)
    may_be_zero = (low <= 0) & (high >= 0)
    is_zero = flat == 0
    columns = (starts, ends, low, high, means, rms, ordinary, may_be_zero)
    return [
        Stats(least, most, mean, root, 0, 0, int(np.count_nonzero(is_zero[start:end])) if zeros else 0)
        if usual
        else statistics(flat[start:end])
        for start, end, least, most, mean, root, usual, zeros in zip(*(c.tolist() for c in columns), strict=True)
    ]

"""Where the first nan or infinity of a log is."""

from __future__ import annotations

from itertools import chain, islice

import numpy as np

from gviz.events import KINDS, Event
from gviz.trace.codec import values
from gviz.trace.log import EventLog
from gviz.values import NUMPY_DTYPES, Value

_ALL_KINDS = range(len(KINDS))
_BATCH = 2000


def first_nonfinite(log: EventLog, start: int, stop: int) -> int:
    """The first event in ``start <= seq < stop`` that holds a nan or an infinity, or 0."""
    events = iter(log.select(start, stop, _ALL_KINDS))
    while batch := list(islice(events, _BATCH)):
        if _any_nonfinite(chain.from_iterable(values(event) for _, event in batch)):
            return next(seq for seq, event in batch if is_nonfinite(event))
    return 0


def is_nonfinite(event: Event) -> bool:
    """Whether an event holds a nan or an infinity."""
    return any(stats is not None and bool(stats.nan or stats.inf) for stats in map(Value.statistics, values(event)))


def _any_nonfinite(found: chain[Value]) -> bool:
    """All small values of one dtype are tested as one array: almost always there is nothing to find."""
    kept: dict[str, list[bytes]] = {}
    for value in found:
        if value.stats is not None:
            if value.stats.nan or value.stats.inf:
                return True
        elif value.data is not None and value.dtype.startswith(("float", "complex", "bfloat")):
            kept.setdefault(value.dtype, []).append(value.data)
    return any(not _finite(dtype, b"".join(data)) for dtype, data in kept.items())


def _finite(dtype: str, data: bytes) -> bool:
    if dtype == "bfloat16":
        wide = (np.frombuffer(data, "<u2").astype("<u4") << 16).view("<f4")
        return bool(np.isfinite(wide).all())
    return bool(np.isfinite(np.frombuffer(data, NUMPY_DTYPES[dtype])).all())

"""Where the first nan or infinity of a log is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import islice

import numpy as np

from gviz.events import KINDS, Event
from gviz.trace.codec import values, values_of
from gviz.trace.log import EventLog
from gviz.trace.state import Bad
from gviz.values import ITEM_SIZES, NUMPY_DTYPES, Value

_ALL_KINDS = range(len(KINDS))
_BATCH = 2000
_CAN_BE_NONFINITE = tuple(name for name in ITEM_SIZES if name.startswith(("float", "bfloat", "complex")))


def first_nonfinite(log: EventLog, start: int, stop: int, word: Bad | None = None) -> int:
    """The first event in ``start <= seq < stop`` that holds a nan or an infinity (the `word`: only that), or 0."""
    events = iter(log.select(start, stop, _ALL_KINDS))
    while batch := list(islice(events, _BATCH)):
        if place := first_place((event for _, event in batch), word or ""):
            return batch[place - 1][0]
    return 0


def first_place(events: Iterable[Event], word: str = "") -> int:
    """The place (from 1) of the first of these events that holds a nan or an infinity (the `word`: only that), or 0."""
    events = list(events)
    if not any_nonfinite(values_of(events)):
        return 0
    return next((place for place, event in enumerate(events, 1) if _is_nonfinite(event, word)), 0)


def any_nonfinite(values: Iterable[Value]) -> bool:
    """Whether there is a nan or an infinity in any value.

    All small ones of one dtype are tested as one array, because almost always there is nothing to find.
    """
    kept: defaultdict[str, list[bytes]] = defaultdict(list)
    for value in values:
        if value.data is not None:
            kept[value.dtype].append(value.data)
        elif value.stats is not None and (value.stats.nan or value.stats.inf):
            return True
    return any(not _finite(dtype, b"".join(kept[dtype])) for dtype in kept if dtype in _CAN_BE_NONFINITE)


def _is_nonfinite(event: Event, word: str) -> bool:
    found = [stats for stats in map(Value.statistics, values(event)) if stats is not None]
    return any((stats.nan and word != "inf") or (stats.inf and word != "nan") for stats in found)


def _finite(dtype: str, data: bytes) -> bool:
    if dtype == "bfloat16":
        wide = (np.frombuffer(data, "<u2").astype("<u4") << 16).view("<f4")
        return bool(np.isfinite(wide).all())
    return bool(np.isfinite(np.frombuffer(data, NUMPY_DTYPES[dtype])).all())

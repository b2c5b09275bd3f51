"""Finds nan and infinities in values, in events, and the first one in a log."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import islice

import numpy as np

from gviz.events import KINDS, Event
from gviz.trace.codec import VALUE_READERS, values, values_of
from gviz.trace.event_log import EventLog
from gviz.trace.graph_state import Bad
from gviz.values.value import ITEM_SIZES, NUMPY_DTYPES, Value

_ALL_KINDS = range(len(KINDS))
_BATCH = 2000
_CAN_BE_NONFINITE = tuple(name for name in ITEM_SIZES if name.startswith(("float", "bfloat", "complex")))


def first_nonfinite(log: EventLog, start: int, stop: int, word: Bad | None = None) -> int:
    """Return the first event in ``start <= seq < stop`` that holds a nan or an infinity (`word`: only that), or 0."""
    for batch in batches(log, start, stop):
        if place := first_place((event for _, event in batch), word or ""):
            return batch[place - 1][0]
    return 0


def batches(log: EventLog, start: int, stop: int) -> Iterator[list[tuple[int, Event]]]:
    """Yield the events in ``start <= seq < stop``, many at a time."""
    events = iter(log.select(start, stop, _ALL_KINDS))
    while batch := list(islice(events, _BATCH)):
        yield batch


def first_place(events: Iterable[Event], word: str = "") -> int:
    """Return the position (from 1) of the first event that holds a nan or an infinity (`word`: only that), or 0."""
    events = list(events)
    if not any_nonfinite(values_of(events)):
        return 0
    return next((place for place, event in enumerate(events, 1) if is_nonfinite(event, word)), 0)


def any_nonfinite(values: Iterable[Value]) -> bool:
    """Return whether any value has a nan or an infinity.

    All small values of one dtype are tested as one array, because usually there is nothing to find.
    """
    by_dtype: defaultdict[str, list[bytes]] = defaultdict(list)
    for value in values:
        if value.data is not None:
            by_dtype[value.dtype].append(value.data)
        elif value.stats is not None and (value.stats.nan or value.stats.inf):
            return True
    return any(not _finite(dtype, b"".join(by_dtype[dtype])) for dtype in by_dtype if dtype in _CAN_BE_NONFINITE)


def is_nonfinite(event: Event, word: str) -> bool:
    """Return whether an event holds a nan or an infinity (`word`: only that)."""
    statistics = [stats for stats in map(Value.statistics, values(event)) if stats is not None]
    return any((stats.nan and word != "inf") or (stats.inf and word != "nan") for stats in statistics)


def _finite(dtype: str, data: bytes) -> bool:
    if dtype == "bfloat16":
        wide = (np.frombuffer(data, "<u2").astype("<u4") << 16).view("<f4")
        return bool(np.isfinite(wide).all())
    return bool(np.isfinite(np.frombuffer(data, NUMPY_DTYPES[dtype])).all())


def may_be_nonfinite(event: Event) -> bool:
    """Return whether an event holds a nan or an infinity."""
    reader = VALUE_READERS.get(event.__class__)
    if reader is not None:
        for value in reader(event):  # a plain loop: this runs for every event
            if value is not None and _nonfinite(value):
                return True
    return False


def _nonfinite(value: Value) -> bool:
    data, dtype = value.data, value.dtype
    if data is None:
        return value.stats is not None and bool(value.stats.nan or value.stats.inf)
    if dtype == "float32":
        if len(data) == 4:  # a scalar: all bits of the exponent are set
            return data[3] & 0x7F == 0x7F and data[2] >= 0x80
    elif not dtype.startswith(("float", "complex")):
        return dtype == "bfloat16" and not _finite(dtype, data)
    return b"\0" in np.isfinite(np.frombuffer(data, NUMPY_DTYPES[dtype])).tobytes()

"""Finds nan and infinities in values, in events, and the first one in a log, with or without those of masks.

A recording asks for each event whether it has one, so the tests are made for many small values at a time.
`first_nonfinite` counts every nan and infinity, and `FirstBad` leaves out those that a mask put there. `error_index`
keeps the answers for a timeline. Where a nan came from is explained in
`gviz.explain.findings.gradient_values.nan_origin`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from math import isinf, prod

import numpy as np

from gviz.events import KINDS, Event, NodeCreated, NodeFreed, StorageWritten
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


# ----------------------------------------------------------------------------------------------------------------------
# Infinities that a program writes into masks: they get no mark of an error, and no recording stops at them.
#
# Programs put infinities into masks: in a constant, in an operation with an infinite argument, and so in tensors
# computed from them, such as scores plus a mask. A tensor that an operation fills in place, as in ``mask.fill_(-inf)``,
# is a mask from then on. A tensor no longer counts as masked if it is infinite everywhere, or has a larger share of
# infinities than any of its inputs.


class FirstBad:
    """Finds the first nan or infinity that the program did not write on purpose, in order of events.

    If `word` is ``nan`` or ``inf``, it finds only that.
    """

    def __init__(self, word: str = "") -> None:
        self.is_found = False
        self._word = word
        self._masks: dict[int, float] = {}
        """The nodes with infinities written on purpose, and the share of their elements that is infinite."""

    def process(self, event: Event) -> bool:
        """Return whether this event holds it. Must be called for every event in order until it returns True."""
        if isinstance(event, NodeFreed):
            self._masks.pop(event.node, None)
        elif not self.is_found and may_be_nonfinite(event) and not self._is_masked(event):
            self.is_found = is_nonfinite(event, self._word)
            return self.is_found
        return False

    def _is_masked(self, event: Event) -> bool:
        match event:
            case NodeCreated(node=node):
                share = masked_share(event, lambda source: self._masks.get(source, 0.0))
                if share:
                    self._masks.update(dict.fromkeys((node, *filled_in_place(event)), share))
                return share > 0
            case StorageWritten(node=node, value=value):
                return node in self._masks and not _counts(value)[0]
        return False


def masked_share(created: NodeCreated, of_input: Callable[[int], float]) -> float:
    """Return the share of a node's elements with infinities written on purpose; 0 for other infinities or with any nan.

    `of_input` returns the share for an input node.
    """
    counts = [_counts(output.value) for output in created.outputs]
    share = max((infinite / max(size, 1) for _, infinite, size in counts), default=0.0)
    if not share or any(nans for nans, _, _ in counts):
        return 0.0
    if created.kind != "op":
        return share if created.kind == "constant" else 0.0
    if any(isinstance(attribute, float) and isinf(attribute) for _, attribute in created.attrs):
        return share
    most = max((of_input(source) for source, _ in created.inputs), default=0.0)
    takes_part = len(created.inputs) == 1 and most > 0
    return share if share < 1 and (share <= most or takes_part) else 0.0


def filled_in_place(created: NodeCreated) -> tuple[int, ...]:
    """Return the tensor that an operation writes to in place: later operations may take it, not the result."""
    is_write = bool(created.inputs) and any(output.version > 0 for output in created.outputs)
    return (created.inputs[0][0],) if is_write and created.kind == "op" else ()


def _counts(value: Value | None) -> tuple[int, int, int]:
    """Return the numbers of nan, infinite and all elements of a value."""
    stats = value.statistics() if value is not None else None
    return (stats.nan, stats.inf, prod(value.shape)) if value is not None and stats is not None else (0, 0, 0)


def first_bad(log: EventLog, start: int, stop: int, looking: FirstBad) -> int:
    """Return the first event in ``start <= seq < stop`` that `looking` looks for, or 0. It must know all events
    before.
    """
    for batch in batches(log, start, stop):
        if place := first_bad_place([event for _, event in batch], looking):
            return batch[place - 1][0]
    return 0


def first_bad_place(events: Sequence[Event], looking: FirstBad) -> int:
    """Return the position (from 1) of the first event that `looking` looks for, or 0."""
    if not any_nonfinite(values_of(events)):
        return 0
    return next((place for place, event in enumerate(events, 1) if looking.process(event)), 0)

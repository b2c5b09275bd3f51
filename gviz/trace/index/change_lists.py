"""Sorted change lists: which events changed a thing, and which event did so last up to a moment."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from gviz.values.value import Array

EMPTY = np.empty(0, np.uint32)

_SEQ_BITS = 32


@dataclass(frozen=True)
class Run:
    """One stretch of time: ``seqs[starts[i]:starts[i + 1]]`` are the events of ``keys[i]``, both ascending."""

    keys: Array
    starts: Array
    seqs: Array
    _views: tuple[memoryview, memoryview, memoryview] = field(init=False, repr=False, compare=False)
    """Views of the arrays for single searches: `bisect` is cheaper there, numpy would copy arrays of another type."""

    _gap: int = field(init=False, repr=False, compare=False)
    """Difference between a key and its index if the keys have no gaps; otherwise -1."""

    def __post_init__(self) -> None:
        keys = self.keys
        dense = len(keys) and int(keys[-1]) - int(keys[0]) + 1 == len(keys)
        object.__setattr__(self, "_views", (keys.data, self.starts.data, self.seqs.data))
        object.__setattr__(self, "_gap", int(keys[0]) if dense else -1)

    @classmethod
    def of(cls, keys: Array, seqs: Array) -> Run:
        """Sort events, given in order of time, by key."""
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        first = np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1]))) if len(keys) else EMPTY
        return cls(keys[first], np.append(first, len(keys)).astype(np.uint32), seqs[order].astype(np.uint32))

    def places(self, key: int) -> tuple[int, int]:
        """Return the range of the events of one key in `seqs`."""
        keys, starts, _ = self._views
        at = bisect_left(keys, key) if self._gap < 0 else key - self._gap
        if not 0 <= at < len(keys) or keys[at] != key:
            return 0, 0
        return starts[at], starts[at + 1]

    def of_key(self, key: int) -> Array:
        """Return all events of one key."""
        low, high = self.places(key)
        return self.seqs[low:high]

    def last(self, key: int, upto: int) -> int:
        """Return the last event of one key up to event `upto`, or 0."""
        low, high = self.places(key)
        seqs = self._views[2]
        at = bisect_right(seqs, upto, low, high)
        return int(seqs[at - 1]) if at > low else 0

    def count(self, key: int, upto: int) -> int:
        """Return the number of events of one key up to `upto`."""
        low, high = self.places(key)
        return bisect_right(self._views[2], upto, low, high) - low

    def stretch(self, key: int, start: int, stop: int) -> Array:
        """Return the events of one key in ``start <= seq < stop``."""
        low, high = self.places(key)
        seqs = self._views[2]
        return self.seqs[bisect_left(seqs, start, low, high) : bisect_left(seqs, stop, low, high)]

    def join(self, later: Run) -> Run:
        """Return this stretch merged with the next one."""
        keys = np.concatenate([np.repeat(run.keys, np.diff(run.starts)) for run in (self, later)])
        return Run.of(keys, np.concatenate([self.seqs, later.seqs]))

    def holds_together(self, last: int) -> bool:
        """Return whether the data is sorted and names only events ``1..last``. Data from a file is not trusted."""
        keys, starts, seqs = self.keys, self.starts, self.seqs
        fits = len(starts) == len(keys) + 1 and int(starts[0]) == 0 and int(starts[-1]) == len(seqs)
        if not fits or (len(seqs) and not 1 <= int(seqs.min()) <= int(seqs.max()) <= last):
            return False
        return bool((keys[1:] > keys[:-1]).all()) and bool((starts[1:] > starts[:-1]).all())

    def counts(self, keys: Array, upto: int) -> Array:
        """Return the number of events up to `upto` for each of many keys, with one binary search for all."""
        if not len(self.keys):
            return np.zeros(len(keys), np.int64)
        at = np.minimum(self.keys.searchsorted(keys), len(self.keys) - 1)
        counts = self._placed.searchsorted((at << _SEQ_BITS) + upto, "right") - self.starts[at]
        return np.where(self.keys[at] == keys, counts, 0)

    @cached_property
    def _placed(self) -> Array:
        """The events, each prefixed with the index of its key, in ascending order."""
        places = np.repeat(np.arange(len(self.keys)) << _SEQ_BITS, np.diff(self.starts))
        return places + self.seqs


class ChangeList:
    """Events by key. It grows at the end; stretches are merged so that only a few have to be searched."""

    __slots__ = ("runs",)

    def __init__(self, run: Run | None = None) -> None:
        self.runs: list[Run] = [run] if run is not None else []

    def add(self, keys: Array, seqs: Array) -> None:
        """Add events, in order of time, that are later than all present ones."""
        if not len(keys):
            return
        self.runs.append(Run.of(keys, seqs))
        while len(self.runs) > 1 and len(self.runs[-1].seqs) * 2 > len(self.runs[-2].seqs):
            later = self.runs.pop()
            self.runs[-1] = self.runs[-1].join(later)

    def whole(self) -> Run:
        """Return everything as one run."""
        while len(self.runs) > 1:
            later = self.runs.pop()
            self.runs[-1] = self.runs[-1].join(later)
        return self.runs[0] if self.runs else Run.of(np.empty(0, np.int64), EMPTY)

    def last(self, key: int, upto: int) -> int:
        """Return the last event of `key` up to event `upto`, or 0."""
        for run in reversed(self.runs):
            seq = run.last(key, upto)
            if seq:
                return seq
        return 0

    def between(self, key: int, start: int, stop: int) -> list[int]:
        """Return the events of `key` in ``start <= seq < stop``."""
        events: list[int] = self.stretch(key, start, stop).tolist()
        return events

    def stretch(self, key: int, start: int, stop: int) -> Array:
        """Same as `between`, as an array; not copied if there is only one run."""
        return _joined([run.stretch(key, start, stop) for run in self.runs])

    def keys_between(self, start: int, stop: int) -> Array:
        """Return the keys that have an event in ``start <= seq < stop``; keys may repeat."""
        keys = [np.empty(0, np.int64)]
        for run in self.runs:
            rows = np.flatnonzero((run.seqs >= start) & (run.seqs < stop))
            keys.append(run.keys[run.starts.searchsorted(rows, "right") - 1])
        return np.concatenate(keys)

    def of_key(self, key: int) -> Array:
        """Return all events of `key`."""
        return _joined([run.of_key(key) for run in self.runs])

    def count(self, key: int, upto: int) -> int:
        """Return the number of events of one key up to `upto`. Cheaper than `counts` for a few keys."""
        return sum(run.count(key, upto) for run in self.runs)

    def counts(self, keys: Array, upto: int) -> Array:
        """Return the number of events up to `upto` for each of many keys."""
        total = np.zeros(len(keys), np.int64)
        for run in self.runs:
            total += run.counts(keys, upto)
        return total


def _joined(parts: list[Array]) -> Array:
    return parts[0] if len(parts) == 1 else np.concatenate([EMPTY, *parts])

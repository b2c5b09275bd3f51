"""Divides a log in time: into iterations, and into the phases of each thread."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

import numpy as np

from gviz.trace.event_log import NOTHING_DROPPED, Dropped
from gviz.trace.graph_state import Iteration, Phase
from gviz.trace.index.search_index import Index
from gviz.trace.phases import PHASE_KINDS
from gviz.values.value import Array


class Spans:
    """The iterations and phases of an index, and lookups by moment.

    The index may grow: `grow` rebuilds only what has changed, because a program can pause at any event.
    """

    def __init__(self) -> None:
        self.iterations: tuple[Iteration, ...] = ()
        """The iterations, in order; there is at least one."""
        self.phases: tuple[Phase, ...] = ()
        """The phases of all threads, sorted by start. A moment between two phases of its thread has none."""
        self._iterations = np.empty((0, 2), np.int64)  # the table that they were built from
        self._phases = np.empty((0, 5), np.int64)
        self._starts: list[int] = []
        self._by_thread: dict[int, list[int]] = {}  # the indices of its phases

    def grow(self, index: Index, dropped: Dropped = NOTHING_DROPPED) -> None:
        """Update from the index. Events that replace dropped ones belong to no iteration or phase."""
        begin = min(dropped.again + 1, max(index.count, 1))  # this event may not exist
        gaps = np.array([(gap.start, gap.end) for gap in dropped.gaps], np.int64).reshape(-1, 2)
        self._build_iterations(index, begin, gaps)
        self._build_phases(index, begin, gaps)

    def iteration_at(self, n: int) -> Iteration:
        """Return the iteration of moment `n` (the first one for moment 0)."""
        return self.iterations[max(bisect_right(self._starts, n) - 1, 0)]

    def phase_at(self, n: int, thread: int) -> Phase | None:
        """Return the phase of a thread at moment `n`, None if there is none."""
        places = self._by_thread.get(thread, ())
        at = bisect_right(places, n, key=lambda place: self.phases[place].start) - 1
        phase = self.phases[places[at]] if at >= 0 else None
        return phase if phase is not None and n <= phase.end else None

    def _build_iterations(self, index: Index, begin: int, gaps: Array) -> None:
        later = index.tables.iterations.start[1:]
        starts = np.unique(np.concatenate(([begin], _after_gaps(later[later > begin], gaps))))
        starts = starts[starts <= max(index.count, begin)]
        ends = _before_gaps(np.append(starts[1:] - 1, index.count), gaps)
        numbers = np.stack((starts, np.maximum(ends, starts) if len(gaps) else ends), axis=1)
        same = _same(self._iterations, numbers)
        self._iterations, self._starts = numbers, starts.tolist()
        new = enumerate(numbers[same:].tolist(), same)
        self.iterations = (*self.iterations[:same], *(Iteration(place, *bounds) for place, bounds in new))

    def _build_phases(self, index: Index, begin: int, gaps: Array) -> None:
        kind, start, end, pass_nr, thread = index.tables.phases
        end = _before_gaps(np.where(end == 0, index.count, end), gaps)
        start = _after_gaps(start, gaps)
        numbers = np.stack((kind, np.maximum(start, begin), end, pass_nr, thread), axis=1)
        numbers = numbers[(end >= begin) & (end >= start)]
        same = _same(self._phases, numbers)
        self._phases = numbers
        for places in self._by_thread.values():
            del places[bisect_left(places, same) :]
        new = numbers[same:].tolist()
        for place, (*_, whose) in enumerate(new, same):
            self._by_thread.setdefault(whose, []).append(place)
        self.phases = (*self.phases[:same], *(Phase(PHASE_KINDS[kind], *rest) for kind, *rest, _ in new))


def _after_gaps(seqs: Array, gaps: Array) -> Array:
    """Return event numbers; in place of one that replaces dropped events, the first event after the gap."""
    return np.where(_in_gaps(seqs, gaps), gaps[_gap_of(seqs, gaps), 1], seqs) if len(gaps) else seqs


def _before_gaps(seqs: Array, gaps: Array) -> Array:
    """Return event numbers; in place of one that replaces dropped events, the last event before the gap."""
    return np.where(_in_gaps(seqs, gaps), gaps[_gap_of(seqs, gaps), 0] - 1, seqs) if len(gaps) else seqs


def _gap_of(seqs: Array, gaps: Array) -> Array:
    return np.maximum(np.searchsorted(gaps[:, 0], seqs, side="right") - 1, 0)


def _in_gaps(seqs: Array, gaps: Array) -> Array:
    at = _gap_of(seqs, gaps)
    inside: Array = (gaps[at, 0] <= seqs) & (seqs < gaps[at, 1])
    return inside


def _same(known: Array, numbers: Array) -> int:
    """Return the number of leading rows that two tables have in common."""
    shared = min(len(known), len(numbers))
    differs = np.flatnonzero((known[:shared] != numbers[:shared]).any(axis=1))
    return int(differs[0]) if len(differs) else shared

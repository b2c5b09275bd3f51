"""Divides a recording in time: into iterations, and into the phases of each thread."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

import numpy as np

from gviz.trace.event_log import NOTHING_DROPPED, MissingParts
from gviz.trace.graph_state import Iteration, Phase
from gviz.trace.index.event_columns import distinct
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
        self._iteration_table = np.empty((0, 2), np.int64)  # start and end, from which `iterations` was built
        self._phase_table = np.empty((0, 5), np.int64)
        self._starts: list[int] = []  # of the iterations
        self._by_thread: dict[int, list[int]] = {}  # the indices of a thread's phases in `phases`

    def grow(self, index: Index, dropped: MissingParts = NOTHING_DROPPED) -> None:
        """Update from the index.

        `dropped` are the parts of the recording that were dropped. The events that replace them belong to no iteration
        and no phase.
        """
        begin = min(dropped.again + 1, max(index.count, 1))  # in an empty recording, there is no such event
        gaps = np.array([(gap.start, gap.end) for gap in dropped.gaps], np.int64).reshape(-1, 2)
        self._build_iterations(index, begin, gaps)
        self._build_phases(index, begin, gaps)

    def iteration_at(self, n: int) -> Iteration:
        """Return the iteration of moment `n` (the first one for moment 0)."""
        return self.iterations[max(bisect_right(self._starts, n) - 1, 0)]

    def phase_at(self, n: int, thread: int) -> Phase | None:
        """Return the phase of a thread at moment `n`, None if there is none."""
        indices = self._by_thread.get(thread, ())
        position = bisect_right(indices, n, key=lambda index: self.phases[index].start) - 1
        phase = self.phases[indices[position]] if position >= 0 else None
        return phase if phase is not None and n <= phase.end else None

    def _build_iterations(self, index: Index, begin: int, gaps: Array) -> None:
        later_starts = index.tables.iterations.start[1:]
        starts = distinct(np.concatenate(([begin], _after_gaps(later_starts[later_starts > begin], gaps))))
        starts = starts[starts <= max(index.count, begin)]
        ends = _before_gaps(np.append(starts[1:] - 1, index.count), gaps)
        table = np.stack((starts, np.maximum(ends, starts) if len(gaps) else ends), axis=1)
        unchanged = _count_equal_rows(self._iteration_table, table)
        self._iteration_table, self._starts = table, starts.tolist()
        new_rows = enumerate(table[unchanged:].tolist(), unchanged)
        self.iterations = (*self.iterations[:unchanged], *(Iteration(number, *bounds) for number, bounds in new_rows))

    def _build_phases(self, index: Index, begin: int, gaps: Array) -> None:
        kind, start, end, pass_nr, thread = index.tables.phases
        end = _before_gaps(np.where(end == 0, index.count, end), gaps)
        start = _after_gaps(start, gaps)
        table = np.stack((kind, np.maximum(start, begin), end, pass_nr, thread), axis=1)
        table = table[(end >= begin) & (end >= start)]
        unchanged = _count_equal_rows(self._phase_table, table)
        self._phase_table = table
        for indices in self._by_thread.values():
            del indices[bisect_left(indices, unchanged) :]
        new_rows = table[unchanged:].tolist()
        for position, (*_, of_thread) in enumerate(new_rows, unchanged):
            self._by_thread.setdefault(of_thread, []).append(position)
        self.phases = (*self.phases[:unchanged], *(Phase(PHASE_KINDS[kind], *rest) for kind, *rest, _ in new_rows))


def _after_gaps(seqs: Array, gaps: Array) -> Array:
    """Return event numbers, but for an event in a gap the first event after the gap.

    The events in a gap are those that replace dropped ones.
    """
    return np.where(_in_gaps(seqs, gaps), gaps[_gap_of(seqs, gaps), 1], seqs) if len(gaps) else seqs


def _before_gaps(seqs: Array, gaps: Array) -> Array:
    """Return event numbers, but for an event in a gap the last event before the gap."""
    return np.where(_in_gaps(seqs, gaps), gaps[_gap_of(seqs, gaps), 0] - 1, seqs) if len(gaps) else seqs


def _gap_of(seqs: Array, gaps: Array) -> Array:
    """Return for each event the index of the last gap that starts at or before it, 0 if there is none."""
    return np.maximum(np.searchsorted(gaps[:, 0], seqs, side="right") - 1, 0)


def _in_gaps(seqs: Array, gaps: Array) -> Array:
    gap = _gap_of(seqs, gaps)
    is_inside: Array = (gaps[gap, 0] <= seqs) & (seqs < gaps[gap, 1])
    return is_inside


def _count_equal_rows(old: Array, new: Array) -> int:
    """Return the number of leading rows that are equal in two tables."""
    length = min(len(old), len(new))
    different = np.flatnonzero((old[:length] != new[:length]).any(axis=1))
    return int(different[0]) if len(different) else length

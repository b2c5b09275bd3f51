"""How a log divides in time: into iterations, and into the phases of each thread."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

import numpy as np

from gviz.trace.graph_state import Iteration, Phase
from gviz.trace.index.columns import Index
from gviz.trace.phases import PHASE_KINDS
from gviz.values.value import Array


class Spans:
    """The stretches of the events that an index has, found by the moments in them.

    The index may grow: then `grow` makes anew only what has become another, as a program stops at any of its events.
    """

    def __init__(self) -> None:
        self.iterations: tuple[Iteration, ...] = ()
        """Every graph's life, in order; there is at least one."""
        self.phases: tuple[Phase, ...] = ()
        """The phases of all threads by their starts; a moment between two of its thread belongs to none."""
        self._iterations = np.empty((0, 2), np.int64)  # the numbers that they were made of
        self._phases = np.empty((0, 5), np.int64)
        self._starts: list[int] = []
        self._by_thread: dict[int, list[int]] = {}  # the places of its phases

    def grow(self, index: Index, begin: int) -> None:
        """Take in what the index has now; what is said again before event `begin` is in none."""
        begin = min(begin, max(index.count, 1))  # there may be no such event
        self._divide(index, begin)
        self._tell_phases(index, begin)

    def iteration_at(self, n: int) -> Iteration:
        """The iteration in which moment `n` lies (the first one for moment 0)."""
        return self.iterations[max(bisect_right(self._starts, n) - 1, 0)]

    def phase_at(self, n: int, thread: int) -> Phase | None:
        """The phase of a thread in which moment `n` lies."""
        places = self._by_thread.get(thread, ())
        at = bisect_right(places, n, key=lambda place: self.phases[place].start) - 1
        phase = self.phases[places[at]] if at >= 0 else None
        return phase if phase is not None and n <= phase.end else None

    def _divide(self, index: Index, begin: int) -> None:
        later = index.tables.iterations.start[1:]
        starts = np.concatenate(([begin], later[later > begin]))
        numbers = np.stack((starts, np.append(starts[1:] - 1, index.count)), axis=1)
        same = _same(self._iterations, numbers)
        self._iterations, self._starts = numbers, starts.tolist()
        new = enumerate(numbers[same:].tolist(), same)
        self.iterations = (*self.iterations[:same], *(Iteration(place, *bounds) for place, bounds in new))

    def _tell_phases(self, index: Index, begin: int) -> None:
        kind, start, end, pass_nr, thread = index.tables.phases
        end = np.where(end == 0, index.count, end)
        numbers = np.stack((kind, np.maximum(start, begin), end, pass_nr, thread), axis=1)[end >= begin]
        same = _same(self._phases, numbers)
        self._phases = numbers
        for places in self._by_thread.values():
            del places[bisect_left(places, same) :]
        new = numbers[same:].tolist()
        for place, (*_, whose) in enumerate(new, same):
            self._by_thread.setdefault(whose, []).append(place)
        self.phases = (*self.phases[:same], *(Phase(PHASE_KINDS[kind], *rest) for kind, *rest, _ in new))


def _same(known: Array, numbers: Array) -> int:
    """How many rows two tables have in common before the first that differs."""
    shared = min(len(known), len(numbers))
    differs = np.flatnonzero((known[:shared] != numbers[:shared]).any(axis=1))
    return int(differs[0]) if len(differs) else shared

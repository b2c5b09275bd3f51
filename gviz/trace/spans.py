"""How a log divides in time: into iterations, and into the phases of each thread."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable

from gviz.trace.index.columns import Index
from gviz.trace.index.tables import entries
from gviz.trace.phases import PHASE_KINDS
from gviz.trace.state import Iteration, Phase


class Spans:
    """The stretches of the events that an index has, found by the moments in them.

    What is said again before event `begin` is in none; there may be no such event. `thread_at` says whose a moment is.
    """

    def __init__(self, index: Index, begin: int, thread_at: Callable[[int], int]) -> None:
        begin = min(begin, max(index.count, 1))
        starts: list[int] = index.tables.iterations.start.tolist()
        self._starts = [begin, *(start for start in starts[1:] if start > begin)]
        self._thread_at = thread_at
        ends = [*(start - 1 for start in self._starts[1:]), index.count]
        self.iterations = tuple(
            Iteration(i, start, end) for i, (start, end) in enumerate(zip(self._starts, ends, strict=True))
        )
        """Every graph's life, in order; there is at least one."""
        self._by_thread: dict[int, list[Phase]] = {}
        phases: list[Phase] = []
        for kind, start, end, pass_nr, thread in entries(index.tables.phases):
            phase = Phase(PHASE_KINDS[kind], max(start, begin), end or index.count, pass_nr)
            if begin <= phase.end:
                phases.append(phase)
                self._by_thread.setdefault(thread, []).append(phase)
        self.phases = tuple(phases)
        """The phases of all threads by their starts; a moment between two of its thread belongs to none."""

    def iteration_at(self, n: int) -> Iteration:
        """The iteration in which moment `n` lies (the first one for moment 0)."""
        return self.iterations[max(bisect_right(self._starts, n) - 1, 0)]

    def phase_at(self, n: int) -> Phase | None:
        """The phase of its thread in which moment `n` lies."""
        phases = self._by_thread.get(self._thread_at(n), ())
        at = bisect_right(phases, n, key=lambda phase: phase.start) - 1
        return phases[at] if at >= 0 and n <= phases[at].end else None

"""Which nodes a backward pass was on its way to when an error ended it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable

from gviz.events import BackwardFinished
from gviz.trace.backward_pass import Reach
from gviz.trace.index.columns import Index
from gviz.trace.log import EventLog, expect


class Abandoned:
    """The ends of failed passes by the nodes that those covered; few programs have any."""

    def __init__(self, log: EventLog, index: Index, reach: Callable[[int], Reach]) -> None:
        self._log = log
        self._index = index
        self._reach = reach
        self._known = 0
        self._ends: dict[int, list[int]] = {}

    def before(self, node: int, n: int) -> int:
        """The last event up to `n` that ended a pass that covered the node with an error, or 0."""
        if len(self._index.tables.failed_passes.seq) > self._known:
            self._catch_up()
        ends = self._ends.get(node, ())
        position = bisect_right(ends, n)
        return ends[position - 1] if position else 0

    def _catch_up(self) -> None:
        ends = self._index.tables.failed_passes.seq[self._known :].tolist()
        for end in ends:
            for node in self._reach(expect(self._log, end, BackwardFinished).pass_nr).nodes:
                self._ends.setdefault(node, []).append(end)
        self._known += len(ends)

"""In what every moment of a log lies: the passes that run, the node whose rule runs, the module call in progress, the
steps of optimizers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from gviz import events as e
from gviz.trace.codec import KIND_NUMBERS
from gviz.trace.index.columns import Index
from gviz.trace.log import EventLog, expect
from gviz.trace.state import Iteration, NodeInfo, Phase
from gviz.trace.steps import Row, by_stack, step_that_made

WHOLE_NODE: frozenset[type[e.Event]] = frozenset(
    (e.NodeCreated, e.GradAccumulated, e.GradCaptured, e.OptimizerStepped, e.Failed)
)
"""What ``next`` stops at, where no rule runs."""


class Contexts:
    """Answers where a moment lies, by search; of a log as far as its `index` goes: of a longer one another is made."""

    def __init__(self, log: EventLog, index: Index) -> None:
        self._log = log
        self._index = index

    def at(self, n: int) -> tuple[int, int, int]:
        """``(pass, step, scope)`` at moment `n`, the innermost of each, 0 where there is none."""
        table = self._index.tables["context"]
        row = int(table[0].searchsorted(n, "right")) - 1
        if row < 0:
            return 0, 0, 0
        _, pass_nr, step, scope, _ = table[:, row].tolist()
        return pass_nr, step, scope

    def running(self, n: int) -> tuple[int, ...]:
        """The passes that run at moment `n`, the last begun first."""
        running = []
        started, finished = self._index.lists["pass_started"], self._index.lists["pass_finished"]
        pass_nr, before = self.at(n)[0], n + 1
        while pass_nr and (start := started.last(pass_nr, before - 1)):
            if not finished.last(pass_nr, n):
                running.append(pass_nr)
            before = start
            pass_nr = self.at(before - 1)[0]
        return tuple(running)

    def scope_at(self, n: int) -> tuple[int, int, int]:
        """``(scope, entered, left)`` of the module call in progress: `left` is 0 if it never ended, all outside."""
        scope = self.at(n)[2]
        if not scope:
            return 0, 0, 0
        return scope, self._index.lists["scope"].last(scope, n), self._index.lists["scope_left"].last(scope, self._end)

    def call(self, scope: int) -> e.ScopeEntered | None:
        """How the module call of a scope began; None if the log does not say."""
        entered = self._index.lists["scope"].last(scope, self._end) if scope else 0
        return expect(self._log, entered, e.ScopeEntered) if entered else None

    def module(self, scope: int) -> str:
        """The path of the module of a scope, or nothing."""
        call = self.call(scope)
        return call.name if call is not None else ""

    @cached_property
    def node_ends(self) -> Sequence[int]:
        """The moments at which one whole node is through: it was made, its backward step is over, or a leaf has its
        gradient; or at which an optimizer has stepped. What happens inside a backward step belongs to the step."""
        seqs, _, _, _, depths = self._index.tables["context"]
        step_ends = seqs[1:][(depths[1:] == 0) & (depths[:-1] > 0)]
        alone = np.concatenate([self._index.lists["kind"].of_key(KIND_NUMBERS[kind]) for kind in WHOLE_NODE])
        rows = seqs.searchsorted(alone, "right") - 1
        outside = alone[(rows < 0) | (depths[rows] == 0)] if len(seqs) else alone
        ends: list[int] = np.unique(np.concatenate((step_ends, outside))).tolist()
        return ends

    def steps_at(self, n: int) -> list[Row]:
        """The steps of optimizers in progress, the innermost, which ends first, first."""
        table = self._index.tables["steps"]
        _, starts, ends, _ = table
        running = table[:, (starts <= n) & ((ends == 0) | (ends >= n))].T.tolist()
        return sorted(map(_row, running), key=lambda row: (row[2] == 0, row[2], -row[1]))

    def steps_in(self, part: Iteration | Phase) -> list[int]:
        """The steps of optimizers that go on in a part of the recording, by the events that first tell of them."""
        said, starts, ends, _ = self._index.tables["steps"]
        found: list[int] = said[(starts <= part.end) & ((ends == 0) | (ends >= part.start))].tolist()
        return found

    def step_of(self, info: NodeInfo) -> int:
        """The step of an optimizer that computed a node itself, by the event that first tells of it; 0 if none did."""
        return step_that_made(self._steps, info.created, info.born)

    @cached_property
    def _steps(self) -> dict[int, list[Row]]:
        return by_stack(self._index.tables["steps"])

    @property
    def _end(self) -> int:
        return self._index.count


def _row(columns: list[int]) -> Row:
    said, start, end, stack = columns
    return said, start, end, stack

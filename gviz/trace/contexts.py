"""In what every moment of a log lies: its thread, the passes that run there, the node whose rule runs, the module call
in progress, the steps of optimizers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np

from gviz import events as e
from gviz.trace.codec import KIND_NUMBERS
from gviz.trace.graph_state import Iteration, NodeInfo, Phase
from gviz.trace.index.columns import Index
from gviz.trace.index.tables import ContextTable, StepTable, entries, picked
from gviz.trace.log import EventLog, expect
from gviz.trace.optimizer_steps import Step, by_stack, step_that_made
from gviz.values.value import Array

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
        """``(pass, step, scope)`` at moment `n` in its thread, the innermost of each, 0 where there is none."""
        return self._in(self.thread_at(n), n)

    def before(self, n: int) -> tuple[int, int, int]:
        """The same for the moment before `n` in the thread of `n`."""
        return self._in(self.thread_at(n), n - 1)

    def _in(self, thread: int, n: int) -> tuple[int, int, int]:
        table = self._by_thread.get(thread)
        row = -1 if table is None else int(table.seq.searchsorted(n, "right")) - 1
        if table is None or row < 0:
            return 0, 0, 0
        return table.pass_nr.item(row), table.step.item(row), table.scope.item(row)

    @cached_property
    def threads(self) -> Sequence[int]:
        """The threads that have said something, numbered from 1 as they appeared; those of a device are none."""
        threads: list[int] = np.unique(self._index.tables.threads.thread).tolist()
        return threads

    def thread_at(self, n: int) -> int:
        """The thread whose event `n` is, 0 before the first."""
        times, threads = self._index.tables.threads
        row = int(times.searchsorted(n, "right")) - 1
        return int(threads[row]) if row >= 0 else 0

    @cached_property
    def _by_thread(self) -> dict[int, ContextTable]:
        table = self._index.tables.context
        if len(self.threads) == 1:
            return {self.threads[0]: table}
        return {thread: picked(table, table.thread == thread) for thread in self.threads}

    def running(self, n: int) -> tuple[int, ...]:
        """The passes that run at moment `n` in any thread, the last begun first."""
        running = []
        started, finished = self._index.lists["pass_started"], self._index.lists["pass_finished"]
        pass_nr, before = self._innermost(n), n + 1
        while pass_nr and (start := started.last(pass_nr, before - 1)):
            if not finished.last(pass_nr, n):
                running.append(pass_nr)
            before = start
            pass_nr = self._innermost(before - 1)
        return tuple(running)

    def _innermost(self, n: int) -> int:
        table = self._index.tables.context
        row = int(table.seq.searchsorted(n, "right")) - 1
        return int(table.innermost[row]) if row >= 0 else 0

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
    def flat(self) -> bool:
        """Whether no node was made in a module call, in a backward pass or where optimizers step."""
        if len(self._index.lists["scope"].whole().keys) or len(self._index.tables.steps.said):
            return False
        table, made = self._index.tables.context, self._index.lists["kind"].of_key(KIND_NUMBERS[e.NodeCreated])
        rows = table.seq.searchsorted(made, "right") - 1
        return not table.innermost[rows[rows >= 0]].any()

    @cached_property
    def node_ends(self) -> Sequence[int]:
        """The moments at which one whole node is through: it was made, its backward step is over, or a leaf has its
        gradient; or at which an optimizer has stepped. What happens inside a backward step belongs to the step."""
        alone = np.concatenate([self._index.lists["kind"].of_key(KIND_NUMBERS[kind]) for kind in WHOLE_NODE])
        times, threads = self._index.tables.threads
        whose = threads[times.searchsorted(alone, "right") - 1] if len(times) else alone
        found = [_ends(table, alone[whose == thread]) for thread, table in self._by_thread.items()]
        ends: list[int] = np.unique(np.concatenate(found)).tolist() if found else []
        return ends

    def steps_at(self, n: int) -> list[Step]:
        """The steps of optimizers in progress in the thread of `n`, the innermost, which ends first, first."""
        table, thread = self._index.tables.steps, self.thread_at(n)
        running = _steps(picked(table, (table.start <= n) & ((table.end == 0) | (table.end >= n))))
        own = (step for step in running if self.thread_at(step.said) == thread)
        return sorted(own, key=lambda step: (step.end == 0, step.end, -step.start))

    def steps_in(self, part: Iteration | Phase) -> list[int]:
        """The steps of optimizers that go on in a part of the recording, by the events that first tell of them."""
        said, starts, ends, _ = self._index.tables.steps
        found: list[int] = said[(starts <= part.end) & ((ends == 0) | (ends >= part.start))].tolist()
        return found

    def steps_around(self, n: int) -> Iterator[tuple[int, e.OptimizerStarted]]:
        """The last step of an optimizer that has begun by moment `n`, and the next one."""
        said = self._index.tables.steps.said
        at = int(said.searchsorted(n, "right"))
        for seq in said[max(at - 1, 0) : at + 1].tolist():
            event = self._log.event(seq)
            if isinstance(event, e.OptimizerStarted):
                yield seq, event

    def step_of(self, info: NodeInfo) -> int:
        """The step of an optimizer that computed a node itself, by the event that first tells of it; 0 if none did."""
        return step_that_made(self._steps, info.created, info.born)

    @cached_property
    def _steps(self) -> dict[int, list[Step]]:
        return by_stack(_steps(self._index.tables.steps))

    @property
    def _end(self) -> int:
        return self._index.count


def _ends(context: ContextTable, alone: Array) -> Array:
    """Where whole nodes of one thread are through, which lies in these contexts; `alone` are those without a rule."""
    seqs, depths = context.seq, context.depth
    step_ends = seqs[1:][(depths[1:] == 0) & (depths[:-1] > 0)]
    rows = seqs.searchsorted(alone, "right") - 1
    outside = alone[(rows < 0) | (depths[rows] == 0)] if len(seqs) else alone
    return np.concatenate((step_ends, outside))


def _steps(table: StepTable) -> Iterator[Step]:
    return map(Step._make, entries(table))

"""The context of each event: thread, running passes, current backward rule, module call and optimizer steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np

from gviz import events as e
from gviz.trace.codec import KIND_NUMBERS
from gviz.trace.event_log import EventLog, expect
from gviz.trace.graph_state import Iteration, NodeInfo, Phase
from gviz.trace.index.event_columns import ContextTable, StepTable, distinct, entries, picked
from gviz.trace.index.search_index import Index
from gviz.trace.optimizer_steps import Step, by_stack, creating_step
from gviz.values.value import Array

WHOLE_NODE: frozenset[type[e.Event]] = frozenset(
    (e.NodeCreated, e.GradAccumulated, e.GradCaptured, e.OptimizerStepped, e.Failed)
)
"""The events at which ``next`` stops outside of backward rules."""


class Contexts:
    """Looks up the context of a moment by binary search.

    It covers the events in its `index`. When the log has grown, a new object is made.
    """

    def __init__(self, log: EventLog, index: Index) -> None:
        self._log = log
        self._index = index

    def at(self, n: int) -> tuple[int, int, int]:
        """Return the innermost ``(pass, step, scope)`` at moment `n` in its thread, 0 where there is none."""
        return self._in(self.thread_at(n), n)

    def before(self, n: int) -> tuple[int, int, int]:
        """Return the same for the moment before `n` in the thread of event `n`."""
        return self._in(self.thread_at(n), n - 1)

    def _in(self, thread: int, n: int) -> tuple[int, int, int]:
        table = self._by_thread.get(thread)
        row = -1 if table is None else int(table.seq.searchsorted(n, "right")) - 1
        if table is None or row < 0:
            return 0, 0, 0
        return table.pass_nr.item(row), table.step.item(row), table.scope.item(row)

    @cached_property
    def threads(self) -> Sequence[int]:
        """The threads that recorded events, numbered from 1 in order of appearance. Device threads are not included."""
        threads: list[int] = distinct(self._index.tables.threads.thread).tolist()
        return threads

    def thread_at(self, n: int) -> int:
        """Return the thread of event `n`, 0 before the first event."""
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
        """Return the passes that run at moment `n` in any thread, the latest first."""
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
        """Return ``(scope, entered, left)`` of the current module call; outside of module calls all are 0.

        `left` is 0 if the call never ended.
        """
        scope = self.at(n)[2]
        if not scope:
            return 0, 0, 0
        return scope, self._index.lists["scope"].last(scope, n), self._index.lists["scope_left"].last(scope, self._end)

    def call(self, scope: int) -> e.ScopeEntered | None:
        """Return the event that began the module call of a scope, None if the log has none."""
        entered = self._index.lists["scope"].last(scope, self._end) if scope else 0
        return expect(self._log, entered, e.ScopeEntered) if entered else None

    def module(self, scope: int) -> str:
        """Return the module path of a scope, or ""."""
        call = self.call(scope)
        return call.name if call is not None else ""

    @cached_property
    def flat(self) -> bool:
        """Whether no node was created in a module call, a backward pass or an optimizer step."""
        if len(self._index.lists["scope"].whole().keys) or len(self._index.tables.steps.said):
            return False
        table, creations = self._index.tables.context, self._index.lists["kind"].of_key(KIND_NUMBERS[e.NodeCreated])
        rows = table.seq.searchsorted(creations, "right") - 1
        return not table.innermost[rows[rows >= 0]].any()

    @cached_property
    def node_ends(self) -> Sequence[int]:
        """The moments at which a whole node is finished.

        It was created, its backward step ended, or a leaf got its gradient. The ends of optimizer steps count too.
        Events inside a backward step belong to that step.
        """
        alone = np.concatenate([self._index.lists["kind"].of_key(KIND_NUMBERS[kind]) for kind in WHOLE_NODE])
        times, threads = self._index.tables.threads
        whose = threads[times.searchsorted(alone, "right") - 1] if len(times) else alone
        by_thread = [_ends(table, alone[whose == thread]) for thread, table in self._by_thread.items()]
        ends: list[int] = distinct(np.concatenate(by_thread)).tolist() if by_thread else []
        return ends

    def steps_at(self, n: int) -> list[Step]:
        """Return the optimizer steps in progress in the thread of event `n`, innermost (first to end) first."""
        table, thread = self._index.tables.steps, self.thread_at(n)
        running = _steps(picked(table, (table.start <= n) & ((table.end == 0) | (table.end >= n))))
        own = (step for step in running if self.thread_at(step.said) == thread)
        return sorted(own, key=lambda step: (step.end == 0, step.end, -step.start))

    def steps_in(self, part: Iteration | Phase) -> list[int]:
        """Return the optimizer steps that overlap a part of the recording, each as the number of its first event."""
        seqs, starts, ends, _ = self._index.tables.steps
        overlapping: list[int] = seqs[(starts <= part.end) & ((ends == 0) | (ends >= part.start))].tolist()
        return overlapping

    def steps_around(self, n: int) -> Iterator[tuple[int, e.OptimizerStarted]]:
        """Yield the last optimizer step that began by moment `n`, and the one after it."""
        seqs = self._index.tables.steps.said
        at = int(seqs.searchsorted(n, "right"))
        for seq in seqs[max(at - 1, 0) : at + 1].tolist():
            event = self._log.event(seq)
            if isinstance(event, e.OptimizerStarted):
                yield seq, event

    def step_of(self, info: NodeInfo) -> int:
        """Return the optimizer step that created a node, as the number of its first event; 0 if none did."""
        return creating_step(self._steps, info.created, info.born)

    @cached_property
    def _steps(self) -> dict[int, list[Step]]:
        return by_stack(_steps(self._index.tables.steps))

    @property
    def _end(self) -> int:
        return self._index.count


def _ends(context: ContextTable, alone: Array) -> Array:
    """Return the events of one thread that end a whole node. `alone` are those that do so outside of rules."""
    seqs, depths = context.seq, context.depth
    step_ends = seqs[1:][(depths[1:] == 0) & (depths[:-1] > 0)]
    rows = seqs.searchsorted(alone, "right") - 1
    outside = alone[(rows < 0) | (depths[rows] == 0)] if len(seqs) else alone
    return np.concatenate((step_ends, outside))


def _steps(table: StepTable) -> Iterator[Step]:
    return map(Step._make, entries(table))

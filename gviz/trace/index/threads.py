"""Which thread each event belongs to, and the pass, backward rule and module call it happened in.

What a device thread does in a pass belongs to the thread that started the pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import deepcopy
from typing import NamedTuple

import numpy as np

from gviz import events as e
from gviz.events import Edge
from gviz.trace.codec import KIND_NUMBERS
from gviz.trace.event_log import Columns
from gviz.trace.index.event_columns import GrowingList, PhaseTable, empty, picked
from gviz.trace.iterations import IterationPattern
from gviz.trace.phases import PhaseRow, PhaseTracker
from gviz.values.value import Array


def _numbers(cell: e.Cell) -> frozenset[int]:
    return frozenset(KIND_NUMBERS[kind] for kind in e.changing(cell))


_STARTED, _FINISHED = _numbers("pass"), _numbers("pass_end")
_RULE, _RULE_END, _CALL = _numbers("rule"), _numbers("rule_end"), _numbers("call")


class _OwnTable(NamedTuple):
    """The phases of one thread."""

    kind: Array
    start: Array
    end: Array
    pass_nr: Array


class Speakers:
    """Assigns events to threads, in order of the log.

    Events of a device thread belong to the thread that started the pass, while the pass runs.
    """

    def __init__(self) -> None:
        self._begun: dict[int, int] = {}  # the thread that started each running pass
        self._works_at: dict[int, int] = {}  # by thread: the pass of another thread that it takes part in

    def of(self, columns: Columns) -> Array:
        """Return the thread that each event of a stretch belongs to."""
        kind, thread, pass_nr = columns.kind, columns.thread, columns.pass_nr
        if not self._works_at and len(thread) and (thread == thread[0]).all():
            rows = np.flatnonzero(np.isin(kind, [*_STARTED, *_FINISHED]))
            if set(self._begun.values()) <= {int(thread[0])}:
                for row in rows.tolist():
                    self._follow(int(kind[row]), int(thread[row]), int(pass_nr[row]))
                return thread
        entries = zip(kind.tolist(), thread.tolist(), pass_nr.tolist(), strict=True)
        return np.array([self._follow(*one) for one in entries], np.int64)

    def _follow(self, kind: int, thread: int, pass_nr: int) -> int:
        whose = self._begun.get(self._works_at.get(thread, 0), thread)
        if kind in _STARTED:
            self._begun[pass_nr] = whose
        elif pass_nr and self._begun.get(pass_nr, whose) != whose:
            self._works_at[thread] = pass_nr
            whose = self._begun[pass_nr]
        if kind in _FINISHED and self._begun.pop(pass_nr, 0):
            self._works_at = {other: at for other, at in self._works_at.items() if at != pass_nr}
        return whose


class Threads:
    """Tracks the context and the phases of each thread, in order of the log.

    `phase_tracker` divides the log as a whole; its `patterns` may be known beforehand.
    """

    def __init__(self, patterns: Iterable[IterationPattern]) -> None:
        self.speakers = Speakers()
        self.phase_tracker = PhaseTracker(patterns)
        self._own: dict[int, PhaseTracker] = {}
        self._contexts: dict[int, Context] = {}
        self._passes: list[int] = []
        self._own_tables: dict[int, GrowingList[_OwnTable]] = {}

    def process(self, seq: int, event: e.Event, thread: int) -> None:
        """Process the next event that may affect phases."""
        own = self._own.get(thread)
        if own is None:
            if len(self._own) == 1 and next(iter(self._own.values())) is self.phase_tracker:
                self._own = {first: deepcopy(self.phase_tracker) for first in self._own}
            own = self._own[thread] = PhaseTracker() if self._own else self.phase_tracker
        if own is not self.phase_tracker:
            self.phase_tracker.process(seq, event)
        own.process(seq, event)

    def enter(self, kind: int, node: int, pass_nr: int, scope: int, thread: int) -> tuple[int, ...]:
        """Process the next event that changes a context. Returns the thread's context and the latest running pass."""
        if kind in _STARTED:
            self._passes.append(pass_nr)
        elif kind in _FINISHED:
            self._passes = [other for other in self._passes if other != pass_nr]
        context = self._contexts.get(thread)
        if context is None:
            context = self._contexts[thread] = Context()
        return *context.process(kind, node, pass_nr, scope), thread, self._passes[-1] if self._passes else 0

    def phases(self) -> PhaseTable:
        """Return the phases of all threads, sorted by start."""
        tables = [self._phases_of(thread, own.rows) for thread, own in self._own.items()]
        if len(tables) < 2:
            return tables[0] if tables else empty(PhaseTable)
        together = PhaseTable._make(map(np.concatenate, zip(*tables, strict=True)))
        return picked(together, together.start.argsort(kind="stable"))

    def _phases_of(self, thread: int, rows: Sequence[PhaseRow]) -> PhaseTable:
        kind, start, end, pass_nr = self._own_tables.setdefault(thread, GrowingList(_OwnTable)).of(rows)
        return PhaseTable(kind, start, end, pass_nr, np.full(len(kind), thread))


CONTEXT = e.changing("pass", "pass_end", "rule", "rule_end", "call", "call_end")
"""The events that change a context."""


class Context:
    """The context of one thread: passes, running backward rules and module calls."""

    def __init__(self) -> None:
        self.passes: list[int] = []
        self._steps: list[Edge] = []  # (pass, node)
        self.scopes: list[int] = []

    def process(self, kind: int, node: int, pass_nr: int, scope: int) -> tuple[int, int, int, int]:
        """Process the next event that changes the context. Returns ``(pass, node of its rule, scope, depth)``."""
        if kind in _RULE:
            self._steps.append((pass_nr, node))
        elif kind in _RULE_END:
            if self._steps == [(pass_nr, node)]:
                self._steps.clear()
            else:
                self._steps = [step for step in self._steps if step != (pass_nr, node)]
        elif kind in _STARTED:
            self.passes.append(pass_nr)
        elif kind in _FINISHED:
            self.passes = [other for other in self.passes if other != pass_nr]
            self._steps = [step for step in self._steps if step[0] != pass_nr]
        elif kind in _CALL:
            self.scopes.append(scope)
        elif scope in self.scopes:
            del self.scopes[self.scopes.index(scope) :]
        pass_now = self.passes[-1] if self.passes else 0
        step_now = self._steps[-1][1] if self._steps and self._steps[-1][0] == pass_now else 0
        return pass_now, step_now, self.scopes[-1] if self.scopes else 0, len(self._steps)

"""The large parts of a recording: its iterations, phases, passes and module calls, its marks and failures."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from gviz import events as e
from gviz.trace.codec import KIND_NUMBERS
from gviz.trace.index.columns import Index
from gviz.trace.index.references import References
from gviz.trace.log import E, EventLog, expect
from gviz.trace.nonfinite import first_nonfinite
from gviz.trace.phases import PHASE_KINDS
from gviz.trace.state import Iteration, Phase

WHOLE_NODE: frozenset[type[e.Event]] = frozenset((e.NodeCreated, e.GradAccumulated, e.GradCaptured, e.Failed))
"""What ``next`` stops at, where no rule runs."""

OF_NO_STATEMENT = (e.BackwardStarted, e.OptimizerStepped, e.GradSet, e.Marked, e.Printed, e.Failed)
"""What never happens within a statement that makes nodes: where it is said, the one before is over."""


class Outline:
    """The part of `Timeline` that says what happens when, apart from any node."""

    _log: EventLog
    _index: Index
    _events: References
    _searched: int  # up to which event a nan was looked for
    _first_bad: int
    _growing: bool  # the program still runs

    def __len__(self) -> int:
        return self._index.count

    @cached_property
    def iterations(self) -> tuple[Iteration, ...]:
        """Every graph's life, in order; there is at least one."""
        starts = self._iteration_starts
        ends = [*(start - 1 for start in starts[1:]), len(self)]
        return tuple(Iteration(i, start, end) for i, (start, end) in enumerate(zip(starts, ends, strict=True)))

    def iteration_at(self, n: int) -> Iteration:
        """The iteration in which moment `n` lies (the first one for moment 0)."""
        return self.iterations[max(bisect_right(self._iteration_starts, n) - 1, 0)]

    @cached_property
    def phases(self) -> tuple[Phase, ...]:
        """All phases in order; a moment between two of them belongs to none."""
        rows = self._index.tables["phases"].T.tolist()
        return tuple(Phase(PHASE_KINDS[kind], start, end or len(self), pass_nr) for kind, start, end, pass_nr in rows)

    def phase_at(self, n: int) -> Phase | None:
        """The phase in which moment `n` lies."""
        at = bisect_right(self.phases, n, key=lambda phase: phase.start) - 1
        return self.phases[at] if at >= 0 and n <= self.phases[at].end else None

    @cached_property
    def marks(self) -> tuple[tuple[int, str], ...]:
        """The moments the program has named."""
        return tuple((seq, event.name) for seq, event in self._all(e.Marked, len(self)))

    @cached_property
    def optimizer_steps(self) -> tuple[int, ...]:
        """The events that say that an optimizer has stepped."""
        return tuple(self._index.lists["kind"].of_key(KIND_NUMBERS[e.OptimizerStepped]).tolist())

    def pass_ends(self, iteration: Iteration) -> list[int]:
        """The moments of an iteration at which a backward pass is over, also one that ran within another."""
        finished = self._index.lists["kind"]
        return finished.between(KIND_NUMBERS[e.BackwardFinished], iteration.start, iteration.end + 1)

    @cached_property
    def failures(self) -> tuple[int, ...]:
        """The events that say that the program failed."""
        return tuple(self._index.lists["kind"].of_key(KIND_NUMBERS[e.Failed]).tolist())

    @cached_property
    def errors(self) -> tuple[int, ...]:
        """The events that tell of an error: the ends of passes whose error was caught, and `failures`."""
        self._log.prefetch([*self._failed_passes, *self.failures])
        ended = [(seq, expect(self._events, seq, e.BackwardFinished).error) for seq in self._failed_passes]
        uncaught = set()
        for failure in self.failures:
            message = expect(self._events, failure, e.Failed).message
            uncaught.add(max((seq for seq, error in ended if seq < failure and error == message), default=0))
        return tuple(sorted([*(seq for seq, _ in ended if seq not in uncaught), *self.failures]))

    @property
    def _failed_passes(self) -> list[int]:
        seqs: list[int] = self._index.tables["failed_passes"][0].tolist()
        return seqs

    @cached_property
    def node_ends(self) -> Sequence[int]:
        """The moments at which one whole node is through: it was made, its backward step is over, or a leaf has its
        gradient. What happens inside a backward step belongs to the step."""
        seqs, _, _, _, depths = self._index.tables["context"]
        step_ends = seqs[1:][(depths[1:] == 0) & (depths[:-1] > 0)]
        alone = np.concatenate([self._index.lists["kind"].of_key(KIND_NUMBERS[kind]) for kind in WHOLE_NODE])
        rows = seqs.searchsorted(alone, "right") - 1
        outside = alone[(rows < 0) | (depths[rows] == 0)] if len(seqs) else alone
        ends: list[int] = np.unique(np.concatenate((step_ends, outside))).tolist()
        return ends

    def scope_at(self, n: int) -> tuple[int, int, int]:
        """``(scope, entered, left)`` of the module call in progress: `left` is 0 if it never ended, all outside."""
        scope = self._context_at(n)[3]
        entered = self._index.lists["scope"].last(scope, n) if scope else 0
        return scope, entered, self._index.lists["scope_left"].last(scope, len(self)) if scope else 0

    @cached_property
    def open_from(self) -> int:
        """The event from which on nodes may yet be named, because their statement may not be over; 0: none may."""
        births = self._index.lists["created"].whole().seqs
        if not (self._growing or self._log.cut_off) or not len(births):
            return 0
        last, kinds = int(births.max()), self._index.lists["kind"]
        left_its_module = expect(self._events, last, e.NodeCreated).scope and not self.scope_at(len(self))[0]
        if left_its_module or any(kinds.last(KIND_NUMBERS[kind], len(self)) > last for kind in OF_NO_STATEMENT):
            return 0
        seqs, _, stacks, _, _ = self._index.tables["origins"]
        others = np.flatnonzero(stacks != stacks[-1])
        return int(seqs[others[-1] + 1 if len(others) else 0])

    def call(self, scope: int) -> e.ScopeEntered | None:
        """How the module call of a scope began; None if the log does not say."""
        entered = self._index.lists["scope"].last(scope, len(self)) if scope else 0
        return expect(self._log, entered, e.ScopeEntered) if entered else None

    def first_bad(self) -> int:
        """The first event that holds a nan or an infinity, or 0. The first call looks at every value."""
        if not self._first_bad and self._searched < len(self):
            self._first_bad = first_nonfinite(self._log, self._searched + 1, len(self) + 1)
            self._searched = len(self)
        return self._first_bad

    def printed(self, n: int) -> list[tuple[int, e.Printed]]:
        """What the program had written up to moment `n`, with event numbers."""
        return self._all(e.Printed, n)

    def _all(self, kind: type[E], n: int) -> list[tuple[int, E]]:
        seqs = self._index.lists["kind"].between(KIND_NUMBERS[kind], 1, n + 1)
        self._log.prefetch(seqs)
        return [(seq, expect(self._events, seq, kind)) for seq in seqs]

    def _context_at(self, n: int) -> tuple[int, ...]:
        context = self._index.tables["context"]
        row = int(context[0].searchsorted(n, "right")) - 1
        return tuple(context[:, row].tolist()) if row >= 0 else (0, 0, 0, 0, 0)

    def _running(self, n: int, innermost: int) -> tuple[int, ...]:
        """The passes that run at moment `n`, the last begun first."""
        running = []
        started, finished = self._index.lists["pass_started"], self._index.lists["pass_finished"]
        pass_nr, before = innermost, n + 1
        while pass_nr and (start := started.last(pass_nr, before - 1)):
            if not finished.last(pass_nr, n):
                running.append(pass_nr)
            before = start
            pass_nr = self._context_at(before - 1)[1]
        return tuple(running)

    @cached_property
    def _iteration_starts(self) -> list[int]:
        starts: list[int] = self._index.tables["iterations"][0].tolist()
        return starts

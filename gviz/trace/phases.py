"""Forward, backward, optimizer; and where one graph's life ends and the next begins."""

from __future__ import annotations

from collections.abc import Iterable

from gviz import events as e
from gviz.trace.preparation import Preparation
from gviz.trace.rounds import Rounds, Turn
from gviz.trace.state import PhaseKind
from gviz.trace.steps import OptimizerSteps

PHASE_KINDS: tuple[PhaseKind, ...] = ("forward", "backward", "optimizer", "failed")

Row = tuple[int, int, int, int]
"""``(place in PHASE_KINDS, start, end, pass_nr)``; `end` is 0 while the phase lasts."""

DECIDING = (
    e.NodeCreated,
    e.StorageWritten,
    e.DataSet,
    e.GradSet,
    e.OptimizerStarted,
    e.OptimizerStepped,
    e.ScopeEntered,
    e.BackwardStarted,
    e.BackwardFinished,
    e.Failed,
)
"""The events that can begin or end a phase."""


class Chapters:
    """Divides a log into phases and iterations while its events go by, and finds the steps of optimizers in it.

    After a pass nothing is decided until something happens: what changes memory or gradients, or makes nodes that
    autograd does not track, is the optimizer's; the first tracked node begins the next forward and the next iteration,
    with the data and all else that was prepared for it: what no forward follows is of the iteration before. A pass that
    made a graph itself (``create_graph``) has only begun something: the iteration goes on, unless memory is written
    before the next forward. Within the step of an optimizer only a tracked node or a module call, those of a closure,
    begin a forward. What comes before the log may have shown some `turns` already.
    """

    def __init__(self, turns: Iterable[Turn] = ()) -> None:
        self.rows: list[Row] = []
        self.rounds = Rounds(turns)
        self.steps = OptimizerSteps()
        self._running: list[int] = []
        self._current: PhaseKind | None = None
        self._pass_over = False  # a pass has finished, and no tracked node was made since
        self._placed = False  # an operation of this graph was made
        self._goes_on = False  # that pass made a graph, and nothing was written since
        self._stepped = False  # the optimizer has finished its step, and no forward began since
        self._preparation = Preparation(self.steps)

    def happen(self, seq: int, event: e.Event) -> None:
        """Take notice of the next event, one of `DECIDING`."""
        if event.__class__ is e.NodeCreated and self._current == "forward" and self._placed and not self._pass_over:
            return  # what almost every event is
        self.steps.happen(seq, event)
        match event:
            case e.Failed():
                self._begin("failed", seq)
            case e.BackwardStarted(pass_nr=pass_nr):
                if not self._running:
                    self._begin("backward", seq, pass_nr)
                    self.rounds.begin_pass(event.stack)
                    self._goes_on = event.create_graph
                self._running.append(pass_nr)
            case e.BackwardFinished(pass_nr=pass_nr):
                self._finish_pass(seq, pass_nr)
            case _ if not self._running:
                self._outside_a_pass(seq, event)

    @property
    def iterations(self) -> list[int]:
        """The events with which iterations begin."""
        return self.rounds.starts

    @property
    def prepared_from(self) -> int:
        """The event with which the next iteration begins if its forward begins now; 0 if nothing is prepared."""
        return self._preparation.start if self._pass_over else 0

    def forget(self, before: int) -> None:
        """Drop what is over, and keep what may still go on, and the iterations that begin from an event on."""
        del self.rows[:-1]
        self.rounds.forget(before)
        self.steps.forget()

    def _finish_pass(self, seq: int, pass_nr: int) -> None:
        if pass_nr in self._running:
            self._running.remove(pass_nr)
        if not self._running:
            self._pass_over, self._stepped = True, False
            self._preparation = Preparation(self.steps)
            if self._current == "backward":
                self._end(seq)
                self._current = None

    def _outside_a_pass(self, seq: int, event: e.Event) -> None:
        made = event if isinstance(event, e.NodeCreated) else None
        tracked = made if made and made.requires_grad and not made.untracked else None
        in_step = bool(self.steps.running)
        if isinstance(event, e.OptimizerStarted | e.OptimizerStepped | e.StorageWritten | e.DataSet):
            self._goes_on = False
        start = seq
        if tracked:
            start = self._track(seq, tracked)
        elif self._pass_over:
            self._preparation.happen(seq, event)
        goes_on = made and not in_step and (self._stepped or self._goes_on)
        if isinstance(event, e.OptimizerStarted):
            self._begin("optimizer", seq)
        elif self._current != "forward":
            forward = tracked or isinstance(event, e.ScopeEntered) or goes_on or not self.rows
            self._begin("forward" if forward else "optimizer", start)
        self._stepped = self._current == "optimizer" and (self._stepped or isinstance(event, e.OptimizerStepped))

    def _track(self, seq: int, made: e.NodeCreated) -> int:
        """Take notice of a tracked node; with which event the forward begins, if it begins with this node."""
        start = seq
        if self._pass_over:
            self._pass_over = False
            if not self._goes_on:
                start = self._preparation.start or seq
                self._begin_iteration(start)
        if not self._placed and made.kind == "op":
            self._placed = True
            self.rounds.begin_forward(made.stack)
        return start

    def _begin_iteration(self, start: int) -> None:
        """Let the next iteration and its forward begin at an event, which may have gone by."""
        self.rounds.begin(start)
        self._placed = False
        while self.rows and self.rows[-1][1] >= start:
            self.rows.pop()
        if self.rows:
            kind, first, end, pass_nr = self.rows[-1]
            self.rows[-1] = (kind, first, min(end or start - 1, start - 1), pass_nr)
        self._current = None

    def _begin(self, kind: PhaseKind, seq: int, pass_nr: int = 0) -> None:
        if kind == self._current and kind != "backward":
            return
        self._end(seq - 1)
        self.rows.append((PHASE_KINDS.index(kind), seq, 0, pass_nr))
        self._current = kind

    def _end(self, seq: int) -> None:
        if self.rows and not self.rows[-1][2]:
            kind, start, _, pass_nr = self.rows[-1]
            self.rows[-1] = (kind, start, seq, pass_nr)

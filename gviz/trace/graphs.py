"""Where one graph's life ends and the next begins."""

from __future__ import annotations

from collections.abc import Iterable

from gviz import events as e
from gviz.trace.evaluation import Evaluation
from gviz.trace.preparation import Preparation
from gviz.trace.rounds import Rounds, Turn
from gviz.trace.steps import OptimizerSteps

_UPDATES = (e.OptimizerStarted, e.OptimizerStepped, e.StorageWritten, e.DataSet)


class Graphs:
    """Divides a log into graphs while its events go by, and puts those together to iterations.

    After a pass the first tracked node begins the next graph, with the data and all else that was prepared for it: what
    no such node follows is of the graph before. A pass that made a graph itself (``create_graph``) has only begun
    something: the graph goes on, unless memory is written before its next node. What comes before the log may have
    shown some `turns` already.
    """

    def __init__(self, turns: Iterable[Turn] = ()) -> None:
        self.rounds = Rounds(turns)
        self.steps = OptimizerSteps()
        self.running: list[int] = []
        """The passes in progress."""
        self.is_made = False
        """Whether a graph is being made, of which one more node decides nothing: it has an operation, and no pass."""
        self.goes_on = False
        """Whether the last pass made a graph itself, and nothing was written since."""
        self._placed = False  # this graph has an operation
        self._passed = False  # a pass is over, and no tracked node was made since
        self._preparation = Preparation(self.steps)
        self._evaluation = None if self.rounds.known else Evaluation()  # until autograd follows an operation

    def happen(self, seq: int, event: e.Event) -> int:
        """Take notice of the next event; where the graph begins of which it is the first tracked node, 0 if of none.

        In a program that only evaluates: where the turn begins that it shows.
        """
        if self.is_made and event.__class__ is e.NodeCreated:
            return 0  # what almost every event is
        self.steps.happen(seq, event)
        match event:
            case e.BackwardStarted(pass_nr=pass_nr):
                if not self.running:
                    self.rounds.begin_pass(event.stack)
                    self.goes_on, self.is_made = event.create_graph, False
                    self._evaluation = None
                self.running.append(pass_nr)
            case e.BackwardFinished(pass_nr=pass_nr):
                if pass_nr in self.running:
                    self.running.remove(pass_nr)
                if not self.running:
                    self._passed, self.is_made = True, False
                    self._preparation = Preparation(self.steps)
            case _ if not self.running:
                return self._outside_a_pass(seq, event)
        return 0

    @property
    def iterations(self) -> list[int]:
        """The events with which iterations begin."""
        return self.rounds.starts if self._evaluation is None else self._evaluation.starts

    @property
    def begun(self) -> int:
        """The event with which an iteration began that will have a pass and has none yet, else 0."""
        return self.rounds.begun if self._evaluation is None else 0

    @property
    def prepared_from(self) -> int:
        """The event with which the next graph begins if it begins now; 0 if nothing is prepared."""
        if self._evaluation is not None:
            return self._evaluation.start
        return self._preparation.start if self._passed else 0

    def forget(self, before: int) -> None:
        """Drop what is over, and keep what may still go on, and the iterations that begin from an event on."""
        self.rounds.forget(before)
        self.steps.forget()
        if self._evaluation is not None:
            self._evaluation.forget(before)

    def _outside_a_pass(self, seq: int, event: e.Event) -> int:
        start = 0
        if isinstance(event, _UPDATES):
            self.goes_on = False
        if isinstance(event, e.NodeCreated) and is_tracked(event):
            start = self._begin(seq) if self._passed else 0
            if not self._placed and event.kind == "op":
                self._placed, self._evaluation = True, None
                self.rounds.begin_forward(event.stack)
            self.is_made = self._placed
        elif self._passed:
            self._preparation.happen(seq, event)
        if self._evaluation is not None:
            start = self._evaluation.happen(seq, event)
        return start

    def _begin(self, seq: int) -> int:
        """Let the next graph begin with what prepared it, unless this node belongs to the last one; where it begins."""
        self._passed = False
        if self.goes_on:
            return 0
        start = self._preparation.start or seq
        self.rounds.begin(start)
        self._placed = False
        return start


def is_tracked(made: e.NodeCreated) -> bool:
    """Whether autograd follows a new node."""
    return made.requires_grad and not made.untracked

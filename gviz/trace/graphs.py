"""Where one graph's life ends and the next begins."""

from __future__ import annotations

from collections.abc import Iterable

from gviz import events as e
from gviz.trace.aside import Aside
from gviz.trace.evaluation import Evaluation
from gviz.trace.preparation import Preparation
from gviz.trace.rounds import Rounds, Turn
from gviz.trace.steps import OptimizerSteps

_UPDATES = (e.OptimizerStarted, e.OptimizerStepped, e.StorageWritten, e.DataSet)


class Graphs:
    """Divides a log into graphs while its events go by, and puts those together to iterations.

    After a pass the first tracked node begins the next graph, with the data and all else that was prepared for it: what
    no such node follows is of the graph before, and so is what turns out to be beside it (`Aside`). A pass that made a
    graph itself (``create_graph``) has only begun something: the graph goes on, unless memory is written before its
    next node. Before autograd follows anything the calls of modules tell (`Evaluation`). What comes before the log may
    have shown some `turns` already.
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
        self._aside: Aside | None = None  # while it is not known whether the graph has begun
        self._beside: set[int] = set()  # the places of those that turned out to be beside their graph

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
                    self.goes_on, self.is_made = event.create_graph, False
                    if self._aside is not None and self._aside.begin_pass(event.roots):
                        self._beside.add(self._aside.place)
                    self._evaluation = self._aside = None
                    self.rounds.begin_pass(event.stack)
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
        if self._aside is not None:
            return self._aside.prepared_from
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
            start = self._follow(seq, event)
            self.is_made = self._placed and self._aside is None
        elif self._passed:
            self._preparation.happen(seq, event)
        elif self._aside is not None:
            self._aside.happen(seq, event)
        if self._evaluation is not None:
            start = self._evaluation.happen(seq, event)
        return start

    def _follow(self, seq: int, made: e.NodeCreated) -> int:
        """Autograd follows a new node; where the graph begins of which it is the first one, else 0."""
        is_op, start = made.kind == "op", 0
        if self._passed and not (is_op and self._is_beside(made)):
            start = self._begin(seq)
        if is_op and (self._passed or not self._placed):
            self._place(seq, made)
        if is_op and self._aside is not None:
            start = self._aside.compute(seq, made) or start
            self._aside = None if self._aside.is_over else self._aside
        return start

    def _is_beside(self, made: e.NodeCreated) -> bool:
        return made.stack in self._beside and not self.goes_on and not self.rounds.knows(made.stack)

    def _place(self, seq: int, made: e.NodeCreated) -> None:
        """The graph has its first operation, or what is beside it has, if it has not begun."""
        beside, rounds = self._passed, self.rounds
        self._placed, self._passed, self._evaluation = True, False, None
        start = self._preparation.start or seq if beside else rounds.open
        if not beside:
            rounds.begin_forward(made.stack)
        if beside or (made.stack and rounds.knows_any and not rounds.knows(made.stack)):
            self._aside = Aside(rounds, self._preparation, made.stack, start, beside=beside)

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

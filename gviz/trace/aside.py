"""What autograd follows beside the graphs, and no pass goes through: a validation without ``no_grad``."""

from __future__ import annotations

from collections.abc import Iterable

from gviz import events as e
from gviz.trace.preparation import Preparation
from gviz.trace.rounds import Rounds


class Aside:
    """What begins at a `place` where no graph began that had a pass: the next graph, or something beside it.

    Where an operation comes with which such a graph began, and which uses nothing that was computed since the last
    pass, the graph begins there, with its `preparation`: what came before is beside it, and of the iteration before. If
    later on it uses something of that, as a penalty that is added to its loss, it has begun with it.

    What was beside a graph before, there, is so from its beginning (`start`); else it is taken for the graph meanwhile.
    """

    def __init__(self, rounds: Rounds, preparation: Preparation, place: int, start: int, *, beside: bool) -> None:
        self.place = place
        self.is_over = False
        """Whether it has turned out to be of the graph."""
        self._rounds = rounds
        self._preparation = preparation
        self._start = start
        self._has_graph = not beside
        self._is_left = False  # the graph has begun after it

    @property
    def prepared_from(self) -> int:
        """The event with which the graph begins if it begins now; 0 if nothing is prepared, or it has begun."""
        return 0 if self._is_left else self._preparation.start

    def happen(self, seq: int, event: e.Event) -> None:
        """Take notice of the next event that autograd does not follow."""
        if not self._is_left:
            self._preparation.happen(seq, event)

    def compute(self, seq: int, made: e.NodeCreated) -> int:
        """Take notice of the next one that autograd follows; where the graph begins if it does with it, else 0."""
        uses = self._preparation.has_made(node for node, _ in made.inputs)
        if self._is_left:
            if uses:
                self._join()
        elif not uses and self._rounds.knows(made.stack):
            start = self._preparation.start or seq
            self._begin(start, made.stack)
            self._is_left = True
            return start
        else:
            self._preparation.happen(seq, made)
        return 0

    def begin_pass(self, roots: Iterable[e.Edge]) -> bool:
        """A pass begins at these roots; whether all this was beside its graph."""
        if not self._is_left or self._preparation.has_made(node for node, _ in roots):
            self._join()
        return not self.is_over

    def _join(self) -> None:
        """The graph has begun with it."""
        if self._is_left or not self._has_graph:
            self._begin(self._start, self.place)
        self.is_over = True

    def _begin(self, start: int, place: int) -> None:
        if self._has_graph:
            self._rounds.move(start)
        else:
            self._rounds.begin(start)
            self._has_graph = True
        self._rounds.begin_forward(place)

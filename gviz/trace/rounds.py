"""Which graphs of a program are one turn of its loop: those of a GAN's two losses, each with a pass of its own."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

Turn = tuple[int, ...]
"""The place with which a turn begins, then the others in it."""


class Rounds:
    """Puts the graphs that a program makes, one after the other, together to iterations.

    A graph is known by the place (the call stack) from which its first pass is begun. Where the program comes back to a
    place for the first time a turn is over: what came in between is of the turn that begins there, then and later. So
    ``a b a b`` are two iterations, while ``a a b b``, two loops one after the other, are four; ``a a b a a b`` are six,
    because nobody can tell from the places whether a loop within a loop is one step or several. Until a first turn is
    over each graph is its own iteration, unless its turn is `known` from before. That a program has come back can be
    told before the pass begins, where it makes the first operation of a graph at the place where it made another's.
    """

    def __init__(self, known: Iterable[Turn] = ()) -> None:
        self.starts: list[int] = [1]
        """The events with which iterations begin."""
        self.open = 1
        """The event with which a graph began that has no pass yet; 0: the last graph has one."""
        self._parts = {first: frozenset(others) for first, *others in known}
        self._row: list[int] = []  # the places of this turn; of a first one each graph stands for itself as yet
        self._before: list[int] = []  # those of the turn before
        self._forward = 0  # where that graph's first operation was made, 0 if it has none yet
        self._passes: dict[int, int] = {}  # by the place of a graph's first operation, that of its pass

    def begin(self, start: int) -> None:
        """The next graph begins at an event; as yet it is taken for what the turn before had in its place."""
        self.open, self._forward = start, 0
        if self._row == self._before or self._row != self._before[: len(self._row)]:
            self.starts.append(start)

    def knows(self, place: int) -> bool:
        """Whether a graph that had a pass began with an operation at a place."""
        return place in self._passes

    @property
    def knows_any(self) -> bool:
        """Whether it knows any such place."""
        return bool(self._passes)

    def move(self, start: int) -> None:
        """The graph that has no pass yet begins at another event."""
        if self.begun:
            self.starts[-1] = start
        self.open = start

    def begin_forward(self, place: int) -> None:
        """The first operation of a graph is made at a place, 0 if that is not known."""
        self._forward = place
        passed = self._passes.get(place)
        if self.open and self._is_first_turn and passed is not None and passed in self._row:
            self._take_back()
            self._come_back(passed)
            self.starts.append(self.open)

    def begin_pass(self, place: int) -> None:
        """A pass is begun from a place; of a graph with several, the first one counts."""
        if not self.open:
            return
        self._take_back()
        start, self.open = self.open, 0
        if self._forward:
            self._passes.setdefault(self._forward, place)
        first_turn = self._is_first_turn
        if not first_turn and place in self._parts[self._row[0]] and place not in self._row:
            self._row.append(place)
            return
        if first_turn and place in self._row:
            self._come_back(place)
        if first_turn and place not in self._parts:
            self._row.append(place)
        else:
            self._before, self._row = self._row, [place]
        self.starts.append(start)

    @property
    def known(self) -> tuple[Turn, ...]:
        """The turns that the program has come back to."""
        return tuple((first, *sorted(others)) for first, others in self._parts.items())

    @property
    def begun(self) -> int:
        """The event with which an iteration began that has no pass yet, 0 if the last one has."""
        return self.open if self.starts[-1:] == [self.open] else 0

    def forget(self, before: int) -> None:
        """Drop the iterations that begin before an event, but for those that may still become one turn."""
        over = len(self.starts) - 1 - len(self._row)
        del self.starts[: max(min(bisect_left(self.starts, before), over), 0)]

    @property
    def _is_first_turn(self) -> bool:
        return not self._row or self._row[0] not in self._parts

    def _take_back(self) -> None:
        """Let the graph without a pass be no iteration, until it is known with what it goes."""
        if self.begun:
            self.starts.pop()

    def _come_back(self, place: int) -> None:
        """The first turn is over that began at a place: it is one iteration."""
        _, *others = self._row = self._row[self._row.index(place) :]
        self._parts[place] = frozenset(others)
        del self.starts[len(self.starts) - len(others) :]

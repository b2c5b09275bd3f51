"""The turns of a program that only evaluates: each begins with the call of a module where the program called it before.

Nothing goes back in such a program, so that no pass tells what one turn of its loop is. What depends on nothing of the
turn before does: the next batch of the data; and what was chosen for it, as the next token is.
"""

from __future__ import annotations

from itertools import islice

from gviz import events as e

Place = tuple[int, int]
"""Where a call first uses a weight on something: the call stack, and the weight."""

_RESULT, _CHOICE = -1, -2
_CHOICES = ("int", "uint", "bool")
_WEIGHTS = ("leaf", "parameter")
_REMEMBERED = 1 << 16
"""So many results of a turn are remembered: what goes on with others goes on with newer ones, too."""


class Evaluation:
    """Finds the turns of a program of which autograd has followed nothing yet, while its events go by.

    The calls of modules count that no other module makes and that use weights. One begins a turn where such a call
    began one or was made in this turn, unless it is given results of this turn: the next layer, cell or head goes on
    with what the last one made. Results are of floating point; integers made of them are choices. A call that turns out
    later to take results of the turn before, as a cell does with its state, has begun none, nor do others made there.
    """

    def __init__(self) -> None:
        self.starts: list[int] = [1]
        """The events with which turns begin."""
        self.start = 0
        """The event with which the next turn begins if the call in progress, or that to come, begins it; 0: it is not
        prepared."""
        self._weights: set[int] = set()
        self._made: dict[e.Edge, int] = {}  # in this turn: results, choices, and what is made of a weight alone, by it
        self._before: dict[e.Edge, int] = {}  # in the turn before, while the call goes on that began this one
        self._beginnings: set[Place] = set()
        self._in_turn: set[Place] = set()
        self._going_on: set[Place] = set()  # where calls take results of the turn before
        self._place: Place = 0, 0
        self._calls: set[int] = set()  # the call that no other makes, and those within it
        self._is_open = self._chosen = False  # it has used nothing but data yet; it has used a choice

    def happen(self, seq: int, event: e.Event) -> int:
        """Take notice of the next event, one that decides on phases; where the turn begins that it shows, else 0."""
        if isinstance(event, e.NodeCreated):
            if event.kind in _WEIGHTS:
                self._weights.add(event.node)
                return 0
            return self._see(seq, event)
        match event:
            case e.ScopeEntered(scope=scope, parent=parent):
                if not parent:
                    self._enter(seq, scope)
                elif parent in self._calls:
                    self._calls.add(scope)
            case e.StorageWritten() | e.DataSet() if self._is_open:
                pass  # of its data, in place
            case e.StorageWritten() | e.DataSet() | e.OptimizerStarted() | e.OptimizerStepped() | e.Failed():
                self._close()
                self.start = 0
        return 0

    def forget(self, before: int) -> None:
        """Drop the turns that begin before an event, but for the last one."""
        self.starts = [start for start in self.starts[:-1] if start >= before] + self.starts[-1:]

    def _enter(self, seq: int, scope: int) -> None:
        self._close()
        self._calls, self._before = {scope}, {}
        self._is_open, self._chosen = True, False
        self._prepare(seq)

    def _close(self) -> None:
        """The call has used no weight: if it used a choice, it has measured something, and prepared nothing."""
        if self._is_open and self._chosen:
            self.start = 0
        self._is_open = False

    def _prepare(self, seq: int) -> None:
        if self._beginnings:
            self.start = self.start or seq

    def _see(self, seq: int, made: e.NodeCreated) -> int:
        """Take notice of an operation, or of data; where the turn begins that it shows, else 0."""
        known, weights = self._made, self._weights
        used = [known.get(edge) or (edge[0] if edge[0] in weights else 0) for edge in made.inputs]
        begun = 0
        if made.scope not in self._calls:
            self._close()
            if any(used):
                self.start = 0
            else:
                self._prepare(seq)
        elif self._is_open:
            begun = self._see_in_call(made, used)
        elif self._before:
            self._look_back(made)
        if any(used):
            self._remember(made, used)
        return begun

    def _remember(self, made: e.NodeCreated, used: list[int]) -> None:
        """Remember what a new node is that is not made of data alone."""
        weight = max(used) if min(used) > 0 else 0
        known = weight or (_RESULT if max(used) > 0 or _RESULT in used else _CHOICE)
        for nr, output in enumerate(made.outputs):
            chosen = known == _RESULT and output.value is not None and output.value.dtype.startswith(_CHOICES)
            self._made[made.node, nr] = _CHOICE if chosen else known
        if len(self._made) > _REMEMBERED:
            self._made = dict(islice(self._made.items(), _REMEMBERED // 2, None))

    def _see_in_call(self, made: e.NodeCreated, used: list[int]) -> int:
        """Take notice of a node made in a call that has used no weight yet; where a turn begins with it, else 0."""
        self._chosen = self._chosen or _CHOICE in used
        if _RESULT in used:
            self._is_open, self.start = False, 0
        elif min(used, default=0) <= 0 < max(used, default=0):
            self._is_open = False
            return self._use_weight((made.stack, max(used)))
        return 0

    def _use_weight(self, place: Place) -> int:
        """A call that was given no results uses its first weight; where a turn begins with it, else 0."""
        start, self.start = self.start, 0
        is_first = not self._beginnings
        comes_back = place in self._beginnings or place in self._in_turn
        if is_first or (comes_back and place not in self._going_on):
            self._beginnings.add(place)
        if not comes_back or place in self._going_on:
            self._in_turn.add(place)
            return 0
        self._before, self._made = {} if self._chosen else self._made, {}
        self._in_turn, self._place = {place}, place
        self.starts.append(start)
        return start

    def _look_back(self, made: e.NodeCreated) -> None:
        """Take the turn back if the call that began it takes a result of the turn before."""
        taken = {self._before.get(edge) for edge in made.inputs}
        if _RESULT in taken:
            del self.starts[max(len(self.starts) - 1, 1) :]
            self._going_on.add(self._place)
            self._made, self._before = self._before | self._made, {}
        elif _CHOICE in taken:
            self._before = {}

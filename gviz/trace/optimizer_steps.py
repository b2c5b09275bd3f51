"""The steps of optimizers, and what they compute themselves.

An optimizer's own operations have the call stack of the step: no line of the program lies between. So what a closure
computes belongs to the program, and so does what a user's own optimizer computes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from gviz import events as e


class Step(NamedTuple):
    """The first event that tells of a step, the events it lasts from and to (0 while it goes on), and where it was
    called.

    A trace that does not tell when a step starts has its end alone; such a step starts after the one before it there.
    """

    said: int
    start: int
    end: int
    stack: int


class OptimizerSteps:
    """Finds the steps of a log while its events go by. Several threads may overlap: a stack is of one of them."""

    def __init__(self) -> None:
        self.rows: list[Step] = []
        self.running: dict[int, int] = {}
        """The places in `rows` of the steps in progress, by where they were called."""
        self._ends: dict[int, int] = {}  # of the last step that was called in each place

    def happen(self, seq: int, event: e.Event) -> None:
        """Take notice of the next event."""
        match event:
            case e.OptimizerStarted(stack=stack):
                self._end(stack, seq - 1)  # one that has raised
                self.running[stack] = len(self.rows)
                self.rows.append(Step(seq, seq, 0, stack))
            case e.OptimizerStepped(stack=stack):
                if not self._end(stack, seq):
                    self.rows.append(Step(seq, self._ends.get(stack, 0) + 1, seq, stack))
                self._ends[stack] = seq
            case e.Failed():
                for stack in tuple(self.running):
                    self._end(stack, seq)

    def forget(self) -> None:
        """Drop what is known of steps that are over."""
        self.rows = [self.rows[place] for place in self.running.values()]
        self.running = {row.stack: place for place, row in enumerate(self.rows)}

    def computes(self, made: e.NodeCreated) -> bool:
        """Whether a step in progress has made a new node itself."""
        return made.stack in self.running and _is_own(made)

    def _end(self, stack: int, end: int) -> bool:
        """End the step that was called there, if it is in progress."""
        place = self.running.pop(stack, None)
        if place is None:
            return False
        self.rows[place] = self.rows[place]._replace(end=end)
        return True


def _is_own(made: e.NodeCreated) -> bool:
    return made.stack != 0 and not made.requires_grad


def by_stack(steps: Iterable[Step]) -> dict[int, list[Step]]:
    """The steps by the place where they were called."""
    found: dict[int, list[Step]] = {}
    for step in steps:
        found.setdefault(step.stack, []).append(step)
    return found


def step_that_made(steps: Mapping[int, Sequence[Step]], made: e.NodeCreated, born: int) -> int:
    """The event that first tells of the step that made a node itself, 0 if none did."""
    called = steps.get(made.stack)
    if called is None or not _is_own(made):
        return 0
    at = bisect_right(called, born, key=lambda step: step.start) - 1
    return called[at].said if at >= 0 and born <= (called[at].end or born) else 0

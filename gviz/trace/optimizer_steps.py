"""The steps of optimizers, and the nodes that they compute themselves.

An optimizer's own operations have the call stack of the step, without a line of the program in between. Operations of a
closure or of a user-defined optimizer therefore belong to the program.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from gviz import events as e


class Step(NamedTuple):
    """One optimizer step: its first event, its range of events (`end` is 0 while it runs), and its call site.

    An old trace without the start of steps has only the end; such a step starts after the previous one with its call
    site.
    """

    said: int
    start: int
    end: int
    stack: int


class OptimizerSteps:
    """Finds the optimizer steps of a log, in order of its events. Steps of several threads may overlap."""

    def __init__(self) -> None:
        self.rows: list[Step] = []
        self.running: dict[int, int] = {}
        """The indices in `rows` of the running steps, by call site."""
        self._ends: dict[int, int] = {}  # the end of the last step at each call site

    def process(self, seq: int, event: e.Event) -> None:
        """Process the next event."""
        match event:
            case e.OptimizerStarted(stack=stack):
                self._end(stack, seq - 1)  # one that raised an exception
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
        """Drop the steps that have ended."""
        self.rows = [self.rows[place] for place in self.running.values()]
        self.running = {row.stack: place for place, row in enumerate(self.rows)}

    def computes(self, created: e.NodeCreated) -> bool:
        """Return whether a running step created a new node itself."""
        return created.stack in self.running and _is_own(created)

    def _end(self, stack: int, end: int) -> bool:
        """End the running step with this call site, if there is one."""
        place = self.running.pop(stack, None)
        if place is None:
            return False
        self.rows[place] = self.rows[place]._replace(end=end)
        return True


def _is_own(created: e.NodeCreated) -> bool:
    return created.stack != 0 and not created.requires_grad


def by_stack(steps: Iterable[Step]) -> dict[int, list[Step]]:
    """Return the steps by call site."""
    steps_by_stack: dict[int, list[Step]] = {}
    for step in steps:
        steps_by_stack.setdefault(step.stack, []).append(step)
    return steps_by_stack


def creating_step(steps: Mapping[int, Sequence[Step]], created: e.NodeCreated, born: int) -> int:
    """Return the first event of the step that created a node itself, 0 if none did."""
    called = steps.get(created.stack)
    if called is None or not _is_own(created):
        return 0
    at = bisect_right(called, born, key=lambda step: step.start) - 1
    return called[at].said if at >= 0 and born <= (called[at].end or born) else 0

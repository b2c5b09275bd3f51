"""The processes of one training run, each with a recording of its own: where they stop being one training run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from gviz.compare.comparison import Difference, compared
from gviz.compare.data_parallel import Parted, Shared, is_shared
from gviz.compare.side import Side
from gviz.events import Failed
from gviz.trace.timeline import Timeline

Course = Literal["passes", "steps", "end", "iterations"]
"""What a rank has too few or too many of: backward passes or optimizer steps in an iteration; the rest of an iteration
that it did not come to; iterations."""

INTERRUPTED = "KeyboardInterrupt"
"""The error of a rank that somebody has ended: it says nothing of what the rank waited for."""


@dataclass(frozen=True, slots=True)
class Parting:
    """In which iteration (from 1) and in what a rank stops agreeing with another one.

    `what` is a shared part of training with its first `difference`, or something of the course of the program with the
    `counts` on each side (of an end: after how many events the iteration broke off, 0 if it did not). `between` holds
    all that differs in that iteration, None where only one of them has it.
    """

    iteration: int
    what: Shared | Course
    difference: Difference | None = None
    counts: tuple[int, int] = (0, 0)
    between: Parted | None = None


@dataclass(frozen=True, slots=True)
class Rank:
    """One process, by its recording: one that was not closed is of a process that was killed, or still runs."""

    timeline: Timeline

    @property
    def iterations(self) -> int:
        """How many iterations it began."""
        return len(self.timeline.iterations)

    def completed(self, iteration: int) -> bool:
        """Whether it came through an iteration, from 1: it did not fail in it, and was not killed there."""
        return iteration < self.iterations or (self.timeline.finished and not self.timeline.failures)

    @property
    def failure(self) -> tuple[str, str]:
        """Class and message of the error that ended the program, empty if none did."""
        event = self.timeline.event(self.timeline.failures[-1]) if self.timeline.failures else None
        return (event.error, event.message) if isinstance(event, Failed) else ("", "")

    def reached(self, iteration: int) -> int:
        """How many events of an iteration there are if it broke off, else 0."""
        span = self.timeline.iterations[iteration - 1]
        return 0 if self.completed(iteration) else span.end - span.start + 1


class _Buffers:
    """The buffers of two ranks, which need not agree in each iteration: they are not broadcast after ``no_sync()``."""

    def __init__(self, a: Rank, b: Rank) -> None:
        self._ranks = a, b

    def meet_again(self, parting: Parting) -> bool:
        """Whether it is about a buffer alone that the ranks bring together from time to time."""
        if parting.what != "buffer" or parting.difference is None or parting.between is None:
            return False
        return _name(parting.between, parting.difference) in self._brought_together

    @cached_property
    def _brought_together(self) -> frozenset[str]:
        """The names of those that agree in some iteration after one in which they differed."""
        a, b = self._ranks
        parted, together = set[str](), set[str]()
        for iteration in range(1, min(a.iterations, b.iterations) + 1):
            between = between_ranks(a.timeline, b.timeline, iteration)
            differing = {_name(between, each) for part, each in between.parts if part == "buffer"}
            side = between.comparison.a
            known = {side.infos[node].name for node in side.buffers if side.known_before_use(node)}
            together |= (parted & known) - differing
            parted |= differing
        return frozenset(together)


def _name(between: Parted, difference: Difference) -> str:
    """What a node that differs is called, by the side that has it."""
    sides = zip((between.comparison.a, between.comparison.b), difference.pair, strict=True)
    return next(side.infos[node].name for side, node in sides if node)


def parting(a: Rank, b: Rank) -> Parting | None:
    """Where two ranks stop agreeing; None if they agree in all that ranks of one training run share."""
    buffers = _Buffers(a, b)
    for iteration in range(1, min(a.iterations, b.iterations) + 1):
        found = _parting_in(a, b, iteration, buffers)
        if found is not None:
            return found
    counts = a.iterations, b.iterations
    return Parting(min(counts) + 1, "iterations", counts=counts) if counts[0] != counts[1] else None


def parting_in(a: Rank, b: Rank, iteration: int) -> Parting | None:
    """What two ranks do not share in one iteration that both have, None if they agree in it."""
    return _parting_in(a, b, iteration, _Buffers(a, b))


def _parting_in(a: Rank, b: Rank, iteration: int, buffers: _Buffers) -> Parting | None:
    between = between_ranks(a.timeline, b.timeline, iteration)
    partings = (each for each in _partings(between) if not buffers.meet_again(each))
    if a.completed(iteration) and b.completed(iteration):
        return next(partings, None)
    for part, difference in between.parts:
        if part == "parameter":
            return Parting(iteration, part, difference, between=between)
    reached = a.reached(iteration), b.reached(iteration)
    raised = any(a.failure) and a.failure[0] != INTERRUPTED
    as_far = reached[0] == reached[1]
    if all(reached) and a.failure == b.failure and (raised or as_far):
        return next(partings, None) if as_far else None
    return Parting(iteration, "end", counts=reached, between=between)


def between_ranks(a: Timeline, b: Timeline, iteration: int) -> Parted:
    """All that differs between two ranks in one iteration, gradients as an optimizer used them."""
    return Parted(compared(Side(a, iteration, at_step=True), Side(b, iteration, at_step=True)))


def _partings(between: Parted) -> Iterator[Parting]:
    """What the ranks do not share, in the order in which it comes about: gradients are used after the passes."""
    a, b = between.comparison.a, between.comparison.b
    iteration, found = a.number, [(part, each) for part, each in between.parts if is_shared(part)]
    yield from (Parting(iteration, part, each, between=between) for part, each in found if part != "gradient")
    if a.passes != b.passes:
        yield Parting(iteration, "passes", counts=(a.passes, b.passes), between=between)
    if len(a.steps) != len(b.steps):
        yield Parting(iteration, "steps", counts=(len(a.steps), len(b.steps)), between=between)
    yield from (Parting(iteration, part, each, between=between) for part, each in found if part == "gradient")

"""Compares the processes of one data-parallel training run, each with its own recording: where they diverge.

Each rank has its own batch. Its data, results, random numbers and gradients before averaging are expected to differ.
All ranks share the parameters, the gradients that their optimizers use, the buffers and the tracked graph. If one of
these differs, the copies of the model drift apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, TypeGuard, get_args

from gviz.compare.compared_iteration import Side, shared_iterations
from gviz.compare.recording_comparison import STRUCTURE, Comparison, Difference, compare
from gviz.events import Failed
from gviz.trace.timeline import Timeline

Shared = Literal["parameter", "gradient", "buffer", "graph"]
"""What has to agree: a parameter at the start of the iteration; a gradient as an optimizer used it; a tensor of a
module that is not a parameter; the tracked graph with its inputs and dtypes.
"""

Own = Literal["data", "random", "result", "own gradient", "own work"]
"""What is expected to differ: data from outside; what a dropout drew; results of these; a gradient that no optimizer
used; operations without a gradient, such as for logging.
"""

Part = Shared | Own

SHARED: tuple[Shared, ...] = get_args(Shared)
OWN: tuple[Own, ...] = get_args(Own)


def is_shared(part: Part) -> TypeGuard[Shared]:
    """Return whether ranks have this part of training in common."""
    return part in SHARED


class RankDifferences:
    """The differences between two ranks in one iteration, each with the part of training it concerns."""

    def __init__(self, comparison: Comparison) -> None:
        self.comparison = comparison

    @cached_property
    def parts(self) -> tuple[tuple[Part, Difference], ...]:
        """Every difference, in order of time."""
        return tuple((self._part(each), each) for each in self.comparison.differences)

    @cached_property
    def shared(self) -> Comparison:
        """The comparison with only the differences that ranks should not have."""
        shared = [difference for part, difference in self.parts if is_shared(part)]
        return replace(self.comparison, differences=tuple(shared))

    @property
    def first(self) -> tuple[Part, Difference] | None:
        """The first difference that ranks should not have."""
        return next(((part, difference) for part, difference in self.parts if is_shared(part)), None)

    def _part(self, difference: Difference) -> Part:
        sides = (self.comparison.a, self.comparison.b)
        there = [(side, node) for side, node in zip(sides, difference.pair, strict=True) if node]
        side, node = there[0]
        if difference.kind in ("gradient", "kept"):
            used = difference.kind == "gradient" and any(one in its.updated for its, one in there)
            return "gradient" if used else "own gradient"
        created = side.infos[node].created
        if created.kind == "op":
            return _part_of_operation(difference, there)
        if any(one in its.learnt for its, one in there):
            return "graph" if difference.kind in STRUCTURE else "parameter"
        if any(one in its.buffers for its, one in there):
            return "buffer" if all(its.known_before_use(one) for its, one in there) else "result"
        return "random" if any(name == "mask" for name, _ in created.attrs) else "data"


def _part_of_operation(difference: Difference, there: list[tuple[Side, int]]) -> Part:
    """Return the part for a difference in an operation: the graph, or only a result computed from other data."""
    if all(side.infos[node].created.untracked for side, node in there):
        return "own work"
    if difference.kind == "missing" and not any(side.is_reached(node) for side, node in there):
        return "own work"
    if difference.kind in ("missing", "inputs", "tracking", "dtype"):
        return "graph"
    if difference.kind == "arguments" and not _other_sizes(there):
        return "graph"
    return "result"


def _other_sizes(there: list[tuple[Side, int]]) -> bool:
    """Return whether two operations had inputs or outputs of other shapes, which explains different arguments."""
    shapes = []
    for side, node in there:
        inputs = side.infos[node].created.inputs
        input_values = [value for of, nr in inputs for value in side.values.get(of, ())[nr : nr + 1]]
        shapes.append([value and value.shape for value in (*input_values, *side.values[node])])
    return shapes[0] != shapes[-1]


# Where two ranks diverge

Course = Literal["passes", "steps", "end", "iterations"]
"""What a rank has too few or too many of: backward passes or optimizer steps in an iteration; the rest of an iteration
that it did not reach; iterations.
"""

INTERRUPTED = "KeyboardInterrupt"
"""The error of a rank that was ended by hand. It does not show what the rank was waiting for."""


@dataclass(frozen=True, slots=True)
class Divergence:
    """The iteration (from 1) in which a rank stops agreeing with another one, and what differs.

    `what` is a shared part of training with its first `difference`, or a part of the program's course with the `counts`
    on each side (for "end": after how many events the iteration broke off, 0 if it did not). `between` has everything
    that differs in that iteration, None if only one rank has it.
    """

    iteration: int
    what: Shared | Course
    difference: Difference | None = None
    counts: tuple[int, int] = (0, 0)
    between: RankDifferences | None = None


@dataclass(frozen=True, slots=True)
class Rank:
    """One process, by its recording. If that was not closed, the process was killed or still runs."""

    timeline: Timeline

    @property
    def iterations(self) -> int:
        """The number of iterations it started."""
        return self.timeline.iteration_count

    def completed(self, iteration: int) -> bool:
        """Return whether it completed an iteration (from 1): it did not fail and was not killed there."""
        return iteration < self.iterations or (self.timeline.finished and not self.timeline.failures)

    @property
    def failure(self) -> tuple[str, str]:
        """The class and message of the error that ended the program, empty if none did."""
        event = self.timeline.event(self.timeline.failures[-1]) if self.timeline.failures else None
        return (event.error, event.message) if isinstance(event, Failed) else ("", "")

    def reached(self, iteration: int) -> int:
        """Return the number of events in an iteration if it broke off, otherwise 0."""
        span = self.timeline.iteration_numbered(iteration)
        if span is None:
            return 0
        return 0 if self.completed(iteration) else span.end - span.start + 1


class _Buffers:
    """The buffers of two ranks, which may differ in some iterations: they are not broadcast after ``no_sync()``."""

    def __init__(self, a: Rank, b: Rank) -> None:
        self._ranks = a, b

    def is_synchronized_later(self, parting: Divergence) -> bool:
        """Return whether the divergence only concerns a buffer that the ranks synchronize from time to time."""
        if parting.what != "buffer" or parting.difference is None or parting.between is None:
            return False
        return _name(parting.between, parting.difference) in self._brought_together

    @cached_property
    def _brought_together(self) -> frozenset[str]:
        """The names of buffers that agree in some iteration after one in which they differed."""
        a, b = self._ranks
        parted, together = set[str](), set[str]()
        for iteration in shared_iterations(a.timeline, b.timeline):
            between = rank_differences(a.timeline, b.timeline, iteration)
            differing = {_name(between, each) for part, each in between.parts if part == "buffer"}
            side = between.comparison.a
            known = {side.infos[node].name for node in side.buffers if side.known_before_use(node)}
            together |= (parted & known) - differing
            parted |= differing
        return frozenset(together)


def _name(between: RankDifferences, difference: Difference) -> str:
    """Return the name of a node that differs, from a side that has it."""
    sides = zip((between.comparison.a, between.comparison.b), difference.pair, strict=True)
    return next(side.infos[node].name for side, node in sides if node)


def divergence(a: Rank, b: Rank) -> Divergence | None:
    """Return where two ranks stop agreeing; None if they agree in everything that ranks share."""
    buffers = _Buffers(a, b)
    for iteration in shared_iterations(a.timeline, b.timeline):
        difference = _divergence_in(a, b, iteration, buffers)
        if difference is not None:
            return difference
    counts = a.iterations, b.iterations
    return Divergence(min(counts) + 1, "iterations", counts=counts) if counts[0] != counts[1] else None


def divergence_in(a: Rank, b: Rank, iteration: int) -> Divergence | None:
    """Return what two ranks do not share in one iteration that both have, None if they agree in it."""
    return _divergence_in(a, b, iteration, _Buffers(a, b))


def _divergence_in(a: Rank, b: Rank, iteration: int, buffers: _Buffers) -> Divergence | None:
    between = rank_differences(a.timeline, b.timeline, iteration)
    partings = (each for each in _divergences(between) if not buffers.is_synchronized_later(each))
    if a.completed(iteration) and b.completed(iteration):
        return next(partings, None)
    for part, difference in between.parts:
        if part == "parameter":
            return Divergence(iteration, part, difference, between=between)
    reached = a.reached(iteration), b.reached(iteration)
    raised = any(a.failure) and a.failure[0] != INTERRUPTED
    as_far = reached[0] == reached[1]
    if all(reached) and a.failure == b.failure and (raised or as_far):
        return next(partings, None) if as_far else None
    return Divergence(iteration, "end", counts=reached, between=between)


def rank_differences(a: Timeline, b: Timeline, iteration: int) -> RankDifferences:
    """Return all differences between two ranks in one iteration, with gradients as an optimizer used them."""
    return RankDifferences(compare(Side(a, iteration, at_step=True), Side(b, iteration, at_step=True)))


def _divergences(between: RankDifferences) -> Iterator[Divergence]:
    """Yield what the ranks do not share, in order of causation: gradients are used after the passes."""
    a, b = between.comparison.a, between.comparison.b
    iteration, differences = a.number, [(part, each) for part, each in between.parts if is_shared(part)]
    yield from (Divergence(iteration, part, each, between=between) for part, each in differences if part != "gradient")
    if a.passes != b.passes:
        yield Divergence(iteration, "passes", counts=(a.passes, b.passes), between=between)
    if len(a.steps) != len(b.steps):
        yield Divergence(iteration, "steps", counts=(len(a.steps), len(b.steps)), between=between)
    yield from (Divergence(iteration, part, each, between=between) for part, each in differences if part == "gradient")

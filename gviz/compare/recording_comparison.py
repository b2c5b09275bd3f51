"""All differences between two iterations: of the forward, of gradients kept from before, of gradients over time."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from typing import Literal, NamedTuple

from gviz.compare.alignment import Pair, align
from gviz.compare.compared_iteration import Side, shared_iterations
from gviz.compare.source_changes import SourceChange, source_changes
from gviz.compare.tolerance import Distance, Tolerance, distance
from gviz.events import OptimizerStarted
from gviz.events.event import Attr
from gviz.events.optimizer_options import Option, options_in
from gviz.trace.graph_state import NodeState
from gviz.trace.sequence_period import smallest_period
from gviz.values.value import Value

Kind = Literal["missing", "inputs", "arguments", "tracking", "dtype", "shape", "value", "kept", "gradient"]
"""What differs. "missing": only one side has the node. "inputs": it is computed from other nodes. "arguments": with
other arguments. "tracking": autograd tracks it on one side only. "dtype", "shape", "value": its value. "kept": its
``.grad`` before the first pass, to which that pass adds. "gradient": its gradient, which may be missing on one side.
"""

STRUCTURE: frozenset[Kind] = frozenset({"missing", "inputs", "arguments", "tracking"})

_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]+")


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing in which a pair of nodes differs.

    `output_nr` is the output for "shape", "dtype", "value" and "gradient", otherwise 0. `values` are its two values, if
    they exist, and `events` the events that created them (0: none). `distance` is set if the shapes agree.
    """

    kind: Kind
    pair: Pair
    output_nr: int
    events: tuple[int, int]
    values: tuple[Value | None, Value | None] = (None, None)
    distance: Distance | None = None


@dataclass(frozen=True)
class Comparison:
    """Two sides, every node of both in one order, and their differences: forward first, then gradients."""

    a: Side
    b: Side
    pairs: tuple[Pair, ...]
    differences: tuple[Difference, ...]

    def first(self, *kinds: Kind) -> Difference | None:
        """Return the first difference of one of these kinds, in order of time."""
        return next((difference for difference in self.differences if difference.kind in kinds), None)

    def without_gradients(self, nodes: Container[int]) -> Comparison:
        """Return the comparison without the gradient differences of these nodes of the first side."""
        others = [each for each in self.differences if each.kind != "gradient" or each.pair[0] not in nodes]
        return replace(self, differences=tuple(others))

    @cached_property
    def step(self) -> StepDifference | None:
        """The first optimizer step with different options, up to these iterations."""
        return first_step_difference(self.a, self.b)

    @cached_property
    def unknown(self) -> int:
        """The number of common nodes that were not compared in full, because one side lacks some of their numbers."""
        both = ((self.a.values[x], self.b.values[y]) for x, y in self.pairs if x and y)
        return sum(any(value is None or not value.is_known for value in (*mine, *other)) for mine, other in both)

    @property
    def outside(self) -> int:
        """The number of operations outside the loop, which were not compared."""
        return sum(len(side.outside) for side in (self.a, self.b) if side.in_loop)

    @property
    def programs(self) -> tuple[SourceChange, ...]:
        """The differences in the source texts of the two programs."""
        return source_changes(self.a.timeline.sources, self.b.timeline.sources)

    @property
    def same_structure(self) -> bool:
        """Whether both are the same graph, regardless of values."""
        return not any(difference.kind in STRUCTURE for difference in self.differences)


def compare(a: Side, b: Side, tolerance: Tolerance | None = None, pairs: tuple[Pair, ...] | None = None) -> Comparison:
    """Compare two sides. Aligns them unless `pairs` is given; without a tolerance, each dtype has its own.

    If the numbers of the iterations differ, only operations in the loop are compared, because one of them may also
    contain the set-up.
    """
    if a.number != b.number:
        a, b = (replace(side, in_loop=True) for side in (a, b))
    pairs = align(a, b) if pairs is None else pairs
    partners = {x: y for x, y in pairs if x and y}
    sides = _Sides(a, b, tolerance or Tolerance())
    forward = [difference for pair in pairs for difference in _forward_differences(sides, pair, partners)]
    forward += [difference for pair in pairs if all(pair) for difference in _kept_difference(sides, pair)]
    backward = [difference for pair in pairs if all(pair) for difference in _gradient_differences(sides, pair)]
    backward.sort(key=lambda difference: max(difference.events))
    return Comparison(a, b, pairs, (*forward, *backward))


class _Sides(NamedTuple):
    """Both sides, and the allowed difference of their numbers."""

    a: Side
    b: Side
    allowed: Tolerance

    def apart(self, x: Value, y: Value) -> Distance | None:
        """Return the distance of two values; None if they count as equal."""
        return distance(self.a.timeline, x, self.b.timeline, y, self.allowed)


def _forward_differences(sides: _Sides, pair: Pair, partners: dict[int, int]) -> Iterator[Difference]:
    """Yield the differences of a pair of nodes, except gradients."""
    (a, b, _), (x, y) = sides, pair
    events = a.infos[x].born if x else 0, b.infos[y].born if y else 0
    if not (x and y):
        yield Difference("missing", pair, 0, events)
        return
    if a.creates(x) and b.creates(y):
        yield from _operation_differences(a, b, pair, events, partners)
    for nr, (mine, other) in enumerate(zip(a.values[x], b.values[y], strict=False)):
        values = a.value_event(x, nr), b.value_event(y, nr)
        yield from _value_differences(sides, pair, nr, values, mine, other)


def _operation_differences(
    a: Side, b: Side, pair: Pair, events: tuple[int, int], partners: dict[int, int]
) -> Iterator[Difference]:
    """Yield the differences between two operations that both sides ran."""
    left, right = a.infos[pair[0]].created, b.infos[pair[1]].created
    if [(partners.get(node, -node), nr) for node, nr in left.inputs] != list(right.inputs):
        yield Difference("inputs", pair, 0, events)
    if left.attrs != right.attrs and without_addresses(left.attrs) != without_addresses(right.attrs):
        yield Difference("arguments", pair, 0, events)
    if (left.requires_grad, bool(left.untracked)) != (right.requires_grad, bool(right.untracked)):
        yield Difference("tracking", pair, 0, events)


def without_addresses(attrs: tuple[tuple[str, Attr], ...]) -> list[tuple[str, Attr]]:
    """Return arguments without memory addresses, which Python includes in the text of an object."""
    return [(name, _ADDRESS.sub("", value) if isinstance(value, str) else value) for name, value in attrs]


def _value_differences(
    sides: _Sides, pair: Pair, nr: int, events: tuple[int, int], x: Value | None, y: Value | None
) -> Iterator[Difference]:
    if x is None or y is None:
        return
    if x.dtype != y.dtype:
        yield Difference("dtype", pair, nr, events, (x, y))
    if x.shape != y.shape:
        yield Difference("shape", pair, nr, events, (x, y))
    elif (gap := sides.apart(x, y)) is not None:
        yield Difference("value", pair, nr, events, (x, y), gap)


def _kept_difference(sides: _Sides, pair: Pair) -> Iterator[Difference]:
    """Yield a difference if a pass adds to a different ``.grad``, for example because ``zero_grad`` was forgotten."""
    x, y = sides.a.kept.get(pair[0], (None, 0)), sides.b.kept.get(pair[1], (None, 0))
    yield from _gradient_difference(sides, "kept", pair, 0, (x, y))


def _gradient_differences(sides: _Sides, pair: Pair) -> Iterator[Difference]:
    """Yield the outputs of a pair whose gradients at the end differ, or were cleared on one side only.

    Clearing is checked only where both programs ended. Elsewhere, one program may clear gradients for a next iteration
    that the other does not have.
    """
    a, b, _ = sides
    left, right = a.states[pair[0]], b.states[pair[1]]
    if left is None or right is None:
        return
    ended = a.is_at_the_end and b.is_at_the_end
    for nr in range(min(len(left.outputs), len(right.outputs))):
        gradients = gradient(left, nr), gradient(right, nr)
        if ended and _is_cleared(a, left, nr) != _is_cleared(b, right, nr):
            gradients = _grad(left, nr), _grad(right, nr)
        yield from _gradient_difference(sides, "gradient", pair, nr, gradients)


def _is_cleared(side: Side, state: NodeState, nr: int) -> bool:
    """Return whether a leaf received a gradient from a pass, but its ``.grad`` is now None."""
    output = state.outputs[nr]
    return output.grad is None and bool(output.parts) and side.infos[state.node].created.kind != "op"


def _grad(state: NodeState, nr: int) -> tuple[Value | None, int]:
    output = state.outputs[nr]
    return output.grad, output.grad_seq


def _gradient_difference(
    sides: _Sides, kind: Kind, pair: Pair, nr: int, gradients: tuple[tuple[Value | None, int], tuple[Value | None, int]]
) -> Iterator[Difference]:
    """Yield a difference if two gradients (each with its event) differ in value, shape or existence."""
    (x, seq_x), (y, seq_y) = gradients
    if x is None and y is None:
        return
    gap = None
    if x is not None and y is not None and x.shape == y.shape:
        gap = sides.apart(x, y)
        if gap is None:
            return
    yield Difference(kind, pair, nr, (seq_x, seq_y), (x, y), gap)


def gradient(state: NodeState, nr: int) -> tuple[Value | None, int]:
    """Return the gradient of an output (``.grad``, otherwise the incoming gradient) and the event that completed it."""
    output = state.outputs[nr]
    if output.grad is not None:
        return output.grad, output.grad_seq
    return output.incoming, output.parts[-1].seq if output.parts else 0


# Optimizer options: a different learning rate shows here before any weight differs

Steps = list[tuple[int, OptimizerStarted]]


@dataclass(frozen=True, slots=True)
class OptionDifference:
    """An option of a parameter group (counted from 0) with two different values."""

    group: int
    name: str
    values: tuple[Option, Option]


@dataclass(frozen=True, slots=True)
class StepDifference:
    """The first step with different options: its iteration and its event on each side.

    `stack` is where the second side called it.
    """

    iterations: tuple[int, int]
    events: tuple[int, int]
    kind: str
    stack: int
    options: tuple[OptionDifference, ...]


def first_step_difference(a: Side, b: Side) -> StepDifference | None:
    """Return the first step with different options in the two iterations.

    If both are the same iteration of two recordings, earlier iterations are searched, too.
    Options that only one side has do not count: two versions of a framework may differ in them.
    """
    from_start = a.timeline is not b.timeline and a.number == b.number
    earlier = shared_iterations(a.timeline, b.timeline) if from_start else []
    for number in [number for number in earlier if number < a.number] + [0]:
        places = (number, number) if number else (a.number, b.number)
        left, right = _steps(a, places[0]), _steps(b, places[1])
        for (seq, mine), (other_seq, other) in zip(left, right, strict=False):
            options = tuple(_option_differences(mine, other)) if mine.kind == other.kind else ()
            if options:
                return StepDifference(places, (seq, other_seq), mine.kind, other.stack, options)
    return None


def _steps(side: Side, number: int) -> Steps:
    """Return the steps that start in an iteration."""
    iteration = side.timeline.iteration_numbered(number)
    if iteration is None:
        return []
    return list(side.timeline.select((OptimizerStarted,), iteration.start, iteration.end + 1))


def _option_differences(a: OptimizerStarted, b: OptimizerStarted) -> Iterator[OptionDifference]:
    for group in range(min(len(a.options), len(b.options))):
        mine, other = options_in(a.options, group), options_in(b.options, group)
        for name in mine:
            if name in other and mine[name] != other[name]:
                yield OptionDifference(group, name, (mine[name], other[name]))


# Operations that only one side has: often a loop that ran more often


@dataclass(frozen=True, slots=True)
class RepeatedOperations:
    """Consecutive operations on one side only: the ops of `period`, repeated `times` times, from node `first` on.

    `known` is True if the other side has the same period just before: it ran fewer iterations of the same loop.
    """

    side: Literal["a", "b"]
    first: int
    nodes: int
    period: tuple[str, ...]
    times: int
    known: bool


def one_sided_runs(comparison: Comparison) -> Iterator[RepeatedOperations]:
    """Yield the runs in order."""
    ops = {*comparison.a.ops}, {*comparison.b.ops}
    pairs = [(x, y) for x, y in comparison.pairs if x in ops[0] or y in ops[1]]
    before: list[str] = []
    for which, group in groupby(pairs, key=lambda pair: "both" if all(pair) else "a" if pair[0] else "b"):
        members = list(group)
        side = comparison.b if which == "b" else comparison.a
        names = [side.infos[y if which == "b" else x].op.name for x, y in members]
        if which == "both":
            before += names
            continue
        period = names[: smallest_period(names)]
        first = members[0][which == "b"]
        known = before[-len(period) :] == period
        yield RepeatedOperations(
            "b" if which == "b" else "a", first, len(names), tuple(period), len(names) // len(period), known
        )

"""Everything in which two sides differ, in the order in which it happened."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NamedTuple

from gviz.compare.alignment import Pair, aligned
from gviz.compare.closeness import Distance, Tolerance, distance
from gviz.compare.programs import Changed, changed
from gviz.compare.side import Side
from gviz.compare.steps import OtherStep, other_step
from gviz.events.event import Attr
from gviz.trace.state import NodeState
from gviz.values import Value

Kind = Literal["missing", "inputs", "arguments", "tracking", "dtype", "shape", "value", "kept", "gradient"]
"""What differs: only one side has the node; it is computed from other nodes; with other arguments; autograd tracks it
on one side only; then what it holds. ``kept``: the ``.grad`` it has before the first pass, to which that pass adds.
``gradient``: there on one side only, or another one."""

STRUCTURE: frozenset[Kind] = frozenset({"missing", "inputs", "arguments", "tracking"})

_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]+")


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing in which a pair of nodes differs.

    `output_nr` is the output for ``shape``, ``dtype``, ``value`` and ``gradient``, else 0. `values` are the two of it,
    where it has them, and `events` the events that made them (0: none). `distance` is there if shapes agree.
    """

    kind: Kind
    pair: Pair
    output_nr: int
    events: tuple[int, int]
    values: tuple[Value | None, Value | None] = (None, None)
    distance: Distance | None = None


@dataclass(frozen=True)
class Comparison:
    """Two sides, every node of both in one order, and their differences: forward ones, then gradients."""

    a: Side
    b: Side
    pairs: tuple[Pair, ...]
    differences: tuple[Difference, ...]

    def first(self, *kinds: Kind) -> Difference | None:
        """The first difference of one of these kinds, in order of time."""
        return next((difference for difference in self.differences if difference.kind in kinds), None)

    def without_gradients(self, nodes: Container[int]) -> Comparison:
        """The same without what is said of the gradients of these nodes of the first side."""
        kept = [each for each in self.differences if each.kind != "gradient" or each.pair[0] not in nodes]
        return replace(self, differences=tuple(kept))

    @cached_property
    def step(self) -> OtherStep | None:
        """The first step of an optimizer that was made with other options, up to these iterations."""
        return other_step(self.a, self.b)

    @cached_property
    def unknown(self) -> int:
        """How many nodes that both sides have were not compared in full, as numbers of theirs are not known on one."""
        both = ((self.a.values[x], self.b.values[y]) for x, y in self.pairs if x and y)
        return sum(any(value is None or not value.is_known for value in (*mine, *other)) for mine, other in both)

    @property
    def programs(self) -> tuple[Changed, ...]:
        """Where the texts of the two programs differ."""
        return changed(self.a.timeline.sources, self.b.timeline.sources)

    @property
    def same_structure(self) -> bool:
        """Whether both are the same graph, whatever flows through it."""
        return not any(difference.kind in STRUCTURE for difference in self.differences)


def compared(a: Side, b: Side, tolerance: Tolerance | None = None, pairs: tuple[Pair, ...] | None = None) -> Comparison:
    """Compare two sides, aligned unless `pairs` are known; without a tolerance each dtype has its own."""
    pairs = aligned(a, b) if pairs is None else pairs
    partners = {x: y for x, y in pairs if x and y}
    sides = _Sides(a, b, tolerance or Tolerance())
    forward = [difference for pair in pairs for difference in _forward(sides, pair, partners)]
    forward += [difference for pair in pairs if all(pair) for difference in _kept(sides, pair)]
    backward = [difference for pair in pairs if all(pair) for difference in _gradients(sides, pair)]
    backward.sort(key=lambda difference: max(difference.events))
    return Comparison(a, b, pairs, (*forward, *backward))


class _Sides(NamedTuple):
    """Both sides, and how far numbers of theirs may be apart."""

    a: Side
    b: Side
    allowed: Tolerance

    def apart(self, x: Value, y: Value) -> Distance | None:
        """How far a value of the one is from that of the other; None where they count as the same."""
        return distance(self.a.timeline, x, self.b.timeline, y, self.allowed)


def _forward(sides: _Sides, pair: Pair, partners: dict[int, int]) -> Iterator[Difference]:
    """In what a pair of nodes differs, apart from gradients."""
    (a, b, _), (x, y) = sides, pair
    events = a.infos[x].born if x else 0, b.infos[y].born if y else 0
    if not (x and y):
        yield Difference("missing", pair, 0, events)
        return
    if a.made(x) and b.made(y):
        yield from _made(a, b, pair, events, partners)
    for nr, (mine, other) in enumerate(zip(a.values[x], b.values[y], strict=False)):
        made = a.made_value(x, nr), b.made_value(y, nr)
        yield from _values(sides, pair, nr, made, mine, other)


def _made(a: Side, b: Side, pair: Pair, events: tuple[int, int], partners: dict[int, int]) -> Iterator[Difference]:
    """In what two operations differ that both sides ran."""
    left, right = a.infos[pair[0]].created, b.infos[pair[1]].created
    if [(partners.get(node, -node), nr) for node, nr in left.inputs] != list(right.inputs):
        yield Difference("inputs", pair, 0, events)
    if left.attrs != right.attrs and without_addresses(left.attrs) != without_addresses(right.attrs):
        yield Difference("arguments", pair, 0, events)
    if (left.requires_grad, bool(left.untracked)) != (right.requires_grad, bool(right.untracked)):
        yield Difference("tracking", pair, 0, events)


def without_addresses(attrs: tuple[tuple[str, Attr], ...]) -> list[tuple[str, Attr]]:
    """Arguments as two processes can have them in common: Python writes an object with where it lies in memory."""
    return [(name, _ADDRESS.sub("", value) if isinstance(value, str) else value) for name, value in attrs]


def _values(
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


def _kept(sides: _Sides, pair: Pair) -> Iterator[Difference]:
    """Whether a pass adds to another ``.grad`` on either side, as where ``zero_grad`` was forgotten on one."""
    x, y = sides.a.kept.get(pair[0], (None, 0)), sides.b.kept.get(pair[1], (None, 0))
    yield from _gradient(sides, "kept", pair, 0, (x, y))


def _gradients(sides: _Sides, pair: Pair) -> Iterator[Difference]:
    """The outputs of a pair whose gradients at the end differ, or of which one was cleared and the other was not.

    That is asked where both programs ended: within a loop the one may clear it where the other has no next turn.
    """
    a, b, _ = sides
    left, right = a.states[pair[0]], b.states[pair[1]]
    if left is None or right is None:
        return
    ended = a.is_at_the_end and b.is_at_the_end
    for nr in range(min(len(left.outputs), len(right.outputs))):
        found = gradient(left, nr), gradient(right, nr)
        if ended and _is_cleared(a, left, nr) != _is_cleared(b, right, nr):
            found = _left(left, nr), _left(right, nr)
        yield from _gradient(sides, "gradient", pair, nr, found)


def _is_cleared(side: Side, state: NodeState, nr: int) -> bool:
    """Whether what a pass has brought to a leaf is no longer in its ``.grad``."""
    output = state.outputs[nr]
    return output.grad is None and bool(output.parts) and side.infos[state.node].created.kind != "op"


def _left(state: NodeState, nr: int) -> tuple[Value | None, int]:
    output = state.outputs[nr]
    return output.grad, output.grad_seq


def _gradient(
    sides: _Sides, kind: Kind, pair: Pair, nr: int, found: tuple[tuple[Value | None, int], tuple[Value | None, int]]
) -> Iterator[Difference]:
    """Whether two gradients differ, each with the event that made it: in number, in shape, or by being there."""
    (x, seq_x), (y, seq_y) = found
    if x is None and y is None:
        return
    gap = None
    if x is not None and y is not None and x.shape == y.shape:
        gap = sides.apart(x, y)
        if gap is None:
            return
    yield Difference(kind, pair, nr, (seq_x, seq_y), (x, y), gap)


def gradient(state: NodeState, nr: int) -> tuple[Value | None, int]:
    """The gradient of an output, ``.grad`` before what a pass brought, and the event that completed it."""
    output = state.outputs[nr]
    if output.grad is not None:
        return output.grad, output.grad_seq
    return output.incoming, output.parts[-1].seq if output.parts else 0

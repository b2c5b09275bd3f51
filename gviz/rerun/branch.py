"""A changed course of events: a recording of its own, and its relation to the recording it branched from."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from msgspec.structs import replace

from gviz import events as e
from gviz.trace.event_log import MemoryLog
from gviz.trace.graph_state import Iteration, NodeState, OutputState
from gviz.trace.node_gradients import in_its_iteration
from gviz.trace.recording.source_text import write
from gviz.trace.timeline import Timeline
from gviz.values.value import Array, Value


@dataclass(frozen=True, slots=True)
class Stop:
    """Why a node's value (with `of_gradient`, the gradients beyond it) is unknown in the branch."""

    node: int
    why: str
    of_gradient: bool = False


@dataclass(frozen=True, slots=True)
class Branch:
    """What was run again: its events, and the branch's node for every node of the recording.

    `stopped` lists where the branch had to stop; what depends on those nodes is missing. Gradients of the nodes in
    `unknown` (numbers of the recording) have no values, because something between them and the root was not run. The
    contents of the storages in `forgotten` are unknown, because unknown values were written to them. Where the program
    read one of `decisions`, it would have taken another path; the branch follows the recorded one. The user has set the
    values of the nodes in `set_values` (numbers of the recording): their formulas do not lead to them.
    """

    log: MemoryLog
    numbers: Mapping[int, int]
    stopped: tuple[Stop, ...]
    unknown: frozenset[int]
    decisions: tuple[Decision, ...] = ()
    forgotten: frozenset[int] = frozenset()
    set_values: frozenset[int] = frozenset()

    def write(self, path: Path) -> None:
        """Write its events to a new trace. Raises GvizError if that fails."""
        write(self.log, path)


def without_elements(value: Value) -> Value:
    """Return a value of the same dtype and shape without numbers."""
    return Value(value.dtype, value.shape)


def with_ancestors(timeline: Timeline, nodes: Iterable[int]) -> set[int]:
    """Return these nodes and everything that gradients reach through them."""
    stack, reached = list(nodes), set[int]()
    while stack:
        node = stack.pop()
        if node not in reached and node in timeline.nodes:
            reached.add(node)
            stack += [source for source, _ in timeline.info(node).created.inputs]
    return reached


# Data-dependent branches of the program: booleans and integers that differ from the recorded ones

_PLACES = frozenset({"index", "start", "end"})
"""Attributes that are positions in a tensor."""


@dataclass(frozen=True, slots=True)
class Decision:
    """A node that the program may have based a decision on (``if s > 5``): its recorded value and that in the
    branch.
    """

    node: int
    was: bool | int
    now: bool | int


class Decisions:
    """The single booleans and integers of the branch that differ from the recording."""

    def __init__(self) -> None:
        self._decisions: dict[int, Decision] = {}

    def note(self, node: int, recorded: Array | None, now: Array) -> None:
        """Remember a number that a program may base a decision on, if it has changed."""
        if recorded is None or recorded.size != 1 or now.size != 1 or recorded.dtype.kind not in "biu":
            return
        if now.item() != recorded.item():
            self._decisions[node] = Decision(node, recorded.item(), now.item())

    def source(self, attrs: Iterable[tuple[str, object]]) -> int:
        """Return the changed integer that an index among these attributes may come from; 0 if there is none."""
        places = [value for name, value in attrs if name in _PLACES and isinstance(value, int)]
        integers = {one.was: one.node for one in self._decisions.values() if not isinstance(one.was, bool)}
        return next((integers[place] for place in places if place in integers), 0)

    def unused(self, timeline: Timeline, nodes: Iterable[int]) -> Iterator[Decision]:
        """Yield those that no operation among `nodes` uses: they were computed for the program to read."""
        used = {source for node in nodes for source, _ in timeline.info(node).created.inputs}
        return (decision for node, decision in self._decisions.items() if node not in used)


# The branch next to its recording, in the recording's node numbers


class BranchView:
    """The branch at each moment of its iteration: after the last event that the recording and the branch share."""

    def __init__(self, timeline: Timeline, iteration: Iteration, branch: Branch, changes: tuple[str, ...]) -> None:
        self.branch, self.changes = branch, changes
        self.timeline = Timeline(branch.log)
        self._recorded, self._iteration = timeline, iteration
        self._nodes = {there: here for here, there in branch.numbers.items()}

    def covers(self, n: int) -> bool:
        """Return whether a moment of the recording is in the iteration that was run again."""
        return self._iteration.start <= n <= self._iteration.end

    def moment(self, n: int) -> int:
        """Return the branch's moment when the recording is at event `n`."""
        return self._moments[min(max(n - self._iteration.start, 0), len(self._moments) - 1)]

    def event(self, n: int) -> int:
        """Return the branch's event for event `n` of the recording; 0 if it does not happen in the branch."""
        there = self.moment(n) if self.covers(n) else 0
        before = self.moment(n - 1) if n > self._iteration.start else 0
        return there if there > before else 0

    def is_unknown(self, node: int, n: int) -> bool:
        """Return whether the value of a node at event `n` is unknown because the branch stopped before it."""
        (state,) = self.states([node], n)
        return state is not None and any(one.value is not None and not one.value.is_known for one in state.outputs)

    def text(self, text: str) -> str:
        """Return a text about the branch with the recording's node numbers: ``#4`` for what is ``#9`` there."""
        return re.sub(r"#(\d+)", lambda match: f"#{self._nodes.get(int(match[1]), '?')}", text)

    def states(self, nodes: Sequence[int], n: int) -> list[NodeState | None]:
        """Return nodes of the recording as they are in the branch at event `n`; None if not created yet.

        Values and gradients that are unknown in the branch have no numbers.
        """
        here = self._recorded.at(n).states(nodes)
        known = [node for node in nodes if node in self.branch.numbers]
        there = self.timeline.at(self.moment(n)).states([self.branch.numbers[node] for node in known])
        states = dict(zip(known, there, strict=True))
        return [
            None
            if state is None
            else self._renumbered(node, known_state, state)
            if (known_state := states.get(node)) is not None
            else self._older(node, in_its_iteration(self._recorded, n, state) or state)
            for node, state in zip(nodes, here, strict=True)
        ]

    def _older(self, node: int, state: NodeState) -> NodeState:
        """Return a node that is not in the branch: as recorded if it is older than the iteration, otherwise unknown."""
        info, outputs = self._recorded.info(node), state.outputs
        memories = {output.storage for output in info.created.outputs}
        is_lost = info.born >= self._iteration.start or not self.branch.forgotten.isdisjoint(memories)
        if is_lost:
            outputs = tuple(map(_without_value, outputs))
        if is_lost or node in self.branch.unknown:
            outputs = tuple([self._without_gradient(output, output) for output in outputs])
        return replace(state, outputs=outputs)

    def _renumbered(self, node: int, state: NodeState, recorded: NodeState) -> NodeState:
        outputs = zip(state.outputs, recorded.outputs, strict=False)
        return replace(state, node=node, outputs=tuple([self._output(node, *pair) for pair in outputs]))

    def _without_gradient(self, output: OutputState, recorded: OutputState) -> OutputState:
        """Return an output with unknown gradients: recorded ones keep their dtype and shape, without numbers."""
        incoming = recorded.incoming and without_elements(recorded.incoming)
        grad = output.grad
        if recorded.grad is not None and recorded.grad_seq >= self._iteration.start:
            grad = without_elements(recorded.grad)
        return replace(output, incoming=incoming, parts=(), grad=grad)

    def _output(self, node: int, output: OutputState, recorded: OutputState) -> OutputState:
        if node in self.branch.unknown:
            return self._without_gradient(output, recorded)
        parts = [replace(part, source=self._nodes.get(part.source, 0)) for part in output.parts]
        return replace(output, parts=parts, written_by=self._nodes.get(output.written_by, 0))

    @cached_property
    def _moments(self) -> list[int]:
        """For each event of the iteration, the branch's moment."""
        happened: dict[Hashable, list[int]] = {}
        for seq in range(len(self.timeline), 0, -1):
            happened.setdefault(_event_key(self.timeline.event(seq), self._nodes), []).append(seq)
        own = {node: node for node in self.branch.numbers}
        moments, last = list[int](), 0
        for seq in range(self._iteration.start, self._iteration.end + 1):
            again = happened.get(_event_key(self._recorded.event(seq), own))
            last = max(last, again.pop()) if again else last
            moments.append(last)
        return moments


def _without_value(output: OutputState) -> OutputState:
    return output if output.value is None else replace(output, value=without_elements(output.value))


def _event_key(event: e.Event, nodes: dict[int, int]) -> Hashable:
    """Return a key for what an event does, without its numbers. It may occur again later."""
    node, source = (nodes.get(getattr(event, name, 0), 0) for name in ("node", "source"))
    return type(event), node, source, getattr(event, "output_nr", 0), getattr(event, "slot", 0)

"""A branch beside its recording: what every node would be at each moment, told in the recording's numbers."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from functools import cached_property

from msgspec.structs import replace

from gviz import events as e
from gviz.trace.its_iteration import in_its_iteration
from gviz.trace.state import Iteration, NodeState, OutputState
from gviz.trace.timeline import Timeline
from gviz.whatif.branch import Branch, not_known


class Beside:
    """The moments of an iteration in its branch: the branch stands where it did what the recording did last."""

    def __init__(self, timeline: Timeline, iteration: Iteration, branch: Branch, changes: tuple[str, ...]) -> None:
        self.branch, self.changes = branch, changes
        self.timeline = Timeline(branch.log)
        self._recorded, self._iteration = timeline, iteration
        self._nodes = {there: here for here, there in branch.numbers.items()}

    def covers(self, n: int) -> bool:
        """Whether a moment of the recording lies in the iteration that was run again."""
        return self._iteration.start <= n <= self._iteration.end

    def moment(self, n: int) -> int:
        """The branch's moment when the recording is at event `n`."""
        return self._moments[min(max(n - self._iteration.start, 0), len(self._moments) - 1)]

    def text(self, text: str) -> str:
        """A text about the branch with the recording's numbers of nodes: ``#4`` for what is ``#9`` there."""
        return re.sub(r"#(\d+)", lambda found: f"#{self._nodes.get(int(found[1]), '?')}", text)

    def states(self, nodes: Sequence[int], n: int) -> list[NodeState | None]:
        """Nodes of the recording as they are in the branch at event `n`; None for what is not there yet.

        Values and gradients that the branch does not know are without numbers.
        """
        here = self._recorded.at(n).states(nodes)
        known = [node for node in nodes if node in self.branch.numbers]
        there = self.timeline.at(self.moment(n)).states([self.branch.numbers[node] for node in known])
        states = dict(zip(known, there, strict=True))
        return [
            None
            if state is None
            else self._told(node, known_state, state)
            if (known_state := states.get(node)) is not None
            else self._older(node, in_its_iteration(self._recorded, n, state) or state)
            for node, state in zip(nodes, here, strict=True)
        ]

    def _older(self, node: int, state: NodeState) -> NodeState:
        """A node that the branch has not: as it was if it is older than the iteration, else unknown."""
        info, outputs = self._recorded.info(node), state.outputs
        memories = {output.storage for output in info.created.outputs}
        is_lost = info.born >= self._iteration.start or not self.branch.forgotten.isdisjoint(memories)
        if is_lost:
            outputs = tuple(map(_without_value, outputs))
        if is_lost or node in self.branch.unknown:
            outputs = tuple([self._without_gradient(output, output) for output in outputs])
        return replace(state, outputs=outputs)

    def _told(self, node: int, state: NodeState, recorded: NodeState) -> NodeState:
        outputs = zip(state.outputs, recorded.outputs, strict=False)
        return replace(state, node=node, outputs=tuple([self._output(node, *pair) for pair in outputs]))

    def _without_gradient(self, output: OutputState, recorded: OutputState) -> OutputState:
        """An output whose gradients are not known: of those that the recording has only that they are there."""
        incoming = recorded.incoming and not_known(recorded.incoming)
        grad = output.grad
        if recorded.grad is not None and recorded.grad_seq >= self._iteration.start:
            grad = not_known(recorded.grad)
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
            happened.setdefault(_what(self.timeline.event(seq), self._nodes), []).append(seq)
        own = {node: node for node in self.branch.numbers}
        moments, last = list[int](), 0
        for seq in range(self._iteration.start, self._iteration.end + 1):
            again = happened.get(_what(self._recorded.event(seq), own))
            last = max(last, again.pop()) if again else last
            moments.append(last)
        return moments


def _without_value(output: OutputState) -> OutputState:
    return output if output.value is None else replace(output, value=not_known(output.value))


def _what(event: e.Event, nodes: dict[int, int]) -> Hashable:
    """What happens in an event, but for the numbers in it; the same again happens later."""
    node, source = (nodes.get(getattr(event, name, 0), 0) for name in ("node", "source"))
    return type(event), node, source, getattr(event, "output_nr", 0), getattr(event, "slot", 0)

"""Predicts the order in which the rest of a backward pass will run."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from heapq import heappop, heappush

from gviz.events import Edge
from gviz.trace.graph_state import NodeState
from gviz.trace.timeline import Timeline
from gviz.values.value import Value


@dataclass(frozen=True, slots=True)
class UpcomingNodes:
    """The nodes that run next. `ends_early` is True if more follow in an unknown order."""

    nodes: tuple[int, ...] = ()
    ends_early: bool = False


def planned(timeline: Timeline, n: int, most: int) -> UpcomingNodes:
    """Return up to `most` nodes that run next in the backward pass at moment `n`; empty outside of a pass.

    A node is ready when all its contributions have arrived. Both engines take the newest ready node first. The age of
    nodes that were discovered after they were created is unknown, so the order among several of them is unknown too.
    """
    moment = timeline.at(n)
    if not moment.pass_nr or moment.phase is None:
        return UpcomingNodes()
    nodes = [node for node in timeline.nodes.of(timeline.iteration_at(n)) if timeline.nodes.born(node) <= n]
    states = [state for state in moment.states(nodes) if state is not None and state.pass_nr == moment.pass_nr]
    return _order(timeline, {state.node: state for state in states if state.step != "done"}, moment.step, most)


def _order(timeline: Timeline, left: dict[int, NodeState], running: int, most: int) -> UpcomingNodes:
    parts = {node: [part for out in state.outputs for part in out.parts] for node, state in left.items()}
    arrived = {(part.source, part.slot) for some in parts.values() for part in some}
    missing = {node: sum(out.expected for out in state.outputs) - len(parts[node]) for node, state in left.items()}
    queue = _Queue(timeline)
    ready = [(parts[node][-1].seq, node) for node, count in missing.items() if not count and node != running]
    for _, node in sorted(ready):
        queue.put(node)
    order: list[int] = []
    node = running
    while len(order) < most:
        for slot, target in enumerate(timeline.info(node).created.inputs if node else ()):
            if (node, slot) not in arrived and _is_expected(left, target):
                missing[target[0]] -= 1
                if not missing[target[0]]:
                    queue.put(target[0])
        if not queue.is_ordered:
            return UpcomingNodes(tuple(order), ends_early=True)
        node = queue.take()
        if not node:
            break
        order.append(node)
    return UpcomingNodes(tuple(order))


class _Queue:
    """The ready nodes: leaves first, in order of arrival, then the newest operation."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._leaves: deque[int] = deque()
        self._operations: list[int] = []

    def put(self, node: int) -> None:
        if self._timeline.info(node).created.kind == "op":
            heappush(self._operations, -node)
        else:
            self._leaves.append(node)

    @property
    def is_ordered(self) -> bool:
        """Whether the next node is known. Node numbers give the age only of nodes that were recorded when created."""
        if self._leaves or len(self._operations) < 2:
            return True
        return sum(_is_inferred(self._timeline, -node) for node in self._operations) == 0

    def take(self) -> int:
        """Remove and return the next node, 0 if there is none."""
        if self._leaves:
            return self._leaves.popleft()
        return -heappop(self._operations) if self._operations else 0


def _is_inferred(timeline: Timeline, node: int) -> bool:
    """Return whether an operation was discovered from its result: it has no elements although the recording keeps
    elements.
    """
    values = [output.value for output in timeline.info(node).created.outputs]
    return None in values or not (_any_known(values) or timeline.once(_keeps_none, 0))


def _keeps_none(timeline: Timeline, _: int) -> bool:
    """Return whether the recording knows only the shapes of its leaves."""
    creations = (timeline.info(node).created for node in timeline.nodes)
    return not _any_known(output.value for one in creations if one.kind != "op" for output in one.outputs)


def _any_known(values: Iterable[Value | None]) -> bool:
    return any(value is not None and value.is_known for value in values)


def _is_expected(left: dict[int, NodeState], target: Edge) -> bool:
    state = left.get(target[0])
    return state is not None and target[1] < len(state.outputs) and state.outputs[target[1]].expected > 0

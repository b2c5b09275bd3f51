"""Which nodes of an iteration a picture shows: the graph of the program, not the arithmetic inside its optimizer.

Of a very large graph it is one part, so that it can be laid out while somebody waits.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from gviz.render.boxes.calls import Steps
from gviz.render.boxes.remarks import writes_in_place
from gviz.trace.state import Iteration, NodeInfo, Phase, PhaseKind
from gviz.trace.timeline import Timeline

PART = 2000
"""Nodes of one part of a graph that is shown in parts."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The nodes of one iteration, cut into stretches of `PART` in order of creation."""

    nodes: tuple[int, ...]

    def __len__(self) -> int:
        return max(-(-len(self.nodes) // PART), 1)

    def holding(self, node: int) -> int:
        """The part that a node was made in."""
        return min(max(bisect_right(self.nodes, node) - 1, 0) // PART, len(self) - 1)

    def part(self, index: int) -> tuple[int, ...]:
        """The nodes of one part."""
        return self.nodes[index * PART : (index + 1) * PART]


Extent = tuple[tuple[int, ...], tuple[int, ...]]
"""What `shown_nodes` depends on: as long as it is the same, a recording that grows shows the same nodes."""


def extent(timeline: Timeline, iteration: Iteration) -> Extent:
    """The nodes of an iteration and where optimizers stepped in it, as far as both are recorded."""
    return timeline.nodes.of(iteration), optimizer_steps(timeline, iteration)


def shown_nodes(
    timeline: Timeline, iteration: Iteration, part: Sequence[int] | None = None, *, optimizer: bool
) -> tuple[dict[int, NodeInfo], list[NodeInfo]]:
    """The nodes to show, in order of creation, and those of them that were made here: in `part`, or in the iteration.

    The others are older ones they use. Without `optimizer`, what an optimizer computed to step is left out: parameters
    just change their values.
    """
    infos = {node: timeline.info(node) for node in (timeline.nodes.of(iteration) if part is None else part)}
    own = [info for info in infos.values() if part is not None or info.iteration == iteration.index]
    steps = Steps(timeline, () if optimizer else optimizer_steps(timeline, iteration))
    by_hand = frozenset() if optimizer else updates(timeline, iteration, own)
    if part is None and not steps.known and not by_hand:
        return infos, own
    own = [info for info in own if not steps.call(info) and info.node not in by_hand]
    kept = {info.node for info in own}.union(node for info in own for node, _ in info.created.inputs)
    kept |= {output.view_of for info in own for output in info.created.outputs}
    kept.discard(0)
    return {node: infos.get(node) or timeline.info(node) for node in sorted(kept)}, own


def updates(timeline: Timeline, iteration: Iteration, own: Sequence[NodeInfo]) -> frozenset[int]:
    """The nodes of steps written by hand, ``p -= lr * p.grad``: writes into leaves after a pass, and what only they
    use."""
    spans = [(phase.start, phase.end) for phase in phases_in(timeline, iteration, "optimizer")]
    after = {info.node: info for info in own if any(start <= info.born <= end for start, end in spans)}
    users: dict[int, set[int]] = {}
    for info in own:
        for node, _ in info.created.inputs:
            users.setdefault(node, set()).add(info.node)
    found: set[int] = set()
    for node, info in reversed(after.items()):
        used = users.get(node, set())
        if _steps(timeline, info) or (used and used <= found and not info.created.requires_grad):
            found.add(node)
    return frozenset(found)


def _steps(timeline: Timeline, info: NodeInfo) -> bool:
    """Whether a node writes a new value into a leaf, and autograd does not see it."""
    inputs = info.created.inputs
    if info.created.requires_grad or not inputs or not writes_in_place(timeline, info.created):
        return False
    target = timeline.info(inputs[0][0]).created
    return target.kind != "op" and target.requires_grad


def phases_in(timeline: Timeline, iteration: Iteration, kind: PhaseKind) -> list[Phase]:
    """The phases of a kind that begin in an iteration."""
    first = bisect_left(timeline.phases, iteration.start, key=lambda phase: phase.start)
    last = bisect_right(timeline.phases, iteration.end, key=lambda phase: phase.start)
    return [phase for phase in timeline.phases[first:last] if phase.kind == kind]


def optimizer_steps(timeline: Timeline, iteration: Iteration) -> tuple[int, ...]:
    """The events of an iteration that say that an optimizer has stepped."""
    steps = timeline.optimizer_steps
    return steps[bisect_left(steps, iteration.start) : bisect_right(steps, iteration.end)]

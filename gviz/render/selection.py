"""Which nodes of an iteration a picture shows: the graph of the program, not the arithmetic inside its optimizer."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from gviz.events import OptimizerStepped
from gviz.trace.state import Iteration, NodeInfo
from gviz.trace.timeline import Timeline


def shown_nodes(timeline: Timeline, iteration: Iteration, *, optimizer: bool) -> dict[int, NodeInfo]:
    """The nodes made in the iteration and the older ones they use, in order of creation.

    Without `optimizer`, what an optimizer computed to step is left out: parameters just change their values.
    """
    infos = {node: timeline.info(node) for node in timeline.nodes_of(iteration)}
    stacks = set() if optimizer else _optimizer_stacks(timeline, iteration, infos.values())
    if not stacks:
        return infos
    own = [info for info in infos.values() if info.iteration == iteration.index and not _inside(info, stacks)]
    used = {node for info in own for node, _ in info.created.inputs}
    used |= {output.view_of for info in own for output in info.created.outputs}
    kept = used.union(info.node for info in own)
    return {node: info for node, info in infos.items() if node in kept}


def _inside(info: NodeInfo, stacks: Collection[int]) -> bool:
    return info.created.stack in stacks and not info.created.requires_grad


def _optimizer_stacks(timeline: Timeline, iteration: Iteration, infos: Iterable[NodeInfo]) -> set[int]:
    """Where the program called the optimizers that stepped in the iteration, known from what they updated."""
    stacks: set[int] = set()
    for info in infos:
        if info.created.kind in ("leaf", "parameter"):
            stacks.add(_last_step(timeline, iteration, info.node))
    return stacks - {0}


def _last_step(timeline: Timeline, iteration: Iteration, node: int) -> int:
    for seq in reversed(timeline.events_of(node)):
        if seq < iteration.start:
            break
        event = timeline.event(seq) if seq <= iteration.end else None
        if isinstance(event, OptimizerStepped):
            return event.stack
    return 0

"""What a node is to autograd: `requires_grad_()` makes a leaf of what was made as a constant, or was cut off."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import msgspec

from gviz.trace.state import Iteration, NodeInfo, NodeState
from gviz.trace.timeline import Timeline


def as_at(info: NodeInfo, state: NodeState | None) -> NodeInfo:
    """The node as if it had been made what it is now."""
    created = info.created
    if state is None or not state.requires_grad or created.requires_grad:
        return info
    kind = "parameter" if created.kind == "parameter" else "leaf"
    return replace(info, created=msgspec.structs.replace(created, kind=kind, requires_grad=True))


def as_in(timeline: Timeline, iteration: Iteration, infos: Mapping[int, NodeInfo]) -> dict[int, NodeInfo]:
    """The nodes as if each had been made what it is at the end of an iteration, which has only one picture."""
    asked = [node for node, info in infos.items() if not info.created.requires_grad]
    states = dict(zip(asked, timeline.at(iteration.end).states(asked), strict=True)) if asked else {}
    return {node: as_at(info, states.get(node)) for node, info in infos.items()}

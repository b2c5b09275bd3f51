"""The remark in a box on how its node was made."""

from __future__ import annotations

from gviz.events import NodeCreated, StorageWritten
from gviz.explain.names import made_in, why_untracked
from gviz.trace.state import Iteration, NodeInfo
from gviz.trace.timeline import Timeline


def remark(timeline: Timeline, info: NodeInfo, iteration: Iteration) -> str:
    """What a reader should know about how the node was made: by a pass, untracked, in place, in an older iteration."""
    if info.created.kind != "op":
        return ""
    if info.created.during[0]:
        return f"made in pass {info.created.during[0]}"
    if info.iteration != iteration.index:
        return made_in(timeline, info)
    if info.created.untracked:
        return why_untracked(info.created, brief=True)
    return "written in place" if writes_in_place(timeline, info.created) else ""


WRITES_WITHIN = 4
"""A write in place is said among the first events of the op that writes."""


def writes_in_place(timeline: Timeline, created: NodeCreated) -> bool:
    """Whether the op wrote into the memory of one of its inputs instead of making a tensor."""
    if not any(output.version for output in created.outputs):
        return False
    first = (timeline.event(seq) for seq in timeline.events_of(created.node)[:WRITES_WITHIN])
    return any(isinstance(event, StorageWritten) and event.node == created.node for event in first)

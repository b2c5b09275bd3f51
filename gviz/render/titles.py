"""What a node is called in every view, and the remark on how it was made."""

from __future__ import annotations

from gviz.events import NodeCreated, StorageWritten
from gviz.explain.arithmetic import op_title
from gviz.numbers import short
from gviz.plain_text import clipped
from gviz.trace.state import Iteration, NodeInfo
from gviz.trace.timeline import Timeline

MAX_TITLE = 28
UNTRACKED = {
    "no_grad": "not tracked: no_grad",
    "detach": "not tracked: detach",
    "data": "not tracked: .data",
    "dtype": "not tracked: dtype",
    "inputs": "no input needs grad",
}


def title(info: NodeInfo) -> str:
    """How a node is called in every view: ``z = Add #8``, ``x leaf #1``, ``W param #2``."""
    kind = {"leaf": "leaf", "parameter": "param", "constant": "const"}.get(info.created.kind, "")
    name = clipped(info.name, MAX_TITLE - 8)
    if kind:
        return f"{name} {kind} #{info.node}".lstrip()
    op = clipped(op_title(info), MAX_TITLE)
    return f"{name} = {op} #{info.node}" if name else f"{op} #{info.node}"


def constant_title(info: NodeInfo) -> str:
    """A nameless scalar constant is called by its value; others as `title` says."""
    outputs = info.created.outputs
    value = outputs[0].value if len(outputs) == 1 else None
    if info.name or value is None or value.size != 1 or info.created.kind != "constant":
        return title(info)
    return short(value)


def remark(timeline: Timeline, info: NodeInfo, iteration: Iteration) -> str:
    """What a reader should know about how the node was made: untracked and why, in place, from an older iteration."""
    if info.created.kind != "op":
        return ""
    if info.iteration != iteration.index:
        return f"from iteration {info.iteration + 1}"
    if info.created.untracked:
        return UNTRACKED.get(info.created.untracked, clipped(info.created.untracked, MAX_TITLE))
    return "written in place" if writes_in_place(timeline, info.created) else ""


WRITES_WITHIN = 4
"""A write in place is said among the first events of the op that writes."""


def writes_in_place(timeline: Timeline, created: NodeCreated) -> bool:
    """Whether the op wrote into the memory of one of its inputs instead of making a tensor."""
    if not any(output.version for output in created.outputs):
        return False
    first = (timeline.event(seq) for seq in timeline.events_of(created.node)[:WRITES_WITHIN])
    return any(isinstance(event, StorageWritten) and event.node == created.node for event in first)

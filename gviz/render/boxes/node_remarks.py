"""The remark of a node's box: where autograd stops, what is written in place, and from where the node comes."""

from __future__ import annotations

from gviz.events import NodeCreated, StorageWritten
from gviz.explain.iteration_words import iteration_suffix
from gviz.explain.tracking import why_untracked
from gviz.trace.graph_state import Iteration, NodeInfo
from gviz.trace.timeline import Timeline
from gviz.values.plain_text import file_line


def remark(timeline: Timeline, info: NodeInfo, iteration: Iteration) -> str:
    """Return how the node was made: by a backward pass, untracked, in place, or in an older iteration."""
    if info.created.kind != "op":
        return ""
    if info.created.during[0]:
        return f"made in pass {info.created.during[0]}"
    if info.iteration != iteration.index:
        return iteration_suffix(timeline, info)
    if info.created.untracked:
        return why_untracked(info.created, brief=True)
    return "written in place" if writes_in_place(timeline, info.created) else ""


_LOSING = ("no_grad", "inference", "detach", "data", "numbers")
"""Reasons why autograd does not track an operation that it could track."""


def cuts(timeline: Timeline, info: NodeInfo) -> bool:
    """Return whether autograd stops tracking a value that requires a gradient at this node.

    What a custom function computes in its forward, and what a backward pass computes, is never tracked, and no cut.
    """
    if info.created.untracked not in _LOSING or info.created.during[0]:
        return False
    if not any(node and timeline.info(node).created.requires_grad for node, _ in info.created.inputs):
        return False
    return not _is_in_function(timeline, info)


LONGEST_FORWARD = 200
"""The most nodes that the forward of a custom function is looked through for."""


def _is_in_function(timeline: Timeline, info: NodeInfo) -> bool:
    """Return whether a custom function (`torch.autograd.Function`) computed a node in its forward."""
    for node in range(info.node + 1, info.node + LONGEST_FORWARD):
        if node not in timeline.nodes:
            return False
        later = timeline.info(node)
        if later.created.kind == "op" and later.op.is_of_program and is_inside_call(info, later):
            return True
    return False


def is_inside_call(info: NodeInfo, function: NodeInfo) -> bool:
    """Return whether a node was made in the call that made the node of a custom function: deeper in the same stack."""
    inner, outer = info.frames, function.frames
    return len(inner) > len(outer) > 0 and inner[len(inner) - len(outer) :] == outer


def cut_text(info: NodeInfo) -> str:
    """Return where the graph is cut: ``cut by detach at demo.py:4``."""
    at = f" at {file_line(info.frames[0].path, info.frames[0].line)}" if info.frames else ""
    return f"cut by {info.created.untracked}{at}"


_FIRST_EVENTS = 4
"""A write in place is among this many first events of the op that writes."""


def writes_in_place(timeline: Timeline, created: NodeCreated) -> bool:
    """Return whether the op wrote into the memory of one of its inputs instead of making a tensor."""
    if not any(output.version for output in created.outputs):
        return False
    first = (timeline.event(seq) for seq in timeline.events_of(created.node)[:_FIRST_EVENTS])
    return any(isinstance(event, StorageWritten) and event.node == created.node for event in first)

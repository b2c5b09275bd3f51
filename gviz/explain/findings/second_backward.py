"""Backward a second time: freed by which call, reached again over which edge, and where to detach."""

from __future__ import annotations

from itertools import pairwise

from gviz.events import BackwardStarted
from gviz.explain.finding import Finding
from gviz.explain.kind import Kind
from gviz.explain.names import innermost, label, label_at, made_at, symbol
from gviz.explain.trouble import Trouble
from gviz.trace.timeline import Timeline

PATTERN = r"backward through the graph a second time"


def explain(trouble: Trouble) -> Finding | None:
    """Which call had released what this one needs, and where the new graph meets the old one."""
    if not trouble.says(PATTERN):
        return None
    timeline, node = trouble.timeline, trouble.node
    state = timeline.at(trouble.seq).state(node) if node else None
    text = "an earlier backward() released what this graph had saved"
    if state is None or not state.saved_freed:
        return Finding("second-backward", text, trouble.seq, node, fix=_KEEP, at=trouble.at)
    freed = state.saved_freed
    released = Finding("freed", freed_by(timeline, freed), freed, node)
    way = _way_down(timeline, trouble.seq, node)
    first_pass = _pass_start(timeline, timeline.at(freed).pass_nr)
    crossing = next((edge for edge in pairwise(way) if _crosses(timeline, edge, first_pass)), None)
    if crossing is None:
        return Finding("second-backward", text, trouble.seq, node, (released,), _KEEP, trouble.at)
    return _carried(trouble, released, *crossing)


_KEEP = "retain_graph=True in that backward(), or build the graph again"


def _carried(trouble: Trouble, released: Finding, user: int, old: int) -> Finding:
    """New operations have used a result of the graph that is gone."""
    timeline = trouble.timeline
    made, used = timeline.info(old), timeline.info(user)
    text = (
        f"this backward runs into the graph of an earlier one, through {label(timeline, old)}, which was carried over"
    )
    name = symbol(timeline, old)
    crossed = f"the edge that crosses: {label_at(timeline, user)} uses {label_at(timeline, old)}"
    edge = Finding("crossing", crossed, used.born, user, at=innermost(used))
    call = name if name.isidentifier() else "the carried tensor"
    line = made_at(used.frames)
    fix = f"{call} = {call}.detach() before it is used{line}" if name.isidentifier() else f"detach() it before{line}"
    return Finding("carried-state", text, trouble.seq, old, (edge, released), fix, innermost(used) or innermost(made))


def freed_by(timeline: Timeline, seq: int) -> str:
    """Whose pass let the saved tensors go, and where that was called."""
    number = timeline.at(seq).pass_nr
    start = _pass_start(timeline, number)
    started = timeline.event(start) if start else None
    if not isinstance(started, BackwardStarted):
        return "released"
    which = "the first backward()" if number == 1 else f"backward pass {number}"
    return f"released by {which}{made_at(timeline.stack(started.stack))}"


def _pass_start(timeline: Timeline, number: int) -> int:
    return next((phase.start for phase in timeline.phases if number and phase.pass_nr == number), 0)


def _way_down(timeline: Timeline, seq: int, node: int) -> list[int]:
    """The way the pass took from its root to the node, along the first contribution to each."""
    moment, way = timeline.at(seq - 1), [node]
    while True:
        state = moment.state(way[0])
        parts = [part for output in state.outputs for part in output.parts] if state is not None else []
        if not parts or not parts[0].source or parts[0].source in way:
            return way
        way.insert(0, parts[0].source)


def _crosses(timeline: Timeline, edge: tuple[int, int], first_pass: int) -> bool:
    """Whether a node made since the first pass uses one that was there before."""
    user, source = edge
    return timeline.born(source) < first_pass < timeline.born(user)


SECOND_BACKWARD = Kind(
    "second-backward", "error", "backward through a graph whose saved tensors an earlier call released", explain=explain
)
CARRIED_STATE = Kind("carried-state", "error", "a result carried from one step of training into the next, not detached")

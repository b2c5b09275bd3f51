"""A second backward: which call released the graph, which edge leads to it again, and where to detach.

Idea. Walk the path of the failed pass from its root down to the node whose saved tensors are released. If an edge of it
leads from a node made after the first pass to one made before, a result of the old graph is used in a new one: detach
it there. Without such an edge the same graph is used twice: keep it with ``retain_graph=True``.

Example. ``h = cell(x, h)`` in a loop with a backward per step: the edge from ``cell`` of step 2 to ``h`` of step 1
crosses, and ``h = h.detach()`` before the use is the fix. A tensor made once before the loop crosses, too, but must be
made again in each step instead.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise, takewhile

from gviz.explain.backward_passes import pass_started, start_of_pass
from gviz.explain.display_names import at_text, innermost, label, label_at, symbol, titled
from gviz.explain.edit import before, into_loop, parameter_last, with_keyword, wrapped
from gviz.explain.finding import Finding
from gviz.explain.findings.no_gradient import PARAMETER_LAST, nameless_leaf
from gviz.explain.program_errors import Failure
from gviz.explain.program_source import block_around, line_text
from gviz.source.site import Frame
from gviz.trace.graph_state import NodeInfo
from gviz.trace.timeline import Timeline
from gviz.values.plain_text import file_line

PATTERN = r"backward through the graph a second time"
_UPDATING = frozenset(("add", "sub", "mul", "div", "lerp", "copy", "addcmul", "addcdiv"))
"""Operations that programs use for updates in place outside the loss, such as a running average."""


def explain(failure: Failure) -> Finding | None:
    """Explain which call released the saved tensors, and where the new graph uses the old one."""
    if not failure.says(PATTERN):
        return None
    timeline, node = failure.timeline, failure.node
    state = timeline.at(failure.seq).state(node) if node else None
    what = label(timeline, node) if node in timeline.nodes else "this graph"
    text = titled("an earlier backward() released what {} had saved for its rule", what)
    if state is None or not state.saved_freed:
        return Finding("second-backward", text, failure.seq, node, fix=_KEEP, at=failure.at)
    freed = state.saved_freed
    released = Finding("freed", _released_by(timeline, freed), freed, node)
    path = _path_down(timeline, failure.seq, node)
    first_pass = start_of_pass(timeline, timeline.at(freed).pass_nr)
    crossing = next((edge for edge in pairwise(path) if _crosses(timeline, edge, first_pass)), None)
    if crossing is None:
        fix = f"retain_graph=True in {_call(timeline, freed)}, or build the graph again"
        first = pass_started(timeline, timeline.at(freed).pass_nr)
        call = next(iter(timeline.stack(first.stack)), None) if first is not None else None
        edit = with_keyword(timeline, call, "backward", "retain_graph", "True")
        return Finding("second-backward", text, failure.seq, node, (released,), fix, failure.at, edit=edit)
    return _carried(failure, released, *crossing)


_LOOKED_AT = 2000
"""The number of nodes that are searched for a loop."""

_KEEP = "retain_graph=True in that backward(), or build the graph again"


def _carried(failure: Failure, released: Finding, user: int, old: int) -> Finding:
    """Return the finding about operations that use a result of the released graph, of the same step
    or the one before.
    """
    timeline = failure.timeline
    source, used = timeline.info(old), timeline.info(user)
    if _is_used_again(timeline, used, old):
        return _single_result(failure, released, used, source)
    first = _other_use(timeline, used, old)
    kind, what = ("carried-state", "carried over") if first is None else ("second-backward", "which both use")
    text = titled(f"backward reaches an earlier graph through {{}}, {what}", label(timeline, old))
    crossed = f"the edge that crosses: {label_at(timeline, user)} uses {label_at(timeline, old)}"
    edge = Finding("crossing", crossed, used.born, user, at=innermost(used))
    name = symbol(timeline, old)
    fix, edit, at = _where_to_detach(name, source, used, first), None, innermost(used) or innermost(source)
    is_update = used.op.name.endswith("_") and used.op.base_name in _UPDATING
    if first is not None and not is_update:
        own = _own_frames(first, source)
        at = own[0] if own else at
        edit = wrapped(timeline, at, name, ".detach()") if name.isidentifier() else None
    elif name.isidentifier() and not used.op.name.endswith("_"):
        edit = before(timeline, innermost(used), f"{name} = {name}.detach()")
    return Finding(kind, text, failure.seq, old, (edge, released), fix, at, edit=edit)


def _is_used_again(timeline: Timeline, used: NodeInfo, old: int) -> bool:
    """Return whether the same call has used a result before: it was made once, and not again in each step."""
    uses = map(timeline.info, timeline.nodes.users(old, used.born - 1))
    return any(_calls(info) == _calls(used) and info.op.name == used.op.name for info in uses)


def _single_result(failure: Failure, released: Finding, used: NodeInfo, source: NodeInfo) -> Finding:
    """Return the finding about a result that was made before a loop: every step goes back through its one graph."""
    timeline, name = failure.timeline, symbol(failure.timeline, source.node)
    what = label(timeline, source.node)
    text = titled("backward reaches an earlier graph through {}, made only once", what)
    again = f"{label_at(timeline, used.node)} uses it again: {label_at(timeline, source.node)}"
    edge = Finding("crossing", again, used.born, used.node, at=innermost(used))
    cached = _weight_cache(timeline, source.frames)
    if cached is not None:
        block = f"it is kept by the block at {file_line(cached.path, cached.line)}"
        kept = Finding("held", block, source.born, source.node, at=cached)
        return Finding("second-backward", text, failure.seq, source.node, (edge, kept), _SHORT_CACHE, cached)
    leaf = nameless_leaf(timeline, source)
    learned = f"to learn {name}, make it the leaf itself: requires_grad last, {name} = (...).requires_grad_()"
    anew = f"make {what} anew in each step, inside the loop; or detach() it, if it is data or a target"
    fix = anew if leaf is None or not name.isidentifier() else learned
    edit = into_loop(timeline, innermost(source), innermost(used)) if fix is anew else None
    if leaf is not None and leaf.created.kind == "parameter":
        fix, edit = PARAMETER_LAST, parameter_last(timeline, innermost(source))
    return Finding(
        "second-backward", text, failure.seq, source.node, (edge, released), fix, innermost(source), edit=edit
    )


def _weight_cache(timeline: Timeline, frames: Sequence[Frame]) -> Frame | None:
    """Return the line ``with parametrize.cached():`` around a call stack; the program may have another ``cached``."""
    at = block_around(timeline, frames, "cached")
    if at is None:
        return None
    is_imported = _CACHE_IMPORT.search(timeline.source(at.path) or "") is not None
    return at if "parametrize.cached" in line_text(timeline, at) or is_imported else None


_CACHE_IMPORT = re.compile(r"^\s*from torch\.nn\.utils\.parametrize import .*\bcached\b", re.MULTILINE)

_SHORT_CACHE = "enter cached() in each step, around the forward only: it keeps the weight, and its graph, to its end"


def _where_to_detach(name: str, source: NodeInfo, used: NodeInfo, first: NodeInfo | None) -> str:
    if used.op.name.endswith("_") and used.op.base_name in _UPDATING:
        return f"with torch.no_grad(): around what is written in place{at_text(used.frames)}, if that is only an update"
    known = name.isidentifier()
    if first is None:
        what = f"{name} = {name}.detach()" if known else "detach() what is carried over"
        return f"{what} before it is used{at_text(used.frames)}"
    what = f"{name}.detach()" if known else "detach() it"
    at = at_text(_own_frames(first, source))
    return f"{what}{at}, if the first backward() need not go behind it; else retain_graph=True there"


def _other_use(timeline: Timeline, used: NodeInfo, old: int) -> NodeInfo | None:
    """Return the first use of `old` by other lines than the `used` one, if these lines are not in a loop.

    In a loop these lines have also made part of the released graph.
    """
    here, place = _calls(used), timeline.nodes.place_of(old)
    before = timeline.nodes[max(place - _LOOKED_AT, 0) : place + 1]
    if any(_calls(timeline.info(node)) == here for node in before):
        return None
    uses = map(timeline.info, timeline.nodes.users(old, used.born - 1))
    return next((info for info in uses if _calls(info) != here), None)


def _calls(info: NodeInfo) -> list[tuple[str, int]]:
    """Return the call stack as lines: a model may be called from several."""
    return [(frame.path, frame.line) for frame in info.frames]


def _own_frames(one: NodeInfo, other: NodeInfo) -> tuple[Frame, ...]:
    """Return the frames of one below the last frame that it shares with the other, the outermost first."""
    pairs = zip(reversed(one.frames), reversed(other.frames), strict=False)
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    return one.frames[max(len(one.frames) - shared - 1, 0) :]


def _released_by(timeline: Timeline, seq: int) -> str:
    """Return the pass that released the saved tensors, and its call."""
    number, at = timeline.at(seq).pass_nr, _called_at(timeline, seq)
    if at is None:
        return "released"
    which = "the first backward()" if number == 1 else f"backward pass {number}"
    return f"released by {which}{at}"


def _call(timeline: Timeline, seq: int) -> str:
    """Return the call whose pass released the saved tensors: ``the backward() at demo.py:7``."""
    at = _called_at(timeline, seq)
    return f"the backward(){at}" if at else "that backward()"


def _called_at(timeline: Timeline, seq: int) -> str | None:
    """Return in words where the pass that ran at an event was called; None if no pass ran."""
    started = pass_started(timeline, timeline.at(seq).pass_nr)
    return at_text(timeline.stack(started.stack)) if started is not None else None


def _path_down(timeline: Timeline, seq: int, node: int) -> list[int]:
    """Return the path of the pass from its root to the node, along the first contribution to each."""
    moment, path = timeline.at(seq - 1), {node: None}  # ordered like a list, searched like a set
    while True:
        state = moment.state(node)
        parts = [part for output in state.outputs for part in output.parts] if state is not None else []
        if not parts or not parts[0].source or parts[0].source in path:
            return [*reversed(path)]
        node = parts[0].source
        path[node] = None


def _crosses(timeline: Timeline, edge: tuple[int, int], first_pass: int) -> bool:
    """Return whether a node made since the first pass uses one that was there before."""
    user, source = edge
    return timeline.nodes.born(source) < first_pass < timeline.nodes.born(user)

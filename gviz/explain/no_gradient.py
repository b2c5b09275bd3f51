"""Why a tensor has no gradient at a moment: what cut the way, or what has not happened."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from gviz.events import BackwardStarted, GradAccumulated, GradRetained, GradSet
from gviz.explain.finding import Finding
from gviz.explain.names import label, made_at, why_untracked
from gviz.plain_text import shown
from gviz.trace.moment import Moment
from gviz.trace.state import NodeInfo, NodeState
from gviz.trace.timeline import Timeline

MOST_CUTS = 5
_CHANGES = (GradSet, GradAccumulated, GradRetained)

_CUT_FIXES = {
    "no_grad": "move this line out of the no_grad block",
    "detach": "leave detach() out where the gradient should flow",
    "data": "use the tensor itself instead of .data",
    "dtype": "gradients flow through floating-point results only: not through indices, comparisons, integers",
}


def why_none(timeline: Timeline, moment: Moment, node: int) -> Finding:
    """The reason, in the order in which a person would look for it."""
    info, state = timeline.info(node), moment.state(node)
    if state is None or not state.requires_grad:
        return _requires_none(timeline, info)
    return (
        _cleared(timeline, moment, info)
        or _not_kept(timeline, info)
        or _no_pass(timeline, moment, info)
        or _on_its_way(timeline, moment, info, state)
        or _cut(timeline, moment, info)
    )


def _requires_none(timeline: Timeline, info: NodeInfo) -> Finding:
    name, made = label(timeline, info.node), info.created
    where = made_at(info.frames)
    if made.untracked and made.untracked != "inputs":
        text = f"{name}{where} is not part of the graph: {why_untracked(made)}"
        return Finding("cut", text, info.born, info.node, fix=_CUT_FIXES.get(made.untracked, ""))
    if made.kind == "op":
        text = f"{name}{where} needs no gradient: none of its inputs requires one"
        return Finding(
            "no input requires", text, info.born, info.node, fix="requires_grad=True on what it is made from"
        )
    frozen = made.kind == "parameter"
    text = f"{name}{where} does not require a gradient{' (it is frozen)' if frozen else ''}"
    return Finding("requires none", text, info.born, info.node, fix="requires_grad_() before it is used")


def _not_kept(timeline: Timeline, info: NodeInfo) -> Finding | None:
    if info.created.kind != "op":
        return None
    text = f"{label(timeline, info.node)}{made_at(info.frames)} is no leaf: only leaves keep their gradient in .grad"
    leaf = _leaf_of_this_name(timeline, info)
    if leaf is None:
        return Finding("not a leaf", text, info.born, info.node, fix="retain_grad() on it before backward")
    lost = f"the name {shown(info.name)} meant the leaf {label(timeline, leaf.node)}{made_at(leaf.frames)} before"
    parts = (Finding("rebound", lost, leaf.born, leaf.node),)
    return Finding("rebound", text, info.born, info.node, parts, "keep the leaf under a name of its own, and ask it")


def _leaf_of_this_name(timeline: Timeline, info: NodeInfo) -> NodeInfo | None:
    if not info.name:
        return None
    for node in _ancestors(timeline, info.node):
        other = timeline.info(node)
        if other.name == info.name and other.created.kind != "op" and other.created.requires_grad:
            return other
    return None


def _ancestors(timeline: Timeline, *nodes: int) -> Iterator[int]:
    """What nodes were made from, tracked or not, nearest first."""
    seen, waiting = set(nodes), deque(node for node in nodes if node)
    while waiting:
        for source, _ in timeline.info(waiting.popleft()).created.inputs:
            if source and source not in seen:
                seen.add(source)
                waiting.append(source)
                yield source


def _cleared(timeline: Timeline, moment: Moment, info: NodeInfo) -> Finding | None:
    """Whether it had one that was set to None, and no pass for all leaves has started since."""
    earlier = [seq for seq in timeline.events_of(info.node) if seq <= moment.n]
    last = next((seq for seq in reversed(earlier) if isinstance(timeline.event(seq), _CHANGES)), 0)
    event = timeline.event(last) if last else None
    if not isinstance(event, GradSet) or event.how != "none":
        return None
    if any(start > last and not started.inputs for start, started in _passes(timeline, moment)):
        return None
    text = f"the .grad of {label(timeline, info.node)} was set to None by event {last}"
    return Finding("cleared", text, last, info.node, fix="read it before zero_grad() or .grad = None")


def _passes(timeline: Timeline, moment: Moment) -> list[tuple[int, BackwardStarted]]:
    starts = [phase.start for phase in timeline.phases if phase.kind == "backward" and phase.start <= moment.n]
    return [(start, event) for start in starts if isinstance(event := timeline.event(start), BackwardStarted)]


def _no_pass(timeline: Timeline, moment: Moment, info: NodeInfo) -> Finding | None:
    passes = _passes(timeline, moment)
    since = [start for start, _ in passes if start > info.born]
    if since:
        return None
    text = f"no backward pass has run since {label(timeline, info.node)} was made{made_at(info.frames)}"
    return Finding("no pass", text, info.born, info.node, fix="call backward() on a result of it")


def _on_its_way(timeline: Timeline, moment: Moment, info: NodeInfo, state: NodeState) -> Finding | None:
    passes = _passes(timeline, moment)
    if not state.pass_nr or (passes and passes[-1][1].pass_nr > state.pass_nr):
        return None
    if moment.pass_nr == state.pass_nr:
        text = f"the backward pass has not come to {label(timeline, info.node)} yet"
        return Finding("pending", text, 0, info.node)
    start = next((start for start, event in passes if event.pass_nr == state.pass_nr), 0)
    event = timeline.event(start) if start else None
    if isinstance(event, BackwardStarted) and event.inputs:
        at = made_at(timeline.stack(event.stack))
        text = f"the pass{at} was asked for other gradients only (inputs=, or autograd.grad): it added to no .grad here"
        return Finding("not asked for", text, start, info.node)
    text = f"backward pass {state.pass_nr} reached {label(timeline, info.node)} but no gradient arrived"
    return Finding("nothing arrived", text, start, info.node)


def _cut(timeline: Timeline, moment: Moment, info: NodeInfo) -> Finding:
    """No pass has reached it: where the ways from it to the roots end."""
    passes = _passes(timeline, moment)
    roots = sorted({node for node, _ in passes[-1][1].roots})
    name = label(timeline, info.node)
    users = [user for user in timeline.users(info.node) if timeline.info(user).born <= moment.n]
    if not users:
        text = f"{name}{made_at(info.frames)} was not used in anything"
        return Finding("unused", text, info.born, info.node, fix="use it in what the loss is made from")
    leading = set(_ancestors(timeline, *roots))
    cuts = [cut for cut in _cuts(timeline, moment, info.node) if cut.node in leading or cut.node in roots][:MOST_CUTS]
    asked = ", ".join(label(timeline, root) for root in roots[:3] if root)
    text = f"no way for gradients leads from {asked or 'the roots of the pass'} back to {name}"
    if cuts:
        return Finding("cut", text, passes[-1][0], info.node, tuple(cuts))
    last = timeline.info(users[-1])
    used = Finding(
        "elsewhere", f"it was used in {label(timeline, last.node)}{made_at(last.frames)}", last.born, last.node
    )
    return Finding("not reached", text, 0, info.node, (used,), "call backward() on a result of that")


def _cuts(timeline: Timeline, moment: Moment, node: int) -> Iterator[Finding]:
    """The untracked operations at which the ways forward from a node leave the graph."""
    seen, waiting = {node}, deque([node])
    while waiting:
        for user in timeline.users(waiting.popleft()):
            info = timeline.info(user)
            if user in seen or info.born > moment.n:
                continue
            seen.add(user)
            if info.created.untracked:
                text = f"cut at {label(timeline, user)}{made_at(info.frames)}: {why_untracked(info.created)}"
                yield Finding("cut", text, info.born, user, fix=_CUT_FIXES.get(info.created.untracked, ""))
            else:
                waiting.append(user)

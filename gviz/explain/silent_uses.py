"""The uses of a tensor that brought nothing to its gradient, because their way to the loss is cut."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence

from gviz.events import BackwardStarted
from gviz.explain.finding import Finding
from gviz.explain.names import innermost, label, made_at, why_untracked
from gviz.explain.pass_starts import start_of_pass
from gviz.explain.ways import ancestors
from gviz.trace.state import Contribution, NodeInfo
from gviz.trace.timeline import Timeline


def silent_uses(timeline: Timeline, node: int, parts: Sequence[Contribution]) -> Iterator[Finding]:
    """How many of the uses that the pass could have come through sent nothing, for each line that cuts them off.

    `parts` is what the pass has brought to the node.
    """
    window = _forward_before(timeline, parts)
    if window is None:
        return
    sent = {part.source for part in parts}
    users = (user for user in timeline.nodes.users(node) if timeline.nodes.born(user) in window)
    uses = [user for user in users if _is_use(timeline, node, user)]
    silent = [use for use in uses if use not in sent]
    if not silent:
        return
    lines = [(cuts, _cut_off(timeline, silent, cuts, window)) for cuts in _lines_of_cuts(timeline, window)]
    for cuts, cut_off in sorted((line for line in lines if line[1]), key=lambda line: line[1][0]):
        last = [cut for cut in cuts_after(timeline, cut_off[-1], window) if cut.node in cuts][-1]
        yield _told(timeline, last, len(cut_off), len(uses))


def _is_use(timeline: Timeline, node: int, user: int) -> bool:
    """Whether a node was made of another in a forward; a step of an optimizer writes to it instead."""
    made, own = timeline.info(user).created, timeline.info(node).created.outputs
    return not made.during[0] and not (made.untracked and {o.storage for o in made.outputs} & {o.storage for o in own})


def cuts_after(timeline: Timeline, node: int, window: range) -> Iterator[NodeInfo]:
    """The untracked operations at which the ways on from a node leave the graph, among those born in a `window`."""
    seen, waiting = {node}, deque([node])
    while waiting:
        here = waiting.popleft()
        info = timeline.info(here)
        if info.created.untracked:
            yield info
            continue
        new = [user for user in timeline.nodes.users(here) if user not in seen and timeline.nodes.born(user) in window]
        seen.update(new)
        waiting.extend(new)


def _lines_of_cuts(timeline: Timeline, window: range) -> list[set[int]]:
    """The untracked operations born in a `window` that lead to what the pass after it began at, line by line."""
    lines: defaultdict[int, set[int]] = defaultdict(set)
    for node in sorted(_leading(timeline, window.stop)):
        if timeline.nodes.born(node) in window and (created := timeline.nodes.created(node)).untracked:
            lines[created.stack].add(node)
    return list(lines.values())


def _cut_off(timeline: Timeline, uses: Sequence[int], cuts: set[int], window: range) -> list[int]:
    """Those of the uses from which a way leads to one of the cuts: all are found by going back from there once."""
    seen, waiting = {*cuts}, [*cuts]
    while waiting:
        for source in timeline.nodes.made_from.get(waiting.pop(), ()):
            known = source and source not in seen and timeline.nodes.born(source) in window
            if known and not timeline.nodes.created(source).untracked:
                seen.add(source)
                waiting.append(source)
    return [use for use in uses if use in seen]


def _forward_before(timeline: Timeline, parts: Sequence[Contribution]) -> range | None:
    """The events between the pass that brought contributions and the one before it."""
    at = timeline.at(parts[-1].seq).pass_nr if parts else 0
    start = start_of_pass(timeline, at)
    ends = (phase.end for phase in timeline.phases if phase.kind == "backward" and phase.end < start)
    return range(max(ends, default=0) + 1, start) if at else None


def _leading(timeline: Timeline, start: int) -> set[int]:
    started = timeline.event(start)
    roots = [node for node, _ in started.roots if node] if isinstance(started, BackwardStarted) else []
    return {*roots, *ancestors(timeline, *roots)}


def _told(timeline: Timeline, cut: NodeInfo, silent: int, count: int) -> Finding:
    """What the line of a cut cuts off: ``2 of 5 uses``."""
    at = f"{label(timeline, cut.node)}{made_at(cut.frames)}: {why_untracked(cut.created)}"
    text = f"{silent} of its {count} uses sent nothing: cut at {at}"
    return Finding("silent", text, cut.born, cut.node, at=innermost(cut))

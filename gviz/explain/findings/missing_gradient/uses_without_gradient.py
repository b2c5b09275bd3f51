"""Uses of a tensor that sent no gradient, because their path to the loss is cut."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from gviz.events import BackwardStarted
from gviz.explain.backward_passes import start_of_pass
from gviz.explain.display_names import label
from gviz.explain.finding import Finding
from gviz.explain.source_frames import at_text, innermost
from gviz.explain.tracking import ancestors, cuts_after, why_untracked
from gviz.trace.graph_state import Contribution, NodeInfo
from gviz.trace.timeline import Timeline


def silent_uses(timeline: Timeline, node: int, parts: Sequence[Contribution]) -> Iterator[Finding]:
    """Yield, for each line that cuts off uses, how many of the reachable uses sent nothing.

    `parts` are the contributions that the pass has brought to the node.
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
        yield _silent_finding(timeline, last, len(cut_off), len(uses))


def _is_use(timeline: Timeline, node: int, user: int) -> bool:
    """Return whether a node was made from another in a forward; a step of an optimizer only writes to it."""
    record, own = timeline.info(user).created, timeline.info(node).created.outputs
    return not record.during[0] and not (
        record.untracked and {o.storage for o in record.outputs} & {o.storage for o in own}
    )


def _lines_of_cuts(timeline: Timeline, window: range) -> list[set[int]]:
    """Return the untracked operations in a `window` that lead to the root of the following pass, grouped by line."""
    lines: defaultdict[int, set[int]] = defaultdict(set)
    for node in sorted(_leading_to_pass(timeline, window.stop)):
        if timeline.nodes.born(node) in window and (created := timeline.nodes.created(node)).untracked:
            lines[created.stack].add(node)
    return list(lines.values())


def _cut_off(timeline: Timeline, uses: Sequence[int], cuts: set[int], window: range) -> list[int]:
    """Return the uses with a path to one of the cuts, found by one walk backwards from the cuts."""
    seen, waiting = {*cuts}, [*cuts]
    while waiting:
        for source in timeline.nodes.inputs_by_node.get(waiting.pop(), ()):
            known = source and source not in seen and timeline.nodes.born(source) in window
            if known and not timeline.nodes.created(source).untracked:
                seen.add(source)
                waiting.append(source)
    return [use for use in uses if use in seen]


def _forward_before(timeline: Timeline, parts: Sequence[Contribution]) -> range | None:
    """Return the events between the pass that brought contributions and the pass before it."""
    at = timeline.at(parts[-1].seq).pass_nr if parts else 0
    start = start_of_pass(timeline, at)
    ends = (phase.end for phase in timeline.phases if phase.kind == "backward" and phase.end < start)
    return range(max(ends, default=0) + 1, start) if at else None


def _leading_to_pass(timeline: Timeline, start: int) -> set[int]:
    started = timeline.event(start)
    roots = [node for node, _ in started.roots if node] if isinstance(started, BackwardStarted) else []
    return {*roots, *ancestors(timeline, *roots)}


def _silent_finding(timeline: Timeline, cut: NodeInfo, silent: int, count: int) -> Finding:
    """Return how many uses the line of a cut cuts off: ``2 of 5 uses``."""
    at = f"{label(timeline, cut.node)}{at_text(cut.frames)}: {why_untracked(cut.created)}"
    text = f"{silent} of its {count} uses sent nothing: cut at {at}"
    return Finding("silent", text, cut.born, cut.node, at=innermost(cut))

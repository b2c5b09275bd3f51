"""Which graphs are alive at a moment: their nodes, saved tensors and bytes, since when, and which results hold them."""

from __future__ import annotations

from collections import defaultdict

from gviz.events import NodeCreated
from gviz.explain.finding import Finding, Number
from gviz.explain.kind import Kind
from gviz.explain.names import innermost, label_at
from gviz.numbers import bytes_text
from gviz.trace.moment import Moment
from gviz.trace.timeline import Timeline

MOST_GRAPHS = 20


def alive(timeline: Timeline, moment: Moment) -> Finding:
    """The tracked results that something still refers to, by the iteration that made them."""
    graphs: defaultdict[int, list[NodeCreated]] = defaultdict(list)
    freed = timeline.nodes.freed(moment.n)
    for node, made in timeline.nodes.all_created([node for node in timeline.nodes if node not in freed]):
        if made.kind == "op" and made.requires_grad and timeline.nodes.born(node) <= moment.n:
            graphs[timeline.iteration_at(timeline.nodes.born(node)).index].append(made)
    parts = [_graph(timeline, moment, index, nodes) for index, nodes in sorted(graphs.items())]
    count = len(parts)
    text = (
        f"{count} graph{'s are' if count != 1 else ' is'} alive at event {moment.n}" if parts else "no graph is alive"
    )
    rest = (Finding("more", f"and {count - MOST_GRAPHS} more graphs"),) if count > MOST_GRAPHS else ()
    return Finding("alive", text, moment.n, parts=(*parts[:MOST_GRAPHS], *rest))


def _graph(timeline: Timeline, moment: Moment, index: int, nodes: list[NodeCreated]) -> Finding:
    """One iteration's nodes, with the last result that nothing alive was made from: what holds all the others."""
    here = {made.node for made in nodes}
    roots = [made for made in nodes if not here & set(timeline.nodes.made_into.get(made.node, ()))]
    root = roots[-1] if roots else nodes[-1]
    states = moment.states([made.node for made in nodes])
    held = sum(state is not None and state.saved == "held" for state in states)
    size = sum(made.first_value.nbytes for made in nodes if made.first_value is not None)
    born = timeline.nodes.born(root.node)
    text = (
        f"iteration {index + 1}: {len(nodes)} nodes, results of {bytes_text(size)}, saved tensors of {held} held, "
        f"since event {timeline.nodes.born(nodes[0].node)}; held by {label_at(timeline, root.node)}"
    )
    numbers = (Number("nodes", len(nodes), born), Number("bytes", size, born), Number("saved", held, born))
    return Finding("graph", text, born, root.node, at=innermost(timeline.info(root.node)), numbers=numbers)


ALIVE = Kind("alive", "fact", "which graphs are alive, with their nodes, saved tensors and bytes, and what holds them")

"""Which graphs are alive at a moment: their nodes, saved tensors and bytes, since when, and which results hold them."""

from __future__ import annotations

from collections import defaultdict

from gviz.explain.finding import Finding, Number
from gviz.explain.kind import Kind
from gviz.explain.names import innermost, label_at
from gviz.explain.survey import Made, Survey
from gviz.numbers import bytes_text
from gviz.trace.moment import Moment

MOST_GRAPHS = 20


def alive(survey: Survey, moment: Moment) -> Finding:
    """The tracked results that something still refers to, by the iteration that made them."""
    graphs: defaultdict[int, list[Made]] = defaultdict(list)
    for made in survey.alive(moment.n):
        if made.created.kind == "op" and made.created.requires_grad:
            graphs[survey.timeline.iteration_at(made.seq).index].append(made)
    parts = [_graph(survey, moment, index, nodes) for index, nodes in sorted(graphs.items())]
    count = len(parts)
    text = (
        f"{count} graph{'s are' if count != 1 else ' is'} alive at event {moment.n}" if parts else "no graph is alive"
    )
    rest = (Finding("more", f"and {count - MOST_GRAPHS} more graphs"),) if count > MOST_GRAPHS else ()
    return Finding("alive", text, moment.n, parts=(*parts[:MOST_GRAPHS], *rest))


def _graph(survey: Survey, moment: Moment, index: int, nodes: list[Made]) -> Finding:
    """One iteration's nodes, with the last result that nothing alive was made from: what holds all the others."""
    timeline = survey.timeline
    here = {made.node for made in nodes}
    roots = [made for made in nodes if not here & set(timeline.made_into.get(made.node, ()))]
    root = roots[-1] if roots else nodes[-1]
    states = moment.states([made.node for made in nodes])
    held = sum(state is not None and state.saved == "held" for state in states)
    size = sum(made.value.nbytes for made in nodes if made.value is not None)
    text = (
        f"iteration {index + 1}: {len(nodes)} nodes, results of {bytes_text(size)}, saved tensors of {held} held, "
        f"since event {nodes[0].seq}; held by {label_at(timeline, root.node)}"
    )
    numbers = (Number("nodes", len(nodes), root.seq), Number("bytes", size, root.seq), Number("saved", held, root.seq))
    return Finding("graph", text, root.seq, root.node, at=innermost(timeline.info(root.node)), numbers=numbers)


ALIVE = Kind("alive", "fact", "which graphs are alive, with their nodes, saved tensors and bytes, and what holds them")

"""Collapsed modules, and the shown part of the graph. A step treats a collapsed module as one node."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace

from gviz.errors import GvizError
from gviz.render.boxes.fold import (
    FEW_BOXES,
    LARGE,
    CallGraph,
    Closed,
    Filter,
    Folded,
    around,
    boxes,
    closing_to_fit,
    fold,
    graph_of,
    modules,
    reading_graph,
)
from gviz.render.boxes.selection import shown_nodes
from gviz.system.cooperative_work import Driven, Far, finished, parts
from gviz.trace.graph_state import OPTIMIZER, Iteration, NodeInfo
from gviz.trace.timeline import Timeline
from gviz.values.plain_text import clipped

SOON = 5000
"""How many nodes can be read without a noticeable delay. The caller may read larger graphs with `read_graph`."""

NEAR = 2
"""How many lines away a node of the neighbourhood may be."""


@dataclass(frozen=True, slots=True)
class _KnownGraph:
    """The graph of an iteration, the iteration's index and end (`at`), and the nodes that the graph was built from."""

    at: tuple[int, int]
    nodes: tuple[int, ...]
    graph: CallGraph


class Folds:
    """The collapsed modules, in all iterations. At first these are the optimizer steps.

    Modules of large graphs are collapsed automatically, until the user expands or collapses one.
    """

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self._filter = Filter(frozenset({OPTIMIZER}))
        self._seen: set[int] = set()
        self._graph: _KnownGraph | None = None
        self._folded: tuple[CallGraph, Closed, dict[int, int]] | None = None
        self.reads_later = False
        """Whether the caller reads large graphs with `read_graph`, and until then needs fast answers."""

    @property
    def closed(self) -> tuple[str, ...]:
        """The modules whose calls count as one node each, and the path of the optimizer steps."""
        return tuple(sorted(path for path in self._filter.closed if isinstance(path, str)))

    def copy_closed(self, other: Folds) -> None:
        """Collapse the same modules as `other`, which belongs to another recording of the same program."""
        self._filter = Filter(other._filter.closed)

    def graph_filter(self, iteration: Iteration) -> Filter:
        """Return the filter for an iteration."""
        unseen = len(self.timeline.nodes) >= LARGE and iteration.index not in self._seen
        if not self.ready(iteration):
            return self._filter
        if unseen and not self.timeline.contexts.flat:  # known without the graph, which is slow to build
            finished(self._collapse_large(self.graph(iteration)))
        self._seen.add(iteration.index)
        return self._filter

    def _collapse_large(self, graph: CallGraph) -> Driven[None]:
        """Collapse modules of a large graph automatically."""
        if boxes(graph, self._filter.closed) >= LARGE:
            yield Far("folding the graph: depth", 0, 1)
            self._close((yield from closing_to_fit(graph, FEW_BOXES, self._filter.closed)))

    def ready(self, iteration: Iteration) -> bool:
        """Return whether the graph of an iteration is known, or can be built fast."""
        if not self.reads_later:
            return True
        known = self._graph.nodes if self._graph is not None and self._graph.at[0] == iteration.index else ()
        return len(self.timeline.nodes.of(iteration)) - len(known) < SOON

    def read_graph(self, iteration: Iteration) -> Driven[None]:
        """Read the graph of an iteration, and collapse modules of a large one automatically."""
        nodes, infos = self.timeline.nodes.of(iteration), list[NodeInfo]()
        for part in parts(nodes, "reading the graph: node"):
            if isinstance(part, Far):
                yield part
            else:
                infos += map(self.timeline.info, part)
        graph = yield from reading_graph(self.timeline, infos)
        if len(nodes) >= LARGE and iteration.index not in self._seen and not self.timeline.contexts.flat:
            yield from self._collapse_large(graph)
            self._seen.add(iteration.index)
        self._graph = _KnownGraph((iteration.index, iteration.end), nodes, graph)  # last: until now, `ready` was false

    def graph(self, iteration: Iteration) -> CallGraph:
        """Return the nodes and module calls of an iteration, which may still grow.

        Raises GvizError while `read_graph` is reading them.
        """
        if not self.ready(iteration):
            raise GvizError("the graph of this iteration is still being read", hint="try again soon", exit_code=2)
        known, here = self._graph, (iteration.index, iteration.end)
        if known is None or known.at != here:
            nodes = self.timeline.nodes.of(iteration)
            same = known is not None and (known.at[0], known.nodes) == (iteration.index, nodes)
            known = self._graph = _KnownGraph(here, nodes, known.graph if known and same else self._built(iteration))
        return known.graph

    def _built(self, iteration: Iteration) -> CallGraph:
        infos, _ = shown_nodes(self.timeline, iteration, content="all")
        return graph_of(self.timeline, infos.values())

    def hides(self, iteration: Iteration) -> bool:
        """Return whether a node of an iteration may have no box of its own."""
        if not self.ready(iteration):
            return False
        graph_filter = self.graph_filter(iteration)
        return bool(
            graph_filter.focus or graph_filter.closed - {OPTIMIZER} or self.timeline.contexts.steps_in(iteration)
        )

    def folded(self, iteration: Iteration) -> Folded:
        """Return the boxes of an iteration."""
        return fold(self.graph(iteration), self.graph_filter(iteration))

    def open(self, node: int, path: str = "") -> str:
        """Expand the named module, or the outermost collapsed one around a node; return its path."""
        chosen = path or next((call for call in self._paths(node) if call in self._filter.closed), "")
        self._require(
            chosen in self._filter.closed, path, "is not collapsed", "no collapsed module contains the selected node"
        )
        self._filter = replace(self._filter, closed=self._filter.closed - {chosen})
        return chosen

    def close(self, node: int, path: str = "") -> str:
        """Collapse the named module, or the innermost expanded one around a node; return its path."""
        paths = self._paths(node)
        first = next((at for at, known in enumerate(paths) if known in self._filter.closed), len(paths))
        chosen = path or (paths[first - 1] if first else "")
        known = chosen in modules(self.graph(self._iteration_of(node))) if path else bool(chosen)
        self._require(known, path, "is not a module that was called", "no expanded module contains the selected node")
        self._close(frozenset({chosen}))
        return chosen

    def close_all(self, iteration: Iteration) -> None:
        """Collapse every module."""
        self._close(frozenset(modules(self.graph(iteration))))

    def open_all(self) -> None:
        """Expand every module."""
        self._filter = replace(self._filter, closed=frozenset())

    def focus(self, node: int = 0, *, ancestors: bool = False, radius: int = 0) -> None:
        """Show only the ancestors of a node, or the nodes near it; without a node, the whole graph."""
        self._filter = replace(self._filter, focus=node, ancestors=ancestors, radius=radius)

    def next_focus(self, node: int) -> None:
        """Show the ancestors of the node, then its neighbourhood, then the whole graph."""
        now = self._filter
        if not now.focus:
            self.focus(node, ancestors=True)
        elif now.ancestors:
            self.focus(now.focus, radius=NEAR)
        else:
            self.focus()

    def shown_part(self) -> str:
        """Return a description of the shown part of the graph; empty if no node is hidden."""
        now = self._filter
        if now.ancestors:
            return f"what #{now.focus} was made from"
        return f"within {now.radius} line{'s' * (now.radius != 1)} of #{now.focus}" if now.focus else ""

    def next_node(self, timeline: Timeline, n: int) -> int:
        """Return the moment one node later; a collapsed module counts as one."""
        return self._through(timeline, n, 1)

    def reverse_next_node(self, timeline: Timeline, n: int) -> int:
        """Return the moment one node earlier."""
        return self._through(timeline, n, -1)

    def _through(self, timeline: Timeline, n: int, way: int) -> int:
        """Return the next moment at which a node is complete, unless a collapsed call continues after it."""
        ends = timeline.contexts.node_ends
        at = bisect_right(ends, n) if way > 0 else bisect_right(ends, n - 1) - 1
        while 0 <= at < len(ends) and (self._is_optimizer_arithmetic(ends[at]) or self._same_group(*ends[at : at + 2])):
            at += way
        return ends[at] if 0 <= at < len(ends) else len(timeline) if way > 0 else 0

    def _is_optimizer_arithmetic(self, n: int) -> bool:
        """Return whether the node of a moment is arithmetic of an optimizer whose steps are collapsed."""
        node = self._node_at(n) if OPTIMIZER in self._filter.closed else 0
        return node != 0 and self.timeline.contexts.step_of(self.timeline.info(node)) != 0

    def _same_group(self, one: int, other: int = 0) -> bool:
        if not other:
            return False
        groups = self._groups(one)
        group = groups.get(self._node_at(one), 0)
        return bool(group) and groups.get(self._node_at(other), 0) == group

    def _node_at(self, n: int) -> int:
        return int(self.timeline.columns(n, n + 1).node[0])

    def _groups(self, n: int) -> dict[int, int]:
        """Return the collapsed call of every node inside one, in the iteration of a moment."""
        iteration = self.timeline.iteration_at(n)
        if not self.hides(iteration):
            return {}
        closed, graph = self.graph_filter(iteration).closed, self.graph(iteration)
        if self._folded is None or self._folded[0] is not graph or self._folded[1] != closed:
            groups = reversed(fold(graph, Filter(closed)).groups)  # a pass runs shared nodes with the first call
            inside = {node: group.call.scope for group in groups for node in group.nodes}
            self._folded = graph, closed, inside
        return self._folded[2]

    def _close(self, closed: Closed) -> None:
        self._filter = replace(self._filter, closed=self._filter.closed | closed)

    def _iteration_of(self, node: int) -> Iteration:
        born = self.timeline.info(node).born if node else 0
        return self.timeline.iteration_at(born)

    def _paths(self, node: int) -> list[str]:
        """Return the modules around a node, the outermost first."""
        if not node:
            return []
        return [call.path for call in around(self.graph(self._iteration_of(node)), node)]

    def _require(self, holds: bool, path: str, named: str, otherwise: str) -> None:
        if not holds:
            hint = "modules lists them" if path else "j and k select another"
            raise GvizError(f"{clipped(path, 40)} {named}" if path else otherwise, hint=hint, exit_code=2)

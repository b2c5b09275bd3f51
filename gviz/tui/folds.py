"""The level of the graph, collapsed modules, and the shown part. A step treats every box as one node.

The levels are those of pictures: a box for each child module, for each function call of the program, or for each node.
The graph of an iteration has all nodes and module calls. `Folds.graph_filter` describes the boxes, and `Folds.folded`
makes them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from gviz.errors import GvizError
from gviz.render.boxes.fold import (
    CALLS,
    FEW_BOXES,
    LARGE,
    CallGraph,
    Closed,
    Filter,
    Folded,
    ModuleCall,
    around,
    boxes,
    calls_of,
    closed_below,
    closed_in,
    closing_to_fit,
    fold,
    graph_of,
    modules,
    reading_graph,
)
from gviz.render.boxes.function_calls import with_calls, with_repeats
from gviz.render.boxes.selection import shown_nodes
from gviz.system.cooperative_work import Driven, Far, finished, parts
from gviz.trace.graph_state import OPTIMIZER, Iteration, NodeInfo
from gviz.trace.timeline import Timeline
from gviz.values.plain_text import clipped

GraphLevel = Literal["nodes", "calls", "modules"]
GRAPH_LEVELS: Mapping[GraphLevel, str] = {
    "nodes": "one box for each node",
    "calls": "one box for each function call",
    "modules": "one box for each child module",
}
"""The levels of the graph, in the order of the key that switches them."""

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


@dataclass(slots=True)
class _LevelGraph:
    """The calls of an iteration at a level, the filter that makes its boxes (`wanted`), and the boxes once needed.

    They depend on the nodes and module calls (`graph`), on the `level`, on the user's filter (`asked`) and on what is
    `expanded`. A step asks for them several times, and each of them takes a walk through all nodes.
    """

    graph: CallGraph
    level: GraphLevel
    asked: Filter
    expanded: frozenset[str]
    calls: CallGraph
    wanted: Filter
    folded: Folded | None = None


class Folds:
    """The level, the collapsed modules, and the expanded calls, in all iterations.

    At first every node has a box, and the optimizer steps are collapsed. Modules of large graphs are collapsed
    automatically, until the user expands or collapses one. At the levels of calls and of modules, more is collapsed;
    `_expanded` are the paths that the user has expanded there.
    """

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self.level: GraphLevel = "nodes"
        self._filter = Filter(frozenset({OPTIMIZER}))
        self._expanded: frozenset[str] = frozenset()
        self._seen: set[int] = set()
        self._graph: _KnownGraph | None = None
        self._at_level: _LevelGraph | None = None
        self._folded: tuple[CallGraph, Filter, dict[int, int]] | None = None
        self.reads_later = False
        """Whether the caller reads large graphs with `read_graph`, and until then needs fast answers."""

    @property
    def collapsed_in_program(self) -> tuple[str, ...]:
        """The modules whose calls count as one node each in a running program, and the path of the optimizer steps.

        The program does not know the boxes of function calls and of repeated modules.
        """
        closed = self._filter.closed
        if self.level != "nodes":
            closed = closed | self.collapsed(self.timeline.iterations[-1])
        return tuple(sorted(path for path in closed if isinstance(path, str)))

    def copy_collapsed(self, other: Folds) -> None:
        """Take the level and the collapsed modules of `other`, which belongs to another run of the same program."""
        self._filter, self.level, self._expanded = Filter(other._filter.closed), other.level, other._expanded

    def next_level(self) -> GraphLevel:
        """Switch to the next level, and return it."""
        levels = [*GRAPH_LEVELS]
        self.level = levels[(levels.index(self.level) + 1) % len(levels)]
        return self.level

    def graph_filter(self, iteration: Iteration) -> Filter:
        """Return the filter for an iteration."""
        unseen = len(self.timeline.nodes) >= LARGE and iteration.index not in self._seen
        if not self.ready(iteration):
            return self._filter
        if unseen and not self.timeline.contexts.flat:  # known without the graph, which is slow to build
            finished(self._collapse_large(self.graph(iteration)))
        self._seen.add(iteration.index)
        return self._level_graph(iteration).wanted if self.level != "nodes" else self._filter

    def _level_graph(self, iteration: Iteration) -> _LevelGraph:
        """Return the calls of an iteration at the level.

        The calls for repeated parts, which `with_repeats` adds, can be expanded, too.
        """
        graph, known = self.graph(iteration), self._at_level
        here = self.level, self._filter, self._expanded
        if known is None or known.graph is not graph or (known.level, known.asked, known.expanded) != here:
            below = closed_below(graph, 1) if self.level == "modules" else frozenset()
            closed = (self._filter.closed | below) - self._expanded
            wanted = replace(self._filter, closed=closed, calls=True, repeats=self.level == "modules")
            infos = {node: self.timeline.info(node) for node in graph.nodes}
            calls = with_calls(self.timeline, graph, infos)
            if wanted.repeats:
                calls, _ = with_repeats(calls, infos, self._expanded_in(calls))
            wanted = replace(wanted, opened=self._expanded_in(calls))
            known = self._at_level = _LevelGraph(graph, *here, calls, wanted)
        return known

    def _expanded_in(self, graph: CallGraph) -> frozenset[int]:
        """Return the scopes of the calls that the user has expanded."""
        return frozenset(call.scope for call in calls_of(graph) if call.path in self._expanded)

    def _collapse_large(self, graph: CallGraph) -> Driven[None]:
        """Collapse modules of a large graph automatically."""
        if boxes(graph, self._filter.closed) >= LARGE:
            yield Far("folding the graph: depth", 0, 1)
            self._collapse((yield from closing_to_fit(graph, FEW_BOXES, self._filter.closed)))

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
        self._graph = _KnownGraph((iteration.index, iteration.end), nodes, graph)  # last: this makes `ready` true

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
        return graph_filter.calls or bool(
            graph_filter.focus or graph_filter.closed - {OPTIMIZER} or self.timeline.contexts.steps_in(iteration)
        )

    def folded(self, iteration: Iteration) -> Folded:
        """Return the boxes of an iteration."""
        wanted = self.graph_filter(iteration)
        if not wanted.calls:
            return fold(self.graph(iteration), wanted)
        known = self._level_graph(iteration)
        if known.folded is None:
            known.folded = fold(known.calls, wanted)
        return known.folded

    def collapsed(self, iteration: Iteration) -> Closed:
        """Return the paths of the modules that are collapsed, by the user or by the level."""
        wanted = self.graph_filter(iteration)
        if not wanted.calls:
            return wanted.closed
        groups = self.folded(iteration).groups
        shown = {group.call.path for group in groups if group.call.of_module}
        repeated = {path for group in groups if group.repeat is not None for path in group.repeat.modules}
        return wanted.closed | shown | repeated

    def expand(self, node: int, path: str = "") -> str:
        """Expand the named module, or the outermost collapsed call around a node; return its name."""
        iteration = self._iteration_of(node)
        box = self._box(self._chain(node, iteration), iteration)
        holds = path in self.collapsed(iteration) if path else box is not None
        self._require(holds, path, "is not collapsed", f"no collapsed {self._box_words} contains the selected node")
        chosen = path or (box.path if box is not None else "")
        self._filter = replace(self._filter, closed=self._filter.closed - {chosen})
        if self.level != "nodes":
            self._expanded |= {chosen}
        return path or _name(box)

    def collapse(self, node: int, path: str = "") -> str:
        """Collapse the named module, or the innermost expanded call around a node; return its name."""
        iteration = self._iteration_of(node)
        chain = self._chain(node, iteration)
        box = self._box(chain, iteration)
        at = chain.index(box) if box is not None else len(chain)
        call = chain[at - 1] if at else None
        known = path in modules(self.graph(iteration)) if path else call is not None
        otherwise = f"no expanded {self._box_words} contains the selected node"
        self._require(known, path, "is not a module that was called", otherwise)
        chosen = path or (call.path if call is not None else "")
        self._expanded -= {chosen}
        is_module = bool(path) or (call is not None and call.scope > -CALLS)
        if is_module and chosen not in self.collapsed(iteration):
            self._collapse(frozenset({chosen}))
        return path or _name(call)

    def collapse_all(self, iteration: Iteration) -> None:
        """Collapse every module."""
        self._expanded = frozenset()
        self._collapse(frozenset(modules(self.graph(iteration))))

    def expand_all(self) -> None:
        """Expand every module, to all of its nodes."""
        self.level, self._expanded = "nodes", frozenset()
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
        """Return the next moment at which a node is complete, after moment `n` or, if `way` is -1, before it.

        Of the moments in a collapsed call, only the last one counts.
        """
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
        """Return the nodes inside collapsed calls, each with its call, in the iteration of a moment."""
        iteration = self.timeline.iteration_at(n)
        if not self.hides(iteration):
            return {}
        wanted = replace(self.graph_filter(iteration), focus=0, ancestors=False, radius=0)
        graph = self._calls(iteration)
        if self._folded is None or self._folded[0] is not graph or self._folded[1] != wanted:
            # reversed, so that a shared node belongs to its first call: a pass runs it with that call
            groups = reversed(fold(graph, wanted).groups)
            inside = {node: group.call.scope for group in groups for node in group.nodes}
            self._folded = graph, wanted, inside
        return self._folded[2]

    @property
    def _box_words(self) -> str:
        """What can be collapsed at the level, for a message."""
        return "module" if self.level == "nodes" else "module or function call"

    def _collapse(self, closed: Closed) -> None:
        self._filter = replace(self._filter, closed=self._filter.closed | closed)

    def _iteration_of(self, node: int) -> Iteration:
        born = self.timeline.info(node).born if node else 0
        return self.timeline.iteration_at(born)

    def _calls(self, iteration: Iteration) -> CallGraph:
        """Return the graph of an iteration with all calls that have a box at the level."""
        return self.graph(iteration) if self.level == "nodes" else self._level_graph(iteration).calls

    def _box(self, chain: tuple[ModuleCall, ...], iteration: Iteration) -> ModuleCall | None:
        """Return the call of a chain that is one box; None if all are expanded."""
        return closed_in(self._calls(iteration), chain, self.graph_filter(iteration))

    def _chain(self, node: int, iteration: Iteration) -> tuple[ModuleCall, ...]:
        """Return the calls around a node, the outermost first."""
        return around(self._calls(iteration), node) if node else ()

    def _require(self, holds: bool, path: str, named: str, otherwise: str) -> None:
        if not holds:
            hint = "modules lists them" if path else "j and k select another"
            raise GvizError(f"{clipped(path, 40)} {named}" if path else otherwise, hint=hint, exit_code=2)


def _name(call: ModuleCall | None) -> str:
    """Return the name of a call for the user: its module, its function, or its repeat."""
    if call is None:
        return ""
    return call.kind if call.is_source_call else call.path

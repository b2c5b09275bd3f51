"""The level of the graph, collapsed modules, and the shown part. A step treats every box as one node.

The levels are those of pictures: a box for each child module, for each function call of the program, or for each node.
The graph of an iteration has all nodes and module calls. `Folds.graph_filter` describes the boxes, and `Folds.folded`
makes them.

Until the user chooses a level, a screen gets one of the views that pictures choose from (`GraphViews`). A small graph
shows every node. A larger one is shown in the view with the most boxes, among those that have at most `MOST_BOXES`:

    iteration                                   its view
    complete                                    chosen when it is first shown
    running, the first one of the recording     every node, until the program makes many nodes without a pause
    running, a later one                        chosen for the iteration before it: a loop repeats one graph

A view that is shown never changes by itself while the user steps, so no box moves.

On a screen that shows the graph, what a program computes from its data before the model is collapsed at any level
(`gviz.render.boxes.data_preparation`), until the user expands it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from typing import Literal

from gviz.errors import GvizError
from gviz.events import NodeCreated
from gviz.render.boxes.collapse_choice import (
    FEW_BOXES,
    GraphView,
    GraphViews,
    boxes,
    closed_below,
    closing_to_fit,
    most_informative,
)
from gviz.render.boxes.data_preparation import FEWEST_OPERATIONS, with_data
from gviz.render.boxes.drawn_nodes import shown_nodes
from gviz.render.boxes.folding import (
    CALLS,
    DATA,
    LARGE,
    CallGraph,
    Closed,
    Filter,
    Folded,
    ModuleCall,
    around,
    calls_of,
    closed_in,
    fold,
    graph_of,
    modules,
    reading_graph,
)
from gviz.render.boxes.function_calls import with_calls
from gviz.render.boxes.repeats import is_repeat_named, with_repeats
from gviz.render.picture_notes import summary
from gviz.system.cooperative_work import LongWork, WorkProgress, finished, parts
from gviz.trace.backward_order import planned
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

AUTOMATIC = "auto"
"""Instead of a level: a view is chosen for each graph."""

SOON = 5000
"""How many nodes can be read without a noticeable delay. The caller may read larger graphs with `read_graph`."""

MOST_BOXES = 60
"""The most boxes of a graph in which each node has one, until the user wants it: a reader scrolls through it."""

LONG_RUN = 20
"""How many nodes a run of the program makes at least, so that the view of its graph is chosen again after it."""

MOST_PLANNED = 5000
"""How many nodes of a running backward pass are looked at for the end of a box."""

MOST_ITERATIONS_BACK = 4
"""How many iterations are searched for one that made the same nodes, as when two models take turns."""

NEAR = 2
"""How many lines away a node of the neighbourhood may be."""

MOST_KNOWN = 3
"""How many iterations keep their graphs: the one on the screen, and two whose boundary the selection passes."""


@dataclass(frozen=True, slots=True)
class _KnownGraph:
    """The graph of an iteration, the iteration's end, and the nodes that the graph was built from."""

    end: int
    nodes: tuple[int, ...]
    graph: CallGraph


@dataclass(slots=True)
class _LevelGraph:
    """The calls of an iteration at a level, its filter (`graph_filter`), and the boxes once needed.

    They depend on the nodes and module calls (`graph`), on the `level`, on the `user_filter` and on what is
    `expanded`. A step asks for them several times, and each of them takes a walk through all nodes.
    """

    graph: CallGraph
    level: GraphLevel | GraphView
    user_filter: Filter
    expanded: frozenset[str]
    calls: CallGraph
    graph_filter: Filter
    folded: Folded | None = None


@dataclass(slots=True)
class _KnownIteration:
    """What was computed for an iteration: its graph, the graph at the level, and the nodes in collapsed calls."""

    graph: _KnownGraph | None = None
    at_level: _LevelGraph | None = None
    groups: tuple[CallGraph, Filter, dict[int, int]] | None = None


class Folds:
    """The level, the collapsed modules, and the expanded calls, in all iterations.

    At first every node has a box, and the optimizer steps are collapsed. Modules of large graphs are collapsed
    automatically. At the levels of calls and of modules, and in a view that was chosen automatically, more is
    collapsed; `_expanded` are the paths that the user has expanded there.
    """

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self._level: GraphLevel | None = None  # chosen by the user
        self._views: dict[int, GraphView | None] = {}  # by the index of the iteration; None shows every node
        self._was_edited_by_user = False  # whether the user has expanded or collapsed something in an automatic view
        self._filter = Filter(frozenset({OPTIMIZER}), data=FEWEST_OPERATIONS)  # only on a screen: `_with_data`
        self._expanded: frozenset[str] = frozenset()
        self._seen: set[int] = set()
        self._known: dict[int, _KnownIteration] = {}  # by the index of the iteration, the one last used at the end
        self.reads_later = False
        """Whether the caller reads large graphs with `read_graph`, and until then needs fast answers."""
        self.chooses_views = False
        """Whether a view is chosen for each graph until the user chooses a level: a screen shows the graph."""

    @property
    def level(self) -> GraphLevel:
        """The level that the user has chosen; all nodes until then."""
        return self._level or "nodes"

    @level.setter
    def level(self, level: GraphLevel) -> None:
        self._level = level

    @property
    def collapsed_in_program(self) -> tuple[str, ...]:
        """The modules whose calls count as one node each in a running program, and the path of the optimizer steps.

        The program does not know the boxes of function calls and of repeated modules.
        """
        closed, newest = self._filter.closed, self.timeline.iterations[-1]
        if self._leveled(newest) is not None:
            closed = closed | self.collapsed(newest)
        return tuple(sorted(path for path in closed if isinstance(path, str)))

    def copy_collapsed(self, other: Folds) -> None:
        """Take the level and the collapsed modules of `other`, which belongs to another run of the same program."""
        self._filter = replace(Filter(other._filter.closed), data=other._filter.data)
        self._level, self._expanded = other._level, other._expanded
        self._was_edited_by_user = other._was_edited_by_user

    def next_level(self, iteration: Iteration) -> GraphLevel:
        """Switch to the level after the one of an iteration, and return it."""
        levels = [*GRAPH_LEVELS]
        self.level = levels[(levels.index(self.level_of(iteration)) + 1) % len(levels)]
        return self.level

    def level_of(self, iteration: Iteration) -> GraphLevel:
        """Return the level of an iteration; for an automatic view, the one that is most like it."""
        level = self._leveled(iteration)
        if isinstance(level, GraphView):
            return "modules" if level.repeats or level.graph_filter.closed - {OPTIMIZER} else "calls"
        return level or "nodes"

    def choose_automatically(self) -> None:
        """Forget the level that the user has chosen, and what is expanded and collapsed."""
        self._level, self._expanded, self._was_edited_by_user = None, frozenset(), False
        self._filter = replace(self._filter, closed=frozenset({OPTIMIZER}), data=FEWEST_OPERATIONS)
        self._views.clear()

    def automatic_view(self, iteration: Iteration) -> GraphView | None:
        """Return the view that was chosen for an iteration.

        It is None if every node is shown, and once the user has chosen a level.
        """
        if not self.chooses_views or self._level is not None or not self.ready(iteration):
            return None
        if iteration.index not in self._views:
            model = self._model_iteration(iteration)
            self._views[iteration.index] = finished(self._choosing(self.graph(model)))
        return self._views[iteration.index]

    def choose_view_after_run(self, start: int) -> None:
        """Choose a view of the newest iteration if all of its nodes are shown, and many were made after a moment.

        What the user has expanded or collapsed there stays as it is.
        """
        newest = self.timeline.iterations[-1]
        new_count = sum(self.timeline.info(node).born > start for node in self.timeline.nodes.of(newest)[-LONG_RUN:])
        if self._views.get(newest.index) is None and new_count >= LONG_RUN and not self._was_edited_by_user:
            self._views.pop(newest.index, None)

    def _model_iteration(self, iteration: Iteration) -> Iteration:
        """Return the iteration whose graph decides the view: for a running one the last complete one, if any."""
        iterations = self.timeline.iterations
        is_running = self.timeline.growing and iteration.index == len(iterations) - 1
        return iterations[iteration.index - 1] if is_running and iteration.index else iteration

    def _choosing(self, graph: CallGraph) -> LongWork[GraphView | None]:
        """Return the view with the most boxes that are still easy to read; None if these are all nodes."""
        base = Filter(frozenset({OPTIMIZER}), data=FEWEST_OPERATIONS)
        if boxes(graph, base.closed, data=base.data) <= MOST_BOXES:
            return None
        infos = {node: self.timeline.info(node) for node in graph.nodes}
        views: list[GraphView] = []
        for view in GraphViews(graph, with_calls(self.timeline, graph, infos), infos, base).all():
            yield WorkProgress("choosing a level: view", len(views), len(views) + 1)
            views.append(view)
        return max(most_informative(views[1:], MOST_BOXES), key=lambda view: view.boxes)

    def _leveled(self, iteration: Iteration) -> GraphLevel | GraphView | None:
        """Return the level or the automatic view of an iteration; None if every node has a box."""
        if not self.ready(iteration) or self._level == "nodes":
            return None
        return self._level or self.automatic_view(iteration)

    def _level_filter(self, graph: CallGraph, level: GraphLevel | GraphView) -> Filter:
        """Return what a level collapses in a graph."""
        if isinstance(level, GraphView):
            return level.graph_filter
        below = closed_below(graph, 1) if level == "modules" else frozenset()
        return Filter(closed=below, calls=True, repeats=level == "modules")

    def _node_filter(self, iteration: Iteration) -> Filter:
        """Return the filter of an iteration in which every node has a box, except for what is collapsed."""
        graph = self.graph(iteration) if self.chooses_views and self._filter.data else None
        if graph is None or not graph.preparations:
            return replace(self._filter, data=0)
        return replace(self._filter, opened=self._expanded_in(graph))

    def _with_data(self, graph: CallGraph) -> CallGraph:
        """Return a graph with calls around data preparation, if a screen shows the graph."""
        if not self.chooses_views:
            return graph
        return with_data(self.timeline, graph, {node: self.timeline.info(node) for node in graph.nodes})

    def graph_filter(self, iteration: Iteration) -> Filter:
        """Return the filter for an iteration."""
        unseen = not self.chooses_views and len(self.timeline.nodes) >= LARGE and iteration.index not in self._seen
        if not self.ready(iteration):
            return replace(self._filter, data=0)
        if unseen and not self.timeline.contexts.flat:  # known without the graph, which is slow to build
            finished(self._collapse_large(self.graph(iteration)))
        self._seen.add(iteration.index)
        level = self._leveled(iteration)
        return self._node_filter(iteration) if level is None else self._level_graph(iteration, level).graph_filter

    def _level_graph(self, iteration: Iteration, level: GraphLevel | GraphView) -> _LevelGraph:
        """Return the calls of an iteration at the level.

        The calls for repeated parts, which `with_repeats` adds, can be expanded, too.
        """
        graph, of_iteration = self.graph(iteration), self._known_of(iteration)
        known = of_iteration.at_level
        here = level, self._filter, self._expanded
        if known is None or known.graph is not graph or (known.level, known.user_filter, known.expanded) != here:
            collapsed = self._level_filter(graph, level)
            closed = (self._filter.closed | collapsed.closed) - self._expanded
            data = self._filter.data if graph.preparations else 0
            graph_filter = replace(self._filter, closed=closed, calls=True, repeats=collapsed.repeats, data=data)
            infos = {node: self.timeline.info(node) for node in graph.nodes}
            calls = with_calls(self.timeline, graph, infos)
            samples = self._samples(calls, infos) if collapsed.sample else frozenset[int]()
            if graph_filter.repeats:
                calls, _ = with_repeats(calls, infos, self._expanded_in(calls) | samples)
            graph_filter = replace(graph_filter, opened=self._expanded_in(calls) | samples)
            known = of_iteration.at_level = _LevelGraph(graph, *here, calls, graph_filter)
        return known

    def _samples(self, graph: CallGraph, infos: Mapping[int, NodeInfo]) -> frozenset[int]:
        """Return the calls of the first of equal parts, which are expanded unless the user has collapsed them."""
        _, opened = with_repeats(graph, infos, sample=True)
        calls = [call for call in calls_of(graph) if call.scope in opened]
        return frozenset(call.scope for call in calls if call.path not in self._filter.closed)

    def _expanded_in(self, graph: CallGraph) -> frozenset[int]:
        """Return the scopes of the calls that the user has expanded."""
        return frozenset(call.scope for call in calls_of(graph) if call.path in self._expanded)

    def _collapse_large(self, graph: CallGraph) -> LongWork[None]:
        """Collapse modules of a large graph automatically."""
        if boxes(graph, self._filter.closed) >= LARGE:
            yield WorkProgress("folding the graph: depth", 0, 1)
            self._collapse((yield from closing_to_fit(graph, FEW_BOXES, self._filter.closed)))

    def ready(self, iteration: Iteration) -> bool:
        """Return whether the graph of an iteration is known, or can be built fast."""
        if not self.reads_later:
            return True
        known = self._known.get(iteration.index)
        built_from = known.graph.nodes if known is not None and known.graph is not None else ()
        return len(self.timeline.nodes.of(iteration)) - len(built_from) < SOON

    def read_graph(self, iteration: Iteration) -> LongWork[None]:
        """Read the graph of an iteration, and collapse modules of a large one automatically."""
        nodes, infos = self.timeline.nodes.of(iteration), list[NodeInfo]()
        for part in parts(nodes, "reading the graph: node"):
            if isinstance(part, WorkProgress):
                yield part
            else:
                infos += map(self.timeline.info, part)
        graph = self._with_data((yield from reading_graph(self.timeline, infos)))
        is_large = len(nodes) >= LARGE and not self.chooses_views
        if is_large and iteration.index not in self._seen and not self.timeline.contexts.flat:
            yield from self._collapse_large(graph)
            self._seen.add(iteration.index)
        if self.chooses_views and self._level is None and iteration.index not in self._views:
            self._views[iteration.index] = yield from self._choosing(graph)
        # last: this makes `ready` true
        self._known_of(iteration).graph = _KnownGraph(iteration.end, nodes, graph)

    def graph(self, iteration: Iteration) -> CallGraph:
        """Return the nodes and module calls of an iteration, which may still grow.

        Raises GvizError while `read_graph` is reading them.
        """
        if not self.ready(iteration):
            raise GvizError("the graph of this iteration is still being read", hint="try again soon", exit_code=2)
        of_iteration = self._known_of(iteration)
        known = of_iteration.graph
        if known is None or known.end != iteration.end:
            nodes = self.timeline.nodes.of(iteration)
            graph = known.graph if known is not None and known.nodes == nodes else self._built(iteration)
            known = of_iteration.graph = _KnownGraph(iteration.end, nodes, graph)
        return known.graph

    def _known_of(self, iteration: Iteration) -> _KnownIteration:
        """Return what is known of an iteration; what is known of those used longest ago is forgotten."""
        known = self._known.pop(iteration.index, None) or _KnownIteration()
        self._known[iteration.index] = known
        while len(self._known) > MOST_KNOWN:
            del self._known[next(iter(self._known))]
        return known

    def _built(self, iteration: Iteration) -> CallGraph:
        infos, _ = shown_nodes(self.timeline, iteration, content="all")
        return self._with_data(graph_of(self.timeline, infos.values()))

    def hides(self, iteration: Iteration) -> bool:
        """Return whether a node of an iteration may have no box of its own."""
        if not self.ready(iteration):
            return False
        graph_filter = self.graph_filter(iteration)
        return bool(
            graph_filter.calls
            or graph_filter.data
            or graph_filter.focus
            or graph_filter.closed - {OPTIMIZER}
            or self.timeline.contexts.steps_in(iteration)
        )

    def folded(self, iteration: Iteration) -> Folded:
        """Return the boxes of an iteration."""
        level = self._leveled(iteration)
        if level is None:
            return fold(self.graph(iteration), self.graph_filter(iteration))
        known = self._level_graph(iteration, level)
        if known.folded is None:
            known.folded = fold(known.calls, known.graph_filter)
        return known.folded

    def collapsed(self, iteration: Iteration) -> Closed:
        """Return the paths of the modules that are collapsed, by the user or by the level."""
        graph_filter = self.graph_filter(iteration)
        if not graph_filter.calls:
            return graph_filter.closed
        groups = self.folded(iteration).groups
        shown = {group.call.path for group in groups if group.call.of_module}
        repeated = {path for group in groups if group.repeat is not None for path in group.repeat.modules}
        return graph_filter.closed | shown | repeated

    def expand(self, node: int, path: str = "") -> str:
        """Expand the named module or equal parts, or the outermost collapsed call around a node; return its name."""
        iteration = self.iteration_of(node)
        if path and (parts := self._repeats_named(path, iteration)):
            self._expanded |= parts
            self._was_edited_by_user = True
            return path
        box = self._box(self._chain(node, iteration), iteration)
        holds = path in self.collapsed(iteration) if path else box is not None
        otherwise = f"no collapsed {self._box_words(iteration)} contains the selected node"
        self._require(holds, path, "is not collapsed", otherwise)
        chosen = path or (box.path if box is not None else "")
        is_data = not path and box is not None and box.is_data
        self._filter = replace(self._filter, closed=self._filter.closed - {chosen})
        if is_data or self._leveled(iteration) is not None:
            self._expanded |= {chosen}
        self._was_edited_by_user |= not is_data
        return path or _name(box)

    def _repeats_named(self, name: str, iteration: Iteration) -> frozenset[str]:
        """Return the paths of the boxes of equal parts with this name, as the text of a picture writes it."""
        if not self.ready(iteration) or self._leveled(iteration) is None:
            return frozenset()
        groups = [group for group in self.folded(iteration).groups if group.repeat is not None]
        named = (group for group in groups if group.repeat and is_repeat_named(group.call, group.repeat.title, [name]))
        return frozenset(group.call.path for group in named)

    def collapse(self, node: int, path: str = "") -> str:
        """Collapse the named module, or the innermost expanded call around a node; return its name."""
        iteration = self.iteration_of(node)
        chain = self._chain(node, iteration)
        box = self._box(chain, iteration)
        at = chain.index(box) if box is not None else len(chain)
        call = chain[at - 1] if at else None
        known = path in modules(self.graph(iteration)) if path else call is not None
        otherwise = f"no expanded {self._box_words(iteration)} contains the selected node"
        self._require(known, path, "is not a module that was called", otherwise)
        chosen = path or (call.path if call is not None else "")
        self._expanded -= {chosen}
        if call is not None and call.is_data:
            self._filter = replace(self._filter, data=FEWEST_OPERATIONS)
            return _name(call)
        self._was_edited_by_user = True
        is_module = bool(path) or (call is not None and call.scope > -CALLS)
        if is_module and chosen not in self.collapsed(iteration):
            self._collapse(frozenset({chosen}))
        return path or _name(call)

    def collapse_all(self, iteration: Iteration) -> None:
        """Collapse every module."""
        self._expanded, self._was_edited_by_user = frozenset(), True
        self._filter = replace(self._filter, data=FEWEST_OPERATIONS)
        self._collapse(frozenset(modules(self.graph(iteration))))

    def expand_all(self) -> None:
        """Expand every module, to all of its nodes."""
        self.level, self._expanded = "nodes", frozenset()
        self._filter = replace(self._filter, closed=frozenset(), data=0)

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

    def neighbour(self, node: int, steps: int, n: int) -> int:
        """Return a node in the box `steps` boxes after that of a node, in the order of creation; 0 if there is none.

        The boxes are those of moment `n`.
        """
        nodes, direction, boxes = self.timeline.nodes, 1 if steps > 0 else -1, _BoxesAt(self, n)
        at = nodes.place_of(node)
        for _ in range(abs(steps)):
            here = boxes.of(int(nodes[at]))
            while 0 <= at < len(nodes) and boxes.holds(here, int(nodes[at])):
                at += direction
            if not 0 <= at < len(nodes):
                return 0
        return int(nodes[at])

    def relative(self, node: int, kin: str, n: int) -> int:
        """Return an input (``input``) or a user (``user``) of the box of a node at moment `n`, or 0 if it has none."""
        timeline, boxes = self.timeline, _BoxesAt(self, n)
        here = boxes.of(node)
        members = boxes.members(here)
        if kin == "input":
            family = (source for member in members for source, _ in timeline.info(member).created.inputs)
        else:
            family = (int(user) for member in members for user in timeline.nodes.users(member))
        return next((other for other in family if other and not boxes.holds(here, other)), 0)

    def collapsed_text(self, iteration: Iteration) -> tuple[str, ...]:
        """Return what an automatic view has collapsed, in many words and in few; nothing if it shows every node."""
        view = self.automatic_view(iteration)
        if view is None:
            return ()
        nodes, folded = len(self.graph(iteration).nodes), self.folded(iteration)
        view = replace(view, boxes=len(folded.shown) + len(folded.groups))
        brief = f"{nodes:,} nodes in {view.boxes:,} boxes"
        return (brief,) if self._was_edited_by_user else (summary(view, nodes), brief)

    def next_node(self, timeline: Timeline, n: int) -> int:
        """Return the moment one node later; a collapsed module counts as one."""
        return self._through(timeline, n, 1)

    def reverse_next_node(self, timeline: Timeline, n: int) -> int:
        """Return the moment one node earlier."""
        return self._through(timeline, n, -1)

    def nodes_of_next_boxes(self, n: int, count: int) -> int:
        """Return how many nodes a running program completes before `count` boxes after moment `n` are complete.

        In a loop, an earlier iteration shows how many. In a backward pass, the graph does. The result is 0 if
        every node has a box, or if neither of them shows it.
        """
        iteration = self.timeline.iteration_at(n)
        if self._leveled(iteration) is None:
            return 0
        before = self._same_moment_before(n)
        return self._nodes_until(before, count) if before else self._nodes_of_pass(n, count)

    def makes_more_nodes(self, n: int) -> bool:
        """Return whether the call that made the node of moment `n` makes more nodes, and is one box."""
        node, iteration = self._node_at(n), self.timeline.iteration_at(n)
        if not node or self._leveled(iteration) is None or not self.timeline.info(node).op.more:
            return False
        is_creation = isinstance(self.timeline.event(n), NodeCreated)
        return is_creation and self._box(self._chain(node, iteration), iteration) is not None

    def _same_moment_before(self, n: int) -> int:
        """Return the moment in an earlier iteration at which the same node was complete as last before `n`.

        It is 0 if there is none. Each backward pass counts as the end of an iteration: others are not known yet.
        """
        ends = self.timeline.contexts.node_ends
        here = bisect_right(ends, n) - 1
        iterations = self.timeline.iterations[-MOST_ITERATIONS_BACK:]
        passes = [end for iteration in iterations for end in self.timeline.pass_ends(iteration)]
        pass_ends = [iterations[0].start - 1, *(end for end in passes if end < n)]
        if here < 0 or ends[here] <= pass_ends[-1]:
            return pass_ends[-2] if len(pass_ends) > 2 else 0  # nothing is made yet in this iteration
        key = self._end_key(ends[here])
        nr = sum(self._end_key(end) == key for end in ends[bisect_right(ends, pass_ends[-1]) : here])
        for start, end in reversed([*pairwise(pass_ends)]):
            same = (at for at in ends[bisect_right(ends, start) : bisect_right(ends, end)] if self._end_key(at) == key)
            if moment := next(islice(same, nr, None), 0):
                return moment
        return 0

    def _end_key(self, n: int) -> Hashable:
        """Return what is equal for the moments in two iterations at which the same node is complete."""
        row = self.timeline.columns(n, n + 1)
        node = int(row.node[0])
        if not node:
            return int(row.kind[0])
        info = self.timeline.info(node)
        return int(row.kind[0]), info.scope, info.op.name, info.created.stack, info.created.kind != "op" and info.name

    def _nodes_until(self, n: int, count: int) -> int:
        """Return how many nodes are complete between moment `n` and the end of `count` boxes after it."""
        ends, stop = self.timeline.contexts.node_ends, n
        for _ in range(count):
            stop = self.next_node(self.timeline, stop)
        passed = ends[bisect_right(ends, n) : bisect_right(ends, stop)]
        return sum(not self._is_optimizer_arithmetic(end) for end in passed) if stop < len(self.timeline) else 0

    def _nodes_of_pass(self, n: int, count: int) -> int:
        """Return how many nodes of the running backward pass run before `count` boxes have run; 0 outside of a pass."""
        coming, groups = planned(self.timeline, n, MOST_PLANNED), self._groups(n)
        boxes = [groups.get(node, 0) for node in coming.nodes]
        lasts = [at for at, box in enumerate(boxes, 1) if not box or at == len(boxes) or boxes[at] != box]
        is_known = len(lasts) > count or (len(lasts) == count and not coming.ends_early)
        return lasts[count - 1] if is_known else 0

    def _through(self, timeline: Timeline, n: int, direction: int) -> int:
        """Return the next moment at which a node is complete, after moment `n` or, if `direction` is -1, before it.

        In a collapsed call, it is the last moment. A program may prepare two results in turns, so the moment of a box
        of data is the one at which that data is complete.
        """
        ends = timeline.contexts.node_ends
        at = bisect_right(ends, n) if direction > 0 else bisect_right(ends, n - 1) - 1
        while 0 <= at < len(ends) and (
            self._is_optimizer_arithmetic(ends[at])
            or self._same_group(*ends[at : at + 2])
            or self._is_incomplete_data(ends[at])
        ):
            at += direction
        return ends[at] if 0 <= at < len(ends) else len(timeline) if direction > 0 else 0

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

    def _is_incomplete_data(self, n: int) -> bool:
        """Return whether the node of a moment is in collapsed data, and is not the last one that it is made of."""
        node = self._node_at(n)
        group = self._groups(n).get(node, 0)
        return group <= -DATA and node != -DATA - group

    def _node_at(self, n: int) -> int:
        return int(self.timeline.columns(n, n + 1).node[0])

    def _groups(self, n: int) -> Mapping[int, int]:
        """Return the nodes inside collapsed calls, each with its call, in the iteration of a moment."""
        return self.groups_of(self.timeline.iteration_at(n))

    def groups_of(self, iteration: Iteration) -> Mapping[int, int]:
        """Return the nodes inside collapsed calls of an iteration, each with the scope of its call."""
        if not self.hides(iteration):
            return {}
        graph_filter = replace(self.graph_filter(iteration), focus=0, ancestors=False, radius=0)
        graph, known = self._calls(iteration), self._known_of(iteration)
        if known.groups is None or known.groups[0] is not graph or known.groups[1] != graph_filter:
            # reversed, so that a shared node belongs to its first call: a pass runs it with that call
            groups = reversed(fold(graph, graph_filter).groups)
            inside = {node: group.call.scope for group in groups for node in group.nodes}
            known.groups = graph, graph_filter, inside
        return known.groups[2]

    def _box_words(self, iteration: Iteration) -> str:
        """What can be collapsed at the level, for a message."""
        return "module" if self._leveled(iteration) is None else "module or function call"

    def _collapse(self, closed: Closed) -> None:
        self._filter = replace(self._filter, closed=self._filter.closed | closed)

    def iteration_of(self, node: int) -> Iteration:
        """Return the iteration that made a node; the first one for no node."""
        born = self.timeline.info(node).born if node else 0
        return self.timeline.iteration_at(born)

    def _calls(self, iteration: Iteration) -> CallGraph:
        """Return the graph of an iteration with all calls that have a box at the level."""
        level = self._leveled(iteration)
        return self.graph(iteration) if level is None else self._level_graph(iteration, level).calls

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


@dataclass(frozen=True, slots=True)
class _BoxKey:
    """What identifies a box: its only node, or else its collapsed call, in an iteration."""

    node: int
    iteration: int = 0
    scope: int = 0


class _BoxesAt:
    """The boxes of nodes at a moment. A node of another iteration is in the box that it has there.

    The groups of each iteration are computed once: a graph may be slow to build, and few of them are kept.
    """

    def __init__(self, folds: Folds, n: int) -> None:
        self._folds = folds
        self._here = folds.timeline.iteration_at(n)
        self._groups: dict[int, Mapping[int, int]] = {}  # by the index of the iteration

    def of(self, node: int) -> _BoxKey:
        """Return what identifies the box of a node."""
        for iteration in (self._here, self._folds.iteration_of(node)):
            if scope := self._in(iteration).get(node, 0):
                return _BoxKey(0, iteration.index, scope)
        return _BoxKey(node)

    def members(self, box: _BoxKey) -> list[int]:
        """Return the nodes of a box."""
        return [box.node] if box.node else [node for node in self._groups[box.iteration] if self.holds(box, node)]

    def holds(self, box: _BoxKey, node: int) -> bool:
        """Return whether a node is in a box; a parameter is in a box of each iteration that uses it."""
        return node == box.node if box.node else self._groups[box.iteration].get(node, 0) == box.scope

    def _in(self, iteration: Iteration) -> Mapping[int, int]:
        if iteration.index not in self._groups:
            self._groups[iteration.index] = self._folds.groups_of(iteration)
        return self._groups[iteration.index]


def _name(call: ModuleCall | None) -> str:
    """Return the name of a call for the user: its module, its function, or its repeat."""
    if call is None:
        return ""
    return call.kind if call.is_source_call or call.is_data else call.path

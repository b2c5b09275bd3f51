"""Which modules a picture or a terminal starts with collapsed, until the user collapses and expands others.

Idea. A graph of more boxes than a reader looks at one by one is drawn with modules collapsed: from the innermost ones
outwards, until few enough boxes are left. There are two such choices:

* `collapsed_modules`: every operation is a node, and the modules that the user names or that lie below ``--depth`` are
  collapsed; if neither is given, those of `closed_to_fit`, the fewest for `FEW_BOXES` boxes.
* `GraphViews`: all ways to draw a graph, with levels between a module and a node: the calls of functions, and equal
  parts as one box. Which of them is chosen depends on the room. A picture measures them
  (`gviz.render.detail_that_fits`). A terminal, which scrolls, takes the one with the most boxes that are still easy to
  read (`gviz.tui.graph_view`).

Example: a transformer of four layers, with 400 nodes. `closed_to_fit` collapses modules below depth 3, then 2, then 1,
until at most 200 boxes are left. Its views:

    every node                                                400 boxes
    every call of a function, all modules expanded            150
    modules collapsed below depth 3, 2, 1                     60, 25, 7
    the same with equal parts drawn as one (``layers ×4``)    with the first of the parts expanded, and without

Which boxes follow from a choice is computed by `folding`. `gviz.render.picture_notes` writes the note about it, and
`collapsed_box` writes the text in the boxes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from gviz.render.boxes.folding import CallGraph, Closed, Filter, Folded, Group, Repeat, fold, named_calls
from gviz.render.boxes.repeats import with_repeats
from gviz.render.option_words import option
from gviz.system.cooperative_work import LongWork, WorkProgress, finished
from gviz.trace.graph_state import NodeInfo


@dataclass(frozen=True, slots=True)
class GraphView:
    """One way to draw a graph: the filter, the number of boxes, and what is collapsed.

    A box of a module (`hides_modules`) or of a call (`hides_calls`) may represent several nodes. `hint` names a module,
    or equal parts, to expand. `data` are the names of data whose preparation is one box. `work` is the sum of the
    squares of the numbers of nodes in the boxes: each node changes a text that is made of all nodes of its box.
    """

    graph_filter: Filter
    boxes: int
    repeats: tuple[str, ...] = ()
    hint: str = ""
    hides_modules: bool = False
    hides_calls: bool = False
    work: int = 0
    data: tuple[str, ...] = ()
    longest: int = 0
    """The most equal parts in one box."""

    @property
    def is_partial(self) -> bool:
        """Return whether a box represents several nodes."""
        return bool(self.repeats) or self.hides_modules or self.hides_calls


class GraphViews:
    """The ways to draw a graph: its `nodes`, and the same with function calls (`calls`).

    What the `base` filter collapses is collapsed in each of them.
    """

    def __init__(self, nodes: CallGraph, calls: CallGraph, infos: Mapping[int, NodeInfo], base: Filter) -> None:
        self._nodes, self._calls, self._infos, self._base = nodes, calls, infos, base
        chains = {*nodes.calls.values()}
        self.deepest = max((sum(call.of_module for call in chain) for chain in chains), default=0)
        """The most modules around a node."""

    def all(self) -> Iterator[GraphView]:
        """Yield every way to draw, beginning with the one that shows every node."""
        every = fold(self._nodes, self._base)
        yield GraphView(self._base, len(every.shown) + len(every.groups), data=_data(every))
        graph_filter = replace(self._base, calls=True)
        yield self.view(graph_filter)
        for depth in range(max(self.deepest - 1, 1), 0, -1):
            closed = closed_below(self._nodes, depth) | self._base.closed
            yield self.view(replace(graph_filter, closed=closed))
        for depth in range(max(self.deepest, 1), 0, -1):
            closed = closed_below(self._nodes, depth) | self._base.closed
            for sample in (True, False):
                yield self.view(replace(graph_filter, closed=closed, repeats=True, sample=sample))

    def view(self, graph_filter: Filter) -> GraphView:
        """Return the view of a filter."""
        graph, opened = self._calls, graph_filter.opened
        if graph_filter.repeats:
            graph, more = with_repeats(
                graph, self._infos, opened, sample=graph_filter.sample, unfolded=graph_filter.unfolded
            )
            opened = opened | more
        folded = fold(graph, replace(graph_filter, opened=opened))
        titles = tuple(_repeat_text(group.repeat) for group in folded.groups if group.repeat is not None)
        several = [group.call for group in folded.groups if len(group.nodes) > 1 and not group.call.is_data]
        return GraphView(
            graph_filter,
            len(folded.shown) + len(folded.groups),
            titles,
            _hint([group for group in folded.groups if group.repeat is not None]),
            any(not call.is_source_call for call in several),
            any(call.is_source_call for call in several),
            sum(len(group.nodes) ** 2 for group in folded.groups),
            _data(folded),
            max((group.repeat.count for group in folded.groups if group.repeat is not None), default=0),
        )

    def below(self, view: GraphView, depth: int) -> GraphView:
        """Return a view with the modules collapsed below another depth."""
        return self.view(replace(view.graph_filter, closed=closed_below(self._nodes, depth)))


def _data(folded: Folded) -> tuple[str, ...]:
    """Return the names of the data preparation that is drawn as one box each."""
    return tuple(group.call.kind for group in folded.groups if group.preparation is not None)


def _hint(groups: Sequence[Group]) -> str:
    """Return the first of equal modules, or the name of other equal parts: with their number if the name is not unique.

    Equal parts of modules come first, and equal data last.
    """
    repeats = [group.repeat for group in groups if group.repeat is not None]
    repeats.sort(key=lambda repeat: (len(repeat.modules) < 2, len(repeat.members[0]) < 2))
    if not repeats:
        return ""
    first = repeats[0]
    if len(first.modules) > 1 and len(first.modules) == first.count:
        return first.modules[0].partition(".")[2] or first.modules[0]
    is_unique = sum(repeat.title == first.title for repeat in repeats) == 1
    return first.title if is_unique else f"{first.title} ×{first.count}"


def most_informative(views: Sequence[GraphView], most: int) -> list[GraphView]:
    """Return the different views with at most `most` boxes, or else the view with the fewest.

    Where more than two equal parts can be drawn as one, only views that do so are returned: they read best.
    """
    distinct: dict[tuple[int, tuple[str, ...]], GraphView] = {}
    for view in views:
        distinct.setdefault((view.boxes, view.repeats), view)
    repeated = {view.graph_filter.closed for view in views if view.longest > 2}
    reads_best = (view for view in distinct.values() if view.repeats or view.graph_filter.closed not in repeated)
    few = [view for view in reads_best if view.boxes <= most]
    return few or [min(distinct.values(), key=lambda view: view.boxes)]


def _repeat_text(repeat: Repeat) -> str:
    """Return ``step ×200 is one box``, ``layers.1–11 ×11 is one box (of 12 equal parts)``."""
    whole = f" (of {repeat.place[1]:,} equal parts)" if repeat.count < repeat.place[1] else ""
    return f"{repeat.title} ×{repeat.count:,} is one box{whole}"


# ----------------------------------------------------------------------------------------------------------------------
# The fewest modules to collapse, where every operation is a node.

FEW_BOXES = 200
"""The most boxes of a picture before its modules collapse by themselves: readers do not read a larger graph box by box.
Collapsing stops at this number of boxes, if it can be reached.
"""


def closed_below(graph: CallGraph, depth: int) -> Closed:
    """Return the modules to collapse so that calls are expanded down to a depth; at depth 0 all are collapsed."""
    chains = {id(calls): calls for calls in graph.calls.values()}  # one entry for all nodes that were made in one call
    return frozenset(call.path for calls in chains.values() for call in calls[depth:])


def closed_to_fit(graph: CallGraph, most: int, already: Closed = frozenset()) -> Closed:
    """Return the fewest modules to collapse so that at most `most` boxes are left; all modules if that is impossible.

    The result includes the modules that are collapsed `already`.
    """
    return finished(closing_to_fit(graph, most, already))


def closing_to_fit(graph: CallGraph, most: int, already: Closed = frozenset()) -> LongWork[Closed]:
    """Compute `closed_to_fit` cooperatively: it yields before it tries the next depth."""
    if boxes(graph, already) <= most:
        return already
    deepest = max(map(len, graph.calls.values()), default=0)
    for depth in range(deepest - 1, 0, -1):
        yield WorkProgress("folding the graph: depth", deepest - depth, deepest)
        closed = closed_below(graph, depth) | already
        if boxes(graph, closed) <= most:
            return closed
    return closed_below(graph, 0)


def boxes(graph: CallGraph, closed: Closed, *, calls: bool = False, data: int = 0) -> int:
    """Return how many boxes there are when some modules are collapsed."""
    folded = fold(graph, Filter(closed, calls=calls, data=data))
    return len(folded.shown) + len(folded.groups)


def collapsed_modules(
    graph: CallGraph, patterns: Sequence[str], depth: int | None, note: Callable[[str], None]
) -> Closed:
    """Return the modules to collapse: those that the user requested, or else enough to make the graph readable.

    The user requests modules by `patterns`, or all below a `depth`. `note` receives what was collapsed without request.
    """
    if patterns or depth is not None:
        below = closed_below(graph, depth) if depth is not None else frozenset()
        return below | named_calls(graph, patterns)
    closed = closed_to_fit(graph, FEW_BOXES)
    left = boxes(graph, closed)
    if closed:
        note(f"{len(graph.nodes):,} nodes: modules collapsed, {left:,} boxes left; {option('depth')} expands them")
    elif left > FEW_BOXES:
        note(f"{left:,} boxes, and no module to collapse; {option('node')} draws what is near one")
    return closed

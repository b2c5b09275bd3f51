"""The level of a picture (modules, calls or every node) that makes it fit a page.

A call of a function, such as ``linear`` or ``cross_entropy``, is the level between a collapsed module and a node of
autograd. Usually the user does not choose a level. Then possible pictures are tried until one fits `PAGE` at its own
size. The pictures that show most come first:

1. every node, as small graphs are drawn, except for long data preparation (`gviz.render.boxes.data_preparation`)
2. every call, with all modules expanded
3. modules collapsed below some depth, and equal parts drawn as one box (``layers.0–11 ×12``); the first of the parts
   is expanded if there is room
4. the same with less text in each box: value and gradient in one line, then only names. The gradients of equal parts
   keep their bars, which are the point of such a picture.

Graphviz lays out a few pictures at a time to measure them, and only pictures that could fit (`_estimate`). At any
level, each child module of a model has a box, which it may share with equal ones. The picture with only these boxes
is the smallest. It is drawn even if it does not fit.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import NamedTuple

from gviz.errors import GvizError
from gviz.render.boxes.box_size import elements_room, named_by_model
from gviz.render.boxes.collapse_choice import GraphView, GraphViews, closed_below, most_informative
from gviz.render.boxes.data_preparation import FEWEST_IN_PICTURES
from gviz.render.boxes.drawn_nodes import shown_nodes
from gviz.render.boxes.folding import CallGraph, Closed, Filter, ModuleCall, fitting_calls, fold, graph_of, named_calls
from gviz.render.boxes.function_calls import has_public_names, with_calls, with_level
from gviz.render.boxes.graph_options import Density, Level, Options
from gviz.render.boxes.graph_structure import Structure, structure
from gviz.render.boxes.repeats import is_repeat_named
from gviz.render.figure import as_figure
from gviz.render.graphviz.box_label import CHARACTER, ROW
from gviz.render.graphviz.direction_and_spacing import flow
from gviz.render.graphviz.dot import Manner, digraph
from gviz.render.graphviz.process import TooSlowError, draw_all
from gviz.render.option_words import option
from gviz.render.picture_notes import (
    DATA_COLLAPSED,
    LESS_TEXT,
    MORE,
    NO_FRAMES,
    NORMS,
    NUMBERS,
    OR,
    OUTER_FRAMES,
    CollapsedParts,
    expand_option,
    summary,
)
from gviz.render.scene import framed, scene
from gviz.render.theme import LIGHT, Direction, Theme
from gviz.trace.graph_state import Iteration, NodeInfo
from gviz.trace.timeline import Timeline
from gviz.values.value_text import FEW

PAGE = 1600.0, 1200.0
"""The largest width and height of a picture, if that is possible, in points: a page, or a screen."""
COLLAPSE_DATA: tuple[Level, ...] = ("auto", "modules")
"""The levels at which data preparation is collapsed. The others show each call, or each node."""
FEW_NODES = 60
"""In a graph with more nodes, only the nodes that autograd tracks are drawn."""
MOST_BOXES = 130
"""A picture with more boxes does not fit a page, however small the boxes are."""
AT_ONCE = 3
"""How many pictures are laid out at a time."""
ENOUGH = 4
"""The search for a picture with frames stops after this many pictures that fit only without frames."""


class Text(NamedTuple):
    """The text in boxes. A brief box may list the elements of small tensors, and stack the gradient below the value."""

    density: Density
    lists_elements: bool = False
    stacks: bool = False


WORTH: Mapping[Text, float] = {
    Text("short"): 1.0,
    Text("brief", lists_elements=True): 0.85,
    Text("brief", lists_elements=True, stacks=True): 0.82,
    Text("brief"): 0.8,
    Text("brief", stacks=True): 0.6,
    Text("min"): 0.3,
}
"""How much a box with each text is worth."""


@dataclass(frozen=True, slots=True)
class LevelRequest:
    """What the user requests: a level, and modules to expand. The other fields say how a picture is
    drawn and measured, and whether the text in boxes must stay as it is. The picture has no fewer boxes than one that
    fits the smaller page `within`, and a view with more than the `most_work` is only used if there are no others. Its
    note `suggests` options that show more, but not in a figure.
    """

    level: Level = "auto"
    depth: int | None = None
    expand: tuple[str, ...] = ()
    theme: Theme | None = None
    direction: Direction = "auto"
    timeout: float = 20.0
    measures: bool = True
    page: tuple[float, float] = PAGE
    keeps_labels: bool = False
    within: tuple[float, float] | None = None
    most_work: float = inf
    suggests: bool = True


@dataclass(frozen=True, slots=True)
class _View:
    """One way to draw the graph: the options, and its boxes."""

    words: Options
    graph: GraphView


def chosen(timeline: Timeline, n: int, words: Options, request: LevelRequest) -> Options:
    """Return the options for moment `n` at the requested level, or at a level that fits."""
    iteration = timeline.iteration_at(n)
    graph_filter = words.graph_filter
    if request.level in COLLAPSE_DATA and not (graph_filter.inside or graph_filter.radius):
        words = replace(words, graph_filter=replace(graph_filter, data=FEWEST_IN_PICTURES))
    views = _Views(timeline, iteration, replace(words, also=timeline.at(n).actor), request)
    if request.level == "auto" and (not request.expand or views.expands_only_data):
        return _no_fewer(timeline, n, views, request)
    return views.requested()


def with_collapsed_data(timeline: Timeline, iteration: Iteration, words: Options) -> Options:
    """Return the options of a picture that has no level, with long data preparation collapsed."""
    graph_filter = words.graph_filter
    if words.density == "full" or words.content == "followed" or graph_filter.inside or graph_filter.radius:
        return words
    infos, _ = shown_nodes(
        timeline, iteration, content=words.content, also=words.also, passes=words.passes, readings=words.readings
    )
    graph_filter = replace(graph_filter, data=FEWEST_IN_PICTURES)
    graph, shown = with_level(timeline, graph_of(timeline, infos.values()), infos, graph_filter)
    folded = fold(graph, shown)
    data = tuple(group.call.kind for group in folded.groups if group.preparation is not None)
    if not data:
        return words
    view = GraphView(graph_filter, len(folded.shown) + len(folded.groups), data=data)
    text = f"{summary(view, len(infos), DATA_COLLAPSED)}{MORE}{expand_option(data[0])}{OR}{option('level', 'nodes')}"
    return replace(words, graph_filter=graph_filter, remark=text)


def count(timeline: Timeline, iteration: Iteration, words: Options) -> int:
    """Return how many boxes a picture has."""
    infos, _ = shown_nodes(
        timeline, iteration, content=words.content, also=words.also, passes=words.passes, readings=words.readings
    )
    folded = fold(*with_level(timeline, graph_of(timeline, infos.values()), infos, words.graph_filter))
    return len(folded.shown) + len(folded.groups)


class _Views:
    """The ways to draw an iteration."""

    def __init__(
        self, timeline: Timeline, iteration: Iteration, words: Options, request: LevelRequest, *, followed: bool = False
    ) -> None:
        self._timeline, self.iteration, self._request = timeline, iteration, request
        self.base = words.graph_filter
        infos, _ = shown_nodes(timeline, iteration, content=words.content, passes=words.passes, readings=words.readings)
        if self.base.focus and self.base.focus not in infos:
            raise GvizError(f"node #{self.base.focus} is not in the graph of this iteration", exit_code=2)
        self.is_small = len(infos) <= FEW_NODES or bool(self.base.inside) or bool(self.base.radius)
        if followed or not self.is_small:
            words = replace(words, content="followed")
            self.base = replace(self.base, data=0)  # operations on data are left out
            infos, _ = shown_nodes(
                timeline,
                iteration,
                content=words.content,
                also=words.also,
                passes=words.passes,
                readings=words.readings,
            )
        else:
            words = replace(words, also=0)
        self.words = words
        self.infos: dict[int, NodeInfo] = infos
        data_filter = replace(self.base, calls=False, repeats=False)
        self.nodes, data_filter = with_level(timeline, graph_of(timeline, infos.values()), infos, data_filter)
        expanded = fitting_calls(self.nodes, request.expand) & self.nodes.preparations.keys()
        self.expands_only_data = bool(expanded) and fitting_calls(self.nodes, request.expand) == expanded
        self.base = replace(self.base, opened=data_filter.opened | expanded)
        in_boxes = {node for group in fold(self.nodes, self.base).groups for node in group.nodes}
        self.is_public = has_public_names(timeline, (info for node, info in infos.items() if node not in in_boxes))
        self.calls = with_calls(timeline, self.nodes, infos)
        if request.expand:
            self.base = replace(self.base, unfolded=request.expand)
        self._views = GraphViews(self.nodes, self.calls, infos, self.base)

    def requested(self) -> Options:
        """Return the options for the requested level."""
        level, depth = self._request.level, self._request.depth
        if level == "nodes":
            graph_filter = replace(self.base, closed=self._closed(depth), opened=self._opened(self.nodes))
            return replace(self.words, graph_filter=graph_filter)
        graph_filter = replace(self.base, calls=True, opened=self.base.opened | self._opened(self.calls))
        if level == "calls":
            view = self._view(replace(graph_filter, closed=self._closed(depth)))
        else:
            view = self._view(replace(graph_filter, closed=self._closed(1 if depth is None else depth), repeats=True))
        return self.with_note(view)

    def _closed(self, depth: int | None) -> Closed:
        return frozenset() if depth is None else closed_below(self.nodes, depth)

    def _opened(self, graph: CallGraph) -> frozenset[int]:
        """Return the calls to expand, and the modules around them."""
        if not self._request.expand:
            return frozenset()
        named = fitting_calls(self.nodes, self._request.expand)
        if not named:
            folds = self._repeats()
            if not any(is_repeat_named(call, title, self._request.expand) for call, title in folds.items()):
                named = named_calls(self.nodes, self._request.expand, also=[*folds.values()])
        chains = {*graph.calls.values()}
        around = {
            one.scope for chain in chains for at, call in enumerate(chain) if call.scope in named for one in chain[:at]
        }
        return named | around

    def _repeats(self) -> dict[ModuleCall, str]:
        """Return the calls around equal parts that could be one box, and their titles."""
        closed = self._closed(1 if self._request.depth is None else self._request.depth)
        whole = replace(self.base, closed=closed, calls=True, repeats=True, unfolded=())
        graphs = [
            with_level(self._timeline, self.nodes, self.infos, replace(whole, data=0, sample=sample))[0]
            for sample in (False, True)
        ]
        return {
            call: graph.repeats[call.scope].title
            for graph in graphs
            for chain in {*graph.calls.values()}
            for call in chain
            if call.scope in graph.repeats
        }

    def all(self) -> Iterator[_View]:
        """Yield every way to draw, beginning with the one that shows every node."""
        for view in self._views.all():
            yield _View(replace(self.words, graph_filter=view.graph_filter), view)

    def _view(self, graph_filter: Filter) -> _View:
        return _View(replace(self.words, graph_filter=graph_filter), self._views.view(graph_filter))

    def with_note(self, view: _View, text: Text | None = None) -> Options:
        """Return the options of a view, with one line about what is collapsed and how to see more."""
        density, lists, stacks = text or Text(self.words.density)
        less = LESS_TEXT.get(density, "") if density != self.words.density and not lists else ""
        if less and stacks:
            values = (info.created.first_value for info in self.infos.values())
            less = NORMS if any(value is not None and value.size > FEW for value in values) else NUMBERS
        about = self._request
        parts = CollapsedParts(self._views, len(self.infos), about.level, about.depth, about.suggests)
        note = parts.note(view.graph, less) or view.words.remark
        bars = density == "min" != self.words.density  # the user did not request names only
        return replace(view.words, density=density, lists_elements=lists, stacks=stacks, bars=bars, remark=note)


def _no_fewer(timeline: Timeline, n: int, views: _Views, request: LevelRequest) -> Options:
    """Return the options that show most, with no fewer boxes than on the smaller page: names before few values."""
    fitting = _fitting(timeline, n, views, request)
    if request.within is None or not fitting.graph_filter.calls:
        return fitting
    narrow = replace(request, page=request.within)
    smaller = _fitting(timeline, n, views, narrow)
    sizes = (size for _, size in _estimate(structure(timeline, views.iteration, smaller), narrow))
    if not any(_fits(size, narrow, LARGEST_ERROR) for size in sizes):
        return fitting  # on the smaller page, even the smallest picture cannot be read
    least = count(timeline, views.iteration, smaller)
    has_fewer = count(timeline, views.iteration, fitting) < least
    return _fitting(timeline, n, views, request, least) if has_fewer else fitting


def _fitting(timeline: Timeline, n: int, views: _Views, request: LevelRequest, least: int = 0) -> Options:
    """Return the options that show most on one page; if none fits, those of the smallest picture.

    Views with fewer than the `least` boxes are only used if there are no others.
    """
    whole, *others = views.all()
    first = replace(whole, words=views.with_note(whole))
    if views.is_small:
        smaller = _Views(
            timeline, views.iteration, replace(views.words, also=timeline.at(n).actor), request, followed=True
        )
        _, *followed = smaller.all()
        boxes = {_collapsed(view): view.graph.boxes for view in others}
        # without the operations of a module that is not tracked, its parameters would be boxes instead of it
        followed = [view for view in followed if view.graph.boxes < boxes.get(_collapsed(view), MOST_BOXES)]
        if whole.graph.data:  # a box of data says more than a line through nodes that are left out
            fewest = min(view.graph.boxes for view in others)
            followed = [view for view in followed if view.graph.boxes < fewest]
        others += followed
    by_graph: dict[GraphView, _View] = {}
    for view in others:
        by_graph.setdefault(view.graph, view)
    light = [graph for graph in by_graph if graph.work <= request.most_work]
    kept = [by_graph[graph] for graph in most_informative(light or [*by_graph], MOST_BOXES)]
    kept = [view for view in kept if view.graph.boxes >= least] or kept
    own = Text(views.words.density)
    texts = [text for text in WORTH if WORTH[text] <= WORTH.get(own, 0)]
    if not texts or request.keeps_labels or views.words.tensors is not None or views.words.overlay is not None:
        texts = [own]
    if not any(elements_room(info.created.first_value) for info in views.infos.values()):
        texts = [text for text in texts if not text.lists_elements]
    if views.words.numbered:  # only a figure is so narrow
        texts = [text for text in texts if not text.stacks]
    tries = [(view, text) for view in kept for text in texts]
    tries.sort(key=lambda one: -one[0].graph.boxes * WORTH.get(one[1], 1.0))
    if first.graph.boxes <= MOST_BOXES and views.is_public:
        shape = structure(timeline, views.iteration, first.words)
        size = _size(shape, _usual(shape, request), compact=False)
        if _fits(size, request, SURE):
            return first.words
        tries.insert(0, (first, own))
    sizes: list[tuple[tuple[float, float], Options]] = []
    waiting: list[Structure] = []
    bare: list[Options] = []
    for at, (view, text) in enumerate(tries):
        options = view.words if view is first else views.with_note(view, text)
        estimate = [*_estimate(structure(timeline, views.iteration, options), request)]
        waiting += [one for one, size in estimate if _fits(size, request, LARGEST_ERROR)] if request.measures else []
        sizes += [(size, one.options) for one, size in estimate]
        if not request.measures and (fitting := [one.options for one, size in estimate if _fits(size, request)]):
            return fitting[0]
        if waiting and (len(waiting) >= AT_ONCE or at == len(tries) - 1):
            measured = _measured(timeline, n, waiting, request)
            fitting = [one for one, size in measured if _fits(size, request)]
            if framed_ones := [one for one in fitting if one.frames]:
                return framed_ones[0]
            bare += fitting
            if len(bare) >= ENOUGH:
                break
            sizes += [(size, one) for one, size in measured]
            waiting = []
    return bare[0] if bare else min(sizes, key=lambda one: _excess(one[0], request))[1]


def _collapsed(view: _View) -> tuple[Closed, bool, bool]:
    """Return what a view collapses, with all nodes or only those that autograd tracks."""
    graph_filter = view.graph.graph_filter
    return graph_filter.closed, graph_filter.repeats, graph_filter.sample


SURE = 0.7
"""A picture whose estimated size is below this part of a page fits, in spite of the estimate's error."""


LARGEST_ERROR = 1.3
"""A picture whose estimated size is above this part of a page does not fit."""


def _usual(shape: Structure, request: LevelRequest) -> Direction:
    """Return the direction of the data in a picture, unless it is rotated to fit."""
    return flow(shape.places, shape.levels, request.direction, (request.theme or LIGHT).form.direction)


def _fits(size: tuple[float, float], request: LevelRequest, room: float = 1.0) -> bool:
    return size[0] <= request.page[0] * room and size[1] <= request.page[1] * room


def _excess(size: tuple[float, float], request: LevelRequest) -> float:
    """Return the ratio of a picture's size to the page, for the worse of its two sides."""
    return max(size[0] / request.page[0], size[1] / request.page[1])


def _directions(request: LevelRequest) -> Sequence[Direction]:
    return ("LR", "TB") if request.direction == "auto" else (request.direction,)


def _estimate(shape: Structure, request: LevelRequest) -> Iterator[tuple[Structure, tuple[float, float]]]:
    """Yield the picture from left to right and from top to bottom, each with its estimated size.

    A picture of all nodes keeps its direction.
    """
    if not shape.options.graph_filter.calls:
        yield shape, _size(shape, _usual(shape, request), compact=False)
        return
    for direction in _directions(request):
        for compact in (True,) if shape.options.stacks else (False, True):
            options = replace(shape.options, flow=direction, compact=compact)
            yield replace(shape, options=options), _size(shape, direction, compact=compact)


LEGEND = 110.0
"""Points for the legend below the boxes."""
BOX_GAP, LEVEL_GAP, LABEL_GAP, COMPACT_GAP = 22.0, 40.0, 22.0, 24.0
"""Points between boxes of one level, between levels, added for labels on the lines, and between compact levels."""


def _size(shape: Structure, direction: Direction, *, compact: bool) -> tuple[float, float]:
    """Return the estimated size of a picture in points.

    The boxes are in levels, by their longest path from a source. The boxes of one level are next to each other.
    """
    boxes = {place.key: (place.width * CHARACTER + 20, place.height * ROW + 14) for place in shape.places}
    depth = dict.fromkeys(boxes, 0)
    order = {place.key: at for at, place in enumerate(shape.places)}
    lines = [link for link in shape.links if link.kind != "gradient" and link.source in order and link.target in order]
    for link in sorted(lines, key=lambda link: order[link.target]):
        if order[link.source] < order[link.target]:
            depth[link.target] = max(depth[link.target], depth[link.source] + 1)
    length_axis, width_axis = (1, 0) if direction != "LR" else (0, 1)
    levels: dict[int, list[tuple[float, float]]] = {}
    for key, size in boxes.items():
        levels.setdefault(depth[key], []).append(size)
    gap = COMPACT_GAP if compact else LEVEL_GAP + LABEL_GAP * (2.5 if direction == "LR" else 1)
    long = sum(max(size[length_axis] for size in level) for level in levels.values()) + gap * (len(levels) - 1)
    wide = max((sum(size[width_axis] + BOX_GAP for size in level) for level in levels.values()), default=0.0)
    return (long, wide + LEGEND) if direction == "LR" else (wide, long + LEGEND)


def _measured(
    timeline: Timeline, n: int, shapes: Sequence[Structure], request: LevelRequest
) -> list[tuple[Options, tuple[float, float]]]:
    """Return the sizes of pictures as Graphviz lays them out.

    Each is measured with all frames around modules, with only the outer frames, and without frames.
    """
    moment, manner = timeline.at(n), Manner(request.theme or LIGHT, direction=request.direction)
    sources, variants = [], []
    for shape in shapes:
        named = replace(shape, places=named_by_model(shape.places))
        drawn, bare = scene(shape, timeline, moment), scene(named, timeline, moment)
        if not shape.options.numbered:
            drawn, bare = as_figure(drawn), as_figure(bare)
        deepest = max((len(box.enclosing_modules) for box in drawn.boxes), default=0)
        for depth in sorted({deepest, min(deepest, 2), min(deepest, 1), 0}, reverse=True):
            sources.append(digraph(framed(drawn if depth or not deepest else bare, depth), manner).source)
            variants.append((shape, depth, deepest))
    try:
        laid_out = draw_all(sources, "json", timeout=request.timeout)
    except TooSlowError:  # the final picture will use the simple layout, too
        return [(shape.options, _size(shape, _usual(shape, request), compact=False)) for shape in shapes]
    sizes = []
    for (shape, depth, deepest), graph in zip(variants, laid_out, strict=True):
        one = shape.options
        if depth < deepest:
            why = OUTER_FRAMES if depth else NO_FRAMES
            one = replace(one, frames=depth, remark=f"{one.remark}. {why}" if one.remark else why)
        sizes.append((one, _bounds(graph)))
    return sizes


def _bounds(laid_out: bytes) -> tuple[float, float]:
    _, _, width, height = map(float, json.loads(laid_out)["bb"].split(","))
    return width + 29, height + 29  # plus the `pad` attribute

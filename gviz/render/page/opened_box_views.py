"""The views of an iteration on a page: the graph as the page opens it, and the same with one collapsed box opened.

A page cannot lay out a graph itself, so each view is laid out when the page is written. A view opens one box, and the
boxes around it; another view opens a box inside it:

    x -> layers.0 -> layers.1 -> loss                              the first view
    x -> [norm -> attention -> mlp] -> layers.1 -> loss            its `layers.0` is open
    x -> [norm -> [q, k, v -> softmax] -> mlp] -> ...              in this view, its `attention` is open, too

So every view is about as large as the first, and their number grows with the number of boxes, not with its
combinations. The views share the texts of the boxes that look the same (`union_of`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from gviz.render.boxes.box_size import Outline, module_key
from gviz.render.boxes.drawn_nodes import shown_nodes
from gviz.render.boxes.edges import Link
from gviz.render.boxes.folding import CallGraph, Group, graph_of
from gviz.render.boxes.function_calls import with_level
from gviz.render.boxes.graph_options import ALL_FRAMES, Options
from gviz.render.boxes.graph_structure import Structure, structure
from gviz.render.page.changes import line_key
from gviz.trace.graph_state import Iteration
from gviz.trace.timeline import Timeline

MOST_VIEWS = 60
"""The most views of an iteration. Each takes about 0.1 s to lay out."""
MOST_OPEN = 200
"""The most boxes of a view. A box whose contents are more than this stays closed."""
MOST_NODES = 2000
"""The most nodes in the boxes of all views of a page that are not in its first views. Each may change at each event."""


@dataclass(frozen=True, slots=True)
class View:
    """One view: its boxes and lines. Its `parent` is the view without the box that it opens (-1: none).

    `name` is what it opens, by which a view of another iteration is found. `opens` has the view of each box that can be
    opened, and `closes` the view without a frame, both by the key of the box.
    """

    shape: Structure
    parent: int = -1
    name: str = ""
    opens: Mapping[str, int] = field(default_factory=dict)
    closes: Mapping[str, int] = field(default_factory=dict)


def views(
    timeline: Timeline, iteration: Iteration, first: Structure, *, most_nodes: int = MOST_NODES
) -> tuple[list[View], int]:
    """Return the views of an iteration, the `first` before those with opened boxes, and how many nodes are left."""
    known = [View(first)]
    targets: dict[str, int] = {}
    names: Counter[tuple[int, str]] = Counter()  # two calls of one function have the same name
    left, seen = most_nodes, {*map(_bare, first.places)}
    tried = set[str]()  # a box that cannot be opened in one view is not tried in the others, which takes as long
    at = 0
    while at < len(known):
        here = known[at]
        for group in _groups(here.shape) if len(here.shape.places) < MOST_OPEN else ():
            key = module_key(group.call)
            if key in tried or len(known) >= MOST_VIEWS:
                continue
            tried.add(key)
            options = options_with_open(timeline, iteration, here.shape.options, group)
            shape = structure(timeline, iteration, options) if options is not None else None
            if shape is None or len(shape.places) > MOST_OPEN or _same(shape, here.shape):
                continue
            fresh = {*map(_bare, shape.places)} - seen
            cost = sum(len(place.nodes) for place in fresh)
            if cost > left:
                continue
            left -= cost
            seen |= fresh
            targets[key] = len(known)
            name = _name(group)
            names[at, name] += 1
            known.append(View(shape, at, f"{name}#{names[at, name]}"))
        at += 1
    complete = [
        replace(
            view,
            opens={key: targets[key] for key in map(_key, _groups(view.shape)) if key in targets},
            closes={
                module_key(call): known[targets[module_key(call)]].parent
                for place in view.shape.places
                for call in place.enclosing_calls
                if module_key(call) in targets
            },
        )
        for view in known
    ]
    return complete, left


def _groups(shape: Structure) -> Iterator[Group]:
    return (place.group for place in shape.places if place.group is not None and place.group.call.of_program)


def _key(group: Group) -> str:
    return module_key(group.call)


def _name(group: Group) -> str:
    """Return a name that the same box has in other iterations."""
    call = group.call
    return f"{call.path}:{call.nr}" if call.of_module else f"{call.kind}/{group.does}"


def _same(one: Structure, other: Structure) -> bool:
    return [place.key for place in one.places] == [place.key for place in other.places]


def options_with_open(timeline: Timeline, iteration: Iteration, options: Options, group: Group) -> Options | None:
    """Return the options with a collapsed box opened. The modules inside it are collapsed; None if it cannot be opened.

    Of more equal parts than there is room for, only the first is opened.
    """
    infos, _ = shown_nodes(
        timeline,
        iteration,
        content=options.content,
        also=options.also,
        passes=options.passes,
        readings=options.readings,
    )
    base = options.graph_filter
    graph, _ = with_level(timeline, graph_of(timeline, infos.values()), infos, base)
    chains = {chain for node in group.inner if (chain := graph.calls.get(node, ()))}
    chains = {chain for chain in chains if group.call in chain}
    scopes = {group.call.scope} if _parts(graph, group) <= MOST_OPEN else _first_part(graph, group)
    if not scopes:
        return None
    inner = {
        chain[at + 1].path
        for chain in chains
        for at, call in enumerate(chain[:-1])
        if call == group.call and chain[at + 1].of_module
    }
    # a module with a single child shares its box, and the child is opened with it
    around = {call.scope for chain in chains for call in chain[: chain.index(group.call)]}
    graph_filter = replace(base, closed=base.closed | inner, opened=base.opened | scopes | around)
    return replace(options, graph_filter=graph_filter, frames=ALL_FRAMES, remark="")


def _parts(graph: CallGraph, group: Group) -> int:
    """Return about how many boxes a group of equal parts has when it is opened; 0 for any other group."""
    if group.repeat is None:
        return 0
    return sum(len(_calls_below(graph, group, member)) for member in group.repeat.members)


def _first_part(graph: CallGraph, group: Group) -> set[int]:
    """Return the scopes of the calls in the first of equal parts."""
    return _calls_below(graph, group, group.repeat.members[0]) if group.repeat is not None else set()


def _calls_below(graph: CallGraph, group: Group, nodes: Sequence[int]) -> set[int]:
    """Return the scopes of the outermost calls of some nodes below a group's call."""
    chains = (graph.calls.get(node, ()) for node in nodes)
    return {chain[at + 1].scope for chain in chains for at, call in enumerate(chain[:-1]) if call == group.call}


def union_of(shapes: Sequence[Structure]) -> tuple[Structure, list[Structure]]:
    """Return one structure with all boxes and lines of several, and these with keys that are unique in it.

    A box that looks the same in several structures has one key. One that looks different gets a key of its own.
    """
    places: dict[str, Outline] = {}
    links: dict[str, Link] = {}
    renamed = []
    for number, shape in enumerate(shapes):
        other = {place.key for place in shape.places if _bare(places.get(place.key, place)) != _bare(place)}
        other |= {link.target for link in shape.links if links.get(line_key(link), link) != link}
        names = {key: f"{key}_{number}" for key in other}
        one = replace(
            shape,
            places=tuple(replace(place, key=names.get(place.key, place.key)) for place in shape.places),
            links=tuple(
                replace(
                    link,
                    source=names.get(link.source, link.source),
                    target=names.get(link.target, link.target),
                )
                for link in shape.links
            ),
        )
        renamed.append(one)
        for place in one.places:
            places.setdefault(place.key, place)
        for link in one.links:
            links.setdefault(line_key(link), link)
    whole = replace(shapes[0], places=tuple(places.values()), links=tuple(links.values()))
    return whole, renamed


def _bare(place: Outline) -> Outline:
    """Return a box without the frames around it."""
    return replace(place, enclosing_calls=())

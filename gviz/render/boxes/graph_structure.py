"""The boxes and lines of one iteration's graph. They do not depend on the moment: stepping never moves a box.

`structure` selects the nodes (`selection`), folds collapsed modules (`fold`), draws a leaf with many users once for
each use (a chip), reserves room for each box (`box_size`), and draws the lines (`links`). Last come the frames of
expanded modules (`open_calls`). Frames never intersect, because a box has one chain of calls around it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile

from rich.cells import cell_len

from gviz.explain.failed_call import FailedCall, failed_call
from gviz.explain.tracking import as_in
from gviz.explain.value_computation import saved_places
from gviz.render.boxes.box_size import (
    FAILED,
    Outline,
    Rooms,
    chip_place,
    failed_place,
    failed_title,
    module_key,
    named_by_model,
    saved_key,
    saved_place,
)
from gviz.render.boxes.drawn_nodes import (
    PART,
    has_gradients,
    has_leaf_gradients,
    inputs_through_untracked,
    reached,
    roots_of,
    shown_nodes,
)
from gviz.render.boxes.edges import (
    Boxes,
    Link,
    Output,
    box_key,
    contracted,
    gradient_only_links,
    links,
    merged,
    operand_links,
)
from gviz.render.boxes.folding import CallGraph, Folded, ModuleCall, calls_around, fold, graph_of
from gviz.render.boxes.function_calls import with_level
from gviz.render.boxes.graph_options import Options
from gviz.render.boxes.shown_moment import RESULT
from gviz.trace.graph_state import OPTIMIZER, Iteration, NodeInfo
from gviz.trace.timeline import Timeline
from gviz.values.value_text import CUT


@dataclass(frozen=True, slots=True)
class Structure:
    """The boxes in order of creation and the lines of one iteration. `levels` is the length of the longest path.

    `shown` are the nodes that are in a box. A part of the structure keeps those of the whole. `result` is the sign for
    the result of the passes in the names of gradients.
    """

    iteration: int
    places: tuple[Outline, ...]
    links: tuple[Link, ...]
    levels: int
    options: Options = field(default_factory=Options)
    shown: frozenset[int] = frozenset()
    result: str = RESULT


Form = tuple[tuple[int, ...], int, int, str, int]
"""The inputs of `structure`: as long as they stay the same, a growing recording keeps its boxes and lines."""


def form(timeline: Timeline, iteration: Iteration) -> Form:
    """Return an iteration's nodes, its number of passes, its last naming, and its failure.

    Names come after their nodes.
    """
    shown, named = timeline.nodes.of(iteration), timeline.nodes.last_naming
    newest = timeline.info(shown[-1]).name if shown else ""
    passes, failed = len(timeline.phases_in(iteration, "backward")), failed_call(timeline, iteration)
    return shown, passes, named if named >= iteration.start else 0, newest, failed.seq if failed is not None else 0


CLUSTERED = 300
"""The most boxes of a graph in which the boxes of one module call are drawn together."""


def structure(
    timeline: Timeline, iteration: Iteration, options: Options | None = None, part: Sequence[int] | None = None
) -> Structure:
    """Return the graph of an iteration or of a part of it: its own nodes, and the older nodes they use.

    The older nodes have no inputs.
    """
    options = options or Options()
    infos, own = shown_nodes(
        timeline,
        iteration,
        part,
        content=options.content,
        also=options.also,
        passes=options.passes,
        readings=options.readings,
    )
    infos = as_in(timeline, iteration, infos)
    own = [infos[info.node] for info in own]
    graph = graph_of(timeline, infos.values(), whole=part is None)
    graph, graph_filter = with_level(timeline, graph, infos, options.graph_filter)
    folded = fold(graph, graph_filter)
    roots, backward = _roots(timeline, iteration, own)
    backward = backward and not options.before_pass
    users = [*reached(infos, iteration), *own] if part is None and backward else own
    boxes = _boxes(folded, infos, users, options)
    gradients = has_gradients(timeline, iteration, options)
    of_leaves = gradients or has_leaf_gradients(timeline, iteration, options)
    opened = graph_filter.opened & graph.units.keys()
    rooms = Rooms(timeline, iteration, options, frozenset(roots), backward, gradients, of_leaves, opened)
    places = [rooms.of(infos[node]) for node in folded.shown]
    places = _with_modules(places, [rooms.module(infos[group.inner[-1]], group) for group in folded.groups])
    places = _with_distinct_names(places, rooms, infos)
    joint = set(boxes.shared.values())
    places += [
        chip_place(infos[node], *use, options, joint=use in joint, gradients=gradients)
        for use, node in boxes.chips.items()
    ]
    lines = list(links(timeline, infos, users, boxes, backward=backward))
    if options.content == "followed":
        lines += contracted(infos, inputs_through_untracked(timeline, infos, own), boxes)
    # Only writes into views send gradients where no data flowed. A part of a large graph is searched only if it has
    # such a write, because a parameter may have a hundred thousand contributions.
    small = part is None and len(own) <= PART
    if backward and (small or any(info.op.grad_fn == "CopySlices" for info in own)):
        lines += gradient_only_links(timeline, iteration, infos, boxes, lines)
    lines = merged(lines, boxes) if folded.groups else lines
    saved = [(infos[node], slot) for node in folded.shown if options.saved for slot in _kept(infos[node], infos)]
    places += [saved_place(info, slot) for info, slot in saved]
    lines += [
        Link(saved_key(info.node, slot), box_key(info.node), "saved", 0, -1, info.node, ((info.node, -1),))
        for info, slot in saved
    ]
    failed = failed_call(timeline, iteration)
    within: Calls = ()
    if failed is not None and (failed_box := _failed(timeline, failed, graph, boxes, infos, options, part)) is not None:
        place, within, inputs = failed_box
        places.append(place)
        lines += inputs
    if options.clusters and len(places) <= CLUSTERED:
        places = [
            replace(place, enclosing_calls=around)
            for place, around in zip(places, open_calls(places, graph, within), strict=True)
        ]
        places = [*(places if options.frames else named_by_model(places))]
        places = [replace(place, enclosing_calls=place.enclosing_calls[: options.frames]) for place in places]
    shown = frozenset(node for place in places for node in place.nodes)
    levels, result = _levels(infos, users, boxes), result_sign(infos.values(), roots)
    return Structure(iteration.index, tuple(places), tuple(lines), levels, options, shown, result)


def _failed(
    timeline: Timeline,
    failed: FailedCall,
    graph: CallGraph,
    boxes: Boxes,
    infos: Mapping[int, NodeInfo],
    options: Options,
    part: Sequence[int] | None,
) -> tuple[Outline, Calls, list[Link]] | None:
    """Return the box of the failed call, the calls around it and its inputs; None if it is not in this part."""
    drawn = [node for node in failed.operands if node in boxes.of and node in infos]
    is_part = part is not None or bool(options.graph_filter.focus) or bool(options.graph_filter.inside)
    if not infos or not (drawn or not is_part):
        return None
    known = {call.scope: chain[: at + 1] for chain in graph.calls.values() for at, call in enumerate(chain)}
    outer = reversed(calls_around(timeline, failed.around, {}))
    around: Calls = next((known[call.scope] for call in outer if call.scope in known), ())
    call = calls_around(timeline, failed.scope, {})[-1] if failed.scope else None
    node = drawn[0] if drawn else max(infos)
    place = failed_place(failed, failed_title(failed, call), node, options)
    return place, around, [*operand_links(infos, boxes, drawn, FAILED, failed.seq)]


def _boxes(folded: Folded, infos: Mapping[int, NodeInfo], own: Sequence[NodeInfo], options: Options) -> Boxes:
    """Return the box of each node. A parameter in several collapsed calls has none: all its lines are inside, too."""
    of = {node: box_key(node) for node in folded.shown}
    count = Counter(node for group in folded.groups for node in (*group.parameters, *group.buffers))
    for group in folded.groups:
        single = (node for node in (*group.parameters, *group.buffers) if count[node] == 1)
        of |= dict.fromkeys((*group.inner, *single), module_key(group.call))
    groups = frozenset(module_key(group.call) for group in folded.groups)
    apart = frozenset(
        module_key(group.call) for group in folded.groups if group.call.path == OPTIMIZER or group.is_unused
    )
    boxes = Boxes(of, {}, groups=groups, apart=apart)
    many = len(folded.shown) + len(folded.groups) > options.split_above
    return _split(boxes, {node: infos[node] for node in folded.shown}, own, options) if many else boxes


def _with_modules(places: list[Outline], modules: list[Outline]) -> list[Outline]:
    """Return all boxes in the order of the last node in each."""
    return sorted((*places, *modules), key=lambda place: place.node) if modules else places


WHOLE_NAME = 10_000
"""More than the characters of any name."""


def _with_distinct_names(places: list[Outline], rooms: Rooms, infos: Mapping[int, NodeInfo]) -> list[Outline]:
    """Return the boxes, with whole names where names that are cut would be equal."""

    def name(place: Outline) -> str:
        return infos[place.node].name if place.group is None else place.group.call.path

    names: dict[str, set[str]] = {}
    for place in places:
        if CUT in place.title:
            names.setdefault(place.title, set()).add(name(place))
    equal = {title for title, different in names.items() if len(different) > 1}
    wide = replace(rooms, options=replace(rooms.options, longest_name=WHOLE_NAME))
    return (
        [place if place.title not in equal else _outline(place, wide, infos) for place in places] if equal else places
    )


def _outline(place: Outline, rooms: Rooms, infos: Mapping[int, NodeInfo]) -> Outline:
    return rooms.of(infos[place.node]) if place.group is None else rooms.module(infos[place.node], place.group)


def _roots(timeline: Timeline, iteration: Iteration, own: Sequence[NodeInfo]) -> tuple[set[int], bool]:
    """Return the nodes that passes start from, and whether there is a pass.

    Without a pass the roots are the unused results.
    """
    if roots := roots_of(timeline, iteration):
        return roots, True
    failed = failed_call(timeline, iteration)
    used = {node for info in own for node, _ in info.created.inputs}.union(
        failed.operands if failed is not None else ()
    )
    return {info.node for info in own if info.created.kind == "op" and info.node not in used}, False


LONGEST_RESULT = 5
"""The most characters of the name of a result in the names of gradients: ``∂o/∂a``, ``∂cost/∂w``."""
LETTERS = (RESULT, "J", "E", "C", "S")
"""The signs for a result in the names of gradients, the usual one first."""


def result_sign(infos: Iterable[NodeInfo], roots: Collection[int]) -> str:
    """Return the sign for the result in the names of gradients: L, as in ``∂L/∂h``, unless L is something else.

    In a program with its own `L`, such as a length, it is the name of the result, or a letter that is no name there.
    """
    names: dict[str, set[int]] = {}
    for info in infos:
        names.setdefault(info.name.rpartition(".")[2], set()).add(info.node)
    if names.get(RESULT, set()) <= {*roots}:
        return RESULT
    own = {name for name, nodes in names.items() if nodes == {*roots}}
    short = [name for name in own if 0 < cell_len(name) <= LONGEST_RESULT and name.isidentifier()]
    return short[0] if short else next((letter for letter in LETTERS if letter not in names), RESULT)


MOST_USES = 3
"""The most boxes that use data with a single box in a picture."""


def _whole_data(boxes: Boxes, shown: Mapping[int, NodeInfo], own: Sequence[NodeInfo]) -> frozenset[int]:
    """Return the constants that only a few boxes use."""
    users: dict[int, set[str]] = {}
    for info in own:
        for node, _ in info.created.inputs:
            if node in shown and shown[node].created.kind == "constant" and info.node in boxes.of:
                users.setdefault(node, set()).add(boxes.of[info.node])
    return frozenset(node for node, keys in users.items() if len(keys) <= MOST_USES)


def _split(boxes: Boxes, shown: Mapping[int, NodeInfo], own: Sequence[NodeInfo], options: Options) -> Boxes:
    """Return the boxes with a chip for each use of a leaf except the first, which keeps the leaf's own box.

    In a picture, data with few uses is not divided: two boxes would look like two inputs.
    """
    whole = _whole_data(boxes, shown, own) if options.marks else frozenset()
    first: dict[int, Output] = {}
    chips: dict[Output, int] = {}
    shared: dict[Output, Output] = {}
    modules: dict[tuple[int, str], Output] = {}
    for info in own:
        box = boxes.of.get(info.node, "")
        for slot, (node, _) in enumerate(info.created.inputs):
            if not box or box in boxes.apart or node not in shown or shown[node].created.kind == "op":
                continue
            if node in whole:
                continue
            use = info.node, slot
            if box in boxes.groups and modules.setdefault((node, box), use) != use:
                shared[use] = modules[node, box]
            elif first.setdefault(node, use) != use:
                chips[use] = node
    return replace(boxes, chips=chips, shared=shared)


def _kept(info: NodeInfo, infos: Mapping[int, NodeInfo]) -> Iterator[int]:
    return saved_places(info, lambda source: source not in infos or infos[source].created.requires_grad)


def _levels(infos: Mapping[int, NodeInfo], own: Iterable[NodeInfo], boxes: Boxes) -> int:
    """Return the number of boxes on the longest path."""
    depth: dict[str, int] = {}
    for info in own:
        box = boxes.of.get(info.node)
        if box is not None:
            sources = {boxes.of[node] for node, _ in info.created.inputs if node in infos and node in boxes.of} - {box}
            depth[box] = max(depth.get(box, 0), 1 + max((depth.get(source, 1) for source in sources), default=0))
    return max(depth.values(), default=0)


Calls = tuple[ModuleCall, ...]


def open_calls(places: Sequence[Outline], graph: CallGraph, failed: Calls = ()) -> Iterator[Calls]:
    """Yield the expanded calls around each outline, the outermost first, without frames around everything or one box.

    A parameter or buffer lies where all its users are. Data that the program has put into a module does not. The box
    of a failed call lies in the calls that it `failed` in.
    """
    users = _users(places, graph)
    closed = {place.group.call for place in places if place.group is not None}
    every = [failed if place.role == "failed" else _calls(place, graph, users) for place in places]
    chains = [tuple(takewhile(lambda call: call not in closed, calls)) for calls in every]
    counts = Counter(call for calls in chains for call in calls)
    worth = {call for call, count in counts.items() if 1 < count < len(places)}
    for calls in chains:
        yield tuple(call for call in calls if call in worth and call.kind and not call.is_source_call)


def _calls(place: Outline, graph: CallGraph, users: dict[int, list[Calls]]) -> Calls:
    if place.role in ("chip", "saved"):
        return graph.calls.get(place.user, ())
    if place.node in graph.loose or place.node in graph.buffers:
        return _common(users.get(place.node, []))
    return graph.calls.get(place.node, ())


def _users(places: Sequence[Outline], graph: CallGraph) -> dict[int, list[Calls]]:
    """Return the calls that use each node. A use that has its own chip does not count."""
    chips = {(place.node, place.user) for place in places if place.role == "chip"}
    users: dict[int, list[Calls]] = {}
    for node in graph.nodes:
        for source in graph.inputs.get(node, ()):
            if (source, node) not in chips:
                users.setdefault(source, []).append(graph.calls.get(node, ()))
    return users


def _common(calls: Sequence[Calls]) -> Calls:
    """Return the calls with which all chains begin."""
    same = takewhile(lambda level: len(set(level)) == 1, zip(*calls, strict=False))
    return tuple(level[0] for level in same)

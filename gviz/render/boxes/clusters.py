"""Which open module calls lie around each box, for frames that never cut one another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import takewhile

from gviz.render.boxes.fold import CallGraph, ModuleCall
from gviz.render.boxes.room import Outline

Calls = tuple[ModuleCall, ...]


def within(places: Sequence[Outline], graph: CallGraph) -> Iterator[Calls]:
    """For each place the open calls around it, the outermost first; a frame around everything or one box is left out.

    A parameter stands where all its users are, and so does a buffer; data that the program has put into a module does
    not.
    """
    users = _users(places, graph)
    closed = {place.group.call for place in places if place.group is not None}
    found = [tuple(takewhile(lambda call: call not in closed, _calls(place, graph, users))) for place in places]
    held = Counter(call for calls in found for call in calls)
    worth = {call for call, count in held.items() if 1 < count < len(places)}
    for calls in found:
        yield tuple(call for call in calls if call in worth and call.kind)


def _calls(place: Outline, graph: CallGraph, users: dict[int, list[Calls]]) -> Calls:
    if place.role in ("chip", "saved"):
        return graph.calls.get(place.user, ())
    if place.node in graph.loose or place.node in graph.buffers:
        return _common(users.get(place.node, []))
    return graph.calls.get(place.node, ())


def _users(places: Sequence[Outline], graph: CallGraph) -> dict[int, list[Calls]]:
    """The calls that each node is used in. A use that has a chip of its own does not count."""
    chips = {(place.node, place.user) for place in places if place.role == "chip"}
    users: dict[int, list[Calls]] = {}
    for node in graph.nodes:
        for source in graph.inputs.get(node, ()):
            if (source, node) not in chips:
                users.setdefault(source, []).append(graph.calls.get(node, ()))
    return users


def _common(calls: Sequence[Calls]) -> Calls:
    """What all begin with."""
    same = takewhile(lambda level: len(set(level)) == 1, zip(*calls, strict=False))
    return tuple(level[0] for level in same)

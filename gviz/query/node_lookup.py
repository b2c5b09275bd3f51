"""Which node a text refers to: a name, ``#4``, ``@12``, ``op:mul``, ``nan``, ``demo.py:4``."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable

from gviz.errors import GvizError
from gviz.events import NodeCreated
from gviz.query.name_lookup import NamedNodes
from gviz.query_syntax import place as places
from gviz.query_syntax.expression_names import with_paths
from gviz.system.cooperative_work import AT_ONCE, LongWork, WorkProgress, finished
from gviz.trace.graph_state import BAD
from gviz.trace.navigation import no_event
from gviz.trace.place_matches import PlaceMatcher
from gviz.trace.timeline import Timeline
from gviz.values.number_text import typed_count
from gviz.values.plain_text import clipped
from gviz.values.value_text import bad_text

Matches = Callable[[int], bool]
"""Whether the node with this number matches."""

BEFORE_FIRST_TENSOR = "ask again when the program has made its first tensor"
"""The hint for a name in a program that has made no tensor so far."""

MOST_NAMES = 8
"""The most names listed in an error about an unknown name."""


def node_at(names: NamedNodes, text: str, n: int, selected: int = 0, aspect: places.Aspect | None = None) -> int:
    """Return the node that `text` refers to, as seen from moment `n`; for an empty text, the `selected` node.

    ``12`` is a node by its number, ``@12`` the node of event 12, anything else a place (see `last`).
    """
    if not text:
        return selected
    if not text.startswith("@"):
        return last(names, f"#{text}" if text.isdecimal() else text, n, aspect)
    node = names.timeline.at(event_number(names.timeline, text[1:])).node
    if not node:
        what = f"event {int(text[1:])} is about no node"
        raise GvizError(what, hint="x, #4 or another event: the tape lists the nodes", exit_code=2)
    return node


def last(names: NamedNodes, text: str, n: int, default_aspect: places.Aspect | None = None) -> int:
    """Return the node that a place refers to at moment `n`.

    It is the last matching node created by then, otherwise the first one created later. This rule applies wherever one
    node is named. ``x.grad`` refers to ``x``, unless another node has that name. Raises GvizError if there is none; the
    error names the aspect `default_aspect`.
    """
    stem, aspect = places.split_aspect(text)
    node = 0 if aspect and stem.startswith("#") else _last(names, text, n)
    node = node or (_last(names, stem, n) if aspect else 0)
    if not node:
        raise _no_node(f"{text}.{default_aspect}" if default_aspect and not text.startswith("#") else text, names)
    return node


def _last(names: NamedNodes, text: str, n: int) -> int:
    timeline, place = names.timeline, places.place(text)
    node = place.number if place.kind == "node" and place.number in timeline.nodes else 0
    if place.kind == "word":
        node = names.node_of_variable(text, n) or names.last(text, n) or names.of_a_module(text, n)
    return node or next_of(names, text, n + 1, backward=True) or next_of(names, text, n)


def next_of(names: NamedNodes, text: str, n: int, *, backward: bool = False) -> int:
    """Return the first matching node created after moment `n` (`backward`: the last one before it); 0 if none."""
    fits = PlaceMatcher(names.timeline, places.place(text))
    place = bisect_right(names.timeline.nodes, n - backward, key=names.timeline.nodes.born)
    return next(filter(fits, fits.nearest_candidates(place, backward=backward)), 0)


def _no_node(text: str, names: NamedNodes) -> GvizError:
    if text.startswith("#"):
        return GvizError(f"there is no node {clipped(text, 20)}", hint="the tape lists the nodes", exit_code=2)
    if not names.timeline.nodes and names.timeline.growing:
        return GvizError(f"there is no {clipped(text, 40)} yet", hint=BEFORE_FIRST_TENSOR, exit_code=2)
    near, known = names.near(text, len(names.timeline)), names.names_by(len(names.timeline))
    listed = ", ".join(clipped(name, 30) for name in known[:MOST_NAMES]) + ", …" * (len(known) > MOST_NAMES)
    there = f"only tensors are recorded: {listed}" if known else "only tensors are recorded, the tape lists them"
    hint = f"did you mean {near}?" if near else there
    return GvizError(f"there is no {clipped(text, 40)}", hint=hint, exit_code=2)


def query(timeline: Timeline, text: str) -> Matches:
    """Return the test for `text`. Raises GvizError if the text can match nothing."""
    text = text.strip()
    if not text:
        raise GvizError("nothing to find", hint="a name, #4, @12, op:mul, nan or demo.py:4", exit_code=2)
    if text.startswith("#"):
        return _by_number(timeline, text)
    if text.startswith("@"):
        node = timeline.at(event_number(timeline, text[1:])).node
        return lambda other: other == node
    if text in BAD:
        word = text if text == "inf" or timeline.error_index.first("nan") else "inf"
        first = timeline.error_index.first(word) or len(timeline) + 1
        return lambda node: (
            timeline.nodes.born(node) >= first and word in _nonfinite_at_creation(timeline.nodes.created(node))
        )
    place = places.place(text)
    part = PlaceMatcher(timeline, places.Place(text, "part", word=text))
    if place.kind != "pattern":
        return part if place.kind == "word" else PlaceMatcher(timeline, place)
    pattern = PlaceMatcher(timeline, place)
    return lambda node: pattern(node) or part(node)


def exactly(timeline: Timeline, text: str) -> Matches:
    """Return the test for nodes named `text`: by their own name, by module or by operation."""
    return PlaceMatcher(timeline, places.Place(text, "word", word=with_paths(text)))


def find(timeline: Timeline, matches: Matches, start: int, *, backward: bool = False) -> int:
    """Return the next matching node after `start` (or before it), wrapping around at the ends; 0 if none matches."""
    return finished(search(timeline, matches, start, backward=backward))


def search(timeline: Timeline, matches: Matches, start: int, *, backward: bool = False) -> LongWork[int]:
    """Same as `find`, as cooperative work in small steps."""
    nodes, at = timeline.nodes, timeline.nodes.place_of(start)
    first = (at if at >= 0 else len(nodes)) - 1 if backward else at + 1
    for i in range(len(nodes)):
        if not i % AT_ONCE:
            yield WorkProgress("looking for a node:", i, len(nodes))
        node = nodes[(first - i if backward else first + i) % len(nodes)]
        if matches(node):
            return node
    return 0


def event_number(timeline: Timeline, text: str) -> int:
    """Return the event number in `text`. Raises GvizError if there is no such event."""
    number = typed_count(text)
    if number is None or number > len(timeline):
        raise no_event(timeline, text)
    return number


def _nonfinite_at_creation(created: NodeCreated) -> str:
    """Return the nan and inf in a node's value when it was created, as text."""
    return " ".join(bad_text(output.value) for output in created.outputs)


def _by_number(timeline: Timeline, text: str) -> Matches:
    number = int(text[1:]) if re.fullmatch(r"#\d{1,18}", text) else 0
    if number not in timeline.nodes:
        raise _no_node(text, NamedNodes(timeline))
    return lambda node: node == number

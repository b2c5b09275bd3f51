"""A scene in the terminal: the layout of one iteration, and the look of its visible part."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise, zip_longest
from typing import NamedTuple

from rich.cells import cell_len

from gviz.events import NodeCreated
from gviz.render.boxes.box_content import Box
from gviz.render.boxes.box_row import Row
from gviz.render.boxes.box_size import width_for_two
from gviz.render.boxes.edge_content import Edge as Drawn
from gviz.render.boxes.edges import Link
from gviz.render.boxes.graph_structure import Structure
from gviz.render.cells.box import Appearance, EdgeState, Face, Line
from gviz.render.cells.canvas import Canvas
from gviz.render.layout import DEFAULT_WIDTH, Edge, Key, Layout, layout
from gviz.render.layout import Box as Room
from gviz.render.scene import Scene, States, scene
from gviz.trace.timeline import Moment, Timeline

STYLES = {"bad": "error", "text": ""}
STATES = {
    "current": "current",
    "receiving": "receiving",
    "running": "running",
    "pending": "pending",
    "released": "freed",
    "freed": "freed",
    "backward": "backward",
}
BAD = frozenset({"nan", "inf", "error"})


def laid_out(shape: Structure, max_width: int = DEFAULT_WIDTH) -> Layout:
    """Return the terminal layout of an iteration's graph, for a panel with `max_width` columns."""
    rooms = [Room.around(place.key, place.width, place.height) for place in shape.places]
    edges = dict.fromkeys(_edge(link) for link in shape.links if link.kind != "gradient")
    return layout(rooms, list(edges), max_width=max_width)


SCROLL_BAR = 2
"""Columns of the scroll bar of a graph that is higher than its panel."""
GAP = 2
"""The fewest blank columns between a box and the next one."""


def with_room_for_two(timeline: Timeline, shape: Structure, layout: Layout, max_width: int) -> tuple[Structure, Layout]:
    """Return boxes with room for each number twice, for a what-if, as far as there is free room at their sides.

    No box moves, and the picture gets no wider than `max_width` columns.
    """
    if layout.rightward:
        return shape, layout
    places, room = dict(layout.places), max(layout.width, max_width - SCROLL_BAR)
    boxes, walls = defaultdict[int, list[Key]](list), defaultdict[int, list[_Wall]](list)
    for place in places.values():
        for stripe in _stripes(place.y, place.bottom):
            boxes[stripe].append(place.key)
    for wall in _walls(layout):
        for stripe in _stripes(wall.rows.start, wall.rows.stop):
            walls[stripe].append(wall)
    for outline in shape.places:
        value = timeline.info(outline.node).created.first_value
        more = width_for_two(outline, value, shape.options) - outline.width
        place = places[outline.key]
        if more > 0:
            near = _stripes(place.y, place.bottom)
            others = {key: places[key] for stripe in near for key in boxes[stripe] if key != place.key}
            taken = [(one.x, one.right) for one in others.values() if one.y < place.bottom and place.y < one.bottom]
            taken += [
                (wall.x, wall.right)
                for stripe in near
                for wall in walls[stripe]
                if wall.rows.start < place.bottom and place.y < wall.rows.stop
            ]
            right = min([room - place.right, *(max(x - place.right, 0) - GAP for x, end in taken if end > place.right)])
            right = max(min(right, more), 0)
            left = min([place.x, *(max(place.x - end, 0) - GAP for x, end in taken if x < place.x)])
            left = max(min(left, more - right), 0)
            places[place.key] = place._replace(x=place.x - left, width=place.width + left + right)
    wider = tuple(
        replace(one, width=one.width + places[one.key].width - layout.places[one.key].width) for one in shape.places
    )
    width = max(layout.width, *(place.right for place in places.values()))
    return replace(shape, places=wider), replace(layout, places=places, width=width)


_STRIPE = 64
"""The rows of a stripe: a box is compared only with what is in its stripes, as thousands of boxes have many lines."""


def _stripes(start: int, stop: int) -> range:
    return range(start // _STRIPE, (stop - 1) // _STRIPE + 1)


class _Wall(NamedTuple):
    """The columns and rows of a part of a line: a box must not cover them."""

    x: int
    right: int
    rows: range


def _walls(layout: Layout) -> Iterator[_Wall]:
    for wire in layout.wires:
        for (x, y), (to_x, to_y) in pairwise(wire.points):
            yield _Wall(min(x, to_x), max(x, to_x) + 1, range(min(y, to_y), max(y, to_y) + 1))


class Moments:
    """The canvas of one iteration, drawn for one moment after another. Only the visible part is computed.

    `write` replaces characters in the texts of the boxes that the terminal cannot show. If the numbers of a what-if are
    shown next to the recorded ones (`compared`), boxes use the free room at their sides.
    """

    def __init__(
        self,
        timeline: Timeline,
        shape: Structure,
        write: Callable[[str], str] = str,
        *,
        ascii: bool = False,
        max_width: int = DEFAULT_WIDTH,
        compared: bool = False,
    ) -> None:
        placed = laid_out(shape, max_width)
        if compared and shape.places:
            shape, placed = with_room_for_two(timeline, shape, placed, max_width)
        self.shape = shape
        self.canvas = Canvas(placed, ascii=ascii)
        self._timeline = timeline
        self._write = write
        self._places = {place.key: place for place in shape.places}
        self._links: dict[Edge, list[Link]] = {}
        self._boxes: dict[int, list[Key]] = {}
        for link in shape.links:
            self._links.setdefault(_edge(link), []).append(link)
        for place in shape.places:
            for node in place.nodes if place.role != "failed" else ():
                self._boxes.setdefault(node, []).append(place.key)

    def show(
        self,
        moment: Moment,
        selected: int,
        rows: range,
        stops: Callable[[int], bool] | None = None,
        other: States | None = None,
    ) -> None:
        """Draw the visible rows for a moment. `stops` returns whether a node has a breakpoint.

        `other` returns the states of nodes in a what-if, which are shown next to the recorded ones.
        """
        places, edges = self.canvas.visible(rows)
        keys = dict.fromkeys([str(place.key) for place in places])
        for edge in edges:
            keys.update({str(edge.source): None, str(edge.target): None})
        links = tuple([link for edge in edges for link in self._links[edge]])
        part = replace(self.shape, places=tuple([self._places[key] for key in keys]), links=links)
        drawn = scene(part, self._timeline, moment, other=other)
        dressed = look(drawn, moment, self.boxes(selected), self._write)
        marked = [] if stops is None else [key for key in keys if any(map(stops, self._places[key].nodes))]
        faces: dict[Key, Face] = {key: dressed.faces[key]._replace(stop=True) for key in marked}
        self.canvas.look = replace(dressed, faces={**dressed.faces, **faces}) if faces else dressed

    @property
    def nodes(self) -> Sequence[int]:
        """Return the nodes that have a box or are in one."""
        return (*self._boxes,)

    def boxes(self, node: int) -> frozenset[Key]:
        """Return the boxes that represent a node: its own and its chips."""
        return frozenset(self._boxes.get(node, ()))

    def is_ahead(self, key: Key, n: int) -> bool:
        """Return whether all nodes of a box are made after event `n`."""
        return all(self._timeline.nodes.born(node) > n for node in self._places[str(key)].nodes)

    def node_at(self, x: int, y: int) -> int:
        """Return the node whose box covers a cell, or 0."""
        key = self.canvas.key_at(x, y)
        return self._places[str(key)].node if key is not None else 0


def look(drawn: Scene, moment: Moment, selected: Collection[Key] = (), write: Callable[[str], str] = str) -> Appearance:
    """Return the look of a scene's boxes and lines in the terminal."""
    new_node = moment.node if isinstance(moment.event, NodeCreated) else 0
    active = {box.key for box in drawn.boxes if box.node == new_node and box.role not in ("chip", "module", "failed")}
    return Appearance({box.key: face(box, write) for box in drawn.boxes}, _edges(drawn, active), frozenset(selected))


def face(box: Box, write: Callable[[str], str] = str) -> Face:
    """Return a scene's box as the terminal shows it, with its numbers at the right."""
    states = frozenset([STATES[state] for state in box.states if state in STATES])
    if BAD.intersection(box.states):
        states |= {"error"}
    return Face(write(box.title), tuple(_lines(box.rows, box.width, write)), box.role, states, write(box.status))


def _lines(rows: Sequence[Row], width: int, write: Callable[[str], str]) -> Iterator[Line]:
    """Yield the rows as lines. Two rows that are next to each other become one line, with blanks between them."""
    for row, following in zip_longest(rows, rows[1:]):
        if following is not None and following.shares_line:
            left, right = _close(row, write), _close(following, write)
            gap = max(width - sum([cell_len(text) for text, _ in (*left, *right)]), 1)
            yield (*left, (" " * gap, ""), *right)
        elif row.is_left:
            yield _close(row, write)
        elif not row.shares_line:
            yield _row(write(row.label), write(row.text), STYLES.get(row.style, row.style), width)


def _close(row: Row, write: Callable[[str], str]) -> Line:
    label = ((write(row.label) + " ", "muted"),) if row.label else ()
    return (*label, (write(row.text), STYLES.get(row.style, row.style)))


def _row(label: str, text: str, style: str, width: int) -> Line:
    if not label:
        return ((text, style),)
    gap = max(width - cell_len(label) - cell_len(text), 1)
    return (label + " " * gap, "muted"), (text, style)


def _edges(drawn: Scene, active: Collection[str]) -> Mapping[Edge, EdgeState]:
    states: dict[Edge, EdgeState] = {}
    for edge in drawn.edges:
        if edge.kind == "gradient":
            if "flowed" in edge.states:
                states[Edge(edge.target, edge.source, edge.slot)] = "flowing" if "now" in edge.states else "gradient"
        elif (state := _forward(edge, active)) != "plain":
            states.setdefault(Edge(edge.source, edge.target, edge.slot), state)
    return states


def _forward(edge: Drawn, active: Collection[str]) -> EdgeState:
    if edge.target in active:
        return "active"
    if "pending" in edge.states:
        return "pending"
    return "untracked" if "cut" in edge.states else "plain"


def _edge(link: Link) -> Edge:
    return Edge(link.source, link.target, link.slot)

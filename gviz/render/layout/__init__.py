"""Coordinates for the terminal: a layered layout on whole cells, as a pure function of boxes and edges.

The algorithm uses longest-path layers, medians for the order within a layer, and isotonic regression for the columns,
with the longest chain of operations pinned to one column. Tracks between the layers never overlap for two nets.
"""

from __future__ import annotations

from collections.abc import Sequence

from gviz.render.layout.columns import line_start, set_columns
from gviz.render.layout.components import SHELF, components, extent, shelve
from gviz.render.layout.grid import arrange, build
from gviz.render.layout.layers import Links, layers, spine, topological
from gviz.render.layout.model import Box, Edge, Key, Layout, PlacedBox, Point, Wire
from gviz.render.layout.routing import Picture, draw

__all__ = ["SHELF", "Box", "Edge", "Key", "Layout", "PlacedBox", "Point", "Wire", "layout", "layout_rightward"]

Link = tuple[int, int, int]


def layout(boxes: Sequence[Box], edges: Sequence[Edge], *, room: int = SHELF) -> Layout:
    """Lay a graph out from top to bottom. The same boxes and edges always give the same layout.

    Disconnected components are placed next to each other in up to `room` columns, then below.
    """
    return _layout(boxes, edges, pitch=1, room=room)


def layout_rightward(boxes: Sequence[Box], edges: Sequence[Edge]) -> Layout:
    """Lay a small graph out from left to right: boxes with more lines than rows grow taller."""
    turned = _layout([Box(box.key, box.height, box.width) for box in boxes], edges, pitch=2, room=SHELF)
    places = {
        key: PlacedBox(key, place.y, place.x, place.height, place.width, place.port)
        for key, place in turned.places.items()
    }
    wires = tuple([wire._replace(points=tuple([(y, x) for x, y in wire.points])) for wire in turned.wires])
    return Layout(places, turned.edges, wires, turned.height, turned.width, rightward=True)


def _layout(boxes: Sequence[Box], edges: Sequence[Edge], pitch: int, room: int) -> Layout:
    numbers = {box.key: number for number, box in enumerate(boxes)}
    links = [(numbers[source], numbers[target], slot) for source, target, slot in edges]
    inputs, outputs = _links(len(boxes), links)
    groups = components(inputs, outputs)
    pictures = [_picture(boxes, group, part, pitch) for group, part in zip(groups, _split(groups, links), strict=True)]
    return _assemble(boxes, groups, pictures, room)


def _links(count: int, links: list[Link]) -> tuple[Links, Links]:
    inputs: Links = [[] for _ in range(count)]
    outputs: Links = [[] for _ in range(count)]
    for source, target, _ in links:
        inputs[target].append(source)
        outputs[source].append(target)
    return inputs, outputs


def _split(groups: list[list[int]], links: list[Link]) -> list[list[Link]]:
    """Return the links of each component, numbered within the component's own boxes."""
    home = {box: (group, local) for group, members in enumerate(groups) for local, box in enumerate(members)}
    parts: list[list[Link]] = [[] for _ in groups]
    for source, target, slot in links:
        group, local = home[source]
        parts[group].append((local, home[target][1], slot))
    return parts


def _picture(boxes: Sequence[Box], members: list[int], links: list[Link], pitch: int) -> Picture:
    inputs, outputs = _links(len(members), links)
    order = topological(inputs, outputs)
    rank = {box: position for position, box in enumerate(order)}
    forward = [link for link in links if rank[link[0]] < rank[link[1]]]
    if len(forward) < len(links):
        inputs, outputs = _links(len(members), forward)
    layer = layers(order, inputs, outputs)
    widths = [max(boxes[box].width, len(inputs[local]) + 2, 3) for local, box in enumerate(members)]
    grid = build(order, layer, widths, forward)
    arrange(grid)
    chain = spine(layer, inputs)
    set_columns(grid, chain)
    return draw(grid, [boxes[box].height for box in members], chain, pitch)


def _assemble(boxes: Sequence[Box], groups: list[list[int]], pictures: list[Picture], room: int) -> Layout:
    """Put the pictures of the components on one canvas."""
    sizes = [(picture.width, picture.height) for picture in pictures]
    corners = shelve(sizes, room)
    places: dict[Key, PlacedBox] = {}
    edges: list[Edge] = []
    wires: list[Wire] = []
    for members, picture, (x, y) in zip(groups, pictures, corners, strict=True):
        corner = (x - picture.left, y)
        for local, box in enumerate(members):
            places[boxes[box].key] = _place(boxes[box], picture, local, corner)
        wires.extend([_moved(wire, members, len(edges), corner) for wire in picture.wires])
        edges.extend([Edge(boxes[members[s]].key, boxes[members[t]].key, slot) for s, t, slot in picture.grid.edges])
    width, height = extent(corners, sizes)
    return Layout(places, tuple(edges), tuple(wires), width, height)


def _place(box: Box, picture: Picture, local: int, corner: Point) -> PlacedBox:
    grid, (dx, dy) = picture.grid, corner
    port = line_start(grid, local) + dx
    return PlacedBox(box.key, grid.x[local] + dx, picture.y[local] + dy, grid.width[local], box.height, port)


def _moved(wire: Wire, members: list[int], edges: int, corner: Point) -> Wire:
    dx, dy = corner
    points = tuple([(x + dx, y + dy) for x, y in wire.points])
    return Wire(members[wire.net], points, wire.first + edges, wire.last + edges, wire.enters)

"""Places the boxes of a graph, and the lines between them, on the cells of a terminal. The graph is drawn in layers.

The result depends on nothing but the arguments. The algorithm uses longest-path layers, medians for the order within a
layer, and isotonic regression for the columns, with the longest chain of operations pinned to one column. Between two
layers, the lines run along rows that are called tracks. There, lines that leave different boxes may cross, but they
never share cells on their way.

A `Box` has a size, a `PlacedBox` also a position. An `Edge` connects the keys of two boxes, a `NumberedEdge` their
positions in a list. A `Wire` is the piece of a line from one layer to the next. A `Picture` is the layout of one
component of the graph; a component is a part that no edge connects with the rest.
"""

from __future__ import annotations

from collections.abc import Sequence

from gviz.render.layout.columns import line_start, set_columns
from gviz.render.layout.components import DEFAULT_WIDTH, components, extent, shelve
from gviz.render.layout.grid import arrange, build
from gviz.render.layout.layers import Adjacency, layers, spine, topological
from gviz.render.layout.model import Box, Edge, Key, Layout, PlacedBox, Point, Wire
from gviz.render.layout.routing import Picture, draw

__all__ = ["DEFAULT_WIDTH", "Box", "Edge", "Key", "Layout", "PlacedBox", "Point", "Wire", "layout", "layout_rightward"]

NumberedEdge = tuple[int, int, int]
"""An edge between boxes that are given by their position in a list: source, target, slot."""


def layout(boxes: Sequence[Box], edges: Sequence[Edge], *, max_width: int = DEFAULT_WIDTH) -> Layout:
    """Lay a graph out from top to bottom. The same boxes and edges always give the same layout.

    Components of the graph are placed side by side, as many as fit into `max_width` columns; the next ones go below.
    """
    return _layout(boxes, edges, rows_per_track=1, max_width=max_width)


def layout_rightward(boxes: Sequence[Box], edges: Sequence[Edge]) -> Layout:
    """Lay a small graph out from left to right. A box that has too few rows for its incoming edges is made taller."""
    transposed = _layout(
        [Box(box.key, box.height, box.width) for box in boxes], edges, rows_per_track=2, max_width=DEFAULT_WIDTH
    )
    places = {
        key: PlacedBox(key, place.y, place.x, place.height, place.width, place.port)
        for key, place in transposed.places.items()
    }
    wires = tuple([wire._replace(points=tuple([(y, x) for x, y in wire.points])) for wire in transposed.wires])
    return Layout(places, transposed.edges, wires, transposed.height, transposed.width, rightward=True)


def _layout(boxes: Sequence[Box], edges: Sequence[Edge], rows_per_track: int, max_width: int) -> Layout:
    numbers = {box.key: number for number, box in enumerate(boxes)}
    numbered = [(numbers[source], numbers[target], slot) for source, target, slot in edges]
    inputs, outputs = _adjacency(len(boxes), numbered)
    groups = components(inputs, outputs)
    pictures = [
        _picture(boxes, group, group_edges, rows_per_track)
        for group, group_edges in zip(groups, _split(groups, numbered), strict=True)
    ]
    return _assemble(boxes, groups, pictures, max_width)


def _adjacency(box_count: int, edges: list[NumberedEdge]) -> tuple[Adjacency, Adjacency]:
    """Return the inputs and the outputs of each box."""
    inputs: Adjacency = [[] for _ in range(box_count)]
    outputs: Adjacency = [[] for _ in range(box_count)]
    for source, target, _ in edges:
        inputs[target].append(source)
        outputs[source].append(target)
    return inputs, outputs


def _split(groups: list[list[int]], edges: list[NumberedEdge]) -> list[list[NumberedEdge]]:
    """Return the edges of each component. In these, boxes are numbered within the component."""
    group_of = {box: (group, local) for group, members in enumerate(groups) for local, box in enumerate(members)}
    edges_of_groups: list[list[NumberedEdge]] = [[] for _ in groups]
    for source, target, slot in edges:
        group, local = group_of[source]
        edges_of_groups[group].append((local, group_of[target][1], slot))
    return edges_of_groups


def _picture(boxes: Sequence[Box], members: list[int], edges: list[NumberedEdge], rows_per_track: int) -> Picture:
    inputs, outputs = _adjacency(len(members), edges)
    order = topological(inputs, outputs)
    rank = {box: position for position, box in enumerate(order)}
    forward = [edge for edge in edges if rank[edge[0]] < rank[edge[1]]]
    if len(forward) < len(edges):
        inputs, outputs = _adjacency(len(members), forward)
    layer_of = layers(order, inputs, outputs)
    widths = [max(boxes[box].width, len(inputs[local]) + 2, 3) for local, box in enumerate(members)]
    grid = build(order, layer_of, widths, forward)
    arrange(grid)
    chain = spine(layer_of, inputs)
    set_columns(grid, chain)
    return draw(grid, [boxes[box].height for box in members], chain, rows_per_track)


def _assemble(boxes: Sequence[Box], groups: list[list[int]], pictures: list[Picture], max_width: int) -> Layout:
    """Put the pictures of the components on one canvas."""
    sizes = [(picture.width, picture.height) for picture in pictures]
    corners = shelve(sizes, max_width)
    places: dict[Key, PlacedBox] = {}
    edges: list[Edge] = []
    wires: list[Wire] = []
    for members, picture, (x, y) in zip(groups, pictures, corners, strict=True):
        corner = (x - picture.left, y)
        for local, box in enumerate(members):
            places[boxes[box].key] = _place_box(boxes[box], picture, local, corner)
        wires.extend([_move_wire(wire, members, len(edges), corner) for wire in picture.wires])
        edges.extend([Edge(boxes[members[s]].key, boxes[members[t]].key, slot) for s, t, slot in picture.grid.edges])
    width, height = extent(corners, sizes)
    return Layout(places, tuple(edges), tuple(wires), width, height)


def _place_box(box: Box, picture: Picture, local: int, corner: Point) -> PlacedBox:
    grid, (dx, dy) = picture.grid, corner
    port = line_start(grid, local) + dx
    return PlacedBox(box.key, grid.x[local] + dx, picture.y[local] + dy, grid.width[local], box.height, port)


def _move_wire(wire: Wire, members: list[int], edge_offset: int, corner: Point) -> Wire:
    dx, dy = corner
    points = tuple([(x + dx, y + dy) for x, y in wire.points])
    return Wire(members[wire.net], points, wire.first + edge_offset, wire.last + edge_offset, wire.enters)

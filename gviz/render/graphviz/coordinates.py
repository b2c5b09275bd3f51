"""The coordinates of boxes and lines without Graphviz, from the terminal's layout."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from gviz.render.graphviz.box_label import CHARACTER, ROW
from gviz.render.graphviz.spline import Spline, place, without_repeats
from gviz.render.layout import Box as LayoutBox
from gviz.render.layout import Edge as LayoutEdge
from gviz.render.layout import Layout, PlacedBox, Point, layout
from gviz.render.scene import Scene

INCH = 72
MOST_CORNERS = 250
"""The most corners of a line. A longer one is straight: Graphviz reads strings of at most 16384 characters."""


@dataclass(frozen=True, slots=True)
class Placing:
    """DOT attributes: of every box by its key, of every line by its number in the scene (``e3``), of every frame.

    Pictures of a series have the same `legend`, below the boxes, with `room` characters. The line of the program may be
    in `one_line` with the title. A `simple` placing is gviz's own layout, which has one box for each node. The larger
    side is `points` long, and the picture is `wide` and `high` points; all are 0 if they are unknown.
    """

    boxes: Mapping[str, dict[str, str]]
    lines: Mapping[str, dict[str, str]]
    frames: Mapping[str, dict[str, str]] = field(default_factory=dict)
    legend: tuple[str, ...] = ()
    room: int = 0
    simple: bool = False
    points: float = 0.0
    wide: float = 0.0
    high: float = 0.0
    one_line: bool = False


def placing(scene: Scene) -> Placing:
    """Return all places in a layout from top to bottom. Gradients have no lines of their own."""
    sizes = [LayoutBox.around(box.key, box.width, box.height) for box in scene.boxes]
    names = {
        LayoutEdge(edge.source, edge.target, edge.slot): f"e{number}"
        for number, edge in enumerate(scene.edges)
        if edge.kind != "gradient"
    }
    arrangement = layout(sizes, list(names))
    boxes = {box.key: _box(arrangement.places[box.key]) for box in scene.boxes}
    return Placing(boxes, {names[edge]: {"pos": str(line)} for edge, line in _lines(arrangement)}, simple=True)


def _box(placed: PlacedBox) -> dict[str, str]:
    x, y = (placed.x + placed.width / 2) * CHARACTER, (placed.y + placed.height / 2) * ROW
    width, height = placed.width * CHARACTER / INCH, placed.height * ROW / INCH
    return {"pos": place((x, -y)), "width": f"{width:.4f}", "height": f"{height:.4f}"}


def _lines(arrangement: Layout) -> Iterator[tuple[LayoutEdge, Spline]]:
    """Yield the lines with a route, each as a chain of straight pieces."""
    routes: dict[int, list[Point]] = {}
    for wire in arrangement.wires:
        for number in range(wire.first, wire.last):
            routes.setdefault(number, []).extend(wire.points)
    for number, points in routes.items():
        yield arrangement.edges[number], _spline(points)


def _spline(route: list[Point]) -> Spline:
    """Return a route as straight pieces: each corner is three knots."""
    centres = [((x + 0.5) * CHARACTER, -(y + 0.5) * ROW) for x, y in route]
    start, end = (centres[0][0], centres[0][1] + ROW / 2), (centres[-1][0], centres[-1][1] - ROW / 2)
    corners = without_repeats([start, *centres])[1:-1]
    if len(corners) > MOST_CORNERS:
        corners = []
    inner = [corner for corner in corners for _ in range(3)]
    return Spline([start, start, *inner, centres[-1], centres[-1]], end=end)

"""Our own layout, made for the terminal, as coordinates for Graphviz: boxes, and lines that go round them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from gviz.render.graphviz.labels import CHARACTER, ROW
from gviz.render.layout import Box, Edge, Layout, PlacedBox, Point, layout
from gviz.render.scene import Scene

INCH = 72
MOST_CORNERS = 250
"""A way with more corners goes straight: Graphviz reads no string beyond 16384 characters."""

Spot = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Placing:
    """Attributes in the words of DOT: of every box by its key, of every line by its place in the scene (``e3``), and
    of every frame around a module.

    Pictures that follow one another say the same `legend`, below in a `room` of so many characters.
    A `simple` one is our own layout, which knows one box for each node. The larger side has so many
    `points`, if that is known.
    """

    boxes: Mapping[str, dict[str, str]]
    lines: Mapping[str, dict[str, str]]
    frames: Mapping[str, dict[str, str]] = field(default_factory=dict)
    legend: tuple[str, ...] = ()
    room: int = 0
    simple: bool = False
    points: float = 0.0


def placing(scene: Scene) -> Placing:
    """Where everything stands when the graph flows from top to bottom. Gradients have no lines of their own."""
    sizes = [Box.around(box.key, box.width, box.height) for box in scene.boxes]
    names = {
        Edge(edge.source, edge.target, edge.slot): f"e{number}"
        for number, edge in enumerate(scene.edges)
        if edge.kind != "gradient"
    }
    found = layout(sizes, list(names))
    boxes = {box.key: _box(found.places[box.key]) for box in scene.boxes}
    return Placing(boxes, {names[edge]: {"pos": pos} for edge, pos in _lines(found)}, simple=True)


def _box(place: PlacedBox) -> dict[str, str]:
    x, y = (place.x + place.width / 2) * CHARACTER, (place.y + place.height / 2) * ROW
    width, height = place.width * CHARACTER / INCH, place.height * ROW / INCH
    return {"pos": f"{x:g},{-y:g}", "width": f"{width:.4f}", "height": f"{height:.4f}"}


def _lines(found: Layout) -> Iterator[tuple[Edge, str]]:
    """The lines that have a way, each as a chain of straight pieces."""
    ways: dict[int, list[Point]] = {}
    for wire in found.wires:
        for number in range(wire.first, wire.last):
            ways.setdefault(number, []).extend(wire.points)
    for number, points in ways.items():
        yield found.edges[number], _spline(points)


def _spline(way: list[Point]) -> str:
    """A way as Graphviz writes a curve: the arrow's end, then each corner as often as straight pieces ask for."""
    centres = [((x + 0.5) * CHARACTER, (y + 0.5) * ROW) for x, y in way]
    start, end = (centres[0][0], centres[0][1] - ROW / 2), (centres[-1][0], centres[-1][1] + ROW / 2)
    corners = _corners([start, *centres])
    if len(corners) > MOST_CORNERS:
        corners = []
    inner = [corner for corner in corners for _ in range(3)]
    return " ".join([f"e,{_point(end)}", *_points([start, start, *inner, centres[-1], centres[-1]])])


def _corners(way: list[Spot]) -> list[Spot]:
    """Where the way turns: not at its ends, nor at a point it runs straight through or stays at."""
    corners = []
    before = way[0]
    for point, after in pairwise(way[1:]):
        straight = before[0] == point[0] == after[0] or before[1] == point[1] == after[1]
        if point != after and not straight:
            corners.append(point)
            before = point
    return corners


def _points(corners: Iterable[Spot]) -> Iterator[str]:
    return map(_point, corners)


def _point(corner: Spot) -> str:
    return f"{corner[0]:g},{-corner[1]:g}"

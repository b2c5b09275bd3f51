"""The places of boxes and lines in a diagram: its direction, its distances, and coordinates without Graphviz.

`flow` and `spacing` fit a graph to a screen or slide. For graphs that Graphviz cannot lay out in time, `placing` uses
the terminal's layout: boxes, and lines that avoid them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

from gviz.render.boxes.box_content import Box
from gviz.render.boxes.box_size import Outline
from gviz.render.boxes.edge_content import Edge
from gviz.render.graphviz.box_label import CHARACTER, ROW
from gviz.render.layout import Box as LayoutBox
from gviz.render.layout import Edge as LayoutEdge
from gviz.render.layout import Layout, PlacedBox, Point, layout
from gviz.render.scene import Scene
from gviz.render.theme import Direction

OPS = ("op", "root", "module")
"""The roles of boxes that compute."""

GAP = 60
"""Points between two levels."""
WIDE = 1600
"""Points. A wider graph flows from top to bottom, because its text would be too small from left to right."""

EASY_NODES = 150
"""With more nodes, Graphviz searches less for the best order: seconds instead of minutes, hardly worse."""

STRAIGHT = "8"
"""The weight of lines between operations. It makes long chains straight and moves leaves to the side."""

FEWEST_RESIDUALS = 2
"""The fewest residual connections of a stream. A graph with only one needs no column."""
MOST_SEARCHED = 400
"""The most boxes of a picture in which residual connections are searched."""

BLANK = "  "
"""An invisible label that reserves room."""


def flow(boxes: Sequence[Box | Outline], levels: int, *directions: Direction) -> Literal["LR", "TB"]:
    """Return the first direction that is requested, or else left to right unless that is too wide."""
    for direction in directions:
        if direction != "auto":
            return direction
    usual = sum(box.width for box in boxes) / max(len(boxes), 1) * CHARACTER
    return "LR" if levels * (usual + GAP) <= WIDE else "TB"


def spacing(scene: Scene) -> dict[str, str]:
    """Return the distances between boxes and levels, and the limit of Graphviz's search for their order."""
    easy = {"nslimit": "1", "nslimit1": "1", "mclimit": "0.1"} if len(scene.boxes) > EASY_NODES else {}
    if scene.compact:
        return {"nodesep": "0.2", "ranksep": "0.3", **easy}
    return {"nodesep": "0.3", "ranksep": "0.55", **easy}


@dataclass(frozen=True, slots=True)
class Spine:
    """The straight lines of a graph by their numbers, and the boxes of its residual stream."""

    lines: frozenset[int]
    stream: frozenset[str]

    def weight(self, number: int) -> str:
        """Return the weight of a line."""
        return STRAIGHT if number in self.lines else "1"

    def box(self, key: str) -> dict[str, str]:
        """Return the attributes of a box. Graphviz draws the lines within a group straight."""
        return {"group": "stream"} if key in self.stream else {}

    @property
    def graph(self) -> dict[str, str]:
        """Return the attributes of the graph. The usual ranks would put a branch in a frame above its origin."""
        return {"newrank": "true"} if self.stream else {}


def spine(scene: Scene) -> Spine:
    """Return the straight lines: for each operation, its input at the end of the longest chain.

    All other boxes are at the side of the chain, which would not stay straight with several straight lines into a box.
    A residual connection is straight instead of the chain that it skips. So the residual stream of a ResNet or a
    transformer is one column, and what is added to it is at the side:

        x = add
        |  `-- norm -- mlp
        |  .-----------'
        x = add
    """
    computing = {box.key for box in scene.boxes if box.role in OPS}
    into: dict[str, list[tuple[int, str]]] = {}
    for number, edge in enumerate(scene.edges):
        if edge.kind in ("forward", "view") and edge.slot >= 0 and edge.source in computing:
            into.setdefault(edge.target, []).append((number, edge.source))
    depths: dict[str, int] = {}
    straight: set[int] = set()
    for box in scene.boxes:
        if lines := into.get(box.key):
            number, source = max(lines, key=lambda line: depths.get(line[1], 0))
            depths[box.key] = depths.get(source, 0) + 1
            straight.add(number)
    stream: set[str] = set()
    residuals = [*residual_lines(scene, into)]
    for number, sides in residuals if len(residuals) >= FEWEST_RESIDUALS else ():
        straight.difference_update(sides)
        straight.add(number)
        stream |= {scene.edges[number].source, scene.edges[number].target}
    return Spine(frozenset(straight), frozenset(stream))


def residual_lines(
    scene: Scene, into: Mapping[str, Sequence[tuple[int, str]]]
) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield the line of each residual connection, with the lines that leave the stream there and come back to it.

    At a residual connection, a sum adds a box to what was computed from the same box.
    """
    if len(scene.boxes) > MOST_SEARCHED:
        return
    places = {box.key: 1 << at for at, box in enumerate(scene.boxes)}
    origins = dict(places)
    for box in scene.boxes:
        for _, source in into.get(box.key, ()):
            origins[box.key] |= origins[source]
    for box in scene.boxes:
        lines = into.get(box.key, ())
        if not is_sum(box) or len(lines) != 2:
            continue
        for (number, kept), (back, added) in (lines, lines[::-1]):
            if kept == added or not origins[added] & places[kept]:
                continue
            branch = [one.key for one in scene.boxes if origins[added] & places[one.key] and one.key != kept]
            leaving = (line for inner in branch for line, source in into.get(inner, ()) if source == kept)
            yield number, (back, *leaving)


def is_sum(box: Box) -> bool:
    """Return whether a box adds two tensors: ``x = add #4``, ``add``, ``add_ #7``."""
    word = box.title.rpartition("= ")[2].partition(" ")[0]
    return word.lower() in ("add", "add_", "iadd")


def ends(edge: Edge) -> tuple[str, str]:
    """Return maker and user. A gradient is laid out in the direction of the data, so that it is next to the data."""
    return (edge.target, edge.source) if edge.kind == "gradient" else (edge.source, edge.target)


def repeated(scene: Scene) -> frozenset[int]:
    """Return the numbers of unlabelled data lines whose ends already have another data line and gradients.

    Graphviz gives a line with a label its own lane. A line without a label goes straight, across the others.
    """
    gradients = {ends(edge) for edge in scene.edges if edge.kind == "gradient"}
    seen: set[tuple[str, str]] = set()
    repeats = set()
    for number, edge in enumerate(scene.edges):
        if edge.kind == "forward" and not edge.label and ends(edge) in gradients:
            if ends(edge) in seen:
                repeats.add(number)
            seen.add(ends(edge))
    return frozenset(repeats)


LANE = (
    '<<table border="0" cellborder="0" cellspacing="0" cellpadding="0">'
    '<tr><td fixedsize="true" width="1" height="1"></td></tr></table>>'
)
"""A label without text or room, which gives a line its own lane."""


def skipping(scene: Scene) -> frozenset[int]:
    """Return the numbers of lines of data over several levels that have gradients next to them.

    Graphviz lays parallel lines out as one line with room at both sides, and moves them apart when it draws them: the
    outer ones over the corners of the boxes that they pass, or out of their frame. A line with its own lane stays where
    it was laid out.
    """
    level = _levels(scene)
    gradients = {ends(edge) for edge in scene.edges if edge.kind == "gradient"}
    return frozenset(
        number
        for number, edge in enumerate(scene.edges)
        if edge.kind != "gradient" and ends(edge) in gradients and level[edge.target] - level[edge.source] > 1
    )


INCH = 72
MOST_CORNERS = 250
"""The most corners of a line. A longer one is straight: Graphviz reads strings of at most 16384 characters."""

Spot = tuple[float, float]


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
    return Placing(boxes, {names[edge]: {"pos": pos} for edge, pos in _lines(arrangement)}, simple=True)


def _box(place: PlacedBox) -> dict[str, str]:
    x, y = (place.x + place.width / 2) * CHARACTER, (place.y + place.height / 2) * ROW
    width, height = place.width * CHARACTER / INCH, place.height * ROW / INCH
    return {"pos": f"{x:g},{-y:g}", "width": f"{width:.4f}", "height": f"{height:.4f}"}


def _lines(arrangement: Layout) -> Iterator[tuple[LayoutEdge, str]]:
    """Yield the lines with a route, each as a chain of straight pieces."""
    routes: dict[int, list[Point]] = {}
    for wire in arrangement.wires:
        for number in range(wire.first, wire.last):
            routes.setdefault(number, []).extend(wire.points)
    for number, points in routes.items():
        yield arrangement.edges[number], _spline(points)


def _spline(route: list[Point]) -> str:
    """Return a route as a Graphviz spline: the arrow's end, then each corner three times for straight pieces."""
    centres = [((x + 0.5) * CHARACTER, (y + 0.5) * ROW) for x, y in route]
    start, end = (centres[0][0], centres[0][1] - ROW / 2), (centres[-1][0], centres[-1][1] + ROW / 2)
    corners = _corners([start, *centres])
    if len(corners) > MOST_CORNERS:
        corners = []
    inner = [corner for corner in corners for _ in range(3)]
    return " ".join([f"e,{_point(end)}", *_points([start, start, *inner, centres[-1], centres[-1]])])


def _corners(route: list[Spot]) -> list[Spot]:
    """Return the points where a route turns, without its ends and without points on a straight piece."""
    corners = []
    before = route[0]
    for point, after in pairwise(route[1:]):
        straight = before[0] == point[0] == after[0] or before[1] == point[1] == after[1]
        if point != after and not straight:
            corners.append(point)
            before = point
    return corners


def _points(corners: Iterable[Spot]) -> Iterator[str]:
    return map(_point, corners)


def _point(corner: Spot) -> str:
    return f"{corner[0]:g},{-corner[1]:g}"


def columns(scene: Scene) -> dict[str, int]:
    """Return the column of each box of a chain that is folded into columns; empty for any other scene.

    Each column has the same number of levels. A box without inputs is one level before its first user.
    """
    if scene.columns < 2:
        return {}
    level = _levels(scene)
    height = -(-(max(level.values(), default=0) + 1) // scene.columns)
    return {key: at // height for key, at in level.items()}


def column_tops(scene: Scene) -> list[str]:
    """Return the topmost box with inputs of each column of a folded chain, from left to right."""
    level, tops = _levels(scene), dict[int, str]()
    column = columns(scene)
    inner = {edge.target for edge in scene.edges if edge.kind != "gradient" and edge.slot >= 0}
    for key in sorted(column.keys() & inner, key=lambda key: level[key]):
        tops.setdefault(column[key], key)
    return [tops[number] for number in sorted(tops)]


def is_chain(scene: Scene) -> bool:
    """Return whether each box leads to one box on the next level. Boxes without inputs may lead anywhere."""
    level, lines = _levels(scene), [edge for edge in scene.edges if edge.kind != "gradient" and edge.slot >= 0]
    inner = {edge.target for edge in lines}
    steps = {(edge.source, edge.target) for edge in lines if edge.source in inner}
    return len(steps) == len({level[source] for source, _ in steps})  # a line over a level is a second one from a level


def _levels(scene: Scene) -> dict[str, int]:
    """Return the level of each box: the most lines that lead to it."""
    level = dict.fromkeys((box.key for box in scene.boxes), 0)
    lines = [edge for edge in scene.edges if edge.kind != "gradient" and edge.slot >= 0]
    for _ in level:
        longer = {edge.target: level[edge.source] + 1 for edge in lines if level[edge.target] <= level[edge.source]}
        if not longer or max(longer.values()) > len(level):
            break
        level |= longer
    inner = {edge.target for edge in lines}
    for key in level.keys() - inner:
        level[key] = max(min((level[edge.target] for edge in lines if edge.source == key), default=1) - 1, 0)
    return level

"""The layout of a folded graph: Graphviz lays out each column by itself, and lines between columns go through the gaps.

Graphviz alone would draw the lines between columns around the whole picture, because it knows no columns. So it is run
once for all columns, each a graph of its own; then the columns are set side by side, and `column_lines` routes what is
left. The result has a position for everything, as one of a series has.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise
from typing import Any

from gviz.render.boxes.edge_content import Edge
from gviz.render.graphviz.box_label import SPLIT
from gviz.render.graphviz.column_division import Division, division
from gviz.render.graphviz.column_lines import (
    Area,
    Column,
    Routes,
    Wire,
    are_too_many,
    crossings,
    curve,
    gap_widths,
    parallel,
    routed,
)
from gviz.render.graphviz.coordinates import INCH, Placing
from gviz.render.graphviz.digraph import Digraph
from gviz.render.graphviz.direction_and_spacing import ends
from gviz.render.graphviz.dot import Manner, digraph
from gviz.render.graphviz.process import draw_all
from gviz.render.graphviz.spline import Spline, Spot, between, place
from gviz.render.scene import Scene

KEY_GAP = 26
"""Points between the key of a figure and the boxes above it."""
ARROW, HOOK = 7.0, 5.6
"""The length of an arrow in points, and of the circle behind one."""
MOST_CROSSINGS = 2
"""The most crossings for each line between columns. A graph with more of them is no longer clear if it is folded."""


def folded_graph(scene: Scene, manner: Manner, timeout: float) -> Digraph:
    """Return a scene with several columns as a graph with all positions. If it is tangled, it may have none."""
    divided = division(scene)
    wires = _Wires(scene, manner, divided.column)
    if are_too_many(wires.wires):
        graph = digraph(scene, manner)
        graph.tangled = True
        return graph
    parts = _parts(scene, divided.column)
    arrangement = _arranged(scene, _laid_out(parts, manner, timeout, {}), wires, divided)
    orders = _orders(arrangement, wires)
    if (arrangement.routes.crossings or not arrangement.routes.free) and orders:
        other = _arranged(scene, _laid_out(parts, manner, timeout, orders), wires, divided)
        arrangement = min(arrangement, other, key=lambda one: one.worth)
    graph = digraph(scene, replace(manner, placing=arrangement.placing(scene, wires)))
    graph.program = "nop2"
    if arrangement.key:
        graph.attr(lp=place(arrangement.key))
    routes = arrangement.routes
    graph.tangled = not routes.free or routes.crossings > MOST_CROSSINGS * len(wires.lines)
    return graph


class _Wires:
    """The lines of a scene between its columns. Those between the same boxes are one wire."""

    def __init__(self, scene: Scene, manner: Manner, column: Mapping[str, int]) -> None:
        boxes = manner.theme.form.card == "box"
        ops = {box.key for box in scene.boxes if box.op} if not boxes else set()
        self.lines: dict[int, bool] = {}
        """By the number of a line: whether it is drawn from an earlier column to a later one."""
        found: dict[tuple[str, str], list[int]] = {}
        at: dict[str, int] = {}
        for number, edge in enumerate(scene.edges):
            if column[edge.source] == column[edge.target] or (edge.kind == "gradient" and not boxes):
                continue
            tail, head = ends(edge)
            onwards = column[tail] < column[head]
            named = tail, f"{head}{SPLIT}" if head in ops else head
            pair = named if onwards else named[::-1]
            found.setdefault(pair, []).append(number)
            self.lines[number] = onwards
            at |= dict(zip(named, (column[tail], column[head]), strict=True))
        self.numbers = [*found.values()]
        self.wires = [Wire(one, at[one], other, at[other], len(numbers)) for (one, other), numbers in found.items()]


@dataclass(slots=True)
class _Part:
    """A column as Graphviz lays it out: by the names that the whole graph has for its boxes and lines."""

    column: Column
    boxes: dict[str, dict[str, str]]
    lines: dict[str, dict[str, str]]
    key: tuple[float, float] = (0.0, 0.0)
    """The width and height of the key of the figure, which is measured with the first column."""


@dataclass(slots=True)
class _Arrangement:
    """The columns in their places, and the lines between them."""

    parts: Sequence[_Part]
    shifts: Sequence[Spot]
    columns: Sequence[Column]
    routes: Routes
    key: Spot | None = field(default=None)

    @property
    def worth(self) -> tuple[bool, int, int]:
        """Return what is smaller for a better arrangement. Lines that cross within a column count as well."""
        inner = sum(
            crossings(one, other) > 0
            for column in self.columns
            for at, one in enumerate(column.lines)
            for other in column.lines[:at]
        )
        return not self.routes.free, self.routes.crossings + inner, self.routes.detours

    def placing(self, scene: Scene, wires: _Wires) -> Placing:
        boxes: dict[str, dict[str, str]] = {}
        lines: dict[str, dict[str, str]] = {}
        for part, (x, y) in zip(self.parts, self.shifts, strict=True):
            boxes |= {key: box | {"pos": str(Spline.of(box["pos"]).moved(x, y))} for key, box in part.boxes.items()}
            for name, line in part.lines.items():
                lines[name] = {what: str(Spline.of(where).moved(x, y)) for what, where in line.items()}
        for path, numbers in zip(self.routes.corners, wires.numbers, strict=False):
            for number, (corners, shift) in zip(numbers, parallel(path, len(numbers)), strict=True):
                lines[f"e{number}"] = _line(corners, shift, scene.edges[number], onwards=wires.lines[number])
        return Placing(boxes, lines)


def _parts(scene: Scene, column: Mapping[str, int]) -> list[tuple[Scene, list[int]]]:
    """Return the scene of each column, with the numbers of its lines in the whole scene."""
    found = []
    for at in sorted({*column.values()}):
        numbers = [n for n, edge in enumerate(scene.edges) if column[edge.source] == column[edge.target] == at]
        boxes = tuple(box for box in scene.boxes if column[box.key] == at)
        edges = tuple(scene.edges[number] for number in numbers)
        found.append((replace(scene, boxes=boxes, edges=edges, key=() if at else scene.key), numbers))
    return found


def _laid_out(
    parts: Sequence[tuple[Scene, list[int]]],
    manner: Manner,
    timeout: float,
    orders: Mapping[int, Sequence[Sequence[str]]],
) -> list[_Part]:
    """Return what Graphviz makes of each column. `orders` are boxes of a column that are in a row in this order."""
    sources = []
    for at, (part, _) in enumerate(parts):
        graph = digraph(part, manner)
        graph.attr(newrank="true")
        for number, row in enumerate(orders.get(at, ())):
            with graph.subgraph(name=f"row{number}", graph_attr={"rank": "same"}) as same:
                for left, right in pairwise(row):
                    same.edge(left, right, "", style="invis")
        sources.append(graph.source)
    drawn = draw_all(sources, "json", timeout=timeout)
    return [_part(json.loads(one), numbers, manner.prefix) for one, (_, numbers) in zip(drawn, parts, strict=True)]


def _part(graph: dict[str, Any], numbers: Sequence[int], prefix: str) -> _Part:
    areas: dict[str, Area] = {}
    boxes: dict[str, dict[str, str]] = {}
    for box in (box for box in graph.get("objects", ()) if "pos" in box):
        x, y = map(float, box["pos"].split(","))
        wide, high = float(box["width"]) * INCH / 2, float(box["height"]) * INCH / 2
        areas[box["name"]] = Area(x - wide, y - high, x + wide, y + high)
        boxes[box["name"]] = {
            "pos": box["pos"], "width": box["width"], "height": box["height"], "fixedsize": "true",
        }  # fmt: skip
    lines: dict[str, dict[str, str]] = {}
    ways: list[list[Spot]] = []
    for line in graph.get("edges", ()):
        if "id" not in line:  # it only orders a row
            continue
        name = line["id"].removeprefix(f"{prefix}-")
        name = f"e{numbers[int(name[1:])]}" if name[1:].isdigit() and name[0] == "e" else name
        lines[name] = {what: line[what] for what in ("pos", "lp") if what in line}
        ways.append(Spline.of(line["pos"]).sampled())
    corners = [corner for area in areas.values() for corner in ((area.left, area.low), (area.right, area.high))]
    column = Column(Area.around([*chain.from_iterable(ways), *corners]), areas, ways)
    key = float(graph.get("lwidth", 0)) * INCH, float(graph.get("lheight", 0)) * INCH
    return _Part(column, boxes, lines, key)


def _arranged(scene: Scene, parts: Sequence[_Part], wires: _Wires, divided: Division) -> _Arrangement:
    """Return the columns side by side.

    Those of a chain begin at the same height, so that their boxes are in rows; others are centred. The key of the
    figure is below the shortest column.
    """
    gaps = gap_widths(wires.wires, len(parts))
    sizes = [part.column.area for part in parts]
    wide, high = parts[0].key if scene.key else (0.0, 0.0)
    tops = [area.high for area in sizes]
    if divided.tops:
        tops = [part.column.boxes[_circle(top, part)].high for top, part in zip(divided.tops, parts, strict=True)]
    heights = [top - area.low for top, area in zip(tops, sizes, strict=True)]
    keyed = min(range(len(parts)), key=lambda at: (heights[at], -at)) if scene.key else -1
    if scene.key:
        heights[keyed] += KEY_GAP + high
    shifts: list[Spot] = []
    left = 0.0
    for at, (part, top) in enumerate(zip(parts, tops, strict=True)):
        centred = 0.0 if divided.tops else (max(heights) - heights[at]) / 2
        shifts.append((left - part.column.area.left, -top - centred))
        room = max(part.column.area.right - part.column.area.left, wide if at == keyed else 0.0)
        left += room + (gaps[at] if at < len(gaps) else 0.0)
    placed = [part.column.moved(*shift) for part, shift in zip(parts, shifts, strict=True)]
    routes = routed(placed, wires.wires)
    key = None
    if keyed >= 0:
        area = placed[keyed].area
        key = area.left + wide / 2, area.low - KEY_GAP - high / 2
    return _Arrangement(parts, shifts, placed, routes, key)


def _circle(key: str, part: _Part) -> str:
    return f"{key}{SPLIT}" if f"{key}{SPLIT}" in part.boxes else key


def _orders(arrangement: _Arrangement, wires: _Wires) -> dict[int, list[list[str]]]:
    """Return, for each column, the rows in which a box is too far from the gap to which a line leads."""
    pulled: dict[int, dict[str, int]] = {}
    for wire in wires.wires:
        pulled.setdefault(wire.first, {})[wire.source] = 1
        pulled.setdefault(wire.last, {})[wire.target] = -1
    found: dict[int, list[list[str]]] = {}
    for at, pulls in pulled.items():
        boxes = arrangement.columns[at].boxes
        middles: dict[float, list[str]] = {}
        for key, box in boxes.items():
            middles.setdefault(round((box.low + box.high) / 2), []).append(key)
        for row in middles.values():
            row.sort(key=lambda key: boxes[key].left)
            ordered = sorted(row, key=lambda key: pulls.get(key, 0))
            if ordered != row:
                found.setdefault(at, []).append(ordered)
    return found


def _line(corners: Sequence[Spot], shift: float, edge: Edge, *, onwards: bool) -> dict[str, str]:
    """Return a line between columns in Graphviz's words, with its arrow, and the place of its label."""
    path = [*corners] if onwards else [*reversed(corners)]
    shift = shift if onwards else -shift
    at_tail = edge.kind == "gradient" or edge.is_write
    at_head = not at_tail and edge.slot >= 0
    start, end = path[0] if at_tail else None, path[-1] if at_head else None
    if at_tail:
        path[0] = _towards(path[0], path[1], ARROW + (HOOK if edge.hooks else 0.0))
    if at_head:
        path[-1] = _towards(path[-1], path[-2], ARROW)
    longest = max(pairwise(path), key=lambda piece: abs(piece[0][0] - piece[1][0]) + abs(piece[0][1] - piece[1][1]))
    return {"pos": str(Spline(curve(path, shift), start, end)), "lp": place(between(*longest, 0.5))}


def _towards(spot: Spot, other: Spot, by: float) -> Spot:
    length = abs(other[0] - spot[0]) + abs(other[1] - spot[1])  # lines are horizontal or vertical
    return between(spot, other, by / max(length, by))

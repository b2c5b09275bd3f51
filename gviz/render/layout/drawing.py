"""From an arranged grid to cells: rows of layers and channels, and the corners of every wire."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from gviz.render.layout import ports
from gviz.render.layout.channels import Net, Path, route
from gviz.render.layout.grid import Grid
from gviz.render.layout.model import Point, Wire


class Line(NamedTuple):
    """A line through one channel: from an item to the `end` column, into box `target` or a passing point."""

    item: int
    target: int
    end: int


class Channel(NamedTuple):
    """The rows between two layers: the `first` track, how far tracks lie apart, and where all lines end."""

    first: int
    pitch: int
    last: int


@dataclass(frozen=True, slots=True)
class Picture:
    """One component in cells, its first column `left` and its first row 0. `y` is per box."""

    grid: Grid
    y: list[int]
    wires: list[Wire]
    left: int
    width: int
    height: int


def draw(grid: Grid, heights: Sequence[int], spine: Sequence[int], pitch: int) -> Picture:
    """Give every row its place from top to bottom and every line its corners. Tracks lie `pitch` rows apart."""
    spine_items = set(spine)
    y = [0] * grid.boxes
    wires: list[Wire] = []
    entering = _entering(grid)
    top = 0
    for row in grid.rows:
        bottom = top + max([heights[item] for item in row if item < grid.boxes], default=1)
        for item in row:
            if item < grid.boxes:
                y[item] = top if grid.above[item] else bottom - heights[item]
        lines = _lines(grid, row, spine_items)
        paths, count = route([_net(grid, item, lines[item]) for item in lines])
        following = bottom + (count + 1) * pitch if lines else bottom
        channel = Channel(bottom + pitch - 1, pitch, following - 1)
        for path, (item, ends) in zip(paths, lines.items(), strict=True):
            begin = y[item] + heights[item] if item < grid.boxes else top
            wires.extend([_wire(grid, line, path, entering, channel, begin) for line in ends])
        top = following
    return _picture(grid, y, wires, top)


def _entering(grid: Grid) -> dict[tuple[int, int], list[int]]:
    """The numbers of the edges between an item and a box, last argument first, to be taken from the end."""
    entering: dict[tuple[int, int], list[int]] = {}
    for number in range(len(grid.edges) - 1, -1, -1):
        entering.setdefault((grid.feeds[number], grid.edges[number][1]), []).append(number)
    return entering


def _lines(grid: Grid, row: list[int], spine: set[int]) -> dict[int, list[Line]]:
    """The lines that leave each item of a row; where they arrive is decided here, box by box."""
    tops = {ports.start(grid, item): grid.net[item] for item in row if grid.below[item]}
    lines: dict[int, list[Line]] = {item: [] for item in row if grid.below[item]}
    below: dict[int, None] = {other: None for item in lines for other in grid.below[item]}
    for other in below:
        if other >= grid.boxes:
            lines[grid.above[other][0]].append(Line(grid.above[other][0], other, grid.x[other]))
            continue
        for feeder, column in zip(grid.above[other], ports.ends(grid, other, spine, tops), strict=True):
            lines[feeder].append(Line(feeder, other, column))
    return lines


def _net(grid: Grid, item: int, lines: list[Line]) -> Net:
    return Net(ports.start(grid, item), tuple([line.end for line in lines]))


def _wire(
    grid: Grid, line: Line, path: Path, entering: dict[tuple[int, int], list[int]], channel: Channel, begin: int
) -> Wire:
    """The wire of a line that begins in row `begin`."""
    if line.target < grid.boxes:
        number = entering[line.item, line.target].pop()
        first, end = number, number + 1
    else:
        first, end = grid.carried[line.target]
    points = _points((ports.start(grid, line.item), begin), (line.end, channel.last), path, channel)
    return Wire(grid.net[line.item], points, first, end, line.target < grid.boxes)


def _points(start: Point, end: Point, path: Path, channel: Channel) -> tuple[Point, ...]:
    if path.row < 0 or (path.first < 0 and start[0] == end[0]):
        return (start, end)
    row = channel.first + path.row * channel.pitch
    if path.first < 0:
        return (start, (start[0], row), (end[0], row), end)
    first = channel.first + path.first * channel.pitch
    return (start, (start[0], first), (path.turn, first), (path.turn, row), (end[0], row), end)


def _picture(grid: Grid, y: list[int], wires: list[Wire], height: int) -> Picture:
    """The picture with its extent: doglegs may reach beyond the boxes."""
    turns = [x for wire in wires if len(wire.points) > 4 for x, _ in wire.points]
    left = min([*grid.x, *turns])
    right = max([x + width for x, width in zip(grid.x, grid.width, strict=True)] + [x + 1 for x in turns])
    return Picture(grid, y, wires, left, right - left, height)

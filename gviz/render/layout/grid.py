"""The layered graph while it is being arranged: boxes, and the points where long lines pass a layer."""

from __future__ import annotations

from dataclasses import dataclass, field

from gviz.render.layout.layers import Links


@dataclass(slots=True)
class Grid:
    """Items are numbers: boxes first, then one passing point per net and layer (a net is all lines of one box).

    `above` and `below` list the neighbours of an item, one entry per line; `slant` says for each entry of `below`
    which side of the user the line belongs to, by argument order. `edges` are (source, target, slot), those of a
    source together and by layer of the target, so that a passing point carries all from one on.
    """

    boxes: int
    layer: list[int]
    width: list[int]
    edges: list[tuple[int, int, int]]
    above: Links = field(default_factory=list)
    below: Links = field(default_factory=list)
    slant: list[list[float]] = field(default_factory=list)
    rows: Links = field(default_factory=list)
    net: list[int] = field(default_factory=list)
    feeds: list[int] = field(default_factory=list)
    carried: list[tuple[int, int]] = field(default_factory=list)
    x: list[int] = field(default_factory=list)


def build(order: list[int], layer: list[int], width: list[int], edges: list[tuple[int, int, int]]) -> Grid:
    """The grid of some boxes, with rows in topological order. Edges that do not lead downwards are left out."""
    down = [edge for edge in edges if layer[edge[0]] < layer[edge[1]]]
    down.sort(key=lambda edge: (edge[0], layer[edge[1]], edge[1], edge[2]))
    count = len(layer)
    grid = Grid(count, list(layer), list(width), down, [[] for _ in layer], [[] for _ in layer], [[] for _ in layer])
    grid.rows = [[] for _ in range(max(layer, default=-1) + 1)]
    grid.net = list(range(count))
    grid.carried = [(0, 0)] * count
    for box in order:
        grid.rows[layer[box]].append(box)
    _add_passing_points(grid)
    _link_boxes(grid)
    return grid


def _add_passing_points(grid: Grid) -> None:
    """Give each net one point in every layer it crosses, and note for each edge which item feeds it."""
    edges, layer = grid.edges, grid.layer
    grid.feeds = [0] * len(edges)
    ends = _net_ends(edges)
    previous, tail = -1, -1
    for number, (source, target, _) in enumerate(edges):
        if source != previous:
            previous = tail = source
        while layer[tail] < layer[target] - 1:
            tail = _passing_point(grid, tail, source, (number, ends[source]))
        grid.feeds[number] = tail


def _net_ends(edges: list[tuple[int, int, int]]) -> dict[int, int]:
    return {edge[0]: number + 1 for number, edge in enumerate(edges)}


def _passing_point(grid: Grid, tail: int, source: int, carried: tuple[int, int]) -> int:
    point = len(grid.layer)
    grid.layer.append(grid.layer[tail] + 1)
    grid.width.append(1)
    grid.net.append(source)
    grid.carried.append(carried)
    grid.above.append([tail])
    grid.below.append([])
    grid.slant.append([])
    grid.below[tail].append(point)
    grid.slant[tail].append(0.0)
    grid.rows[grid.layer[point]].append(point)
    return point


def _link_boxes(grid: Grid) -> None:
    entering: Links = [[] for _ in range(grid.boxes)]
    for number, edge in enumerate(grid.edges):
        entering[edge[1]].append(number)
    for box, numbers in enumerate(entering):
        numbers.sort(key=lambda number: grid.edges[number][2])
        for rank, number in enumerate(numbers):
            feeder = grid.feeds[number]
            grid.above[box].append(feeder)
            grid.below[feeder].append(box)
            grid.slant[feeder].append(0.6 * ((rank + 0.5) / len(numbers) - 0.5))

"""The layered graph during the layout, and the order of the items within each layer.

The idea (steps 2 and 3 of Sugiyama): a line that spans several layers gets a point in each layer that it passes, so
that all lines lead from one layer to the next. Then each item moves to the median of its neighbours in the layer above,
and in the layer below, in sweeps down and up, until nothing changes. For example, with ``a b`` above ``c d``, and lines
``a-d`` and ``b-c``, the first sweep changes the lower row to ``d c``, and no lines cross.

Limits: medians are a heuristic and do not guarantee the fewest crossings. The search stops after `SWEEPS` sweeps.
Argument order is kept where possible: `slant` is the side of its user on which a line arrives.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from operator import itemgetter

from gviz.render.layout.layers import Adjacency


@dataclass(slots=True)
class Grid:
    """The layered graph. Items are numbers: boxes first, then one passing point per net and layer.

    A net is all lines of one box. `above` and `below` list the neighbours of an item, one entry per line. `slant` has
    the side of the user, by argument order, for each entry of `below`. `edges` are (source, target, slot). The edges of
    one source are together, ordered by the target's layer: a passing point feeds all edges from one index to the end.
    """

    boxes: int
    layer: list[int]
    width: list[int]
    edges: list[tuple[int, int, int]]
    above: Adjacency = field(default_factory=list)
    below: Adjacency = field(default_factory=list)
    slant: list[list[float]] = field(default_factory=list)
    rows: list[list[int]] = field(default_factory=list)
    net: list[int] = field(default_factory=list)
    feeds: list[int] = field(default_factory=list)
    carried: list[tuple[int, int]] = field(default_factory=list)
    x: list[int] = field(default_factory=list)


def build(order: list[int], layer: list[int], width: list[int], edges: list[tuple[int, int, int]]) -> Grid:
    """Return the grid of some boxes, with rows in topological order. Edges that do not lead downwards are left out."""
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
    """Add one point per net in every layer that it crosses, and record the item that feeds each edge."""
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
    entering: list[list[int]] = [[] for _ in range(grid.boxes)]
    for number, edge in enumerate(grid.edges):
        entering[edge[1]].append(number)
    for box, numbers in enumerate(entering):
        numbers.sort(key=lambda number: grid.edges[number][2])
        for rank, number in enumerate(numbers):
            feeder = grid.feeds[number]
            grid.above[box].append(feeder)
            grid.below[feeder].append(box)
            grid.slant[feeder].append(0.6 * ((rank + 0.5) / len(numbers) - 0.5))


SWEEPS = 8


def arrange(grid: Grid) -> None:
    """Reorder the rows of the grid so that few lines cross."""
    position = [0.0] * len(grid.layer)
    for row in grid.rows:
        for place, item in enumerate(row):
            position[item] = place
    wide = [row for row in grid.rows if len(row) > 1]
    for _ in range(SWEEPS):
        changed = _sweep(wide, position, lambda item: _upper(grid, position, item))
        changed |= _sweep(wide[::-1], position, lambda item: _lower(grid, position, item))
        if not changed:
            return


def _sweep(rows: list[list[int]], position: list[float], wish: Callable[[int], float]) -> bool:
    changed = False
    for row in rows:
        wishes = sorted([(wish(item), place, item) for place, item in enumerate(row)], key=itemgetter(0, 1))
        for place, (_, before, item) in enumerate(wishes):
            if place != before:
                changed = True
                row[place] = item
                position[item] = place
    return changed


def _upper(grid: Grid, position: list[float], item: int) -> float:
    above = grid.above[item]
    if len(above) == 1:
        return position[above[0]]
    return _median(sorted([position[other] for other in above])) if above else position[item]


def _lower(grid: Grid, position: list[float], item: int) -> float:
    below = grid.below[item]
    if len(below) == 1:
        return position[below[0]] + grid.slant[item][0]
    if not below:
        return position[item]
    return _median(sorted([position[other] + slant for other, slant in zip(below, grid.slant[item], strict=True)]))


def _median(values: list[float]) -> float:
    middle = len(values) // 2
    return values[middle] if len(values) % 2 else (values[middle - 1] + values[middle]) / 2

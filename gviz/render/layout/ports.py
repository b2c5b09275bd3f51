"""Where lines meet a box: spread over its top, as straight as possible, never under the start of a foreign line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gviz.render.layout.columns import isotonic
from gviz.render.layout.grid import Grid

SPREAD = 4


def start(grid: Grid, item: int) -> int:
    """The column at which the lines of an item leave it downwards."""
    return grid.x[item] + (grid.width[item] - 1) // 2


def ends(grid: Grid, box: int, spine: set[int], tops: Mapping[int, int]) -> list[int]:
    """The columns at which the lines of ``grid.above[box]`` arrive; `tops` maps columns above to their nets."""
    feeders = grid.above[box]
    left, right = grid.x[box] + 1, grid.x[box] + grid.width[box] - 2
    order = [0] if len(feeders) == 1 else sorted(range(len(feeders)), key=lambda line: start(grid, feeders[line]))
    wishes = [(float(start(grid, feeders[line])), _weight(grid, feeders[line], spine)) for line in order]
    columns = spread(wishes, left, right)
    _avoid(columns, [grid.net[feeders[line]] for line in order], left, right, tops)
    arranged = [0] * len(feeders)
    for line, column in zip(order, columns, strict=True):
        arranged[line] = column
    return arranged


def _weight(grid: Grid, feeder: int, spine: set[int]) -> float:
    if feeder in spine:
        return 1e4
    return 4.0 if feeder < grid.boxes and grid.above[feeder] else 1.0


def spread(wishes: Sequence[tuple[float, float]], left: int, right: int) -> list[int]:
    """Columns from `left` to `right` nearest to the wishes, apart from each other if there is room."""
    if len(wishes) == 1:
        return [_near(wishes[0][0], left, right)]
    last = len(wishes) - 1
    step = min(SPREAD, (right - left) // last)
    bounded = [(float(_near(column, left, right)), weight) for column, weight in wishes]
    columns = isotonic(bounded, [step * rank for rank in range(len(wishes))])
    return [min(max(column, left + step * rank), right - step * (last - rank)) for rank, column in enumerate(columns)]


def _near(column: float, left: int, right: int) -> int:
    """The column itself if it lies over the box, else one near the corner but clear of it."""
    if left <= column <= right:
        return int(column)
    clear = min(1, (right - left) // 2)
    return left + clear if column < left else right - clear


def _avoid(columns: list[int], nets: list[int], left: int, right: int, tops: Mapping[int, int]) -> None:
    """Shift columns that lie under the start of another net to a free neighbour, where there is one."""
    for rank, column in enumerate(columns):
        if tops.get(column, nets[rank]) == nets[rank]:
            continue
        low = columns[rank - 1] + 1 if rank else left
        high = columns[rank + 1] - 1 if rank + 1 < len(columns) else right
        free = [other for other in range(low, high + 1) if tops.get(other, nets[rank]) == nets[rank]]
        if free:
            columns[rank] = min(free, key=lambda other: abs(other - column))

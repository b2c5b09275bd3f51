"""The column of every item, and the points where lines meet the top of a box.

The idea (step 4 of Sugiyama): each item should be centred under or over its neighbours, in the order of its row. One
row is solved exactly by isotonic regression: items that push each other form a block and share one mean. For example,
two items of width 5 that both want column 10 end up around it, side by side. Rows are solved in sweeps down and up,
with the other rows fixed. The spine, the longest chain of operations, is kept in one column by weight, so that a deep
graph stays as wide as the terminal.

Lines arrive spread over the top of a box, as straight as possible. If there is a free column, they do not arrive under
the start of another net's line.

Limits: single rows are optimal, the whole layout is not. The search stops after `SWEEPS` sweeps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from gviz.render.layout.grid import Grid

SWEEPS = 8
GAP = 2
FIXED_WEIGHT = 1e4
Wish = tuple[float, float]


class Pull(NamedTuple):
    """The columns that attract an item: its neighbours, each with a weight and the shift that aligns the centres.

    An item without neighbours does not move; an item that is `pinned` moves to that column.
    """

    item: int
    neighbours: tuple[tuple[int, float, int], ...]
    total: float
    strength: float
    pinned: int | None


class Rank(NamedTuple):
    """A row in one direction. `offsets` are the distances of packed items from the first item."""

    pulls: tuple[Pull, ...]
    offsets: list[int]


def set_columns(grid: Grid, spine: list[int]) -> None:
    """Set `grid.x`, the left column of every item (negative columns occur)."""
    centre = [(width - 1) // 2 for width in grid.width]
    pinned = set(spine)
    offsets = [_offsets(grid, row) for row in grid.rows]
    downward, upward = (
        [
            Rank(tuple([_pull(grid, item, towards[item], centre, pinned) for item in row]), packed)
            for row, packed in zip(grid.rows, offsets, strict=True)
        ]
        for towards in (grid.above, grid.below)
    )
    grid.x = [0] * len(grid.layer)
    for row, packed in zip(grid.rows, offsets, strict=True):
        for item, offset in zip(row, packed, strict=True):
            grid.x[item] = offset
    for _ in range(SWEEPS):
        before = grid.x.copy()
        for row_of_pulls in downward:
            _place(grid.x, row_of_pulls)
        for row_of_pulls in reversed(upward):
            _place(grid.x, row_of_pulls)
        if grid.x == before:
            return


def _offsets(grid: Grid, row: list[int]) -> list[int]:
    offsets = [0]
    width = grid.width
    for item, following in pairwise(row):
        gap = 1 if width[item] == 1 == width[following] else GAP
        offsets.append(offsets[-1] + width[item] + gap)
    return offsets


def _pull(grid: Grid, item: int, towards: list[int], centre: list[int], pinned: set[int]) -> Pull:
    """Return the pull of an item. Chains of operations stay straight; leaves and passing points give way."""
    if item in pinned:
        return Pull(item, (), 0.0, FIXED_WEIGHT, -centre[item])
    inner = item < grid.boxes and bool(grid.above[item])
    neighbours = tuple(
        [(other, _weight(grid, other) if inner else 1.0, centre[other] - centre[item]) for other in towards]
    )
    strength = 0.5 if item >= grid.boxes else 8.0 if inner else 0.02
    total = sum([weight for _, weight, _ in neighbours])
    return Pull(item, neighbours, total, strength if neighbours else 0.01, None)


def _weight(grid: Grid, other: int) -> float:
    if other >= grid.boxes:
        return 0.1
    return 1.0 if grid.above[other] else 0.01


def _place(x: list[int], row: Rank) -> None:
    """Place one row, with its neighbours in the other rows fixed."""
    wishes = [(_wish(x, pull), pull.strength) for pull in row.pulls]
    if len(wishes) == 1:
        x[row.pulls[0].item] = round(wishes[0][0])
        return
    for pull, column in zip(row.pulls, isotonic(wishes, row.offsets), strict=True):
        x[pull.item] = column


def _wish(x: list[int], pull: Pull) -> float:
    """Return the ideal column of an item."""
    neighbours = pull.neighbours
    if len(neighbours) == 1:
        other, _, shift = neighbours[0]
        return x[other] + shift
    if not neighbours:
        return x[pull.item] if pull.pinned is None else pull.pinned
    return sum([weight * (x[other] + shift) for other, weight, shift in neighbours]) / pull.total


def isotonic(wishes: list[Wish], offsets: list[int]) -> list[int]:
    """Return the columns nearest to the (column, weight) wishes with items at least `offsets` apart."""
    blocks: list[tuple[int, float, float]] = []  # number of items, their weight, their weighted sum
    for (column, weight), offset in zip(wishes, offsets, strict=True):
        count, total = 1, weight * (column - offset)
        while blocks and blocks[-1][2] * weight >= total * blocks[-1][1]:
            fellows, more, sum_of_theirs = blocks.pop()
            count, weight, total = count + fellows, weight + more, total + sum_of_theirs
        blocks.append((count, weight, total))
    columns: list[int] = []
    for count, weight, total in blocks:
        start = round(total / weight)
        columns.extend([start + offset for offset in offsets[len(columns) : len(columns) + count]])
    return columns


SPREAD = 4


def line_start(grid: Grid, item: int) -> int:
    """Return the column at which the lines of an item leave it downwards."""
    return grid.x[item] + (grid.width[item] - 1) // 2


def line_ends(grid: Grid, box: int, spine: set[int], tops: Mapping[int, int]) -> list[int]:
    """Return the columns at which the lines of ``grid.above[box]`` arrive; `tops` maps columns above to their nets."""
    feeders = grid.above[box]
    left, right = grid.x[box] + 1, grid.x[box] + grid.width[box] - 2
    order = [0] if len(feeders) == 1 else sorted(range(len(feeders)), key=lambda line: line_start(grid, feeders[line]))
    wishes = [(float(line_start(grid, feeders[line])), _line_weight(grid, feeders[line], spine)) for line in order]
    columns = spread(wishes, left, right)
    _avoid(columns, [grid.net[feeders[line]] for line in order], left, right, tops)
    arranged = [0] * len(feeders)
    for line, column in zip(order, columns, strict=True):
        arranged[line] = column
    return arranged


def _line_weight(grid: Grid, feeder: int, spine: set[int]) -> float:
    if feeder in spine:
        return 1e4
    return 4.0 if feeder < grid.boxes and grid.above[feeder] else 1.0


def spread(wishes: Sequence[tuple[float, float]], left: int, right: int) -> list[int]:
    """Return columns from `left` to `right` nearest to the wishes, with gaps if there is room."""
    if len(wishes) == 1:
        return [_near(wishes[0][0], left, right)]
    last = len(wishes) - 1
    step = min(SPREAD, (right - left) // last)
    bounded = [(float(_near(column, left, right)), weight) for column, weight in wishes]
    columns = isotonic(bounded, [step * rank for rank in range(len(wishes))])
    return [min(max(column, left + step * rank), right - step * (last - rank)) for rank, column in enumerate(columns)]


def _near(column: float, left: int, right: int) -> int:
    """Return the column itself if it is over the box, or else a column near the corner, clear of it."""
    if left <= column <= right:
        return int(column)
    clear = min(1, (right - left) // 2)
    return left + clear if column < left else right - clear


def _avoid(columns: list[int], nets: list[int], left: int, right: int, tops: Mapping[int, int]) -> None:
    """Shift columns that are under the start of another net to a free neighbour, if there is one."""
    for rank, column in enumerate(columns):
        if tops.get(column, nets[rank]) == nets[rank]:
            continue
        low = columns[rank - 1] + 1 if rank else left
        high = columns[rank + 1] - 1 if rank + 1 < len(columns) else right
        free = [other for other in range(low, high + 1) if tops.get(other, nets[rank]) == nets[rank]]
        if free:
            columns[rank] = min(free, key=lambda other: abs(other - column))

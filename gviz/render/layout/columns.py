"""The column of every item: each wants to stand under or over its neighbours, in the order of its row.

One row is solved exactly by isotonic regression (blocks of items that push each other share one mean). The spine, the
longest chain of operations, is held in one column by weight, so that a deep graph stays as wide as the terminal.
"""

from __future__ import annotations

from itertools import pairwise

from gviz.render.layout.grid import Grid
from gviz.render.layout.layers import Links

SWEEPS = 8
GAP = 2
HELD = 1e4
Wish = tuple[float, float]


def set_columns(grid: Grid, spine: list[int]) -> None:
    """Set `grid.x`, the left column of every item (negative columns occur)."""
    centre = [(width - 1) // 2 for width in grid.width]
    grid.x = _packed(grid)
    pinned = set(spine)
    for _ in range(SWEEPS):
        changed = _place_rows(grid, grid.rows, grid.above, centre, pinned)
        changed |= _place_rows(grid, grid.rows[::-1], grid.below, centre, pinned)
        if not changed:
            return


def _packed(grid: Grid) -> list[int]:
    x = [0] * len(grid.layer)
    for row in grid.rows:
        for item, offset in zip(row, _offsets(grid, row), strict=True):
            x[item] = offset
    return x


def _offsets(grid: Grid, row: list[int]) -> list[int]:
    """How far right of the first item each item of the row stands when they are packed."""
    offsets = [0]
    width = grid.width
    for item, following in pairwise(row):
        gap = 1 if width[item] == 1 == width[following] else GAP
        offsets.append(offsets[-1] + width[item] + gap)
    return offsets


def _place_rows(grid: Grid, rows: Links, towards: Links, centre: list[int], pinned: set[int]) -> bool:
    changed = False
    for row in rows:
        wishes = [_wish(grid, item, towards[item], centre, pinned) for item in row]
        columns = isotonic(wishes, _offsets(grid, row)) if len(row) > 1 else [round(wishes[0][0])]
        for item, x in zip(row, columns, strict=True):
            if grid.x[item] != x:
                grid.x[item] = x
                changed = True
    return changed


def _wish(grid: Grid, item: int, neighbours: list[int], centre: list[int], pinned: set[int]) -> Wish:
    """The column an item would like, and how strongly. Chains of operations stay straight before all others."""
    if item in pinned:
        return -centre[item], HELD
    if not neighbours:
        return grid.x[item], 0.01
    total = weights = 0.0
    inner = item < grid.boxes and bool(grid.above[item])
    for other in neighbours:
        weight = _pull(grid, other) if inner else 1.0
        weights += weight
        total += weight * (grid.x[other] + centre[other])
    return total / weights - centre[item], 0.5 if item >= grid.boxes else 8.0 if inner else 0.02


def _pull(grid: Grid, other: int) -> float:
    if other >= grid.boxes:
        return 0.1
    return 1.0 if grid.above[other] else 0.01


def isotonic(wishes: list[Wish], offsets: list[int]) -> list[int]:
    """The columns nearest to the (column, weight) wishes with items at least as far apart as their `offsets`."""
    blocks: list[tuple[int, float, float]] = []  # how many items, their weight, their weighted sum
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

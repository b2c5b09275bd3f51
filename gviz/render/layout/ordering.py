"""The order of the items within each layer: sweeps of medians, down and up, until nothing changes."""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter

from gviz.render.layout.grid import Grid

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

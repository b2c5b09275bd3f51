"""Connected components, and their arrangement on one canvas: on shelves, in the order of their first box."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gviz.render.layout.layers import Adjacency

DEFAULT_WIDTH = 100
"""The columns of the canvas if the width of the terminal is unknown."""
BETWEEN = 3
"""The columns between two components."""


def components(inputs: Adjacency, outputs: Adjacency) -> list[list[int]]:
    """Return the connected components, each a sorted list of boxes, ordered by first box."""
    groups: list[list[int]] = []
    seen = bytearray(len(inputs))
    for first in range(len(inputs)):
        if seen[first]:
            continue
        seen[first] = 1
        members = [first]
        for box in members:  # the loop appends to it
            for other in inputs[box] + outputs[box]:
                if not seen[other]:
                    seen[other] = 1
                    members.append(other)
        members.sort()
        groups.append(members)
    return groups


def shelve(sizes: Sequence[tuple[int, int]], max_width: int, gap: int = BETWEEN) -> list[tuple[int, int]]:
    """Return the upper left corner of each picture: from left to right, with a new shelf when one is full.

    A shelf has `max_width` columns, or as many as the widest picture.
    """
    corners: list[tuple[int, int]] = []
    limit = max([max_width, *[width for width, _ in sizes]])
    x = y = shelf = 0
    for width, height in sizes:
        if x and x + width > limit:
            x, y, shelf = 0, y + shelf + 1, 0
        corners.append((x, y))
        x += width + gap
        shelf = max(shelf, height)
    return corners


def extent(corners: Iterable[tuple[int, int]], sizes: Iterable[tuple[int, int]]) -> tuple[int, int]:
    """Return the width and height of the canvas that contains all pictures."""
    ends = [(x + width, y + height) for (x, y), (width, height) in zip(corners, sizes, strict=True)]
    return max([x for x, _ in ends], default=0), max([y for _, y in ends], default=0)

"""The input and the output of a layout: plain data in whole terminal cells."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

Key = Hashable
Point = tuple[int, int]


class Box(NamedTuple):
    """A box to be placed: its size in cells, borders included."""

    key: Key
    width: int
    height: int

    @classmethod
    def around(cls, key: Key, width: int, height: int) -> Box:
        """Return the box of a text of this many cells and rows. The first row is in the upper border."""
        return cls(key, width + 4, height + 1)


class Edge(NamedTuple):
    """A line from the bottom of `source` to the top of `target`, which uses it as argument number `slot`."""

    source: Key
    target: Key
    slot: int = 0


class PlacedBox(NamedTuple):
    """The place of a box. `port` is the column (or, left to right, the row) at which its line leaves."""

    key: Key
    x: int
    y: int
    width: int
    height: int
    port: int

    @property
    def right(self) -> int:
        """The first column after the box."""
        return self.x + self.width

    @property
    def bottom(self) -> int:
        """The first row below the box."""
        return self.y + self.height

    def holds(self, x: int, y: int) -> bool:
        """Return whether the box covers a cell."""
        return self.x <= x < self.right and self.y <= y < self.bottom


class Wire(NamedTuple):
    """A piece of line from one layer to the next, as the corners it runs through.

    Wires of one `net` (all lines that leave one box) may share cells, others only cross. ``Layout.edges[first:last]``
    run over the piece. `enters` is true if it ends at a box: its last cell has the arrow head.
    """

    net: int
    points: tuple[Point, ...]
    first: int
    last: int
    enters: bool


@dataclass(frozen=True, slots=True)
class Layout:
    """Coordinates of everything that is drawn. They depend only on the structure, so no step ever moves a box.

    `edges` are the input edges in drawing order, grouped by source. An edge against the order of the graph has no wire.
    """

    places: Mapping[Key, PlacedBox]
    edges: tuple[Edge, ...]
    wires: tuple[Wire, ...]
    width: int
    height: int
    rightward: bool = False

    def linked(self, key: Key) -> Iterator[Key]:
        """Yield the boxes that a line connects with this one."""
        for edge in self.edges:
            if key in (edge.source, edge.target):
                yield edge.target if key == edge.source else edge.source

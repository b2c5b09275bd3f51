"""Which row of the tape is of which node: one that has several outputs has a row for each."""

from __future__ import annotations

from collections.abc import Iterator

from gviz.trace.timeline import Timeline


class TapeRows:
    """The rows of a recording as it is now, from 0. A row costs no memory, but for nodes with several outputs."""

    def __init__(self, timeline: Timeline) -> None:
        self.nodes = timeline.nodes
        self._places, outputs = self.nodes.with_several_outputs
        self._more = outputs - 1
        self._before = self._more.cumsum() - self._more
        self._firsts = self._places + self._before

    def __len__(self) -> int:
        return len(self.nodes) + int(self._more.sum())

    def at(self, row: int) -> tuple[int, int]:
        """The place of the node among all, and the number of its output, of a row."""
        last = int(self._firsts.searchsorted(row, "right")) - 1
        if last < 0:
            return row, 0
        further, more = row - self._firsts.item(last), self._more.item(last)
        place: int = self._places.item(last)
        return (place, further) if further <= more else (place + further - more, 0)

    def first_of(self, place: int) -> int:
        """The first row of the node at a place."""
        earlier = int(self._places.searchsorted(place))
        return place + int(self._more[:earlier].sum())


def rows_of(timeline: Timeline) -> Iterator[tuple[int, int]]:
    """Every row: the node, and the number of its output."""
    rows = TapeRows(timeline)
    for row in range(len(rows)):
        place, output_nr = rows.at(row)
        yield rows.nodes[place], output_nr

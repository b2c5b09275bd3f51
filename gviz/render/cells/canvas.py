"""A laid-out graph as lines of text, for any visible part of it.

Bands of rows are rasterized when they become visible, and are then cached. Faces of boxes change from moment to moment;
they are written into each line when it is requested. The cost depends on the visible part, never on the size of the
graph.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from rich.cells import cell_len, set_cell_size

from gviz.render.cells.box import EDGE_STATES, EDGE_STYLES, Appearance, BoxFrame, Face, Line, Run, box_lines
from gviz.render.cells.raster import GRADIENT, Band, paint
from gviz.render.layout import Edge, Key, Layout, PlacedBox, Wire
from gviz.values.value import Array

BAND = 16
KEPT_BANDS = 256
PLAIN = EDGE_STATES.index("plain")
NO_FACE = Face("")
SAME_STYLE = np.array([EDGE_STYLES.index(style) for style in EDGE_STYLES], np.uint8)  # states that look alike


class Canvas:
    """The drawing of one layout. `look` is the moment shown; assign another look to move in time."""

    def __init__(self, layout: Layout, look: Appearance | None = None, *, ascii: bool = False) -> None:
        self.layout = layout
        self.ascii = ascii
        self._look = look or Appearance()
        self._wires: dict[int, list[Wire]] = {}
        self._places: dict[int, list[PlacedBox]] = {}
        self._leaving: dict[Key, tuple[int, int]] = {}
        self._bands: dict[int, tuple[tuple[int, ...], Band]] = {}
        self._checked: set[int] = set()
        self._index()

    @property
    def look(self) -> Appearance:
        """The moment that is drawn."""
        return self._look

    @look.setter
    def look(self, look: Appearance) -> None:
        self._look = look
        self._checked.clear()

    def line(self, y: int, left: int = 0, width: int | None = None) -> Line:
        """Return row `y` of the drawing from column `left`, exactly `width` cells wide."""
        layout = self.layout
        width = layout.width - left if width is None else width
        if not 0 <= y < layout.height or width <= 0:
            return ((" " * max(width, 0), ""),)
        band, row = self._band(y // BAND), y % BAND
        runs: list[Run] = []
        end = left + width
        x = left
        for place in self._places.get(y // BAND, ()):
            if not place.y <= y < place.bottom or place.right <= left or place.x >= end:
                continue
            _add_cells(runs, band, row, x, place.x)
            runs.extend(_cropped(self._box_line(place, y - place.y), left - place.x, end - place.x))
            x = place.right
        _add_cells(runs, band, row, x, end)
        return tuple(runs)

    def text(self) -> str:
        """Return the whole drawing as plain text."""
        lines = ["".join([text for text, _ in self.line(y)]).rstrip() for y in range(self.layout.height)]
        return "\n".join(lines)

    def visible(self, rows: range) -> tuple[list[PlacedBox], list[Edge]]:
        """Return the boxes and the edges that may be visible in some rows."""
        bands = range(rows.start // BAND, (rows.stop - 1) // BAND + 1) if rows else range(0)
        places = {place.key: place for band in bands for place in self._places.get(band, ())}
        spans = {(wire.first, wire.last) for band in bands for wire in self._wires.get(band, ())}
        spans |= {self._leaving[key] for key in places if key in self._leaving}
        numbers = sorted({number for first, last in spans for number in range(first, last)})
        return list(places.values()), [self.layout.edges[number] for number in numbers]

    def key_at(self, x: int, y: int) -> Key | None:
        """Return the box that covers a cell."""
        return next((place.key for place in self._places.get(y // BAND, ()) if place.holds(x, y)), None)

    def _index(self) -> None:
        for wire in self.layout.wires:
            rows = [y for _, y in wire.points]
            for band in range(min(rows) // BAND, max(rows) // BAND + 1):
                self._wires.setdefault(band, []).append(wire)
        for place in self.layout.places.values():
            for band in range(place.y // BAND, (place.bottom - 1) // BAND + 1):
                self._places.setdefault(band, []).append(place)
        for places in self._places.values():
            places.sort(key=lambda place: (place.x, place.y))
        for number, edge in enumerate(self.layout.edges):
            first = self._leaving.get(edge.source, (number, 0))[0]
            self._leaving[edge.source] = (first, number + 1)

    def _band(self, number: int) -> Band:
        known = self._bands.get(number)
        if known is not None and number in self._checked:
            return known[1]
        wires = self._wires.get(number, [])
        states = tuple([self._state(self.layout.edges[wire.first : wire.last]) for wire in wires])
        self._checked.add(number)
        if known is None or known[0] != states:
            if len(self._bands) >= KEPT_BANDS:
                self._bands.pop(next(iter(self._bands)))
            rows = range(number * BAND, min((number + 1) * BAND, self.layout.height))
            rightward = self.layout.rightward
            band = paint(wires, states, rows, self.layout.width, rightward=rightward, ascii=self.ascii)
            known = self._bands[number] = (states, band)
        return known[1]

    def _state(self, edges: tuple[Edge, ...]) -> int:
        """Return the most important state among edges."""
        known = self._look.edges
        return max([EDGE_STATES.index(known[edge]) if edge in known else PLAIN for edge in edges], default=PLAIN)

    def _box_line(self, place: PlacedBox, row: int) -> Line:
        face = self._look.faces.get(place.key, NO_FACE)
        first, last = self._leaving.get(place.key, (0, 0))
        edges = self.layout.edges[first:last]
        offset = place.port - (place.y if self.layout.rightward else place.x)
        port = offset if edges else None
        receives = bool(edges) and self._state(edges) >= GRADIENT
        selected = place.key in self._look.selected
        frame = BoxFrame(place.width, place.height, port, receives, selected, self.layout.rightward, self.ascii)
        return box_lines(face, frame)[row]


def _add_cells(runs: list[Run], band: Band, row: int, start: int, stop: int) -> None:
    """Add the cells between boxes, with blanks beyond the raster."""
    width = band.characters.shape[1]
    inside = min(stop, width)
    if start < inside:
        runs.extend(_runs(band.characters[row, start:inside], band.states[row, start:inside]))
    if max(start, width) < stop:
        runs.append((" " * (stop - max(start, width)), ""))


def _runs(characters: Array, states: Array) -> Iterator[Run]:
    text = characters.astype("<u4").tobytes().decode("utf-32-le")
    if text.isspace():
        yield text, ""
        return
    styles = SAME_STYLE[states]
    start = 0
    for stop in [*(np.flatnonzero(np.diff(styles)) + 1).tolist(), len(text)]:
        yield text[start:stop], EDGE_STYLES[styles[start]]
        start = stop


def _cropped(line: Line, left: int, right: int) -> Line:
    """Return the cells from `left` to `right` of a line; half of a wide character becomes a blank."""
    if left <= 0 and right >= sum([cell_len(text) for text, _ in line]):
        return line
    runs: list[Run] = []
    x = 0
    for text, style in line:
        size = cell_len(text)
        start, stop = max(left - x, 0), min(right - x, size)
        if start < stop:
            runs.append((_cells(text, start, stop), style))
        x += size
    return tuple(runs)


def _cells(text: str, start: int, stop: int) -> str:
    """Return the cells from `start` to `stop` of a text."""
    head = set_cell_size(text, start)
    kept = text[len(head) :] if text.startswith(head) else " " + text[len(head.rstrip(" ")) + 1 :]
    return set_cell_size(kept, stop - start)

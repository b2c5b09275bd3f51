"""The drawing of a graph as the rows of a widget: only what is in view is painted, and of that what looks different."""

from __future__ import annotations

from typing import get_args

from rich.style import Style
from textual import events
from textual.geometry import Region
from textual.strip import Strip

from gviz.render.boxes.room import Role
from gviz.render.cells.moments import Moments
from gviz.render.layout import PlacedBox
from gviz.tui.widgets.panned import Panned
from gviz.tui.widgets.styled import Styled

STYLES = (
    "title", "value", "grad", "sum", "muted", "error", "current", "selected", "edge", "gradient", *get_args(Role),
)  # fmt: skip
AHEAD = 8
"""So many rows around those in view are dressed with them."""

KEPT_ROWS = 2000


class Painted(Styled, Panned):
    """Paints `drawing`, in the middle where it is narrower than the widget; without one it says `said`."""

    DEFAULT_CSS = """
    Painted {
        width: 1fr;
        height: 1fr;
        overflow: auto;
    }
    """
    drawing: Moments | None = None
    said = ""

    def __init__(self, *, id: str, classes: str) -> None:
        super().__init__(id=id, classes=classes)
        self.dressed = range(0)
        self._rows: dict[int, Strip] = {}
        self._rows_left = 0

    def dress(self) -> None:
        """Compute how everything in view looks now."""
        raise NotImplementedError

    def forget_rows(self) -> None:
        """What was painted is no longer there."""
        self._rows.clear()

    def forget_colours(self) -> None:
        """Draw everything anew."""
        super().forget_colours()
        self.forget_rows()

    def render_line(self, y: int) -> Strip:
        """One visible row."""
        left, top = map(int, self.scroll_offset)
        width, row = self.size.width, y + top
        if left != self._rows_left or len(self._rows) > KEPT_ROWS:
            self._rows.clear()
            self._rows_left = left
        strip = self._rows.get(row)
        if strip is None or strip.cell_length != width:
            strip = self._rows[row] = self._painted(row, left, width)
        return strip

    def redraw(self) -> None:
        """Ask for those visible rows to be painted that look different from what was painted last, of any drawing."""
        (left, top), (width, height) = map(int, self.scroll_offset), self.size
        fresh = {row: self._painted(row, left, width) for row in range(top, top + height)}
        for row, strip in fresh.items():
            if self._rows.get(row) != strip:
                self.refresh(Region(0, row - top, width, 1))
        self._rows, self._rows_left = fresh, left

    def pointed(self, event: events.MouseEvent) -> int:
        """The node whose box is under the mouse, or 0."""
        offset = event.get_content_offset(self)
        if offset is None or self.drawing is None:
            return 0
        x, y = offset + self.scroll_offset
        return self.drawing.node_at(int(x) - self.margin, int(y))

    @property
    def margin(self) -> int:
        """The blank columns left of a graph that is narrower than the panel."""
        return self._margin(self.size.width)

    def place(self, node: int) -> PlacedBox | None:
        """Where a node's own box stands (its first chip if the picture has only chips of it)."""
        if self.drawing is None:
            return None
        keys = sorted(self.drawing.boxes(node), key=lambda key: len(str(key)))
        return self.drawing.canvas.layout.places[keys[0]] if keys else None

    def _margin(self, width: int) -> int:
        return 0 if self.drawing is None else max((width - self.drawing.canvas.layout.width) // 2, 0)

    def _painted(self, row: int, left: int, width: int) -> Strip:
        """A row of the drawing as it looks now from a column on, blank below its last one."""
        drawing = self.drawing
        if drawing is None or row >= drawing.canvas.layout.height:
            return self.cut_strip((("" if row else self.said, "muted"),), 0, width)
        if row not in self.dressed:
            self.dress()
        margin = self._margin(width)
        line = drawing.canvas.line(row, left, width - margin)
        return self.cut_strip(((" " * margin, ""), *line) if margin else line, 0, width)

    def look(self, name: str) -> Style:
        """The colours of a drawing have names of their own."""
        return self.app.get_component_styles(f"graph--{name}").partial_rich_style

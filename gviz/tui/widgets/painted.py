"""The drawing of a graph as the rows of a widget: only what is in view is painted, and of that what looks different."""

from __future__ import annotations

from typing import ClassVar, get_args

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Region
from textual.strip import Strip

from gviz.render.boxes.room import Role
from gviz.render.cells.moments import Moments
from gviz.render.layout import PlacedBox
from gviz.tui.widgets.panned import Panned
from gviz.tui.widgets.true_colours import TrueColours

STYLES = (
    "title", "value", "grad", "sum", "muted", "error", "current", "selected", "edge", "gradient", *get_args(Role),
)  # fmt: skip
AHEAD = 8
"""So many rows around those in view are dressed with them."""

KEPT_STRIPS = 2000


class Painted(Panned, TrueColours):
    """Paints `drawing`, in the middle where it is narrower than the widget; without one it says `said`."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"graph--{style}" for style in STYLES}
    DEFAULT_CSS = """
    Painted {
        & .graph--title, & .graph--root { text-style: bold; }
        & .graph--value { color: $gviz-value; }
        & .graph--grad, & .graph--gradient { color: $gviz-grad; }
        & .graph--sum { color: $gviz-sum; text-style: bold; }
        & .graph--muted, & .graph--constant, & .graph--edge { color: $gviz-muted; }
        & .graph--error { color: $gviz-error; text-style: bold; }
        & .graph--current { color: $gviz-mark; text-style: bold; }
        & .graph--selected { text-style: bold reverse; }
        & .graph--leaf, & .graph--parameter, & .graph--chip { color: $gviz-brand; }
    }
    """
    drawing: Moments | None = None
    said = ""

    def __init__(self, *, id: str, classes: str) -> None:
        super().__init__(id=id, classes=classes)
        self.dressed = range(0)
        self._strips: dict[int, Strip] = {}
        self._strips_left = 0
        self._styles: dict[str, Style] = {}

    def dress(self) -> None:
        """Compute how everything in view looks now."""
        raise NotImplementedError

    def forget_rows(self) -> None:
        """What was painted is no longer there."""
        self._strips.clear()

    def notify_style_update(self) -> None:
        """Other colours: draw everything anew."""
        super().notify_style_update()
        self._styles.clear()
        self.forget_rows()

    def render_line(self, y: int) -> Strip:
        """One visible row."""
        left, top = map(int, self.scroll_offset)
        width, row = self.size.width, y + top
        if left != self._strips_left or len(self._strips) > KEPT_STRIPS:
            self._strips.clear()
            self._strips_left = left
        strip = self._strips.get(row)
        if strip is None or strip.cell_length != width:
            strip = self._strips[row] = self._painted(row, left, width)
        return strip

    def redraw(self) -> None:
        """Ask for those visible rows to be painted that look different from what was painted last, of any drawing."""
        (left, top), (width, height) = map(int, self.scroll_offset), self.size
        fresh = {row: self._painted(row, left, width) for row in range(top, top + height)}
        for row, strip in fresh.items():
            if self._strips.get(row) != strip:
                self.refresh(Region(0, row - top, width, 1))
        self._strips, self._strips_left = fresh, left

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
            said = Strip([Segment("" if row else self.said, self._style("muted"))])
            return said.adjust_cell_length(width, self._style(""))
        if row not in self.dressed:
            self.dress()
        margin = self._margin(width)
        line = drawing.canvas.line(row, left, width - margin)
        segments = [Segment(text, self._style(style)) for text, style in line]
        return Strip([Segment(" " * margin, self._style("")), *segments] if margin else segments, width)

    def _style(self, name: str) -> Style:
        style = self._styles.get(name)
        if style is None:
            component = self.get_component_rich_style(f"graph--{name}", partial=True) if name else Style.null()
            style = self._styles[name] = self.rich_style + component
        return style

"""How lines of styled text become cells on the screen: the base of every panel."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.content import Content
from textual.geometry import Region, Size, Spacing
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widget import Widget

from gviz.tui.glyphs import UNICODE, Glyphs
from gviz.tui.lines import STYLES, Line, style_and_event
from gviz.tui.messages import Seek

COMPONENTS = frozenset(f"line--{style}" for style in STYLES)


def strip_of(widget: Widget, line: Line, glyphs: Glyphs) -> Strip:
    """A line as cells, in the colours that the theme gives its styles; a linked text carries its event."""
    segments = []
    for text, name in line:
        style_name, event = style_and_event(name)
        style = widget.get_component_rich_style(f"line--{style_name}", partial=True) if style_name else Style.null()
        if event:
            style += Style(meta={"event": event})
        segments.append(Segment(glyphs.text(text), style))
    return Strip(segments)


class Row(Widget):
    """One row of styled text."""

    COMPONENT_CLASSES: ClassVar[set[str]] = set(COMPONENTS)
    glyphs: Glyphs = UNICODE

    def line(self, width: int) -> Line:
        """What the row says at a width."""
        raise NotImplementedError

    def render_line(self, y: int) -> Strip:
        """Draw the row; there is only one."""
        width = self.size.width
        if y:
            return Strip.blank(width, self.rich_style)
        return strip_of(self, self.line(width), self.glyphs).adjust_cell_length(width).crop(0, width)


class Lines(ScrollView, can_focus=True):
    """Many rows of styled text; only the visible ones are drawn.

    A subclass says how many there are (`set_count`) and what row `y` is (`row`).
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = set(COMPONENTS)
    ALLOW_SELECT = False
    glyphs: Glyphs = UNICODE

    def row(self, y: int) -> Line:
        """Row `y`, counted from 0."""
        raise NotImplementedError

    def set_count(self, count: int, width: int = 0) -> None:
        """Say how many rows there are, and how wide the widest is where rows are not made to measure."""
        self.virtual_size = Size(width or self.scrollable_content_region.width, count)
        self.refresh()

    def set_title(self, title: str, *, current: bool = True) -> None:
        """Put plain text, never markup, into the border."""
        self.border_title = Content(self.glyphs.text(title))

    def render_line(self, y: int) -> Strip:
        """Draw one visible row."""
        x, top = self.scroll_offset
        width = self.size.width
        if y + top >= self.virtual_size.height:
            return Strip.blank(width, self.rich_style)
        return strip_of(self, self.row(y + top), self.glyphs).crop_extend(x, x + width, self.rich_style)

    def show_row(self, y: int, *, margin: int = 1) -> None:
        """Scroll as little as needed to see row `y` with some rows around it."""
        region = Region(int(self.scroll_offset.x), y, 1, 1)
        self.scroll_to_region(region, spacing=Spacing(margin, 0, margin, 0), animate=False, force=True, immediate=True)

    def on_click(self, event: events.Click) -> None:
        """Follow a number to the event that made it."""
        target = event.style.meta.get("event")
        if target:
            event.stop()
            self.post_message(Seek(int(target)))


class Page(Lines):
    """Rows that are all known: a text made to measure."""

    def __init__(self, **options: str | None) -> None:
        super().__init__(**options)  # type: ignore[arg-type]
        self._lines: tuple[Line, ...] = ()

    def show(self, lines: Iterable[Line]) -> None:
        """Replace the text."""
        self._lines = tuple(lines)
        self.set_count(len(self._lines))

    def show_fitted(self, draw: Callable[[int], Iterable[Line]]) -> None:
        """Show what `draw` makes of the width, one cell narrower where it needs a scrollbar."""
        width, height = self.content_size
        if width <= 0:
            return
        lines = tuple(draw(width))
        self.show(lines if len(lines) <= height else draw(width - self.styles.scrollbar_size_vertical))

    def row(self, y: int) -> Line:
        """Row `y` of the text."""
        return self._lines[y]

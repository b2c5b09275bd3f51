"""How lines of styled text become cells on the screen: the base of every panel and row.

From the bottom up: `TrueColours` and `Sized` (with its scroll `Bar`) save Textual work and unneeded frames.
`PaintedRows` remembers what was painted, so that a step paints only the rows that have changed. `Styled` knows the
cells of each style. `StyledRow` is one row, `Lines` a panel of many, `Page` one whose text is wrapped to its width, and
`LinkedPage` one with numbers that link to the event that made them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple, Self

from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.actions import SkipAction
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.filter import ANSIToTruecolor, LineFilter
from textual.geometry import Region, Size, Spacing
from textual.messages import Update
from textual.scroll_view import ScrollView
from textual.scrollbar import ScrollBar, ScrollBarRender
from textual.strip import Strip
from textual.theme import Theme
from textual.widget import Widget

from gviz.tui.glyphs import UNICODE, Glyphs
from gviz.tui.panel_choice import TABS, panel_title
from gviz.tui.styled_lines import Line, cut, line, style_and_event
from gviz.tui.widgets.panel_messages import Seek


class TrueColours(Widget):
    """A widget without colours by number, so that Textual need not search every row for them."""

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Return all filters but the one that searches."""
        return [each for each in super().get_line_filters() if not isinstance(each, ANSIToTruecolor)]


class Bar(ScrollBar):
    """A column of cells without border and padding.

    Most steps move one bar, some three. Textual's general way of rendering a widget takes a millisecond for each.
    """

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return the rows of a part of the bar."""
        bar = self.render()
        if not isinstance(bar, ScrollBarRender) or not isinstance(bar.style, Style) or self.size.width != 1:
            return super().render_lines(crop)
        rows = _bar_rows(
            self.size.height, bar.virtual_size, bar.window_size, bar.position, bar.style, self.visual_style.rich_style
        )
        _, background = self.background_colors
        for each in self.get_line_filters():
            rows = [row.apply_filter(each, background) for row in rows]
        return rows[crop.y : crop.bottom]


_DEFAULT = Color.default()


@lru_cache(maxsize=256)
def _bar_rows(height: int, whole: int, seen: int, position: float, style: Style, base: Style) -> list[Strip]:
    """Return all rows of a bar of whole cells, as `ScrollBar.renderer` draws it."""
    drawn = ScrollBar.renderer.render_bar(
        height, whole, seen, position, back_color=style.bgcolor or _DEFAULT, bar_color=style.color or _DEFAULT
    )
    return [Strip([cell], 1) for cell in Segment.apply_style(drawn.segments, base)]


AROUND_TITLE = 6
"""Columns of a border that a title leaves free: corners and blanks."""


class Sized(ScrollView):
    """Knows its size before the first frame of that size; Textual's own event comes only after it.

    `gviz.tui.screens.screen_layout` needs this.
    """

    _drawn_in = Size(0, 0)

    @property
    def vertical_scrollbar(self) -> ScrollBar:
        """The bar at the right, created on first use."""
        if self._vertical_scrollbar is None:
            self._vertical_scrollbar = bar = Bar(vertical=True, name="vertical", thickness=self.scrollbar_size_vertical)
            bar.display = False
            self.app._start_widget(self, bar)
        return self._vertical_scrollbar

    def sized(self) -> None:
        """Draw for a new size, or after having been hidden."""

    def _size_updated(self, size: Size, virtual_size: Size, container_size: Size, layout: bool = True) -> bool:
        """Draw for the new size: the screen is laid out and will be painted next."""
        changed = super()._size_updated(size, virtual_size, container_size, layout)
        if size != self._drawn_in:
            self._drawn_in = size
            self.sized()
        return changed

    def update_node_styles(self, animate: bool = True) -> None:
        """Style the panel for a gained or lost focus; the scroll bars have no styles of their own."""
        self.app.stylesheet.apply(self, animate=animate)

    def notify_style_update(self) -> None:
        """Paint the scroll bars again: Textual redraws them when styles are applied."""
        super().notify_style_update()
        self._paint_bars()

    def _scroll_update(self, virtual_size: Size) -> None:
        """Paint the scroll bars for a new scrolled area."""
        super()._scroll_update(virtual_size)
        self._paint_bars()

    def watch_scroll_x(self, old_value: float, new_value: float) -> None:
        """Paint the scroll bars for another view."""
        super().watch_scroll_x(old_value, new_value)
        self._paint_bars()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Paint the scroll bars for another view."""
        super().watch_scroll_y(old_value, new_value)
        self._paint_bars()

    def _paint_bars(self) -> None:
        """Paint the scroll bars in the frame of their panel; by themselves they often come in the next one."""
        if self.is_attached:
            self.call_next(self._bars_now)

    def _bars_now(self) -> None:
        shown = self.scrollbars_enabled
        for bar in (self.vertical_scrollbar,) * shown[0] + (self.horizontal_scrollbar,) * shown[1]:
            self.screen.post_message(Update(bar))

    def on_hide(self) -> None:
        """Forget the size: changes are missed from now on, and drawn when the panel is shown again in any size."""
        self._drawn_in = Size(0, 0)


class View(NamedTuple):
    """The visible part of a panel, in cells: how far it is scrolled, and its size without scroll bars.

    Textual computes each of these numbers again at every access; drawing reads them once and not for every row.
    """

    left: int
    top: int
    width: int
    height: int

    @classmethod
    def of(cls, panel: ScrollView) -> Self:
        """Return the visible part of a panel now."""
        (left, top), (width, height) = panel.scroll_offset, panel.scrollable_content_region.size
        return cls(int(left), int(top), width, height)


Paint = Callable[[int, View], Strip]
"""Paints one row of a view, counted from its top."""


class PaintedRows:
    """The visible rows of one view, counted from its top."""

    def __init__(self) -> None:
        self._strips: dict[int, Strip] = {}
        self._view: View | None = None

    def holds(self, view: View) -> bool:
        """Return whether any row of this view was painted."""
        return view == self._view and bool(self._strips)

    def forget(self) -> None:
        """Forget all rows, so that they are painted again."""
        self._strips.clear()

    def row(self, y: int, paint: Paint, view: View) -> Strip:
        """Return row `y` as it was painted last, or paint it now."""
        if view != self._view:
            self._strips.clear()
            self._view = view
        strip = self._strips.get(y)
        if strip is None:
            strip = self._strips[y] = paint(y, view)
        return strip

    def changed(self, paint: Paint, view: View) -> list[int]:
        """Paint all rows of the same view, and return those that have changed."""
        before, self._strips = self._strips, {y: paint(y, view) for y in range(view.height)}
        return [y for y, strip in self._strips.items() if before.get(y) != strip]


KEPT_STRIPS = 500


class Styled(TrueColours):
    """A widget that draws lines: it knows the cells of each style under the current theme."""

    glyphs: Glyphs = UNICODE

    def __init__(self, *, id: str, classes: str = "") -> None:
        super().__init__(id=id, classes=classes)
        self._palette: dict[str, Style] = {}
        self._strips: dict[tuple[Line, int, int], Strip] = {}
        self._ground: Style | None = None
        self._theme: Theme | None = None

    @property
    def rich_style(self) -> Style:
        """The style behind all text. Textual computes it from all ancestors, and drawing reads it for every row."""
        if self._ground is None:
            self._ground = super().rich_style
        return self._ground

    def notify_style_update(self) -> None:
        """Forget old colours. A panel that gains the focus has another border, but the same colours."""
        super().notify_style_update()
        before, self._ground = (self._theme, self._ground), None
        self._theme = self.app.current_theme
        if before != (self._theme, self.rich_style):
            self.forget_colours()

    def forget_colours(self) -> None:
        """Forget everything that was laid out in other colours."""
        self._palette.clear()
        self._strips.clear()

    def strip(self, line: Line) -> Strip:
        """Return a line as cells; a linked text carries its event."""
        return Strip([Segment(self.glyphs.text(text), self._style(name)) for text, name in line])

    def cut_strip(self, line: Line, left: int, width: int) -> Strip:
        """Return a line as a strip of cells.

        The same line gives the same strip: a step changes few lines of most panels.
        """
        key = line, left, width
        strip = self._strips.get(key)
        if strip is None:
            if len(self._strips) >= KEPT_STRIPS:
                self._strips.clear()
            strip = self._strips[key] = self.strip(line).crop_extend(left, left + width, self.rich_style)
        return strip

    def look(self, name: str) -> Style:
        """Return what a style name adds to the background, under the current theme."""
        return self.app.get_component_styles(f"line--{name}").partial_rich_style

    def _style(self, name: str) -> Style:
        style = self._palette.get(name)
        if style is None:
            style_name, event = style_and_event(name)
            style = self.rich_style
            if style_name:
                style += self.look(style_name)
            if event:
                style += Style(meta={"event": event})
            self._palette[name] = style
        return style


class StyledRow(Styled):
    """One row of styled text."""

    def line(self, width: int) -> Line:
        """Return the text of the row for a width."""
        raise NotImplementedError

    def render_line(self, y: int) -> Strip:
        """Return the row; there is only one."""
        width = self.size.width
        if y:
            return Strip.blank(width, self.rich_style)
        return self.cut_strip(self.line(width), 0, width)


class Lines(Styled, Sized, can_focus=True):
    """Many rows of styled text; only the visible ones are drawn.

    A subclass sets the number of rows (`set_count`) and returns each of them (`row`).
    """

    ALLOW_SELECT = False
    tabs: Sequence[str] = TABS
    """The panels that share one area, perhaps with this one."""
    _count = 0

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id, classes="-panel -tab" if id in TABS else "-panel")
        self._painted = PaintedRows()
        self._drawing = self._missed = False
        self._heading = ""
        self._entitled = self._below = Content("")

    def row(self, y: int) -> Line:
        """Return row `y`, counted from 0."""
        raise NotImplementedError

    def set_count(self, count: int, width: int = 0) -> None:
        """Set the number of rows, and the width of the widest, unless rows are cut to the panel's width.

        Setting the virtual size makes Textual lay out the whole screen. A panel that is as large as its text needs
        that. For any other it would only update a scrollbar, which `_scroll_update` does.

        A text that fits counts as one row. If it had the height of the panel, it would get a scrollbar, and lose its
        last column, when the panel becomes lower, for example for a row below it.
        """
        room = self.scrollable_content_region
        self._count = count
        is_one_row = count <= room.height and not self.styles.auto_dimensions
        size = Size(max(width, room.width), min(count, 1) if is_one_row else count)
        if size == self.virtual_size:  # otherwise unchanged scrollbars would be painted, too
            return
        if self.styles.auto_dimensions:
            self.virtual_size = size
        else:
            self.set_reactive(Widget.virtual_size, size)
        self._scroll_update(self.virtual_size)  # Textual itself adds scrollbars at a resize only

    def draw_soon(self) -> None:
        """Draw once, however many things change at a time; a hidden panel is drawn when it is shown again."""
        self._missed = not self.display
        if not self._missed and not self._drawing:
            self._drawing = True
            self.call_next(self._draw_now)

    def _draw_now(self) -> None:
        self._drawing = False
        self.draw()

    def draw(self) -> None:
        """Bring the panel up to date."""
        self.redraw()

    def redraw(self) -> None:
        """Request a repaint of the visible rows that differ from what was painted last."""
        view = View.of(self)
        if not self._painted.holds(view):
            self.refresh()
        elif self.display:
            for y in self._painted.changed(self.paint, view):
                super().refresh(Region(0, y, view.width, 1))

    def refresh(self, *regions: Region, **options: Any) -> Self:
        """Repaint regions; without any, everything."""
        if not regions:
            self._painted.forget()
        return super().refresh(*regions, **options)

    def set_title(self, title: str) -> None:
        """Put plain text, never markup, into the border; a tab also names the others, where a click brings them."""
        self._heading = title
        self.entitle()

    def sized(self) -> None:
        """Draw for the new size; the border may have room for more or fewer names of tabs."""
        self._missed = False
        self.entitle()
        self.draw()

    def entitle(self) -> None:
        """Write the title into the border, and as many of the other tabs as fit."""
        room = self.outer_size.width - AROUND_TITLE
        heading = cut(line(self.glyphs.text(self._heading)), max(room, 1), self.glyphs.cut)
        shown = Content("".join(text for text, _ in heading))
        for other in self.tabs if self.id in TABS else ():
            name = panel_title(other, other.capitalize())
            if other != self.id and shown.cell_length + len(name) + 3 <= room:
                shown += Content.from_markup(f" | [@click=screen.panel('{other}')]{name}[/]")
        if shown != self._entitled:  # setting a title repaints the whole panel
            self.border_title = self._entitled = shown

    def subtitle(self, text: Content) -> None:
        """Write into the lower border."""
        if text != self._below:
            self.border_subtitle = self._below = text

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return the visible rows; draw missed changes next, unless a new size has drawn them already."""
        if self._missed:
            self.draw_soon()
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        """Return one visible row, as it was painted last unless something has changed it."""
        return self._painted.row(y, self.paint, View.of(self))

    def paint(self, y: int, view: View) -> Strip:
        """Return one row of a view as it looks now."""
        if y + view.top >= self._count:
            return Strip.blank(view.width, self.rich_style)
        return self.cut_strip(self.row(y + view.top), view.left, view.width)

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
    """Rows that are all known: a text wrapped to the panel's width."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._lines: tuple[Line, ...] = ()
        self.all_of_it = ""

    def show(self, lines: Iterable[Line]) -> None:
        """Replace the text."""
        self._lines = tuple(lines)
        self.set_count(len(self._lines))
        self.redraw()
        self._show_more()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Update the lower border: rows below the view may have come to an end."""
        super().watch_scroll_y(old_value, new_value)
        self._show_more()

    def _show_more(self) -> None:
        """Show in the lower border how many rows are below the view, and which key shows all of them."""
        below = len(self._lines) - int(self.scroll_offset.y) - self.scrollable_content_region.height
        text = f"… {below} more{self.all_of_it}" if below > 0 else ""
        self.subtitle(Content(self.glyphs.text(text)))

    def show_fitted(self, draw: Callable[[int], Iterable[Line]]) -> None:
        """Show the result of `draw` for the width, one cell narrower if it needs a scrollbar."""
        width, height = self.content_size
        if width <= 0:
            return
        lines = tuple(draw(width))
        self.show(lines if len(lines) <= height else draw(width - self.styles.scrollbar_size_vertical))

    def row(self, y: int) -> Line:
        """Return row `y` of the text."""
        return self._lines[y]


class LinkedPage(Page):
    """A page in which left and right choose a number that links to an event; Enter goes there."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "choose_link(-1)", show=False),
        Binding("right", "choose_link(1)", show=False),
        Binding("enter", "follow_link", show=False),
    ]

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._links: list[tuple[int, int, int]] = []
        self._linked = -1

    @property
    def link_chosen(self) -> bool:
        """Whether Enter goes to an event."""
        return self._linked >= 0

    def show(self, lines: Iterable[Line]) -> None:
        """Replace the text; no number of the new one is chosen."""
        super().show(lines)
        rows = enumerate(self._lines)
        spans = ((y, at, style_and_event(style)[1]) for y, row in rows for at, (_, style) in enumerate(row))
        self._links, self._linked = [(y, at, event) for y, at, event in spans if event], -1

    def row(self, y: int) -> Line:
        """Return row `y`, the chosen number in reverse."""
        line = super().row(y)
        if not self.link_chosen or self._links[self._linked][0] != y:
            return line
        chosen = self._links[self._linked][1]
        return tuple((text, "selected" if at == chosen else style) for at, (text, style) in enumerate(line))

    def action_choose_link(self, steps: int) -> None:
        """Choose the next number with a link; if none is chosen, the first or the last."""
        if not self._links:
            raise SkipAction
        first = 0 if steps > 0 else len(self._links) - 1
        self._linked = (self._linked + steps) % len(self._links) if self.link_chosen else first
        y, _, event = self._links[self._linked]
        self.show_row(y)
        self.subtitle(Content(f"Enter: event {event}"))
        self.redraw()

    def action_follow_link(self) -> None:
        """Go to the event of the chosen number; without one, other bindings get the key."""
        if not self.link_chosen:
            raise SkipAction
        self.post_message(Seek(self._links[self._linked][2]))

"""How lines of styled text become cells on the screen: the base of every panel and row.

From the bottom up: `TrueColours` and `Sized` (with its scroll `Bar`) save Textual work and frames that are not needed.
`PaintedRows` remembers what was painted, so that a step paints only the rows that look different. `Styled` knows the
cells of each style. `StyledRow` is one row, `Lines` a panel of many, `Page` one whose text is made to its width, and
`LinkedPage` one with numbers that lead to the event that made them.
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

from gviz.tui.arrangement import TABS, numbered
from gviz.tui.glyphs import UNICODE, Glyphs
from gviz.tui.lines import Line, cut, line, style_and_event
from gviz.tui.widgets.panel_messages import Seek


class TrueColours(Widget):
    """Nothing in it has a colour by number, so Textual need not look for one in every row that it puts together."""

    def get_line_filters(self) -> Sequence[LineFilter]:
        """All but the one that looks."""
        return [each for each in super().get_line_filters() if not isinstance(each, ANSIToTruecolor)]


class Bar(ScrollBar):
    """A column of cells without border and padding.

    Most steps move one, some three; by way of everything that a row of any widget may have, each takes a millisecond.
    """

    def render_lines(self, crop: Region) -> list[Strip]:
        """The rows of a part of the bar."""
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
    """All rows of a bar of whole cells, as `ScrollBar.renderer` draws it."""
    drawn = ScrollBar.renderer.render_bar(
        height, whole, seen, position, back_color=style.bgcolor or _DEFAULT, bar_color=style.color or _DEFAULT
    )
    return [Strip([cell], 1) for cell in Segment.apply_style(drawn.segments, base)]


AROUND_TITLE = 6
"""Columns of a border that a title leaves free: corners and blanks."""


class Sized(ScrollView):
    """Knows its size before the first frame of that size; the event that Textual sends comes only after it."""

    _drawn_in = Size(0, 0)

    @property
    def vertical_scrollbar(self) -> ScrollBar:
        """The bar at the right, made when it is asked for first."""
        if self._vertical_scrollbar is None:
            self._vertical_scrollbar = bar = Bar(vertical=True, name="vertical", thickness=self.scrollbar_size_vertical)
            bar.display = False
            self.app._start_widget(self, bar)
        return self._vertical_scrollbar

    def sized(self) -> None:
        """Draw for a new size, or after having been hidden."""

    def _size_updated(self, size: Size, virtual_size: Size, container_size: Size, layout: bool = True) -> bool:
        """The screen is laid out and will be painted next."""
        changed = super()._size_updated(size, virtual_size, container_size, layout)
        if size != self._drawn_in:
            self._drawn_in = size
            self.sized()
        return changed

    def update_node_styles(self, animate: bool = True) -> None:
        """The focus has come or gone: the panel looks otherwise, and the scroll bars have no styles of their own."""
        self.app.stylesheet.apply(self, animate=animate)

    def notify_style_update(self) -> None:
        """Styles were applied, and with them Textual asks for new scroll bars."""
        super().notify_style_update()
        self._paint_bars()

    def _scroll_update(self, virtual_size: Size) -> None:
        """There is more or less to scroll through."""
        super()._scroll_update(virtual_size)
        self._paint_bars()

    def watch_scroll_x(self, old_value: float, new_value: float) -> None:
        """Another part is seen."""
        super().watch_scroll_x(old_value, new_value)
        self._paint_bars()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Another part is seen."""
        super().watch_scroll_y(old_value, new_value)
        self._paint_bars()

    def _paint_bars(self) -> None:
        """Let the scroll bars come in the frame of their panel; they ask by themselves, but often for the next one."""
        if self.is_attached:
            self.call_next(self._bars_now)

    def _bars_now(self) -> None:
        shown = self.scrollbars_enabled
        for bar in (self.vertical_scrollbar,) * shown[0] + (self.horizontal_scrollbar,) * shown[1]:
            self.screen.post_message(Update(bar))

    def on_hide(self) -> None:
        """Whatever happens now is missed, to be drawn when the panel comes back in whatever size."""
        self._drawn_in = Size(0, 0)


class View(NamedTuple):
    """What of a panel is seen, in cells: how far it is scrolled, and how large it is, scroll bars not counted.

    Textual works each of these numbers out anew whenever it is asked; drawing asks once and not once a row.
    """

    left: int
    top: int
    width: int
    height: int

    @classmethod
    def of(cls, panel: ScrollView) -> Self:
        """What is seen of a panel now."""
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
        """Whether anything was painted of this view."""
        return view == self._view and bool(self._strips)

    def forget(self) -> None:
        """All of it is to be painted."""
        self._strips.clear()

    def row(self, y: int, paint: Paint, view: View) -> Strip:
        """Row `y` as it was painted last, or now."""
        if view != self._view:
            self._strips.clear()
            self._view = view
        strip = self._strips.get(y)
        if strip is None:
            strip = self._strips[y] = paint(y, view)
        return strip

    def changed(self, paint: Paint, view: View) -> list[int]:
        """The rows of the same view that look different now; they are painted."""
        before, self._strips = self._strips, {y: paint(y, view) for y in range(view.height)}
        return [y for y, strip in self._strips.items() if before.get(y) != strip]


KEPT_STRIPS = 500


class Styled(TrueColours):
    """A widget that draws lines: it knows the cells of each style under the present theme."""

    glyphs: Glyphs = UNICODE

    def __init__(self, *, id: str, classes: str = "") -> None:
        super().__init__(id=id, classes=classes)
        self._palette: dict[str, Style] = {}
        self._strips: dict[tuple[Line, int, int], Strip] = {}
        self._ground: Style | None = None
        self._theme: Theme | None = None

    @property
    def rich_style(self) -> Style:
        """The cells behind all text. Textual works it out from all ancestors, and drawing asks for every row."""
        if self._ground is None:
            self._ground = super().rich_style
        return self._ground

    def notify_style_update(self) -> None:
        """Forget old colours; a panel that the focus comes to has another border and the same ones."""
        super().notify_style_update()
        before, self._ground = (self._theme, self._ground), None
        self._theme = self.app.current_theme
        if before != (self._theme, self.rich_style):
            self.forget_colours()

    def forget_colours(self) -> None:
        """What was laid out in other colours is to be laid out anew."""
        self._palette.clear()
        self._strips.clear()

    def strip(self, line: Line) -> Strip:
        """A line as cells; a linked text carries its event."""
        return Strip([Segment(self.glyphs.text(text), self._style(name)) for text, name in line])

    def cut_strip(self, line: Line, left: int, width: int) -> Strip:
        """A line as a strip of cells. The same line gives the same strip: most panels change few lines at a step."""
        key = line, left, width
        strip = self._strips.get(key)
        if strip is None:
            if len(self._strips) >= KEPT_STRIPS:
                self._strips.clear()
            strip = self._strips[key] = self.strip(line).crop_extend(left, left + width, self.rich_style)
        return strip

    def look(self, name: str) -> Style:
        """What a style name adds to the ground, under the present theme."""
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
        """What the row says at a width."""
        raise NotImplementedError

    def render_line(self, y: int) -> Strip:
        """Draw the row; there is only one."""
        width = self.size.width
        if y:
            return Strip.blank(width, self.rich_style)
        return self.cut_strip(self.line(width), 0, width)


class Lines(Styled, Sized, can_focus=True):
    """Many rows of styled text; only the visible ones are drawn.

    A subclass says how many there are (`set_count`) and what row `y` is (`row`).
    """

    ALLOW_SELECT = False
    tabs: Sequence[str] = TABS
    """The panels that share one place, perhaps with this one."""
    _count = 0

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id, classes="-panel -tab" if id in TABS else "-panel")
        self._painted = PaintedRows()
        self._drawing = self._missed = False
        self._heading = ""
        self._entitled = self._below = Content("")

    def row(self, y: int) -> Line:
        """Row `y`, counted from 0."""
        raise NotImplementedError

    def set_count(self, count: int, width: int = 0) -> None:
        """Say how many rows there are, and how wide the widest is where rows are not made to measure.

        A change of the virtual size that is watched makes Textual lay out the whole screen. A panel that is as large as
        its text needs that; for any other it would be for a scrollbar only, which `_scroll_update` brings up to date.
        """
        room = self.scrollable_content_region
        self._count = count
        size = Size(max(width, room.width), max(count, room.height))
        if size == self.virtual_size:  # scrollbars are painted whole, whether they look different or not
            return
        if self.styles.auto_dimensions:
            self.virtual_size = size
        else:
            self.set_reactive(Widget.virtual_size, size)
        self._scroll_update(self.virtual_size)  # by itself Textual looks for a needed scrollbar at a resize only

    def draw_soon(self) -> None:
        """Draw once, however many things change at a time; a hidden panel when it is seen again."""
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
        """Ask for those visible rows to be painted that look different from what was painted last."""
        view = View.of(self)
        if not self._painted.holds(view):
            self.refresh()
        elif self.display:
            for y in self._painted.changed(self.paint, view):
                super().refresh(Region(0, y, view.width, 1))

    def refresh(self, *regions: Region, **options: Any) -> Self:
        """Draw anew, and without regions all of it."""
        if not regions:
            self._painted.forget()
        return super().refresh(*regions, **options)

    def set_title(self, title: str) -> None:
        """Put plain text, never markup, into the border; a tab names the others too, where a click brings them."""
        self._heading = title
        self.entitle()

    def sized(self) -> None:
        """More or fewer names of other tabs fit, and more or less of everything else."""
        self._missed = False
        self.entitle()
        self.draw()

    def entitle(self) -> None:
        """Write the title into the border, and as many of the other tabs as there is room for."""
        room = self.outer_size.width - AROUND_TITLE
        heading = cut(line(self.glyphs.text(self._heading)), max(room, 1), self.glyphs.cut)
        shown = Content("".join(text for text, _ in heading))
        for other in self.tabs if self.id in TABS else ():
            name = numbered(other, other.capitalize())
            if other != self.id and shown.cell_length + len(name) + 3 <= room:
                shown += Content.from_markup(f" | [@click=screen.panel('{other}')]{name}[/]")
        if shown != self._entitled:  # setting a title draws the whole panel anew
            self.border_title = self._entitled = shown

    def subtitle(self, text: Content) -> None:
        """Write into the lower border."""
        if text != self._below:
            self.border_subtitle = self._below = text

    def render_lines(self, crop: Region) -> list[Strip]:
        """The visible rows; what was missed is drawn next, where no other size has had it drawn already."""
        if self._missed:
            self.draw_soon()
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        """One visible row, as it was painted last where nothing has asked for more."""
        return self._painted.row(y, self.paint, View.of(self))

    def paint(self, y: int, view: View) -> Strip:
        """One row of a view as it looks now."""
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
    """Rows that are all known: a text made to measure."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._lines: tuple[Line, ...] = ()
        self.all_of_it = ""

    def show(self, lines: Iterable[Line]) -> None:
        """Replace the text."""
        self._lines = tuple(lines)
        self.set_count(len(self._lines))
        self.redraw()
        self._say_more()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Rows below the view may have come to an end."""
        super().watch_scroll_y(old_value, new_value)
        self._say_more()

    def _say_more(self) -> None:
        """A cut text says so in its lower border, and which key shows all of it."""
        below = len(self._lines) - int(self.scroll_offset.y) - self.scrollable_content_region.height
        said = f"… {below} more{self.all_of_it}" if below > 0 else ""
        self.subtitle(Content(self.glyphs.text(said)))

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


class LinkedPage(Page):
    """Left and right choose a number that leads to an event, enter goes there."""

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
        """Whether enter goes to an event."""
        return self._linked >= 0

    def show(self, lines: Iterable[Line]) -> None:
        """Replace the text; no number of the new one is chosen."""
        super().show(lines)
        rows = enumerate(self._lines)
        spans = ((y, at, style_and_event(style)[1]) for y, row in rows for at, (_, style) in enumerate(row))
        self._links, self._linked = [(y, at, event) for y, at, event in spans if event], -1

    def row(self, y: int) -> Line:
        """Row `y`, the chosen number in reverse."""
        line = super().row(y)
        if not self.link_chosen or self._links[self._linked][0] != y:
            return line
        chosen = self._links[self._linked][1]
        return tuple((text, "selected" if at == chosen else style) for at, (text, style) in enumerate(line))

    def action_choose_link(self, steps: int) -> None:
        """Choose the next number that leads somewhere, the first or last of them from neither."""
        if not self._links:
            raise SkipAction
        first = 0 if steps > 0 else len(self._links) - 1
        self._linked = (self._linked + steps) % len(self._links) if self.link_chosen else first
        y, _, event = self._links[self._linked]
        self.show_row(y)
        self.subtitle(Content(f"enter: event {event}"))
        self.redraw()

    def action_follow_link(self) -> None:
        """Go to the event of the chosen number; without one the key means what it means elsewhere."""
        if not self.link_chosen:
            raise SkipAction
        self.post_message(Seek(self._links[self._linked][2]))

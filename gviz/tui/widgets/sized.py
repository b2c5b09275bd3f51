"""A panel that is drawn in its size before it is painted."""

from __future__ import annotations

from textual.geometry import Size
from textual.messages import Update
from textual.scroll_view import ScrollView
from textual.scrollbar import ScrollBar

from gviz.tui.widgets.bars import Bar

AROUND_TITLE = 6
"""Columns of a border that a title leaves free: corners and blanks."""


class Sized(ScrollView):
    """Is told of its size before it is seen in it; the event that Textual sends comes only after that frame."""

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

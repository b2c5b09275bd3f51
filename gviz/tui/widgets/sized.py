"""A panel that is drawn in its size before it is painted."""

from __future__ import annotations

from textual.geometry import Size
from textual.scroll_view import ScrollView

AROUND_TITLE = 6
"""Columns of a border that a title leaves free: corners and blanks."""


class Sized(ScrollView):
    """Is told of its size before it is seen in it; the event that Textual sends comes only after that frame."""

    _drawn_in = Size(0, 0)

    def sized(self) -> None:
        """Draw for a new size, or after having been hidden."""

    def _size_updated(self, size: Size, virtual_size: Size, container_size: Size, layout: bool = True) -> bool:
        """The screen is laid out and will be painted next."""
        changed = super()._size_updated(size, virtual_size, container_size, layout)
        if size != self._drawn_in:
            self._drawn_in = size
            self.sized()
        return changed

    def on_hide(self) -> None:
        """Whatever happens now is missed, to be drawn when the panel comes back in whatever size."""
        self._drawn_in = Size(0, 0)

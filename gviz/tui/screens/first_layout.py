"""A screen that is laid out in full before anything of it is seen."""

from __future__ import annotations

from textual.geometry import Size
from textual.screen import Screen

from gviz.tui.widgets._base import Sized


class FirstLaidOut(Screen[None]):
    """Shows no frame of panels that do not know their size yet."""

    _laid_out = False

    def _refresh_layout(self, size: Size | None = None, scroll: bool = False) -> None:
        """Lay out, and at first once more before anything is painted: panels that know their size want scroll bars now.

        Later a batch of updates would keep keys from a prompt that is being opened.
        """
        if self._laid_out or scroll:
            super()._refresh_layout(size, scroll)
            return
        with self.app.batch_update():
            super()._refresh_layout(size)
        panels = [each for each in self.query() if isinstance(each, Sized)]  # by name it would be first bases alone
        self._laid_out = any(panel.size or not panel.display for panel in panels)  # in a tiny terminal none is shown
        if any(panel._layout_required for panel in panels):
            super()._refresh_layout(size)

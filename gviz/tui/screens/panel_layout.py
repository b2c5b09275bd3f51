"""Lays out the panels of a screen, in two passes if they change what is shown, and paints only after the last."""

from __future__ import annotations

from textual.geometry import Size
from textual.screen import Screen

from gviz.tui.widgets.text_panel import Sized


class PanelLayoutScreen(Screen[None]):
    """A screen with an overview below its graph, and with panels that ask for scroll bars when they know their size."""

    _laid_out = False
    _is_painting = True

    def _refresh_layout(self, size: Size | None = None, scroll: bool = False) -> None:
        """Lay out, twice before anything is painted if the sizes of panels change what is shown.

        The first time, sized panels may need scroll bars. Later, the row below a graph may come or go.
        """
        if scroll:
            super()._refresh_layout(size, scroll)
            return
        overview = self.query_one("#overview")
        before, self._is_painting = overview.display, False
        try:
            super()._refresh_layout(size)
        finally:
            self._is_painting = True
        if overview.display != before or self._needs_bars():
            super()._refresh_layout(size)
        elif self.is_current and not self.app._batch_count:  # in a batch it is painted at the end
            self._compositor_refresh()

    def _needs_bars(self) -> bool:
        """Return whether a panel has asked for scroll bars in the first layout."""
        if self._laid_out:
            return False
        panels = [each for each in self.query() if isinstance(each, Sized)]  # a query by class finds first bases only
        self._laid_out = any(panel.size or not panel.display for panel in panels)  # a tiny terminal shows none
        return any(panel._layout_required for panel in panels)

    def _compositor_refresh(self) -> None:
        """Paint, except between two layouts."""
        if self._is_painting:
            super()._compositor_refresh()

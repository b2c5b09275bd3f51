"""Lays out the whole screen before it paints, so that no panel jumps into its place in front of the user.

Idea. Some panels know only after a layout what they need: with its size, a list knows whether it needs a scroll bar,
and a graph whether it needs the row below it that shows which part is in view. Either one takes room from other panels.
Textual would paint the first layout, then lay out again and paint again, which flickers. `LaidOutScreen` holds back
the painting of the first layout. If a panel has asked for something in it, the screen is laid out a second time, and
only that layout is painted.

Example. The debugger opens on a long recording in 80x24. In the first layout, the tape gets its size and asks for a
scroll bar. In the second, it has the bar. The first frame shows it.

Limits. There are at most two layouts for a frame. Scroll bars are only waited for until the panels have a size for the
first time; after that, Textual's own order applies. Panels must draw as soon as they get their size, and not at the
event that Textual sends after the frame: `gviz.tui.widgets.text_panel.Sized`. What they show or hide meanwhile is set
by hand, not by a class, because a style sheet acts only after the next frame. Which panels are visible is decided
before: `gviz.tui.panel_choice`.
"""

from __future__ import annotations

from textual.geometry import Size
from textual.screen import Screen

from gviz.tui.widgets.text_panel import Sized


class LaidOutScreen(Screen[None]):
    """A screen that is laid out twice, if its panels ask for that, and painted only after the last layout."""

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

"""What the selected node keeps for its backward rule, and the versions of its memory, at the moment."""

from __future__ import annotations

from textual.reactive import reactive

from gviz.trace.moment import Moment
from gviz.trace.timeline import Timeline
from gviz.tui.drawing.saved import saved_lines
from gviz.tui.glyphs import Glyphs
from gviz.tui.widgets.linked import LinkedPage


class SavedPanel(LinkedPage):
    """Saved tensors and versions of one node."""

    moment: reactive[Moment | None] = reactive(None, repaint=False)
    selected: reactive[int] = reactive(0, repaint=False)

    def __init__(self, timeline: Timeline, heading: str, glyphs: Glyphs) -> None:
        super().__init__(id="saved")
        self._timeline = timeline
        self._heading = heading
        self.glyphs = glyphs

    def on_mount(self) -> None:
        """Name the panel."""
        self.set_title(self._heading)

    def watch_moment(self) -> None:
        """Follow the clock."""
        self.draw_soon()

    def watch_selected(self) -> None:
        """Follow the selection."""
        self.draw_soon()

    def draw(self) -> None:
        """Make the text of the moment."""
        moment = self.moment
        if moment is not None and self.display:
            self.show_fitted(lambda width: saved_lines(self._timeline, moment, self.selected, width))

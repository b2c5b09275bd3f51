"""What the program has printed, up to the moment: the output travels in time."""

from __future__ import annotations

from textual.reactive import reactive

from gviz.trace.moment import Moment
from gviz.trace.timeline import Timeline
from gviz.tui.arrangement import numbered
from gviz.tui.drawing.lists import output_lines
from gviz.tui.glyphs import Glyphs
from gviz.tui.widgets.styled import Page


class OutputPanel(Page):
    """stdout and stderr of the program up to the moment, the end in view."""

    moment: reactive[Moment | None] = reactive(None, repaint=False)

    def __init__(self, timeline: Timeline, glyphs: Glyphs, *, id: str = "output") -> None:
        super().__init__(id=id)
        self._timeline = timeline
        self._printed = -1
        self.glyphs = glyphs

    def on_mount(self) -> None:
        """Name the panel."""
        self.set_title(numbered("output", "Output"))

    def watch_moment(self, moment: Moment | None) -> None:
        """More, or less, may have been printed."""
        count = len(self._timeline.printed(moment.n)) if moment is not None else -1
        if count != self._printed:
            self._printed = count
            self.draw_soon()

    def draw(self) -> None:
        """Make the text of the moment."""
        moment = self.moment
        if moment is not None:
            self.show_fitted(lambda width: output_lines(self._timeline, moment.n, width))
            self.scroll_end(animate=False, immediate=True, force=True)

"""What the program has printed, up to the moment: the output travels in time."""

from __future__ import annotations

from textual.reactive import reactive

from gviz.trace.moment import Moment
from gviz.trace.timeline import Timeline
from gviz.tui.drawing.output import output_lines
from gviz.tui.glyphs import Glyphs
from gviz.tui.widgets.styled import Page


class OutputPanel(Page):
    """stdout and stderr of the program up to the moment, the end in view."""

    moment: reactive[Moment | None] = reactive(None)

    def __init__(self, timeline: Timeline, glyphs: Glyphs, *, id: str = "output") -> None:
        super().__init__(id=id)
        self._timeline = timeline
        self.glyphs = glyphs

    def on_mount(self) -> None:
        """Name the panel."""
        self.set_title("2 Output")

    def on_resize(self) -> None:
        """Break the lines anew."""
        self._draw()

    def watch_moment(self) -> None:
        """More, or less, has been printed."""
        self._draw()

    def _draw(self) -> None:
        moment = self.moment
        if moment is not None:
            self.show_fitted(lambda width: output_lines(self._timeline, moment.n, width))
            self.scroll_end(animate=False, immediate=True, force=True)

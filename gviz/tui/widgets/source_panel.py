"""The source of the program, following the node and the running line."""

from __future__ import annotations

from pathlib import PurePath

from textual import events
from textual.geometry import Region, Size
from textual.reactive import reactive
from textual.strip import Strip

from gviz.source.call_stack import Frame
from gviz.trace.timeline import Moment, Timeline
from gviz.tui.breakpoints import BreakpointEntry, Breakpoints, marked_lines, nodes_of_line
from gviz.tui.drawing.source import (
    SourceMark,
    code_lines,
    code_width,
    first_column,
    first_row,
    gutter,
    source_line,
    windowed,
)
from gviz.tui.glyphs import Glyphs
from gviz.tui.panel_choice import panel_title
from gviz.tui.source_location import PausedStack, source_place
from gviz.tui.styled_lines import Line, cells, wrapped
from gviz.tui.widgets.panel_messages import LinePointed, NodePointed
from gviz.tui.widgets.text_panel import AROUND_TITLE, Lines, View
from gviz.values.plain_text import clipped

GUTTER = 2
"""Columns before the line number: the mark of the running line, and the mark of a breakpoint."""


class SourcePane(Lines):
    """The exact expression that made the selected node, and the line that the program is at."""

    moment: reactive[Moment | None] = reactive(None, repaint=False)
    selected: reactive[int] = reactive(0, repaint=False)
    frame: reactive[int] = reactive(0, repaint=False)
    paused_stack: reactive[PausedStack | None] = reactive(None, repaint=False)
    breaks: reactive[tuple[BreakpointEntry, ...]] = reactive((), repaint=False)

    def __init__(self, timeline: Timeline, glyphs: Glyphs, breakpoints: Breakpoints) -> None:
        super().__init__(id="source")
        self._timeline = timeline
        self._breakpoints = breakpoints
        self._marked: dict[int, list[BreakpointEntry]] = {}
        self._place: SourceMark | None = None
        self._code: tuple[Line, ...] = ()
        self._excuse: tuple[Line, ...] = ()
        self._followed: tuple[SourceMark | None, Size] | None = None
        self._own_left = 0  # the column to which the panel has scrolled by itself
        self.script = "", ""
        """The path and the text of the program, until anything is recorded."""
        self.glyphs = glyphs

    def row(self, y: int) -> Line:
        """Return row `y` of the file, or of the reason why there is none."""
        if self._place is None or not self._code:
            return self._excuse[y] if y < len(self._excuse) else ()
        return source_line(self._code, y + 1, self._place)

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return the visible rows; draw first if the size has changed without an event."""
        if self._followed is not None and self._followed[1] != self.content_size:
            self.draw_soon()
        return super().render_lines(crop)

    def paint(self, y: int, view: View) -> Strip:
        """Return a row: the code scrolls sideways, the line numbers do not.

        Where the panel has scrolled by itself to a long expression, only the rows of the expression are scrolled.
        """
        number = self._number(y, view)
        if self._place is None or not 0 < number <= len(self._code):
            return super().paint(y, view)
        apart = number != view.top + 1 + y
        edge = gutter(number, self._place, self._digits, self.glyphs, marked=number in self._marked, apart=apart)
        frame = self._place.frame
        is_scrolled = view.left != self._own_left or frame.line <= number <= max(frame.end_line, frame.line)
        left = view.left if is_scrolled else 0
        code = windowed(self.row(number - 1), left, max(view.width - cells(edge), 0), self.glyphs.cut)
        return self.cut_strip((*edge, *code), 0, view.width)

    def _number(self, y: int, view: View) -> int:
        """Return the line in row `y`. If the running line is above or below the view, it is shown at that edge."""
        first, height = view.top + 1, view.height
        running = self._place.running if self._place is not None else 0
        if height > 2 and 0 < running <= len(self._code):
            beyond_top, beyond_bottom = y == 0 and running < first, y == height - 1 and running >= first + height
            return running if beyond_top or beyond_bottom else first + y
        return first + y

    def watch_moment(self) -> None:
        """Show where the program is."""
        self.draw_soon()

    def watch_selected(self) -> None:
        """Show where the node was made."""
        self.draw_soon()

    def watch_frame(self) -> None:
        """Show the selected frame of the call stack."""
        self.draw_soon()

    def watch_paused_stack(self) -> None:
        """Show where the program is paused."""
        self.draw_soon()

    def watch_breaks(self) -> None:
        """Show the changed breakpoints."""
        self._mark()
        self.redraw()

    def on_click(self, event: events.Click) -> None:
        """Set a breakpoint at a click in the gutter; else select the last node of the line, or run to it.

        A double click on a line of code runs.
        """
        offset = event.get_content_offset(self)
        number = self._number(offset.y, View.of(self)) if offset is not None else 0
        if offset is None or self._place is None or self.moment is None or not 0 < number <= len(self._code):
            return
        path = self._place.frame.path
        if offset.x < GUTTER:
            self.post_message(LinePointed(path, number))
            return
        nodes = list(nodes_of_line(self._timeline, self.moment.n, path, number))
        existing = [node for node in nodes if self._timeline.info(node).born <= self.moment.n]
        if nodes:
            self.post_message(NodePointed(existing[-1] if existing else nodes[0], run=event.chain == 2))

    def draw(self) -> None:
        """Scroll to the place, unless it has not changed."""
        if self.moment is None:
            return
        place = source_place(self._timeline, self.moment, self.selected, self.frame, self.paused_stack)
        size = self.content_size
        if (place, size) == self._followed:
            return
        self._followed = place, size
        text = self._timeline.source(place.frame.path) if place is not None else None
        if place is None and not self.moment.n:
            path, text = self._beginning()
            place = SourceMark(Frame(path, "", 1, 1, -1, -1), -1) if text else None
        self._place = place
        self._code = code_lines(text) if text is not None else ()
        self._mark()
        self._entitle()
        if self._place is None or not text:
            self._excuse = tuple(wrapped(((self._why_none(), "muted"),), self.scrollable_content_region.width))
            self.set_count(len(self._excuse))
        else:
            self.set_count(len(self._code), code_width(text) + self._digits + 4)
            self._scroll(self._place)
        self.redraw()

    def _beginning(self) -> tuple[str, str | None]:
        """Return the path and the text of the program, before anything has happened."""
        if not len(self._timeline):
            return self.script
        frames = next(filter(None, (self._timeline.info(node).frames for node in self._timeline.nodes)), ())
        return (frames[-1].path, self._timeline.source(frames[-1].path)) if frames else self.script

    def _mark(self) -> None:
        self._marked = marked_lines(self._breakpoints, self._place.frame.path) if self._place is not None else {}

    def _scroll(self, place: SourceMark) -> None:
        height, width = max(self.scrollable_content_region.height, 1), self.scrollable_content_region.width
        x, y = first_column(place, width - self._digits - 3), first_row(place, len(self._code), height)
        self.scroll_to(x=x, y=y, animate=False, force=True, immediate=True)
        self._own_left = View.of(self).left

    @property
    def _digits(self) -> int:
        return len(str(len(self._code)))

    def _entitle(self) -> None:
        where = ""
        if self._place is not None:
            frame, running = self._place.frame, self._place.running
            room = (
                self.outer_size.width - len(panel_title("source", "Source ")) - AROUND_TITLE - len(self.glyphs.cut) + 1
            )
            lines = f":{frame.line}" + (f", running :{running}" if running > 0 and running != frame.line else "")
            lines = lines if len(lines) < room else f":{frame.line}"
            lines = "" if not frame.function else lines  # the program has not begun
            where = f" {clipped(PurePath(frame.path).name, max(min(room - len(lines), 30), 1))}{lines}"
        self.set_title(panel_title("source", f"Source{where}"))

    def _why_none(self) -> str:
        if self._place is None:
            return "No source line for this event"
        path = PurePath(self._place.frame.path)
        return f"The text of {clipped(path.name, 60)} is not in the trace: {clipped(str(path), 200)}"

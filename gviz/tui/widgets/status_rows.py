"""The single rows of the screen: status, timeline, keys."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.reactive import reactive

from gviz.explain.event_description import node_words
from gviz.explain.training import pass_result
from gviz.trace.timeline import Moment, Timeline
from gviz.tui.drawing.node_details import event_text, what_if_title
from gviz.tui.drawing.status import (
    KEYS,
    Landmarks,
    StatusContents,
    bar,
    bar_width,
    fitting_keys,
    key_at,
    keys_row,
    landmarks,
    position_at,
    status,
)
from gviz.tui.glyphs import Glyphs
from gviz.tui.session_options import Title
from gviz.tui.stop_reason import CursorStop, as_remark
from gviz.tui.styled_lines import Line, cells, cut, line
from gviz.tui.widgets.panel_messages import Seek
from gviz.tui.widgets.text_panel import StyledRow

if TYPE_CHECKING:
    from gviz.rerun.branch import BranchView


class StatusRow(StyledRow):
    """Program, phase, event, node, and the reason of the stop."""

    moment: reactive[Moment | None] = reactive(None)
    stop: reactive[CursorStop] = reactive(CursorStop(0, 0, as_remark("")))
    time: reactive[str] = reactive("REPLAY")
    branch_view: reactive[BranchView | None] = reactive(None)

    def __init__(self, timeline: Timeline, title: Title, glyphs: Glyphs) -> None:
        super().__init__(id="status")
        self._timeline = timeline
        self._title = title.brief
        self.glyphs = glyphs

    def line(self, width: int) -> Line:
        """Return the status of the moment."""
        if self.moment is None:
            return ()
        contents = StatusContents(self._title, self.stop, self.time, what_if_title(self.branch_view, self.moment.n))
        return status(self._timeline, self.moment, contents, width, self.glyphs)


class EventRow(StyledRow):
    """A description of the moment's event; or a remark, if no other row can show it."""

    moment: reactive[Moment | None] = reactive(None)
    length: reactive[int] = reactive(0)
    remark: reactive[str] = reactive("")
    branch_view: reactive[BranchView | None] = reactive(None)

    def __init__(self, timeline: Timeline, glyphs: Glyphs) -> None:
        super().__init__(id="event")
        self._timeline = timeline
        self.glyphs = glyphs
        self.more = ""
        """The key that shows all of it."""

    def line(self, width: int) -> Line:
        """Return the description, as much of it as fits."""
        if self.moment is None:
            return ()
        if self.remark:
            return _remark(self.remark, width, self.glyphs)
        who = f"{node_words(self._timeline, self.moment)}: " if self.moment.actor else ""
        result = pass_result(self._timeline, self.moment.n)
        verdict = f": {result.verdict}" if result is not None else ""
        written = partial(event_text, self._timeline, self.moment, self.branch_view)
        text = line(self.glyphs.text(f" {who}{written()}{verdict}"))
        if cells(text) <= width:
            return text
        rest = line(" ", (self.more, "key"), " more ") if self.more else ()
        room = max(width - cells(rest) - cells(line(f" {who}")), 1)
        text = line(self.glyphs.text(f" {who}{written(room)}{verdict}"))
        return (*cut(text, width - cells(rest), self.glyphs.cut), *rest)

    async def on_click(self) -> None:
        """Show all of it."""
        await self.run_action("screen.do('event')")


class TimelineBar(StyledRow, can_focus=True):
    """The recording as a bar: a click or a drag seeks."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "screen.travel('reverse-step')", show=False),
        Binding("right", "screen.travel('step')", show=False),
        Binding("home", "screen.seek(0)", show=False),
        Binding("end", "screen.seek(-1)", show=False),
    ]
    moment: reactive[Moment | None] = reactive(None)
    length: reactive[int] = reactive(0)

    def __init__(self, timeline: Timeline, glyphs: Glyphs) -> None:
        super().__init__(id="timeline")
        self._timeline = timeline
        self._known: Landmarks = landmarks(timeline)
        self._dragging = False
        self.glyphs = glyphs

    def line(self, width: int) -> Line:
        """Return the bar at the moment."""
        return bar(self._known, self.moment.n if self.moment is not None else 0, width, self.glyphs)

    def watch_length(self, length: int) -> None:
        """Read the landmarks again: the recording has grown."""
        if length:
            self._known = landmarks(self._timeline)

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Seek, and begin a drag."""
        self._dragging = True
        self.capture_mouse()
        self._seek(event.x)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Seek while dragging."""
        if self._dragging:
            self._seek(event.x)

    def on_mouse_up(self) -> None:
        """End a drag."""
        self._dragging = False
        self.release_mouse()

    def _seek(self, x: int) -> None:
        room = bar_width(self._known, self.size.width)
        self.post_message(Seek(position_at(self._known, x - 1, room)))


class KeysRow(StyledRow):
    """The most important keys; each can be clicked. A remark replaces them until the next key."""

    remark: reactive[str] = reactive("")

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__(id="keys")
        self.glyphs = glyphs
        self.bottom_keys = KEYS

    def line(self, width: int) -> Line:
        """Return the keys that fit, or the remark."""
        if self.remark:
            return _remark(self.remark, width, self.glyphs)
        return keys_row(fitting_keys(width, self.bottom_keys))

    async def on_click(self, event: events.Click) -> None:
        """Run the action of the clicked word."""
        key = key_at(fitting_keys(self.size.width, self.bottom_keys), event.x)
        if key is not None:
            await self.run_action(f"screen.{key.action}")


def _remark(text: str, width: int, glyphs: Glyphs) -> Line:
    return cut(line((f" {text}", "error")), width, glyphs.cut)

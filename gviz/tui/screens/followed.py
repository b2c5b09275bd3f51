"""What all panels follow. One integer, the position, is the truth: where the cursor stands, and what comes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.reactive import Reactive, reactive
from textual.widget import Widget

from gviz.render.boxes.fold import ALL, Filter
from gviz.trace.moment import Moment
from gviz.trace.timeline import Timeline
from gviz.tui.arrival import Arrival, saying
from gviz.tui.breakpoints import Listed
from gviz.tui.cursor import Cursor
from gviz.tui.places import Stood
from gviz.tui.screens.first_layout import FirstLaidOut
from gviz.tui.session import Session

if TYPE_CHECKING:
    from gviz.rerun.branch import BranchView


class FollowedScreen(FirstLaidOut):
    """A screen whose panels follow a session over one recording."""

    focused: Reactive[Widget | None] = Reactive(None, repaint=False)  # what has it, or had it, paints itself
    moment: reactive[Moment | None] = reactive(None, repaint=False)
    selected: reactive[int] = reactive(0, repaint=False)
    frame: reactive[int] = reactive(0, repaint=False)
    stood: reactive[Stood | None] = reactive(None, repaint=False)
    full: reactive[bool] = reactive(False, repaint=False)
    breaks: reactive[tuple[Listed, ...]] = reactive((), repaint=False)
    wanted: reactive[Filter] = reactive(ALL, repaint=False)
    beside: reactive[BranchView | None] = reactive(None, repaint=False)
    remark: reactive[str] = reactive("", repaint=False)
    stop: reactive[Arrival] = reactive(Arrival(0, 0, saying("")), repaint=False)
    watched: reactive[tuple[str, ...]] = reactive((), repaint=False)
    length: reactive[int] = reactive(0, repaint=False)
    time: reactive[str] = reactive("REPLAY", repaint=False)

    def __init__(self, timeline: Timeline, session: Session) -> None:
        super().__init__()
        self.timeline = timeline
        self.session = session

    @property
    def cursor(self) -> Cursor:
        """Where the session stands."""
        return self.session.cursor

    def say(self, remark: str) -> None:
        """Say something in the bottom row until the next key."""
        self.remark = remark

    def follow_settings(self) -> None:
        """Let the panels know the breakpoints and what is watched."""
        self.breaks = self.cursor.breakpoints.as_they_are()
        self.watched = tuple(self.cursor.asker.watched)
        self.beside = self.session.beside
        self.wanted = self.session.folds.wanted(self.timeline.iteration_at(self.cursor.position))

    def show_frame(self) -> None:
        """Let the source follow ``up`` and ``down``, and all panels a node that was selected."""
        if self.selected != self.cursor.selected:
            self.selected = self.cursor.selected
        self.stood = self.session.stood
        self.frame = self.session.frame_of(self.selected)

    def show_arrival(self, stop: Arrival) -> None:
        """Let every panel follow the cursor."""
        self.stop = stop
        if self.moment is None or self.moment.n != self.cursor.position:
            self.moment = self.timeline.at(self.cursor.position)
        self.show_frame()
        if stop.notice:
            self.say(stop.notice)

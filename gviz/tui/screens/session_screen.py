"""What every part of the debugger's screen knows about it: what the panels follow, its size, and its requests.

One integer, the position of the cursor, is the truth. `SessionScreen.show_stop` derives the `moment` from it, which
all panels follow. The parts (panels, prompt, controller, pages, key actions) know this class only. `DebuggerScreen`,
which has them all, forwards the requests of one part to another.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from textual import events
from textual.geometry import Size
from textual.reactive import Reactive, reactive
from textual.widget import Widget

from gviz.render.boxes.folding import ALL, Filter
from gviz.trace.timeline import Moment, Timeline
from gviz.tui.breakpoints import BreakpointEntry
from gviz.tui.cursor import Cursor
from gviz.tui.glyphs import Glyphs
from gviz.tui.keymaps import first, key_text
from gviz.tui.language.command import Command
from gviz.tui.panel_choice import SMALLEST, size_class
from gviz.tui.screens.screen_layout import LaidOutScreen
from gviz.tui.session import Session
from gviz.tui.source_location import PausedStack
from gviz.tui.stop_reason import CursorStop, as_remark

if TYPE_CHECKING:
    from gviz.rerun.branch import BranchView  # only a what-if needs to run anything again


class SessionScreen(LaidOutScreen):
    """A screen whose panels follow a session over one recording."""

    focused: Reactive[Widget | None] = Reactive(None, repaint=False)  # the widgets that get or lose it paint themselves
    moment: reactive[Moment | None] = reactive(None, repaint=False)
    selected: reactive[int] = reactive(0, repaint=False)
    frame: reactive[int] = reactive(0, repaint=False)
    paused_stack: reactive[PausedStack | None] = reactive(None, repaint=False)
    full: reactive[bool] = reactive(False, repaint=False)
    breaks: reactive[tuple[BreakpointEntry, ...]] = reactive((), repaint=False)
    graph_filter: reactive[Filter] = reactive(ALL, repaint=False)
    branch_view: reactive[BranchView | None] = reactive(None, repaint=False)
    remark: reactive[str] = reactive("", repaint=False)
    stop: reactive[CursorStop] = reactive(CursorStop(0, 0, as_remark("")), repaint=False)
    watched: reactive[tuple[str, ...]] = reactive((), repaint=False)
    length: reactive[int] = reactive(0, repaint=False)
    time: reactive[str] = reactive("REPLAY", repaint=False)

    def __init__(self, timeline: Timeline, session: Session, glyphs: Glyphs) -> None:
        super().__init__()
        self.timeline = timeline
        self.session = session
        self.glyphs = glyphs

    @property
    def cursor(self) -> Cursor:
        """The position of the session, and every way to move it."""
        return self.session.cursor

    @property
    def room(self) -> Size:
        """The part of the terminal that the debugger can use."""
        return self.app.size

    @property
    def too_small(self) -> bool:
        """Whether there is no room for any panel."""
        return size_class(*self.room) == "tiny"

    @property
    def least(self) -> Size:
        """The smallest terminal, at least as wide as this one, that has room for a panel."""
        return Size(*SMALLEST)

    @property
    def headroom(self) -> int:
        """Rows at the top that no page covers."""
        return 0

    @property
    def shows_keys(self) -> bool:
        """Whether the bottom row shows the most important keys."""
        return True

    def action_quit(self) -> None:
        """Leave; a screen over a program first asks what the program does next."""
        self.app.exit()

    def leave_at_once(self) -> None:
        """Leave without a question."""
        self.app.exit()

    def show_remark(self, remark: str) -> None:
        """Show a remark in the bottom row until the next key."""
        self.remark = remark

    def answer_unbound_key(self, key: str) -> None:
        """Report that a key does nothing, and which key shows what the others do."""
        shows_keys = first(self.session.keys, "act.help")
        self.show_remark(f"{key_text(key)} does nothing here{f'. {shows_keys}: help' if shows_keys else ''}")

    def follow_settings(self) -> None:
        """Let the panels follow the breakpoints, watches, modules and branch of the session."""
        self.breaks = self.cursor.breakpoints.copies()
        self.watched = tuple(self.cursor.asker.watched)
        self.branch_view = self.session.branch_view
        self.graph_filter = self.session.folds.graph_filter(self.timeline.iteration_at(self.cursor.position))

    def show_frame(self) -> None:
        """Let the source follow ``up`` and ``down``, and all panels the selected node."""
        if self.selected != self.cursor.selected:
            self.selected = self.cursor.selected
        self.paused_stack = self.session.paused_stack
        self.frame = self.session.frame_of(self.selected)

    def show_stop(self, stop: CursorStop) -> None:
        """Let every panel follow the cursor."""
        self.stop = stop
        if self.moment is None or self.moment.n != self.cursor.position:
            self.moment = self.timeline.at(self.cursor.position)
        self.show_frame()
        if stop.notice:
            self.show_remark(stop.notice)

    # What one part of the screen requests from another. The screen with all parts implements it.

    @property
    def busy(self) -> bool:
        """Whether waiting lines must keep waiting."""
        raise NotImplementedError

    def show_result_of(self, act: Callable[[], None]) -> None:
        """Call `act`, then show its answers. If it raises GvizError, show the reason in the bottom row."""
        raise NotImplementedError

    def run_command(self, command: Command) -> None:
        """Run a command of the prompt or a key, then the waiting lines, and show the answers."""
        raise NotImplementedError

    def run_line(self, text: str) -> None:
        """Run a line of the command language, and the lines that follow from it, and show the answers."""
        raise NotImplementedError

    def run_one(self, command: Command) -> None:
        """Run one command: show its answer or, if it is slow, start its work. Raises GvizError if it fails."""
        raise NotImplementedError

    def pause(self) -> None:
        """Stop playing, and cancel the work of a command."""
        raise NotImplementedError

    def action_seek(self, position: int) -> None:
        """Go to an event; -1 is the last."""
        raise NotImplementedError

    def open_prompt(self, sign: str, text: str = "", suggestion: str = "") -> None:
        """Open the prompt with a text, and with another after it that typing replaces."""
        raise NotImplementedError

    def take_key(self, event: events.Key) -> None:
        """Stop a key that must not wait for the bindings, and run its action."""
        raise NotImplementedError

    def follow_keymap(self) -> None:
        """Apply the current keymap to the bindings, the bottom row and the prompt."""
        raise NotImplementedError

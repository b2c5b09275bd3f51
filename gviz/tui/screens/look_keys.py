"""The keys and clicks that change what is looked at, and where it stops: breakpoints, frames, modules."""

from __future__ import annotations

from pathlib import PurePath

from textual.reactive import reactive

from gviz.render.fold import ALL, Filter
from gviz.tui import folding
from gviz.tui.command import Command
from gviz.tui.marks import marked_lines
from gviz.tui.messages import LinePointed
from gviz.tui.screens.cursor_keys import CursorKeys
from gviz.tui.session import Session
from gviz.where import stop


class LookKeys(CursorKeys):
    """What a key does to the view; the time does not move."""

    selected: reactive[int] = reactive(0)
    frame: reactive[int] = reactive(0)
    breaks: reactive[int] = reactive(0)
    wanted: reactive[Filter] = reactive(ALL)
    session: Session

    def say(self, remark: str) -> None:
        """Say something in the bottom row."""
        raise NotImplementedError

    def action_caller(self, steps: int) -> None:
        """Look at a caller further up or down in the source."""
        self.run_command(Command("up" if steps > 0 else "down"))

    def action_fold(self, name: str) -> None:
        """Open or close the module of the selected node."""
        self.run_command(Command(name))

    def action_focus_part(self) -> None:
        """Only what the selected node was made from, only what is near it, all."""
        self._attempt(self._next_focus)

    def _next_focus(self) -> None:
        said = folding.next_focus(self.session)
        self.wanted = self.session.folds.wanted(self.timeline.iteration_at(self.cursor.position))
        self.say(said.lines[0])

    def action_break(self) -> None:
        """Set a breakpoint at the selected node, or take it away."""
        if self.selected:
            self._toggle(f"#{self.selected}")

    def on_line_pointed(self, message: LinePointed) -> None:
        """Set a breakpoint at a line, or take away those that it shows."""
        breakpoints = self.cursor.breakpoints
        there = marked_lines(breakpoints, message.path).get(message.line)
        if there:
            breakpoints.delete(there)
            self.breaks += 1
            self.say(f"no breakpoint at line {message.line}")
        else:
            self._toggle(f"{PurePath(message.path).name}:{message.line}")

    def _toggle(self, place: str) -> None:
        made = self.cursor.breakpoints.toggle(stop(place))
        self.breaks += 1
        never = "" if made is None or made.hits.can_hit() else ": nothing was made there, so it never stops"
        self.say(f"breakpoint {made.number} at {place}{never}" if made else f"no breakpoint at {place}")

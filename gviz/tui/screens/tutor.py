"""The debugger with a guided lesson above it."""

from __future__ import annotations

from typing import Any

from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Static

from gviz.tui.cursor import Arrival
from gviz.tui.language.command import Command
from gviz.tui.screens.debugger import DebuggerScreen
from gviz.tui.tutor import Noticed, Tutor


class TutorScreen(DebuggerScreen):
    """Says what to press, and goes on when it was pressed; every other key works as always."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._tutor = Tutor()
        self._begun = False
        super().__init__(*arguments, **options)

    def compose(self) -> ComposeResult:
        """The lesson above everything."""
        yield Static(Content(self._tutor.text()), id="tutor")
        yield from super().compose()

    def on_mount(self) -> None:
        """From here on keys count."""
        super().on_mount()
        self._begun = True

    def perform(self, command: Command) -> None:
        """Carry out a command; it may be the one that is waited for."""
        super().perform(command)
        self._see(command.name)

    def action_panel(self, panel: str) -> None:
        """Bring a panel to the front; it may be the one that is waited for."""
        super().action_panel(panel)
        self._see(panel)

    def show_arrival(self, stop: Arrival) -> None:
        """Follow the cursor; a key may have brought it where it is waited for."""
        super().show_arrival(stop)
        self._see("")

    def watch_breaks(self) -> None:
        """A breakpoint may have been waited for."""
        self._see("")

    def _see(self, command: str) -> None:
        if self._begun and self._tutor.saw(Noticed(command, self.session)):
            self.query_one("#tutor", Static).update(Content(self.glyphs.text(self._tutor.text())))

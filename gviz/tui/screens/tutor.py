"""The debugger with a guided lesson above it."""

from __future__ import annotations

from textwrap import wrap
from typing import Any

from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Static

from gviz.tui.cursor import Arrival
from gviz.tui.language.command import Command
from gviz.tui.screens.debugger import DebuggerScreen
from gviz.tui.tutor import Noticed, Tutor


class Lesson(Static):
    """What is said now; the key at its end stays in one line with the word before it."""

    def render(self) -> Content:
        """The text, broken to the width."""
        said, press, key = str(self.content).rpartition("Press  ")
        whole = said + (press + key).replace(" ", "\0") if press else key
        lines = wrap(whole, max(self.content_size.width, 1), break_on_hyphens=False)
        return Content("\n".join(lines).replace("\0", " "))


class TutorScreen(DebuggerScreen):
    """Says what to press, and goes on when it was pressed; every other key works as always."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._tutor = Tutor()
        self._begun = False
        super().__init__(*arguments, **options)

    def compose(self) -> ComposeResult:
        """The lesson above everything."""
        yield Lesson(Content(self._tutor.text()), id="tutor")
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

"""The debugger with a guided lesson above it."""

from __future__ import annotations

from functools import cache
from textwrap import wrap
from typing import Any

from textual.app import ComposeResult
from textual.content import Content
from textual.geometry import Size
from textual.widgets import Static

from gviz.tui.arrangement import TALL
from gviz.tui.language.command import Command
from gviz.tui.screens.debugger_screen import DebuggerScreen
from gviz.tui.screens.pages import SheetScreen
from gviz.tui.stop_reason import Arrival
from gviz.tui.tutorial import Noticed, Tutor, every_text
from gviz.tui.widgets.panel_messages import Typed
from gviz.tui.widgets.prompt import Prompt
from gviz.tui.widgets.status_rows import HappeningRow

PRESS = "Press  "
BESIDE_TEXT = 2
"""Columns of a lesson that stay blank, as in app.tcss."""


def broken(text: str, width: int) -> list[str]:
    """The lines of a lesson; the key at its end stays in one line with the word before it."""
    said, press, key = text.rpartition(PRESS)
    whole = said + (press + key).replace(" ", "\0") if press else key
    return [each.replace("\0", " ") for each in wrap(whole, max(width - BESIDE_TEXT, 1), break_on_hyphens=False)]


@cache
def rows_of(width: int) -> int:
    """How many rows the longest page takes, so that none moves the panels."""
    return max(len(broken(text, width)) for text in every_text())


class Lesson(Static):
    """The text of the lesson, with room for the longest page."""

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """The rows of the longest page."""
        return rows_of(width + BESIDE_TEXT)

    def render(self) -> Content:
        """The text, broken to the width, with the key set off."""
        text = "\n".join(broken(str(self.content), self.outer_size.width))
        key = text.rpartition(PRESS)[2] if PRESS in text else ""
        return Content(text).stylize("bold reverse", len(text) - len(key))


class TutorScreen(DebuggerScreen):
    """Shows which key to press, and continues when it was pressed; every other key works as always."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._tutor = Tutor()
        self._begun = False
        super().__init__(*arguments, **options)
        self.session.own_keys = {}  # the lesson asks for keys that every keymap has

    @property
    def room(self) -> Size:
        """What the lesson leaves of the terminal, and a row of keys that is not there."""
        width, height = self.app.size
        return Size(width, height - rows_of(width) + (not self.offers_keys))

    @property
    def least(self) -> Size:
        """Room for a panel below the lesson."""
        width, height = super().least
        return Size(width, height + rows_of(max(width, self.app.size.width)) - 1)

    @property
    def offers_keys(self) -> bool:
        """On a low screen the graph needs the row: the lesson says which key comes next."""
        return self.app.size.height >= TALL

    def compose(self) -> ComposeResult:
        """The lesson above everything."""
        yield Lesson(Content(self._tutor.text()), id="tutor")
        yield from super().compose()

    def on_mount(self) -> None:
        """From here on keys count."""
        super().on_mount()
        self._begun = True

    def watch_remark(self, remark: str) -> None:
        """Say a remark where there is a row for it."""
        self.query_one(HappeningRow).remark = "" if self.offers_keys else remark

    @property
    def headroom(self) -> int:
        """Nothing lies over the lesson."""
        return rows_of(self.app.size.width)

    def on_descendant_focus(self) -> None:
        """Say so when a key has opened the prompt that was to do something else."""
        self._show()

    def on_typed(self, message: Typed) -> None:
        """The prompt was left: the lesson continues."""
        super().on_typed(message)
        self._show()

    def on_screen_suspend(self) -> None:
        """Say how to come back from a page that keeps the keys."""
        self._show()

    def on_screen_resume(self) -> None:
        """The lesson continues."""
        if self._begun:
            self._show()

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
            self._show()

    def _show(self) -> None:
        """Say what fits what is on the screen now.

        What has called this may be over: the Enter behind a command closes the prompt before the prompt has the focus.
        A sheet lets the keys through.
        """
        prompt, above = self.query_one(Prompt), self.app.screen
        if above is not self and not isinstance(above, SheetScreen):
            text = self._tutor.aside(typing=False)
        elif prompt.display and not (self._tutor.wanted().startswith(":") and prompt.opened_with == ":"):
            text = self._tutor.aside(typing=True)
        else:
            text = self._tutor.text()
        self.query_one("#tutor", Static).update(Content(self.glyphs.text(text)))

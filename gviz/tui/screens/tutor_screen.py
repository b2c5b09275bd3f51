"""The debugger with a guided lesson above it."""

from __future__ import annotations

from functools import cache
from textwrap import wrap
from typing import Any

from textual import events
from textual.app import ComposeResult
from textual.content import Content
from textual.geometry import Size
from textual.widgets import Static

from gviz.tui.language.command import Command
from gviz.tui.panel_choice import TALL
from gviz.tui.screens.debugger_screen import DebuggerScreen
from gviz.tui.screens.overlay_pages import SheetScreen
from gviz.tui.stop_reason import CursorStop
from gviz.tui.tutorial import Tutor, UserAction, every_text
from gviz.tui.widgets.panel_messages import Typed
from gviz.tui.widgets.prompt import Prompt
from gviz.tui.widgets.status_rows import EventRow

PRESS = "Press  "
TEXT_PADDING = 2
"""Blank columns of a lesson, as in app.tcss."""


def lesson_lines(text: str, width: int) -> list[str]:
    """Return the lines of a lesson; the key at its end stays on one line with the word before it."""
    head, press, key = text.rpartition(PRESS)
    whole = head + (press + key).replace(" ", "\0") if press else key
    return [each.replace("\0", " ") for each in wrap(whole, max(width - TEXT_PADDING, 1), break_on_hyphens=False)]


@cache
def rows_of(width: int) -> int:
    """Return the rows of the longest page, so that no page moves the panels."""
    return max(len(lesson_lines(text, width)) for text in every_text())


class Lesson(Static):
    """The text of the lesson, with room for the longest page."""

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Return the rows of the longest page."""
        return rows_of(width + TEXT_PADDING)

    def render(self) -> Content:
        """Return the text, wrapped to the width, with the key highlighted."""
        text = "\n".join(lesson_lines(str(self.content), self.outer_size.width))
        key = text.rpartition(PRESS)[2] if PRESS in text else ""
        return Content(text).stylize("bold reverse", len(text) - len(key))


class TutorScreen(DebuggerScreen):
    """Shows which key to press, and continues when it was pressed; every other key works as always."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._tutor = Tutor()
        self._begun = False
        super().__init__(*arguments, **options)
        self.session.own_keys = {}  # the keys of the lesson are in every keymap

    @property
    def room(self) -> Size:
        """The rest of the terminal, without the lesson, and with the row of keys if that is hidden."""
        width, height = self.app.size
        return Size(width, height - rows_of(width) + (not self.shows_keys))

    @property
    def least(self) -> Size:
        """The size with room for a panel below the lesson."""
        width, height = super().least
        return Size(width, height + rows_of(max(width, self.app.size.width)) - 1)

    @property
    def shows_keys(self) -> bool:
        """False on a low screen: the graph needs the row, and the lesson shows the next key."""
        return self.app.size.height >= TALL

    def compose(self) -> ComposeResult:
        """Yield the lesson above everything."""
        yield Lesson(Content(self._tutor.text()), id="tutor")
        yield from super().compose()

    def on_mount(self, event: events.Mount | None = None) -> None:
        """Begin: from now on keys count."""
        if event is not None:
            event.prevent_default()  # Textual would call the method of the base class again
        super().on_mount()
        self._begun = True

    def watch_remark(self, remark: str) -> None:
        """Show a remark in a visible row."""
        self.query_one(EventRow).remark = "" if self.shows_keys else remark

    @property
    def headroom(self) -> int:
        """No page covers the lesson."""
        return rows_of(self.app.size.width)

    def on_descendant_focus(self) -> None:
        """Show how to close a prompt that a key has opened by mistake."""
        self._show()

    def on_typed(self, message: Typed) -> None:
        """Continue the lesson: the prompt has closed."""
        message.prevent_default()  # Textual would run the command again
        super().on_typed(message)
        self._show()

    def on_screen_suspend(self) -> None:
        """Show how to come back from a page that keeps the keys."""
        self._show()

    def on_screen_resume(self) -> None:
        """Continue the lesson."""
        if self._begun:
            self._show()

    def run_one(self, command: Command) -> None:
        """Run a command; the lesson may wait for it."""
        super().run_one(command)
        self._see(command.name)

    def action_panel(self, panel: str) -> None:
        """Bring a panel to the front; the lesson may wait for it."""
        super().action_panel(panel)
        self._see(panel)

    def show_stop(self, stop: CursorStop) -> None:
        """Follow the cursor; the lesson may wait for its position."""
        super().show_stop(stop)
        self._see("")

    def watch_breaks(self) -> None:
        """Continue if the lesson waits for a breakpoint."""
        self._see("")

    def _see(self, command: str) -> None:
        if self._begun and self._tutor.notice(UserAction(command, self.session)):
            self._show()

    def _show(self) -> None:
        """Show the text that fits what is on the screen now.

        The event that has called this may be outdated: Enter after a command closes the prompt before the prompt has
        the focus. A sheet lets the keys through.
        """
        prompt, above = self.query_one(Prompt), self.app.screen
        if above is not self and not isinstance(above, SheetScreen):
            text = self._tutor.detour_text(typing=False)
        elif prompt.display and not (self._tutor.expected().startswith(":") and prompt.opened_with == ":"):
            text = self._tutor.detour_text(typing=True)
        else:
            text = self._tutor.text()
        self.query_one("#tutor", Static).update(Content(self.glyphs.text(text)))

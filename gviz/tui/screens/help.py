"""All keys on one screen, without scrolling at 80x24."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.screen import ModalScreen

from gviz.tui.drawing.keys import help_page
from gviz.tui.glyphs import Glyphs
from gviz.tui.widgets.styled import Page


class HelpScreen(ModalScreen[None]):
    """Any key leaves; the arrows scroll where the terminal is small."""

    SCROLLING: ClassVar[frozenset[str]] = frozenset({"up", "down", "pageup", "pagedown", "left", "right", "tab"})

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__()
        self._glyphs = glyphs

    def compose(self) -> ComposeResult:
        """One page."""
        page = Page(id="help")
        page.glyphs = self._glyphs
        yield page

    def on_mount(self) -> None:
        """Fill the page."""
        page = self.query_one(Page)
        page.set_title("Help: any key leaves")
        page.show(help_page())
        page.focus()

    def on_key(self, event: events.Key) -> None:
        """Leave at any key that does not scroll."""
        if event.key not in self.SCROLLING:
            event.stop()
            event.prevent_default()
            self.dismiss()

    def on_click(self) -> None:
        """Leave at a click."""
        self.dismiss()

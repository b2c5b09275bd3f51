"""A text over the debugger: the help, the commands, what a lesson says."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.geometry import Size

from gviz.tui.glyphs import Glyphs
from gviz.tui.lines import Line
from gviz.tui.screens.page import Page
from gviz.tui.widgets._base import LinkedPage
from gviz.tui.widgets.messages import Seek

Draw = Callable[[int], Iterable[Line]]


class Sheet(LinkedPage):
    """A page made to the width it gets."""

    def __init__(self, draw: Draw, glyphs: Glyphs, *, id: str = "sheet") -> None:
        super().__init__(id=id)
        self._draw_lines = draw
        self.glyphs = glyphs

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """The rows that the text takes at a width."""
        return len(tuple(self._draw_lines(width)))

    def draw(self) -> None:
        """Make the text."""
        self.show_fitted(self._draw_lines)


Take = Callable[[events.Key], None]
"""What a key does that must not wait for the bindings."""


class Over(Page[None]):
    """A screen with one page, below so many rows of the screen under it."""

    headroom = 0

    def on_mount(self) -> None:
        """Leave those rows in sight: a padding would move what is under it."""
        for page in self.children:
            page.styles.margin = (self.headroom, 0, 0, 0)

    def on_seek(self, message: Seek) -> None:
        """Leave, and let the debugger go to an event that the page speaks of; a second one comes too late."""
        message.stop()
        if self.is_active:
            debugger = self.app.screen_stack[-2]
            self.dismiss()
            debugger.post_message(Seek(message.position))


class SheetScreen(Over):
    """Any key leaves, but for those that scroll a text longer than the screen, or choose a number in it.

    Nobody's first key is lost: one that is not in `closing` also does what it does below, where `take` has the first
    look at it.
    """

    SCROLLING: ClassVar[frozenset[str]] = frozenset(
        {"up", "down", "left", "right", "pageup", "pagedown", "home", "end"}
    )

    def __init__(
        self, title: str, draw: Draw, glyphs: Glyphs, closing: Collection[str] = (), take: Take | None = None
    ) -> None:
        super().__init__()
        self._title, self._draw, self._glyphs = title, draw, glyphs
        self._closing_keys, self._take = {"escape", "enter", "space", *closing}, take

    def compose(self) -> ComposeResult:
        """One page."""
        yield Sheet(self._draw, self._glyphs)

    def on_mount(self) -> None:
        """Name the page."""
        sheet = self.query_one(Sheet)
        sheet.set_title(f"{self._title}: Esc closes this; other keys also act")
        sheet.all_of_it = ": PageDown"
        sheet.focus()

    def on_key(self, event: events.Key) -> None:
        """Leave at any key that does not scroll or follow a number; it goes on to the screen below.

        So do all that were typed behind it in one go, and still come here.
        """
        stays = self.is_current
        if stays and (event.key in self.SCROLLING or (event.key == "enter" and self.query_one(Sheet).link_chosen)):
            return
        event.prevent_default()
        if stays:
            self.dismiss()
        if stays and event.key in self._closing_keys:
            event.stop()
        elif self._take is not None:
            self._take(event)

    def on_click(self) -> None:
        """Leave at a click."""
        self.dismiss()


class QuestionScreen(Page[bool]):
    """A text with a question: y answers yes, any other key no, but for those that scroll a long one."""

    def __init__(self, title: str, draw: Draw, glyphs: Glyphs) -> None:
        super().__init__()
        self._title, self._draw, self._glyphs = title, draw, glyphs

    def compose(self) -> ComposeResult:
        """One page."""
        yield Sheet(self._draw, self._glyphs)

    def on_mount(self) -> None:
        """Name the page."""
        sheet = self.query_one(Sheet)
        sheet.set_title(self._title)
        sheet.all_of_it = ": PageDown"
        sheet.focus()

    def on_key(self, event: events.Key) -> None:
        """Answer."""
        if event.key not in SheetScreen.SCROLLING or not self.query_one(Sheet).max_scroll_y:
            event.stop()
            event.prevent_default()
            self.dismiss(event.key in ("y", "Y"))

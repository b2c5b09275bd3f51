"""What can be done with the selected node, as a list: for the right mouse button, and for a key."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from gviz.tui.glyphs import Glyphs
from gviz.tui.screens.page import Page

ENTRIES = (
    ("Run to its next event", "to"),
    ("Run back to its last event", "reverse-to"),
    ("Go to where it was made", "goto #{node}"),
    ("Everything about it", "node"),
    ("Why it is as it is", "explain"),
    ("Stop at it, or no longer", "break"),
    ("Watch its value", "watch #{node}"),
    ("Watch its gradient", "watch #{node}.grad"),
    ("Copy its value", "copy value"),
    ("Copy its gradient", "copy grad"),
    ("Back to the last change of its value", "last #{node}"),
    ("Back to the last change of its gradient", "last #{node}.grad"),
)
"""What is offered, and the line of the command language that does it; ``break`` switches on and off."""


class MenuScreen(Page[str | None]):
    """A list over the panels; gives the line that was chosen, None if nothing was."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,M", "leave", "Leave", show=False),
        Binding("j", "move(1)", show=False),
        Binding("k", "move(-1)", show=False),
    ]

    def __init__(self, node: int, title: str, glyphs: Glyphs) -> None:
        super().__init__()
        self._node, self._title, self._glyphs = node, title, glyphs

    def compose(self) -> ComposeResult:
        """The entries in a frame that has the node's title."""
        made = OptionList(*(Option(text, id=str(at)) for at, (text, _) in enumerate(ENTRIES)), id="menu", markup=False)
        made.border_title = Content(self._glyphs.text(self._title))
        yield made

    def action_move(self, steps: int) -> None:
        """As the arrows do; a key that is faster than the list is made waits for it."""
        if not self.is_mounted:
            self.call_later(self.action_move, steps)
            return
        for entries in self.query(OptionList):  # none once the menu leaves
            entries.action_cursor_down() if steps > 0 else entries.action_cursor_up()

    def action_leave(self) -> None:
        """Close without a line."""
        self.dismiss(None)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Close with the line of the chosen entry, for this node."""
        event.stop()
        self.dismiss(ENTRIES[event.option_index][1].replace("{node}", str(self._node)))

    def on_click(self, event: events.Click) -> None:
        """A click beside the list leaves."""
        if event.widget is self:
            self.dismiss(None)

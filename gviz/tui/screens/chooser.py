"""A list to choose a moment from: an iteration, or a phase of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from gviz.tui.glyphs import Glyphs
from gviz.tui.screens.page import Page


class ChooserScreen(Page[int | None]):
    """Rows with an event each; enter or a click answers with the event, escape with none."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "leave", show=False),
        Binding("j", "move(1)", show=False),
        Binding("k", "move(-1)", show=False),
    ]

    def __init__(self, title: str, rows: Sequence[tuple[str, int, bool]], glyphs: Glyphs) -> None:
        super().__init__()
        self._heading, self._rows, self._glyphs = title, rows, glyphs

    def compose(self) -> ComposeResult:
        """The list; what the moment lies in is marked."""
        marks = ((self._glyphs.now if here else " ", text, event) for text, event, here in self._rows)
        options = [Option(Content(self._glyphs.text(f"{mark} {text}"))) for mark, text, event in marks]
        yield OptionList(*options, id="chooser", classes="-panel", compact=True)

    def on_mount(self) -> None:
        """Stand where the moment is."""
        chooser = self.query_one(OptionList)
        chooser.border_title = Content(f"{self._heading}: enter goes there, esc leaves")
        chooser.highlighted = max((at for at, (_, _, here) in enumerate(self._rows) if here), default=0)
        chooser.focus()

    def action_move(self, steps: int) -> None:
        """As the arrows do."""
        chooser = self.query_one(OptionList)
        chooser.action_cursor_down() if steps > 0 else chooser.action_cursor_up()

    def action_leave(self) -> None:
        """Choose nothing."""
        self.dismiss(None)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Answer with the event of the row."""
        event.stop()
        self.dismiss(self._rows[event.option_index][1])

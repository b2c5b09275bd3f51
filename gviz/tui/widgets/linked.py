"""Pages with numbers that lead to the event that made them: by a click, or by the arrows and enter."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from textual.actions import SkipAction
from textual.binding import Binding, BindingType
from textual.content import Content

from gviz.tui.lines import Line, style_and_event
from gviz.tui.messages import Seek
from gviz.tui.widgets.styled import Page


class LinkedPage(Page):
    """Left and right choose a number that leads to an event, enter goes there."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "choose_link(-1)", show=False),
        Binding("right", "choose_link(1)", show=False),
        Binding("enter", "follow_link", show=False),
    ]

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._links: list[tuple[int, int, int]] = []
        self._linked = -1

    @property
    def link_chosen(self) -> bool:
        """Whether enter goes to an event."""
        return self._linked >= 0

    def show(self, lines: Iterable[Line]) -> None:
        """Replace the text; no number of the new one is chosen."""
        super().show(lines)
        rows = enumerate(self._lines)
        spans = ((y, at, style_and_event(style)[1]) for y, row in rows for at, (_, style) in enumerate(row))
        self._links, self._linked = [(y, at, event) for y, at, event in spans if event], -1

    def row(self, y: int) -> Line:
        """Row `y`, the chosen number in reverse."""
        line = super().row(y)
        if not self.link_chosen or self._links[self._linked][0] != y:
            return line
        chosen = self._links[self._linked][1]
        return tuple((text, "selected" if at == chosen else style) for at, (text, style) in enumerate(line))

    def action_choose_link(self, steps: int) -> None:
        """Choose the next number that leads somewhere, the first or last of them from neither."""
        if not self._links:
            raise SkipAction
        first = 0 if steps > 0 else len(self._links) - 1
        self._linked = (self._linked + steps) % len(self._links) if self.link_chosen else first
        y, _, event = self._links[self._linked]
        self.show_row(y)
        self.subtitle(Content(f"enter: event {event}"))
        self.redraw()

    def action_follow_link(self) -> None:
        """Go to the event of the chosen number; without one the key means what it means elsewhere."""
        if not self.link_chosen:
            raise SkipAction
        self.post_message(Seek(self._links[self._linked][2]))

"""A canvas that is dragged with the mouse, or moved by keys."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Offset
from textual.scroll_view import ScrollView


class Panned(ScrollView):
    """Moves its view; `dragged` tells a click from the end of a drag."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("shift+left", "pan(-8, 0)", show=False),
        Binding("shift+right", "pan(8, 0)", show=False),
        Binding("shift+up", "pan(0, -4)", show=False),
        Binding("shift+down", "pan(0, 4)", show=False),
    ]
    ALLOW_SELECT = False
    dragged = False
    _held: Offset | None = None

    def action_pan(self, x: int, y: int) -> None:
        """Move the view."""
        self.scroll_relative(x, y, animate=False, force=True)

    def rested_on(self, event: events.MouseMove) -> None:
        """The mouse has moved and no button is down."""

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """A drag pans."""
        self._held, self.dragged = event.screen_offset, False
        self.capture_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Pan by as much as the mouse has moved with a button down."""
        if self._held is None:
            self.rested_on(event)
        elif event.screen_offset != self._held:
            step = self._held - event.screen_offset
            self._held, self.dragged = event.screen_offset, True
            self.action_pan(step.x, step.y)

    def on_mouse_up(self) -> None:
        """The drag is over."""
        self._held = None
        self.release_mouse()

"""A canvas that is dragged with the mouse, or moved by keys."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import compress
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.geometry import Offset, Region, Size

from gviz.tui.widgets.sized import AROUND_TITLE, Sized

_SIDES = ("left", "right", "above", "below")


class Panned(Sized):
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
    _said_beyond = Content("")
    _hint = ""

    @property
    def view(self) -> Region:
        """The part of the canvas that is seen."""
        return Region(int(self.scroll_offset.x), int(self.scroll_offset.y), *self.scrollable_content_region.size)

    def hint(self, text: str) -> None:
        """What the lower border says while all is seen."""
        self._hint = text
        self.say_beyond()

    def sized(self) -> None:
        """More or less is seen."""
        self.say_beyond()

    def say_beyond(self) -> None:
        """Say in the lower border on which sides there is more than is seen, and how to get there."""
        sides = list(_sides_beyond(self.view, self.virtual_size))
        where = "on all sides" if len(sides) == len(_SIDES) else ", ".join(sides)
        said = Content(self._hint)
        if sides:
            fits = len(where) <= self.outer_size.width - len("more : shift+arrows") - AROUND_TITLE
            said = Content(f"more {where}: shift+arrows" if fits else "more: shift+arrows")
        if said != self._said_beyond:  # a title that is set draws the whole panel anew
            self.border_subtitle = self._said_beyond = said

    def _scroll_update(self, virtual_size: Size) -> None:
        """View or canvas have another size; their own events may come long after they are painted."""
        super()._scroll_update(virtual_size)
        self.say_beyond()

    def watch_scroll_x(self, old_value: float, new_value: float) -> None:
        """Another side may have come to an end."""
        super().watch_scroll_x(old_value, new_value)
        self.say_beyond()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Another side may have come to an end."""
        super().watch_scroll_y(old_value, new_value)
        self.say_beyond()

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


def _sides_beyond(view: Region, whole: Size) -> Iterator[str]:
    beyond = (view.x > 0, view.right < whole.width, view.y > 0, view.bottom < whole.height)
    return compress(_SIDES, beyond)

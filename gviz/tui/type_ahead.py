"""Type-ahead: input that arrives in one read has the same effect as if it came key by key.

Textual sends a key to the widget that has the focus when the key is read. The key before it may be about to open a
prompt or a page, to close one, or to move the focus; each of these takes messages between widgets. The letters of
``:watch x.grad`` in one read would go to the widget that has the focus at that time. Here, the next key waits until the
widgets that handled the previous key have answered all their messages. It does not wait for the background task of a
command, so a key can stop that.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from textual import events
from textual.message_pump import MessagePump

if TYPE_CHECKING:
    from textual.app import App

ORDERED = (events.Key, events.Paste, events.MouseDown, events.MouseUp, events.MouseScrollUp, events.MouseScrollDown)
"""Input that may change which widget gets the next input."""

_MOST_ROUNDS = 50
"""How many times to wait for the same widgets: one that keeps sending itself messages must not block keys."""

_PATIENCE_SECONDS = 0.5
"""How long to wait for a widget: one that was removed in the meantime never answers."""

Deliver = Callable[[events.Event], Awaitable[None]]


class TypeAhead:
    """Keeps the input of an application in order; `deliver` handles one event."""

    def __init__(self, app: App[None], deliver: Deliver) -> None:
        self._app, self._deliver = app, deliver
        self._waiting: deque[events.Event] = deque()
        self._next: events.Event | None = None
        self._delivered: events.Event | None = None
        self._settling: asyncio.Task[None] | None = None

    @property
    def is_busy(self) -> bool:
        """Whether any input is waiting, or the last event is still being handled."""
        return self._settling is not None

    async def take(self, event: events.Event) -> None:
        """Deliver an event now if nothing is before it, else in its turn. Called while the application handles it."""
        if self._settling is not None and event is not self._next:
            self._waiting.append(event)
            return
        self._next = None
        if not self._app.screen_stack:
            return  # the application is exiting
        before = self._widgets()
        self._delivered = event
        await self._deliver(event)
        self._settling = asyncio.create_task(self._settle(before))

    def repeats(self) -> int:
        """Remove the waiting keys that repeat the one that is being delivered; return their number.

        A key that is held down repeats faster than a screen can be drawn.
        """
        key = self._delivered.key if isinstance(self._delivered, events.Key) else ""
        count = 0
        while key and self._waiting and isinstance(after := self._waiting[0], events.Key) and after.key == key:
            self._waiting.popleft()
            count += 1
        return count

    async def _settle(self, before: list[MessagePump]) -> None:
        """Wait until the delivered event is done, then send the next one through the queue of the application."""
        for _ in range(_MOST_ROUNDS):
            widgets = list(dict.fromkeys([*before, *self._widgets()]))
            idle = not _have_messages(widgets)
            for pump in widgets:
                await _answered(pump)
            if idle and not _have_messages(widgets) and self._widgets()[0] in widgets:
                break
        if self._waiting:
            self._next = self._waiting.popleft()
            self._app.post_message(self._next)
        else:
            self._settling = None

    def _widgets(self) -> list[MessagePump]:
        """Return the widgets that a key passes: the one with the focus, its ancestors, the screen, the application."""
        if not self._app.screen_stack:
            return [self._app]
        return [*(self._app.focused or self._app.screen).ancestors_with_self]


def _have_messages(pumps: list[MessagePump]) -> bool:
    return any(pump.message_queue_size for pump in pumps if pump.is_running)


async def _answered(pump: MessagePump) -> None:
    """Wait until a widget has answered all messages that it has now."""
    answered = asyncio.Event()
    if pump.call_later(answered.set):
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                await answered.wait()
        except TimeoutError:
            return

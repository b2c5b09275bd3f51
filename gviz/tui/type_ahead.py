"""Type-ahead: what arrives in one read does what it would do if it came one by one.

Textual hands a key to the widget that has the focus when the key is read. A key before it may be about to open a prompt
or a page, to close one, or to move the focus; each of these takes messages between widgets. The letters of
``:watch x.grad`` in one read would go to the widget that has the focus by then. Here the next key waits until the
widgets that the key before went through have answered all their messages. It does not wait for the background task of
a command, so that a key can stop that.
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
"""A widget that sends itself messages for ever delays no key longer than this."""

_PATIENCE_SECONDS = 0.5
"""How long to wait for a widget: one that was removed in the meantime never answers."""

Deliver = Callable[[events.Event], Awaitable[None]]


class TypeAhead:
    """Keeps what an application gets in order; `deliver` is what the application does with one event."""

    def __init__(self, app: App[None], deliver: Deliver) -> None:
        self._app, self._deliver = app, deliver
        self._waiting: deque[events.Event] = deque()
        self._next: events.Event | None = None
        self._delivered: events.Event | None = None
        self._settling: asyncio.Task[None] | None = None

    @property
    def works(self) -> bool:
        """Whether anything waits, or the last event is not done."""
        return self._settling is not None

    async def take(self, event: events.Event) -> None:
        """Deliver an event now if nothing is before it, else in its turn. Called while the application handles it."""
        if self._settling is not None and event is not self._next:
            self._waiting.append(event)
            return
        self._next = None
        if not self._app.screen_stack:
            return  # it leaves
        before = self._way()
        self._delivered = event
        await self._deliver(event)
        self._settling = asyncio.create_task(self._settle(before))

    def repeats(self) -> int:
        """Take the keys out of the row that only repeat the one that is being delivered; how many there were.

        A key that is held down sends more of them than there is time to draw a screen for.
        """
        key = self._delivered.key if isinstance(self._delivered, events.Key) else ""
        count = 0
        while key and self._waiting and isinstance(after := self._waiting[0], events.Key) and after.key == key:
            self._waiting.popleft()
            count += 1
        return count

    async def _settle(self, before: list[MessagePump]) -> None:
        """Wait until what was delivered is done, then send the next event through the queue of the application."""
        for _ in range(_MOST_ROUNDS):
            way = list(dict.fromkeys([*before, *self._way()]))
            idle = not _have_messages(way)
            for pump in way:
                await _answered(pump)
            if idle and not _have_messages(way) and self._way()[0] in way:
                break
        if self._waiting:
            self._next = self._waiting.popleft()
            self._app.post_message(self._next)
        else:
            self._settling = None

    def _way(self) -> list[MessagePump]:
        """The widgets that a key goes through: the one with the focus, those around it, the screen, the application."""
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

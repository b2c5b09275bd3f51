"""What a command has to do before it is answered, a little at a time: the screen stays awake, and ctrl+c ends it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from gviz.system.cooperative import paced
from gviz.tui.language.command import Reply, Work

AT_ONCE_SECONDS = 0.1
"""So long nobody notices that the screen stands still."""

_PAUSE_SECONDS = 0.005


class Waiting(Protocol):
    """What an errand needs of the screen whose command waits."""

    def call_next(self, callback: Callable[[], None], /) -> None:
        """Call something when the messages that have come are answered."""

    def say(self, remark: str) -> None:
        """Say something in the bottom row."""


class Errand:
    """The work of at most one command. When its turn comes, `resume` is given what goes on with it."""

    def __init__(self, screen: Waiting, resume: Callable[[Callable[[], Reply | None]], None]) -> None:
        self._screen, self._resume = screen, resume
        self._left: Work | None = None
        self._name = ""

    @property
    def goes_on(self) -> bool:
        """Whether something is being done."""
        return self._left is not None

    def begin(self, name: str, work: Work) -> Reply | None:
        """Work for a moment; the answer, or None if that goes on. Raises GvizError where there is no answer."""
        self._left, self._name = paced(work, AT_ONCE_SECONDS), name
        return self._advance()

    def cancel(self) -> bool:
        """Give up; whether there was anything to give up."""
        gone, self._left = self._left, None
        if gone is not None:
            self._screen.say(f"{self._name} was stopped; the time is where it was")
        return gone is not None

    def _take_turn(self) -> None:
        if self._left is not None:
            self._resume(self._advance)

    def _advance(self) -> Reply | None:
        work, self._left = self._left, None
        if work is None:
            return None
        try:
            far = next(work)
        except StopIteration as end:
            reply: Reply = end.value
            return reply
        self._left = work
        self._screen.say(f"{far}; ctrl+c stops")
        # No timer of Textual: one never rings if its time is over before it is set, as it may be on a busy machine.
        asyncio.get_running_loop().call_later(_PAUSE_SECONDS, self._screen.call_next, self._take_turn)
        return None

"""A long search for the next stop, a little at a time, so that the screen stays awake and ctrl+c ends it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import monotonic
from typing import Protocol

from textual.timer import Timer

from gviz.tui.commands import stopping
from gviz.tui.language.command import Command
from gviz.tui.session import Session

AT_ONCE_SECONDS = 0.1
"""So long nobody notices that the screen stands still."""

_PAUSE_SECONDS = 0.005


class Waiting(Protocol):
    """What a search needs of the screen whose command waits."""

    session: Session

    def set_timer(self, delay: float, callback: Callable[[], None], /) -> Timer:
        """Call something a little later."""

    def say(self, remark: str) -> None:
        """Say something in the bottom row."""


class Search:
    """What is looked for before a command can be carried out, at most one at a time; `found` goes on with it."""

    def __init__(self, screen: Waiting, found: Callable[[Command], None]) -> None:
        self._screen, self._found = screen, found
        self._left: Iterator[int] | None = None
        self._command: Command | None = None

    @property
    def goes_on(self) -> bool:
        """Whether something is looked for."""
        return self._left is not None

    def begin(self, command: Command) -> bool:
        """Look for where a command leads; whether that goes on, and the command has to wait."""
        backward = command.name.startswith("reverse-")
        cursor = self._screen.session.cursor
        self._command = command
        self._left = stopping.searched(cursor.timeline, cursor.breakpoints, cursor.position, backward=backward)
        if self._advance():
            self._left = None
            return False
        self._screen.set_timer(_PAUSE_SECONDS, self._go_on)
        return True

    def cancel(self) -> bool:
        """Give up; whether there was anything to give up."""
        gone, self._left = self._left, None
        if gone is not None:
            self._screen.say("the search was stopped; the time is where it was")
        return gone is not None

    def _go_on(self) -> None:
        if self._left is None or self._command is None:
            return
        if self._advance():
            self._left = None
            self._found(self._command)
        else:
            self._screen.set_timer(_PAUSE_SECONDS, self._go_on)

    def _advance(self) -> bool:
        """Look on for a moment; whether all was looked at."""
        until = monotonic() + AT_ONCE_SECONDS
        for event in self._left or ():
            if monotonic() > until:
                self._screen.say(
                    f"looking for a stop: event {event:,} of {len(self._screen.session.timeline):,}; ctrl+c stops"
                )
                return False
        return True

"""Stepping by itself, until a key or the end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from textual.timer import Timer

from gviz.tui.language.command import Command
from gviz.tui.session import Session

PLAY_SECONDS = 0.4


class Stepping(Protocol):
    """What a player needs of a screen."""

    session: Session

    def set_interval(self, interval: float, callback: Callable[[], None], /) -> Timer:
        """Call something again and again."""

    def run_command(self, command: Command) -> None:
        """Carry out a command."""


class Player:
    """Steps while its timer runs; at most one timer at a time."""

    def __init__(self, screen: Stepping) -> None:
        self._screen = screen
        self._timer: Timer | None = None

    @property
    def plays(self) -> bool:
        """Whether it steps by itself."""
        return self._timer is not None

    def play(self, speed: int = 0) -> None:
        """Step by itself, `speed` times as fast as usual (0: as it is set)."""
        self.pause()
        speed = speed or int(self._screen.session.settings.values["speed"].removesuffix("x"))
        self._timer = self._screen.set_interval(PLAY_SECONDS / speed, self.play_on)

    def pause(self) -> None:
        """Stand still."""
        if self._timer is not None:
            self._timer.stop()
            self._timer = None

    def play_on(self) -> None:
        """One step; where there is none, the end."""
        cursor = self._screen.session.cursor
        before = cursor.position
        self._screen.run_command(Command("step"))
        if cursor.position == before:
            self.pause()

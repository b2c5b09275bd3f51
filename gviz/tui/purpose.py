"""What a program under control is let run for, as a command says it."""

from __future__ import annotations

from dataclasses import dataclass

from gviz.live.protocol import Mode, Wish
from gviz.tui.arrival import Reason, by_command, saying
from gviz.tui.commands.table import BY_NAME
from gviz.tui.language.command import Command
from gviz.where.stop import Stop, stop


@dataclass(frozen=True, slots=True)
class Purpose:
    """A command that began at moment `start`, the wish that it is to the program, and how often it is still to be done.

    A program that runs on `until` something stops there, and at any breakpoint before. `passed` is the stop that it has
    gone on from, where it is to come to several.
    """

    name: str
    start: int
    wish: Wish
    left: int = 1
    until: Stop | None = None
    passed: int = 0

    @property
    def after(self) -> int:
        """The moment behind which it looks for its next stop."""
        return max(self.start, self.passed)

    @property
    def reason(self) -> Reason:
        """Why the program stands where the wish has led it: nobody has typed the one that it starts with."""
        if self.name != "start":
            return by_command(self.name)
        return saying(f"held at its first {'backward()' if self.wish.mode == 'backward' else 'node'}")


def mode_of(command: Command) -> Mode | None:
    """How the program runs by a command, None if it does not."""
    spec = BY_NAME[command.name]
    return spec.runs if command.argument else spec.runs_bare or spec.runs


def until_of(command: Command) -> Stop | None:
    """What a command that runs on names to stop at."""
    return stop(command.argument) if command.argument and mode_of(command) == "continue" else None

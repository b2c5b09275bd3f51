"""Reads lines one after the other: what is typed, what scripts hold, what breakpoints carry out where they stop."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

from gviz.errors import GvizError
from gviz.plain_text import clipped, shown
from gviz.tui.arrival import Arrival
from gviz.tui.breakpoints import Breakpoints, Listed
from gviz.tui.commands.table import REPEATED
from gviz.tui.language.command import Command, Confirm, Reply, Said, Script
from gviz.tui.language.parsing import parse, spec_of

MOST = 10_000
"""Lines that one typed line may lead to, through scripts and the commands of breakpoints."""


@dataclass(slots=True)
class _Collected:
    """The commands of a breakpoint, up to `end`."""

    breakpoint: Listed
    lines: list[str]


class _Line(NamedTuple):
    """A line that waits: from which script it is, or from which breakpoint, if nobody typed it."""

    text: str
    origin: str = ""
    at_stop: bool = False


class Reader:
    """Turns lines into commands.

    An empty line repeats the last command that moves or looks; ``commands`` takes the lines up to ``end``; a question
    takes its answer.
    """

    def __init__(self, breakpoints: Breakpoints | None = None) -> None:
        self.breakpoints = breakpoints
        self._last = Command("step")
        self._collected: _Collected | None = None
        self._asked: Confirm | None = None
        self._waiting: deque[_Line] = deque()
        self._left = MOST
        self._at = _Line("")

    @property
    def sign(self) -> str:
        """What stands before a line that is no command: ``y/n``, or ``>`` for the commands of a breakpoint."""
        return "y/n" if self._asked is not None else ">" if self._collected is not None else ""

    @property
    def waits(self) -> bool:
        """Whether there are lines to carry out."""
        return bool(self._waiting)

    @property
    def at_stop(self) -> bool:
        """Whether the last line was one of those that a breakpoint carries out where it stops."""
        return self._at.at_stop

    def typed(self, text: str) -> None:
        """Take a line that somebody typed; `next` gives what it means."""
        self._left = MOST
        self._waiting.appendleft(_Line(text))

    def forget_line(self) -> None:
        """What is carried out next is of no line, until `next` gives one."""
        self._at = _Line("")

    def next(self) -> Command | Said | None:
        """The next command to carry out, something to say instead, or None where nothing waits.

        Raises GvizError for a line that cannot be read; the lines behind it are dropped.
        """
        if not self._waiting:
            return None
        self._at = self._waiting.popleft()
        self._left -= 1
        if self._left < 0:
            self._waiting.clear()
            raise GvizError(f"stopped after {MOST} commands", hint="the commands of a breakpoint may run in circles")
        try:
            return self._read(self._at.text)
        except GvizError as error:
            raise self.refused(error) from None

    def take(self, reply: Reply) -> None:
        """Remember what the answer to a command leads to."""
        match reply:
            case Script(lines, origin):
                self._waiting.extendleft(_Line(line, origin) for line in reversed(lines))
            case Confirm():
                self._asked = reply
            case Arrival(then=lines, reason=reason):
                self._waiting.extendleft(_Line(line, reason.words, at_stop=True) for line in reversed(lines))

    def refused(self, error: GvizError) -> GvizError:
        """Drop what waits, because a command could not be carried out; the error, with the line of a script."""
        left = len(self._waiting)
        self._waiting.clear()
        text, origin, _ = self._at
        self._at = _Line("")
        if not origin:
            return error
        behind = f", {left} line{'s' * (left != 1)} behind it left out" if left else ""
        why = "; ".join(filter(None, (error.why, f"at {clipped(shown(text.strip()), 40)} in {origin}{behind}")))
        return GvizError(error.what, why=why, hint=error.hint, exit_code=error.exit_code)

    def _read(self, text: str) -> Command | Said:
        if self._asked is not None:
            return self._answered(text.strip().lower())
        if self._collected is not None:
            return self._collect(self._collected, text.strip())
        command = parse(text) if text.strip() else self._last
        if command.name == "commands":
            return self._begin(command.argument)
        if command.name in REPEATED:
            self._last = Command(command.name) if spec_of(command).goes_on else command
        return command

    def _answered(self, answer: str) -> Said:
        asked, self._asked = self._asked, None
        if asked is None or answer not in ("y", "yes"):
            return Said(("left as it was.",))
        self.take(asked.then)
        return Said(())

    def _begin(self, text: str) -> Said:
        """``commands [N]``, or all in one line: ``commands N print x ;; continue``."""
        number, _, rest = text.partition(" ")
        if self.breakpoints is None or not self.breakpoints.listed:
            raise GvizError("there are no breakpoints yet", hint="break sets one", exit_code=2)
        chosen = self.breakpoints.one_numbered(number or ".")
        if rest.strip():
            return _given(chosen, [line.strip() for line in rest.split(";;")])
        self._collected = _Collected(chosen, [])
        return Said((f"commands of breakpoint {chosen.number}, one a line; end ends them.",))

    def _collect(self, collected: _Collected, text: str) -> Said:
        if text != "end":
            collected.lines.append(text)
            return Said(())
        self._collected = None
        return _given(collected.breakpoint, collected.lines)


def _given(chosen: Listed, lines: list[str]) -> Said:
    for line in filter(None, lines):
        parse(line)
    chosen.commands = tuple(filter(None, lines))
    count = len(chosen.commands)
    return Said((f"breakpoint {chosen.number} carries out {count} command{'' if count == 1 else 's'}.",))

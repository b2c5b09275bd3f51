"""Where a command of the debugger ended, and why: the words of a debugger's stop reasons."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gviz.trace.state import BAD, Bad
from gviz.values.plain_text import clipped

Kind = Literal["command", "breakpoint", "held", "error", "nonfinite", "mark", "start", "end", "live end", "remark"]
"""A command went as far as it goes; a breakpoint stopped it; the program is held; what has happened there; it goes no
further that way, or not before the program runs on; else what there is to say."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why time stands still: `text` says it, of a command by its name, of a breakpoint with its number.

    `thread` is the one that the program was held in, where that is not the main one.
    """

    kind: Kind
    text: str
    breakpoint: int = 0
    thread: str = ""

    @property
    def words(self) -> str:
        """As it is said: ``breakpoint 1 in thread worker``."""
        return self.text + (f" in thread {clipped(self.thread, 20)}" if self.thread else "")

    def is_command(self, *names: str) -> bool:
        """Whether it is a command of one of these names."""
        return self.kind == "command" and self.text in names

    @property
    def asked_for(self) -> bool:
        """Whether it is worth more than what the event is: a stop that was asked for, a program that is held."""
        return self.kind in ("breakpoint", "held")


START = Reason("start", "start of recording")
END = Reason("end", "end of recording")
LIVE_END = Reason("live end", "live end")
ERROR = Reason("error", "error")
FIRST_BAD: dict[Bad, Reason] = {bad: Reason("nonfinite", f"first {bad}") for bad in BAD}

ENDS: dict[Kind, str] = {
    "end": "nothing comes after this event",
    "start": "nothing was before it (Caps Lock? small letters go on)",
    "live end": "s n f c let the program run on",
}
"""What there is to say where a way through time has come to an end."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """Where a command ended and why. `start` is where it began.

    `said` is what log points had to say on the way, `then` are the commands of the breakpoint that stopped it.
    """

    position: int
    start: int
    reason: Reason
    said: tuple[str, ...] = ()
    then: tuple[str, ...] = ()

    @property
    def backward(self) -> bool:
        """Whether time ran backwards."""
        return self.position < self.start

    @property
    def notice(self) -> str:
        """What to say beside the reason: the last thing that log points had to say, else what helps at an end."""
        if self.said:
            return self.said[-1] + (f" (and {len(self.said) - 1} before)" if len(self.said) > 1 else "")
        why = self.reason
        if why.kind == "live end" or (why.kind in ENDS and self.position == self.start):
            return f"{why.words}: {ENDS[why.kind]}"
        return ""


def by_command(name: str) -> Reason:
    """A command of this name went as far as it goes."""
    return Reason("command", name)


def saying(text: str) -> Reason:
    """What there is to say where no stop is worth a word."""
    return Reason("remark", text)


CONTINUE = by_command("continue")

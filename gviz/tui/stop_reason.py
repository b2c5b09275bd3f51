"""Where a command of the debugger ended, and why: the words of a debugger's stop reasons."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gviz.trace.graph_state import BAD, Bad
from gviz.values.plain_text import clipped

Kind = Literal["command", "breakpoint", "held", "error", "nonfinite", "mark", "start", "end", "live end", "remark"]
"""A command went as far as it goes; a breakpoint stopped it; the program is held; an error, nan or mark is there; an
end of the recording, which may be live; else a remark."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a command stopped: `text` is its name, or names the breakpoint with its number.

    `thread` is the one that the program was held in, where that is not the main one.
    """

    kind: Kind
    text: str
    breakpoint: int = 0
    thread: str = ""

    @property
    def words(self) -> str:
        """As it is shown: ``breakpoint 1 in thread worker``."""
        return self.text + (f" in thread {clipped(self.thread, 20)}" if self.thread else "")

    def is_command(self, *names: str) -> bool:
        """Whether it is a command of one of these names."""
        return self.kind == "command" and self.text in names

    @property
    def asked_for(self) -> bool:
        """Whether it goes before what the event is: a stop that was asked for, or a program that is held."""
        return self.kind in ("breakpoint", "held")


START = Reason("start", "start of recording")
END = Reason("end", "end of recording")
LIVE_END = Reason("live end", "stopped at the live end")
ERROR = Reason("error", "error")
FIRST_BAD: dict[Bad, Reason] = {bad: Reason("nonfinite", f"first {bad}") for bad in BAD}

ENDS: dict[Kind, str] = {
    "end": "nothing comes after this event",
    "start": "nothing comes before it (Caps Lock? small letters go forward)",
    "live end": "the program is paused here. s n f c let it run on",
}
"""What helps at an end of the recording."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """Where a command ended and why. `start` is where it began.

    `said` are the messages of log points on the way, `then` the commands of the breakpoint that stopped it.
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
        """What to show next to the reason: the last message of a log point, else what helps at an end."""
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
    """A remark, where there is no reason to name."""
    return Reason("remark", text)


CONTINUE = by_command("continue")

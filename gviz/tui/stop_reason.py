"""Where a command of the debugger ended, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gviz.trace.graph_state import BAD, Bad
from gviz.values.plain_text import clipped

Kind = Literal["command", "breakpoint", "held", "error", "nonfinite", "mark", "start", "end", "live end", "remark"]
"""Why a command ended.

It did all it does (``command``), or a breakpoint stopped it, or the program paused (``held``), or there is an error,
nan or mark, or an end of the recording, which may be live. Anything else is a remark.
"""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a command ended: `text` is the command's name, or names the breakpoint with its number.

    `thread` is the thread in which the program paused, if it is not the main one.
    """

    kind: Kind
    text: str
    breakpoint: int = 0
    thread: str = ""

    @property
    def words(self) -> str:
        """The text that is shown: ``breakpoint 1 in thread worker``."""
        return self.text + (f" in thread {clipped(self.thread, 20)}" if self.thread else "")

    def is_command(self, *names: str) -> bool:
        """Return whether it is a command with one of these names."""
        return self.kind == "command" and self.text in names

    @property
    def takes_precedence(self) -> bool:
        """Whether it takes precedence over the kind of event: a breakpoint, or a paused program."""
        return self.kind in ("breakpoint", "held")


START = Reason("start", "start of recording")
END = Reason("end", "end of recording")
LIVE_END = Reason("live end", "stopped at the live end")
ERROR = Reason("error", "error")
FIRST_BAD: dict[Bad, Reason] = {bad: Reason("nonfinite", f"first {bad}") for bad in BAD}

ENDS: dict[Kind, str] = {
    "end": "nothing comes after this event",
    "start": "nothing comes before it (Caps Lock? small letters go forward)",
    "live end": "the program is paused here; s, n, f and c resume it",
}
"""A hint for each end of the recording."""


@dataclass(frozen=True, slots=True)
class CursorStop:
    """Where a command began (`start`) and ended, and why.

    `messages` contains the messages of log points on the way, `then` the commands of the breakpoint that stopped it.
    """

    position: int
    start: int
    reason: Reason
    messages: tuple[str, ...] = ()
    then: tuple[str, ...] = ()

    @property
    def backward(self) -> bool:
        """Whether the command moved backwards in time."""
        return self.position < self.start

    @property
    def notice(self) -> str:
        """The text next to the reason: the last message of a log point, else the hint for an end."""
        if self.messages:
            return self.messages[-1] + (f" (and {len(self.messages) - 1} before)" if len(self.messages) > 1 else "")
        why = self.reason
        if why.kind == "live end" or (why.kind in ENDS and self.position == self.start):
            return f"{why.words}: {ENDS[why.kind]}"
        return ""


def by_command(name: str) -> Reason:
    """Return the reason of a command that did all it does."""
    return Reason("command", name)


def as_remark(text: str) -> Reason:
    """Return a remark, for a stop without another reason."""
    return Reason("remark", text)


CONTINUE = by_command("continue")

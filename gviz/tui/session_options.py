"""How a session of the debugger begins and ends, for every front end.

It begins over a recording (`SessionOptions`), or over a program that it starts (`LiveSessionOptions`). If a program
waits for it, as in ``gviz.breakpoint()``, the session ends with an `ExitAction`. A program in another process reads
that from the exit code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from gviz.live.debugger_side import ControlledProgram, Report
    from gviz.live.protocol import Mode
    from gviz.source.call_stack import Frame
    from gviz.trace.timeline import Timeline
    from gviz.tui.cursor import Cursor


@dataclass(frozen=True, slots=True)
class Title:
    """What the debugger has opened: a program and its arguments, or a trace file. Paths may contain blanks."""

    path: str = ""
    arguments: tuple[str, ...] = ()

    @property
    def file(self) -> str:
        """The file without its folders: ``train.py``."""
        return PurePath(self.path).name

    @property
    def brief(self) -> str:
        """The command line without the folders: ``train.py --lr 0.1``."""
        return " ".join((self.file, *self.arguments))

    @property
    def whole(self) -> str:
        """The command line: ``/home/me/train.py --lr 0.1``."""
        return " ".join((self.path, *self.arguments))


UNTITLED = Title()


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """How a session over a recording begins."""

    title: Title = UNTITLED
    at: int | None = None
    """The event to open at; by default the failure of the program, else the first event."""
    opening: tuple[str, ...] = ()
    """Commands that run before any key."""
    lesson: bool = False
    """Whether to show the text at the top of the program first."""
    waited_for: bool = False
    """Whether the program waits for the session to end, and needs an `ExitAction`."""
    stack: tuple[Frame, ...] = ()
    """The call stack of the waiting program, innermost frame first; empty if it is unknown."""

    def position(self, timeline: Timeline) -> int:
        """Return the event of a recording to open at."""
        return start_of(timeline) if self.at is None else self.at

    def cursor(self, timeline: Timeline) -> Cursor:
        """Return a cursor at that event."""
        from gviz.tui.cursor import Cursor  # lazy: the command line builds options without a session
        from gviz.tui.source_location import PausedStack

        cursor = Cursor(timeline, self.position(timeline))
        if self.stack:
            cursor.paused_stacks[cursor.position] = PausedStack(self.stack, cursor.selected)
        return cursor


DEFAULT = SessionOptions()


@dataclass(frozen=True, slots=True)
class StartedProgram:
    """A program that was started and waits for its first wish, and the beginning of its recording."""

    program: ControlledProgram
    timeline: Timeline


Launch: TypeAlias = "Callable[[Callable[[Report], None], tuple[int, int]], StartedProgram]"
"""Starts the program in a terminal of a size; the callback gets its reports."""


@dataclass(frozen=True, slots=True)
class LiveSessionOptions:
    """How a session begins over a program, which `launch` starts and the session controls."""

    launch: Launch
    first: Mode
    """How the program runs from its start, if there is no breakpoint."""
    title: Title = UNTITLED
    opening: tuple[str, ...] = ()
    """Commands that run before the program begins, for example to set breakpoints."""
    commands: tuple[str, ...] = ()
    """Commands that run one after the other, each when the program pauses."""
    script: tuple[str, str] = ("", "")
    """The path and the text of the program, which are shown until anything is recorded."""


def start_of(timeline: Timeline) -> int:
    """Return the first event to show: the failure of the program, else the first event that is not a repeat."""
    return timeline.failures[-1] if timeline.failures else min(timeline.dropped.again + 1, len(timeline))


ExitAction = Literal["continue", "detach", "stop"]
"""What a waiting program does when the session ends: run to its next stop, run without further stops, or end."""

EXIT_CODES: Mapping[ExitAction, int] = {"continue": 0, "detach": 10, "stop": 11}
"""The exit codes of a debugger in a process of its own; for any other code the program runs on."""

EXIT_COMMANDS: Mapping[str, ExitAction] = {"detach": "detach", "kill": "stop"}
"""Commands about a program under ``gviz run``, and their effect on a program that waits."""

EXIT_QUESTION = "Waiting. c: run to next stop · k: run without stops · s: stop it · Esc: stay"
EXIT_ANSWERS: Mapping[str, ExitAction] = {"c": "continue", "k": "detach", "s": "stop"}


def by_exit_code(code: int) -> ExitAction:
    """Return the action of an exit code."""
    return next((action for action, known in EXIT_CODES.items() if known == code), "continue")

"""How a session of the debugger begins, whatever shows it: over a recording, or over a program that it starts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gviz.tui.title import UNTITLED, Title

if TYPE_CHECKING:
    from gviz.live.protocol import Mode
    from gviz.source.site import Frame
    from gviz.trace.timeline import Timeline
    from gviz.tui.cursor import Cursor
    from gviz.tui.live import Launch


@dataclass(frozen=True, slots=True)
class Beginning:
    """What is known before anybody has typed anything."""

    title: Title = UNTITLED
    at: int | None = None
    """The event it opens at; without one where the program failed, else at the first event."""
    opening: tuple[str, ...] = ()
    """Commands that are carried out before any key."""
    lesson: bool = False
    """Whether the text at the program's top comes first."""
    waited_for: bool = False
    """Whether the program waits: who leaves says what becomes of it."""
    stack: tuple[Frame, ...] = ()
    """Where it stands meanwhile, innermost frame first, if that is known."""

    def position(self, timeline: Timeline) -> int:
        """The event of a recording that it opens at."""
        return start_of(timeline) if self.at is None else self.at

    def cursor(self, timeline: Timeline) -> Cursor:
        """Who stands there."""
        from gviz.tui.cursor import Cursor  # late: who only says how to begin needs nothing that moves in time
        from gviz.tui.places import Stood

        cursor = Cursor(timeline, self.position(timeline))
        if self.stack:
            cursor.stood[cursor.position] = Stood(self.stack, cursor.selected)
        return cursor


USUAL = Beginning()


@dataclass(frozen=True, slots=True)
class LiveBeginning:
    """The same of a program, which `launch` starts and the session holds."""

    launch: Launch
    first: Mode
    """How it runs from its start, where no breakpoint is set."""
    title: Title = UNTITLED
    opening: tuple[str, ...] = ()
    """Commands that set up what is wanted before the program begins."""
    commands: tuple[str, ...] = ()
    """Commands that are carried out one after the other, each when the program stands still."""


def start_of(timeline: Timeline) -> int:
    """Where a viewer begins: at the failure, if the program failed, else at the first event that is not said again."""
    return timeline.failures[-1] if timeline.failures else min(timeline.dropped.again + 1, len(timeline))

"""The errors of a recording: the one that ended the program, and those of passes that it caught."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from gviz.events import BackwardFinished, BackwardStarted, Failed
from gviz.site import Frame, source_lines
from gviz.trace.timeline import Timeline


@dataclass(frozen=True, slots=True)
class Trouble:
    """One error at event `seq`: its class and words, the node at fault (0: none), the stack where it was raised."""

    timeline: Timeline
    seq: int
    error: str
    message: str
    node: int
    frames: tuple[Frame, ...]

    @property
    def at(self) -> Frame | None:
        """The line that raised it."""
        return self.frames[0] if self.frames else None

    def says(self, pattern: str) -> bool:
        """Whether its words match a regular expression."""
        return re.search(pattern, self.message, re.DOTALL) is not None

    def names_on_its_line(self) -> tuple[str, ...]:
        """The names on the line that raised it, in the order of the line."""
        text = self.timeline.source(self.at.path) if self.at is not None else None
        rows = source_lines(text) if text else []
        there = self.at is not None and 0 < self.at.line <= len(rows)
        return tuple(re.findall(r"[A-Za-z_]\w*", rows[self.at.line - 1].split("#")[0])) if there and self.at else ()


def trouble_at(timeline: Timeline, seq: int) -> Trouble | None:
    """The error that an event tells of."""
    event = timeline.event(seq)
    if isinstance(event, Failed):
        frames = timeline.stack(event.stack)
        return Trouble(timeline, seq, event.error, event.message, event.node, frames)
    if isinstance(event, BackwardFinished) and event.error:
        return _of_a_pass(timeline, seq, event)
    return None


def troubles(timeline: Timeline) -> Iterator[Trouble]:
    """All errors: those that ended a pass and were caught, and those with which the program failed."""
    found = (trouble_at(timeline, seq) for seq in timeline.errors)
    return (trouble for trouble in found if trouble is not None)


def _of_a_pass(timeline: Timeline, seq: int, event: BackwardFinished) -> Trouble:
    starts = (phase.start for phase in timeline.phases if phase.pass_nr == event.pass_nr)
    started = timeline.event(next(starts, seq))
    frames = timeline.stack(started.stack) if isinstance(started, BackwardStarted) else ()
    return Trouble(timeline, seq, "RuntimeError", event.error, timeline.at(seq).node, frames)

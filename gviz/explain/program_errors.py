"""The errors of a recording: the one that ended the program, and those of passes that it caught."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from gviz.events import BackwardFinished, Failed
from gviz.explain.backward_passes import pass_started
from gviz.explain.program_source import line_text
from gviz.source.site import Frame
from gviz.trace.graph_state import NodeInfo
from gviz.trace.timeline import Timeline

_LOOKED_AT = 1000
"""The number of nodes before an error that are searched."""


@dataclass(frozen=True, slots=True)
class Failure:
    """One error at event `seq`: its class and message, its node (0: none), and the stack where it was raised.

    It ended the program, or else a backward pass.
    """

    timeline: Timeline
    seq: int
    error: str
    message: str
    node: int
    frames: tuple[Frame, ...]

    @property
    def ended(self) -> str:
        """Return in words what it ended."""
        return "the program failed" if isinstance(self.timeline.event(self.seq), Failed) else "a backward pass ended"

    @property
    def at(self) -> Frame | None:
        """Return the line that raised it."""
        return self.frames[0] if self.frames else None

    def says(self, pattern: str) -> bool:
        """Return whether its class and message match a regular expression."""
        return re.search(pattern, self.message, re.DOTALL) is not None

    @property
    def line(self) -> str:
        """Return the text of the line that raised it, without its comment; empty if it is unknown."""
        return line_text(self.timeline, self.at).split("#")[0]

    def made_before(self) -> Iterator[NodeInfo]:
        """Yield the last nodes that were made before it, the latest first. Usually the error is about one of them."""
        born = self.timeline.nodes.born
        before = (node for node in reversed(self.timeline.nodes) if born(node) < self.seq)
        return map(self.timeline.info, islice(before, _LOOKED_AT))

    def names_on_its_line(self) -> tuple[str, ...]:
        """Return the names on the line that raised it, in the order of the line."""
        return tuple(re.findall(r"[A-Za-z_]\w*", self.line))


def failure_at(timeline: Timeline, seq: int) -> Failure | None:
    """Return the error at an event; None for any other event, and for moment 0."""
    if not seq:
        return None
    event = timeline.event(seq)
    if isinstance(event, Failed):
        frames = timeline.stack(event.stack)
        return Failure(timeline, seq, event.error, event.message, event.node, frames)
    if isinstance(event, BackwardFinished) and event.error:
        return _failure_of_pass(timeline, seq, event)
    return None


def all_failures(timeline: Timeline) -> Iterator[Failure]:
    """Yield all errors: those that ended a pass and were caught, and those that ended the program."""
    found = (failure_at(timeline, seq) for seq in timeline.errors)
    return (failure for failure in found if failure is not None)


def _failure_of_pass(timeline: Timeline, seq: int, event: BackwardFinished) -> Failure:
    started = pass_started(timeline, event.pass_nr)
    frames = timeline.stack(started.stack) if started is not None else ()
    return Failure(timeline, seq, event.raised or "an error", event.error, timeline.at(seq).node, frames)

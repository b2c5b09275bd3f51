"""With which event a backward pass began, and what was asked of it then."""

from __future__ import annotations

from gviz.events import BackwardStarted
from gviz.trace.timeline import Timeline


def start_of_pass(timeline: Timeline, pass_nr: int) -> int:
    """The event with which a pass began; 0 for none, for one within another, and where that is not recorded."""
    latest_first = reversed(timeline.phases)
    return next((phase.start for phase in latest_first if pass_nr and phase.pass_nr == pass_nr), 0)


def pass_started(timeline: Timeline, pass_nr: int) -> BackwardStarted | None:
    """What was asked of a pass; None where `start_of_pass` knows no event."""
    start = start_of_pass(timeline, pass_nr)
    event = timeline.event(start) if start else None
    return event if isinstance(event, BackwardStarted) else None

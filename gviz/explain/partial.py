"""Whether a recording holds only a part of what its program computed."""

from __future__ import annotations

from gviz.events import Warned
from gviz.trace.timeline import Timeline

RECORD_ALL = "record everything around it, without --module and --phase"


def is_partial(timeline: Timeline) -> bool:
    """Whether only some modules were recorded, or only backward passes."""
    return timeline.once(_asked, 0)


def _asked(timeline: Timeline, _: int) -> bool:
    return any(event.unseen in ("modules", "forward") for _, event in timeline.select([Warned]))

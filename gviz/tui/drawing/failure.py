"""The node panel where the program failed: cause and remedy, then the program's own words."""

from __future__ import annotations

from collections.abc import Iterator

from gviz.explain.failures import failure_at
from gviz.explain.names import label
from gviz.trace.moment import Moment
from gviz.trace.timeline import Timeline
from gviz.tui.lines import TIED, Line, labelled, line, link, wrapped

MESSAGE = 1200
"""An error message longer than this is cut: the whole is in the program's output."""


def failure_lines(timeline: Timeline, moment: Moment, width: int) -> Iterator[Line]:
    """Error, cause, remedy, what led to it, and the message last because it is long; nothing where nothing failed."""
    if failure_at(timeline, moment.n) is None:
        return
    from gviz.explain.why import (
        diagnosis,  # with every kind of finding: imported where something failed, for a fast start
    )

    found = diagnosis(timeline, moment)
    if found is None:
        return
    at = f" at {label(timeline, found.node)}" if found.node else ""
    yield from wrapped(line((f"{found.error}{at}", "error")), width)
    if found.cause:
        yield from labelled("cause", [(found.cause, "")], width)
    for what, seq in found.related:
        yield from labelled("", [(f"{what}, ", "muted"), (f"event{TIED}{seq}", link("key", seq))], width)
    if found.remedy:
        yield from labelled("fix", [(found.remedy, "title")], width)
    for text in found.message[:MESSAGE].splitlines():
        yield from wrapped(line(text), width)
    yield ()

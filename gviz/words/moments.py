"""Which moment a text means: ``12``, ``start``, ``end``, ``fwd``, ``bwd``, ``nan``, ``error``, ``'mark``, a node."""

from __future__ import annotations

from collections.abc import Mapping

from gviz.errors import GvizError
from gviz.plain_text import clipped
from gviz.trace.timeline import Timeline
from gviz.words.nodes import event_number, node_at

NO_MARKS: Mapping[str, int] = {}


def event_at(timeline: Timeline, text: str, n: int = 0, node: int = 0, marks: Mapping[str, int] = NO_MARKS) -> int:
    """The event number that `text` means to who stands at moment `n`, looks at `node` and has set `marks`.

    A node means the event that made it. GvizError for what there is not.
    """
    match text:
        case "start":
            return 0
        case "end":
            return len(timeline)
        case "fwd":
            return _phase(timeline, "forward", n)
        case "bwd":
            return _phase(timeline, "backward", n)
        case "nan":
            return _existing(timeline.first_bad(), "no nan or inf in this recording")
        case "error":
            return _existing(_error(timeline, n), "no error in this recording")
    if text.startswith("'"):
        return _marked(timeline, text[1:], marks)
    if text.removeprefix("@").isdigit():
        return event_number(timeline, text.removeprefix("@"))
    return timeline.info(node_at(timeline, text, node)).born


def _phase(timeline: Timeline, kind: str, n: int) -> int:
    """The start of the next phase of a kind after a moment, else of the first."""
    starts = [phase.start for phase in timeline.phases if phase.kind == kind]
    return next((start for start in starts if start > n), starts[0] if starts else n)


def _error(timeline: Timeline, n: int) -> int:
    """What the program failed with, else the next error that it caught, else the first; 0 if there is none."""
    errors = timeline.failures[-1:] or timeline.errors
    return next((error for error in errors if error > n), errors[0] if errors else 0)


def _marked(timeline: Timeline, name: str, marks: Mapping[str, int]) -> int:
    known = {mark: seq for seq, mark in timeline.marks} | dict(marks)
    if name not in known:
        raise GvizError(f"there is no mark {clipped(name, 30)}", hint="mark NAME sets one", exit_code=2)
    return known[name]


def _existing(event: int, otherwise: str) -> int:
    if not event:
        raise GvizError(otherwise, exit_code=2)
    return event

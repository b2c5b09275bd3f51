"""Parameters that one step of an optimizer made many times as large: what too large numbers are often made of."""

from __future__ import annotations

from collections.abc import Iterator

from gviz.events import DataSet, StorageWritten
from gviz.explain.finding import Finding
from gviz.explain.names import label, made_at
from gviz.explain.ways import ancestors
from gviz.explain.writes import step_of
from gviz.numbers import number
from gviz.plain_text import shown
from gviz.trace.timeline import Timeline
from gviz.values import Value

LEAP = 10
"""A step that makes a parameter so many times as large, and larger than that, is one too long."""

Leap = tuple[float, float, int, int]
"""What a parameter was after a step and before it, which parameter it is, and by which event."""


def leapt(timeline: Timeline, node: int, n: int) -> Finding | None:
    """The leap that led furthest, of the parameters of a node, in the last write to each before event `n`."""
    leaves = (source for source in ancestors(timeline, node) if timeline.info(source).created.kind != "op")
    leap = max((leap for leaf in leaves for leap in _of(timeline, leaf, n)), default=None)
    if leap is None:
        return None
    after, before, leaf, seq = leap
    step = step_of(timeline, leaf, seq)
    frames, kind = (timeline.stack(step.stack), shown(step.kind)) if step is not None else ((), "optimizer")
    text = (
        f"the step of {kind}{made_at(frames)} took {label(timeline, leaf)} from rms {number(before)} to {number(after)}"
    )
    return Finding("leapt", text, seq, leaf, at=frames[0] if frames else None)


def _of(timeline: Timeline, leaf: int, n: int) -> Iterator[Leap]:
    """The last step that wrote to a leaf, if it was too long."""
    seqs = (seq for seq in reversed(timeline.events_of(leaf)) if seq < n)
    seq = next((seq for seq in seqs if isinstance(timeline.event(seq), StorageWritten | DataSet)), 0)
    if not seq or step_of(timeline, leaf, seq) is None:
        return
    before, after = (_rms(timeline.held(leaf, 0, at)) for at in (seq - 1, seq))
    if 0 < before * LEAP <= after and after >= LEAP:
        yield after, before, leaf, seq


def _rms(value: Value | None) -> float:
    stats = value.statistics() if value is not None else None
    return stats.rms if stats is not None else 0.0

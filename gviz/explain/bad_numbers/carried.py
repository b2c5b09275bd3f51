"""Whose nan or inf a write has put into a ``.grad``: its own, or that of another that the same call wrote to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gviz.events import GradAccumulated, GradSet, NodeCreated, grad_left
from gviz.explain.expressions import called
from gviz.explain.grad_writes import GradWrite, write_at
from gviz.trace.log import expect
from gviz.trace.timeline import Timeline
from gviz.value_text import bad_text
from gviz.values import Value


@dataclass(frozen=True, slots=True)
class Beside:
    """The ``.grad`` of `node`, bad since event `filled`, that the line of a write wrote to as well.

    `sure` if it is known that the write took it in: one call has clipped both by the norm that they have together.
    """

    node: int
    filled: int
    sure: bool


def went_in(timeline: Timeline, seq: int) -> tuple[int, int] | None:
    """The bad ``.grad`` that is known to have gone into the one that event `seq` wrote: its node, and until when."""
    event = timeline.event(seq)
    if not isinstance(event, GradSet):
        return None
    write = write_at(timeline, seq)
    if write is None or _stayed(timeline, write):
        return event.node, seq - 1
    beside = bad_beside(timeline, write)
    return (beside.node, beside.filled) if beside is not None and beside.sure else None


def bad_beside(timeline: Timeline, write: GradWrite) -> Beside | None:
    """The bad ``.grad`` beside a write that may have spoilt it, or is known to have."""
    event = expect(timeline, write.seq, GradSet)
    found = [_seen(timeline, write, *one) for one in _written_alike(timeline, event, write.seq)]
    return next((one for one in found if one.sure), found[0] if found and bad_text(write.after) else None)


def _written_alike(timeline: Timeline, write: GradSet, seq: int) -> Iterator[tuple[int, int, int]]:
    """The other gradients that a pass left bad, and that the stack of a write wrote to next: node, since when, when."""
    starts = [phase.start for phase in timeline.phases if phase.kind == "backward" and phase.start < seq]
    for filled, event in timeline.select((GradAccumulated,), starts[-1] if starts else 1, seq):
        node = expect(timeline, filled, GradAccumulated).node
        later = ((n, e) for n in timeline.events_of(node) if n > filled and isinstance(e := timeline.event(n), GradSet))
        at, after = next(later, (0, None))
        if after is not None and node != write.node and after.stack == write.stack and bad_text(grad_left(event)):
            yield node, filled, at


def _seen(timeline: Timeline, write: GradWrite, node: int, filled: int, at: int) -> Beside:
    return Beside(node, filled, _is_norm_of(timeline, write, filled) and _in_one_call(timeline, write, at))


def _is_norm_of(timeline: Timeline, write: GradWrite, filled: int) -> bool:
    """Whether a write did what a norm that is no number, or infinite, does: all became nan, or zero."""
    bad, stats = bad_text(grad_left(timeline.event(filled))), write.after.statistics() if write.after else None
    return (
        stats is not None
        and write.after is not None
        and (stats.nan if "nan" in bad else stats.zero) == write.after.size
    )


def _in_one_call(timeline: Timeline, write: GradWrite, other: int) -> bool:
    """Whether one call of ``clip_grad_norm_`` made two writes: between them nothing is computed anew."""
    between = timeline.select((NodeCreated,), min(write.seq, other), max(write.seq, other))
    return called(timeline, write.at) == "clip_grad_norm_" and all(
        output.version for _, event in between for output in event.outputs
    )


def _stayed(timeline: Timeline, write: GradWrite) -> bool:
    """Whether each bad element was bad before: of arrays that were not kept, whether as many were, in place."""
    before, after = write.before, write.after
    if before is None or after is None or not bad_text(before) or before.shape != after.shape:
        return False
    old, new = timeline.array(before), timeline.array(after)
    if old is not None and new is not None:
        return bool((np.isfinite(new) | ~np.isfinite(old)).all())
    return _is_in_place(timeline, write.seq) and _bad_counts(before) == _bad_counts(after)


def _is_in_place(timeline: Timeline, seq: int) -> bool:
    return expect(timeline, seq, GradSet).how == "in place"


def _bad_counts(value: Value) -> tuple[int, int]:
    stats = value.statistics()
    return (stats.nan, stats.inf) if stats is not None else (0, 0)

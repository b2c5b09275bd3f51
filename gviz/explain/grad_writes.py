"""What a program did to a ``.grad`` after a pass: who wrote to it, at which line, and what that made of the numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gviz.events import Event, GradAccumulated, GradRetained, GradSet
from gviz.numbers import bad_text, grad, number
from gviz.site import Frame
from gviz.trace.log import expect
from gviz.trace.timeline import Timeline
from gviz.values import Array, Value

_NEAR = 1e-4
"""By how much two factors may differ that are one: they were rounded in the program's dtype."""


@dataclass(frozen=True, slots=True)
class Write:
    """A write to a ``.grad`` by event `seq` at a line of the program, which made `after` of `before`."""

    seq: int
    before: Value | None
    after: Value
    frames: tuple[Frame, ...]

    @property
    def at(self) -> Frame | None:
        """The line that wrote, if it is known."""
        return self.frames[0] if self.frames else None


def held_after(event: Event | None) -> Value | None:
    """The ``.grad`` that an event of it leaves behind."""
    match event:
        case GradAccumulated(part=part, value=value):
            return part if value is None else value
        case GradSet(value=value) | GradRetained(value=value):
            return value
    return None


def writes_since_pass(timeline: Timeline, node: int, seq: int) -> tuple[int, list[Write]]:
    """The event that filled a ``.grad`` last (0: none is known), and the writes since then up to event `seq`.

    A write that changed no number is left out, as the second half of ``w.grad /= 2`` is one.
    """
    filled, sets = 0, list[tuple[int, GradSet]]()
    for earlier in reversed([n for n in timeline.events_of(node) if n <= seq]):
        event = timeline.event(earlier)
        if isinstance(event, GradSet) and event.node == node:
            sets.insert(0, (earlier, event))
        elif isinstance(event, GradAccumulated | GradRetained) and event.node == node:
            filled = earlier
            break
    return filled, list(_changes(timeline, filled, sets))


def _changes(timeline: Timeline, filled: int, sets: list[tuple[int, GradSet]]) -> Iterator[Write]:
    event = timeline.event(filled) if filled else None
    before = held_after(event)
    for seq, write in sets:
        if write.value is not None and write.value != before:
            yield Write(seq, before, write.value, timeline.stack(write.stack))
        before = write.value


def bad_beside(timeline: Timeline, seq: int) -> tuple[int, int] | None:
    """A ``.grad`` that held a nan or inf before the line of write `seq` wrote to it, and after: its node, since when.

    What a line does to all gradients alike, as clipping by their norm does, carries a bad number of one to all others.
    """
    write = expect(timeline, seq, GradSet)
    starts = [phase.start for phase in timeline.phases if phase.kind == "backward" and phase.start < seq]
    for filled, event in timeline.select((GradAccumulated,), starts[-1] if starts else 1, seq):
        node = expect(timeline, filled, GradAccumulated).node
        later = (n for n in timeline.events_of(node) if n > filled)
        after = next((e for e in map(timeline.event, later) if isinstance(e, GradSet)), None)
        if after is not None and after.stack == write.stack and bad_text(held_after(event)) and bad_text(after.value):
            return node, filled
    return None


def effect(timeline: Timeline, write: Write) -> str:
    """What a write did: ``multiplied by 0.05``, ``cut off at 5 in 3 of 12 elements``, ``changed from a to b``."""
    before, after = _numbers(timeline, write.before), _numbers(timeline, write.after)
    if before is None or after is None or before.shape != after.shape:
        return f"{'set' if write.before is None else f'changed from {grad(write.before)}'} to {grad(write.after)}"
    if not after.any():
        return "set to zero"
    scale = factor(before, after)
    if scale is not None:
        return f"multiplied by {number(scale)}"
    border = abs(after).max()
    cut_off = after != before
    if before.ndim and np.array_equal(after, before.clip(-border, border)):
        return f"cut off at {number(border)} in {cut_off.sum()} of {cut_off.size} elements"
    return f"changed from {grad(write.before)} to {grad(write.after)}"


def factor(before: Array, after: Array) -> float | None:
    """The one number that every element was multiplied by, None if there is none."""
    squared = float(before.ravel() @ before.ravel())
    if not squared:
        return None
    scale = float(before.ravel() @ after.ravel()) / squared
    missed = abs(after - scale * before).max()
    return scale if scale and missed <= _NEAR * abs(scale) * abs(before).max() else None


def _numbers(timeline: Timeline, value: Value | None) -> Array | None:
    """All elements in double precision; of an array that was not kept its statistics, which scale alike."""
    if value is None or bad_text(value):
        return None
    array = timeline.array(value)
    if array is not None:
        return array.astype(np.float64) if array.dtype.kind == "f" else None
    stats = value.statistics()
    return None if stats is None else np.array([stats.min, stats.max, stats.mean, stats.rms])

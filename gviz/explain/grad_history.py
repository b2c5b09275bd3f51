"""The history of a ``.grad``: what passes added to it, and what the program wrote to it."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from gviz.events import Event, GradAccumulated, GradRetained, GradSet, OptimizerStepped, grad_left
from gviz.source.call_stack import Frame
from gviz.trace.graph_state import OutputState
from gviz.trace.timeline import Timeline
from gviz.values.number_text import number
from gviz.values.value import Array, Value
from gviz.values.value_text import bad_text, grad

CLEARED = frozenset({"none", "zero"})
"""The values of `GradSet.how` if the program cleared a ``.grad``."""


@dataclass(frozen=True, slots=True)
class Accumulation:
    """One addition to a ``.grad``: `before` += `part`.

    `before` is there since pass `since` (0: it is not from a pass), by event `event`.
    """

    before: Value
    part: Value
    since: int
    event: int


def accumulation(timeline: Timeline, node: int, output: OutputState) -> Accumulation | None:
    """Return how the ``.grad`` of a leaf was added up, if there was one before."""
    event = timeline.event(output.grad_seq) if output.grad_seq else None
    if not isinstance(event, GradAccumulated) or event.value is None:
        return None
    state = timeline.at(output.grad_seq - 1).state(node)
    old = state.outputs[0] if state is not None else None
    if old is None or old.grad is None:
        return None
    setter = timeline.event(old.grad_seq) if old.grad_seq else None
    since = setter.pass_nr if isinstance(setter, GradAccumulated) else 0
    return Accumulation(old.grad, event.part, since, old.grad_seq)


def passes_added(timeline: Timeline, node: int, seq: int) -> list[tuple[int, GradAccumulated]]:
    """Return the passes that add up to the ``.grad`` of event `seq`, in order; empty if it has other parts, too.

    For example, a program may have set or changed it in between.
    """
    added: list[tuple[int, GradAccumulated]] = []
    for earlier in reversed([n for n in timeline.events_of(node) if n <= seq]):
        event = timeline.event(earlier)
        if isinstance(event, GradAccumulated):
            added.insert(0, (earlier, event))
            if event.value is None:
                return added
        elif isinstance(event, GradSet):
            return []
    return []


def passes_in(timeline: Timeline, node: int, seq: int) -> tuple[int, ...]:
    """Return the passes whose gradients are in the ``.grad`` of event `seq`, in order; empty if that is not known."""
    passes: list[int] = []
    for earlier in reversed([n for n in timeline.events_of(node) if n <= seq]):
        event = timeline.event(earlier)
        if isinstance(event, GradAccumulated) and event.node == node:
            passes.insert(0, event.pass_nr)
            if event.value is None:
                return tuple(passes)
        elif isinstance(event, GradSet) and event.node == node:
            return tuple(passes) if event.how in CLEARED else ()
    return ()


def holds_older(timeline: Timeline, node: int, seq: int, start: int) -> bool:
    """Return whether the ``.grad`` of event `seq` holds what was there before the last pass that added to it.

    So it does if the last pass that added to it ran before event `start`.
    """
    events = timeline.events_of(node)
    for earlier in reversed(events[: bisect_right(events, seq)]):
        event = timeline.event(earlier)
        if isinstance(event, GradAccumulated) and event.node == node:
            if event.value is None or earlier < start:
                return earlier < start
            state = timeline.at(earlier - 1).state(node)
            before = state.outputs[0].grad if state is not None and state.outputs else None
            return before is not None and not is_zero(before)
        if isinstance(event, GradSet) and event.node == node and event.how in CLEARED:
            return False
    return False


def is_zero(value: Value | None) -> bool:
    """Return whether every element is zero."""
    stats = value.statistics() if value is not None and value.size else None
    return value is not None and stats is not None and stats.zero == value.size


# Writes of the program: the writer, its line, and the effect on the numbers

_PRECISION = {name: float(np.finfo(name).eps) for name in ("float16", "float32", "float64")} | {"bfloat16": 2.0**-7}
"""The relative distance between neighbouring numbers of a dtype, which is the precision of the program."""


@dataclass(frozen=True, slots=True)
class GradWrite:
    """A write to a ``.grad`` by event `seq` at a line of the program, from `before` to `after` (None: no grad)."""

    seq: int
    before: Value | None
    after: Value | None
    frames: tuple[Frame, ...]

    @property
    def at(self) -> Frame | None:
        """The line that wrote, if it is known."""
        return self.frames[0] if self.frames else None


def writes_since_pass(timeline: Timeline, node: int, seq: int) -> tuple[int, list[GradWrite]]:
    """Return the event that filled a ``.grad`` last (0: unknown), and the writes since then up to event `seq`.

    A write that changed no number is left out, and so is the second half of ``w.grad /= 2``.
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


def _changes(timeline: Timeline, filled: int, sets: list[tuple[int, GradSet]]) -> Iterator[GradWrite]:
    before, previous = grad_left(timeline.event(filled)) if filled else None, None
    for seq, write in sets:
        known = _is_known(before) and _is_known(write.value)
        if before != write.value if known else not _is_second_half(timeline, previous, write):
            yield GradWrite(seq, before, write.value, timeline.stack(write.stack))
        before, previous = write.value, write


def _is_second_half(timeline: Timeline, previous: GradSet | None, write: GradSet) -> bool:
    """Return whether a write assigns what the same line has just changed in place, as ``w.grad /= 2`` does."""
    if previous is None or (previous.how, write.how) != ("in place", "assigned"):
        return False
    lines = [[(frame.path, frame.line) for frame in timeline.stack(one.stack)[:1]] for one in (previous, write)]
    return lines[0] == lines[1] != []


def write_at(timeline: Timeline, seq: int) -> GradWrite | None:
    """Return the write at an event; None if the event is no write, or changed no number."""
    event = timeline.event(seq) if seq else None
    writes = writes_since_pass(timeline, event.node, seq)[1] if isinstance(event, GradSet) else []
    return writes[-1] if writes and writes[-1].seq == seq else None


def write_effect(timeline: Timeline, write: GradWrite, *, brief: bool = False) -> str:
    """Return the effect of a write: ``multiplied by 0.05``, ``cut off at 5 in 3 of 12 elements``,
    ``changed from a to b``.

    A text about elements holds for each of them, and needs a stored array. In `brief`, where both values are shown next
    to it, it is ``changed``.
    """
    if write.after is None:
        return "cleared"
    if not write.after.is_known:
        return "written to"
    if is_zero(write.after):
        return "set to zero"
    return uniform_effect(timeline, write.before, write.after) or _from_to(write.before, write.after, brief=brief)


def _from_to(before: Value | None, after: Value, *, brief: bool) -> str:
    if before is None:
        return f"set to {grad(after)}"
    return "changed" if brief else f"changed from {grad(before)} to {grad(after)}"


def uniform_effect(timeline: Timeline, was: Value | None, became: Value | None) -> str:
    """Return what was done to all elements alike; empty if that is unknown."""
    before, after = _elements(timeline, was), _elements(timeline, became)
    if became is None or before is None or after is None or before.shape != after.shape:
        return ""
    scale = common_factor(before, after, _PRECISION[became.dtype])
    if scale is not None:
        return f"multiplied by {number(scale)}"
    border, cut_off = abs(after).max(initial=0), after != before
    if 0 < cut_off.sum() < cut_off.size and np.array_equal(after, before.clip(-border, border)):
        return f"cut off at {number(border)} in {cut_off.sum()} of {cut_off.size} elements"
    return ""


def uniform_factor(timeline: Timeline, was: Value | None, became: Value | None) -> float | None:
    """Return the one factor of all elements; None if there is none or it is unknown."""
    before, after = _elements(timeline, was), _elements(timeline, became)
    if became is None or before is None or after is None or before.shape != after.shape:
        return None
    return common_factor(before, after, _PRECISION[became.dtype])


def common_factor(before: Array, after: Array, precision: float) -> float | None:
    """Return the one number, not 1, by which each element was multiplied; None if there is none.

    It is unknown for elements that are all the same: they may have been set.
    """
    if len(np.unique(before[before != 0])) < 2:
        return None
    largest = abs(before).argmax()
    scale = float(after.flat[largest] / before.flat[largest])
    scaled = scale * before
    is_one = abs(scale - 1) <= 2 * precision
    fits = abs(after - scaled) <= 2 * precision * abs(scaled)
    return scale if fits.all() and not is_one else None


def _is_known(value: Value | None) -> bool:
    """Return whether the numbers are known. They are if there is no gradient."""
    return value is None or value.is_known


def _elements(timeline: Timeline, value: Value | None) -> Array | None:
    """Return all elements in double precision, if they were stored and are real and finite."""
    array = timeline.array(value) if value is not None and not bad_text(value) else None
    return array.astype(np.float64) if array is not None and array.dtype.kind == "f" else None


# What the steps of optimizers used

Additions = dict[int, list[tuple[int, GradAccumulated]]]
"""By parameter, the events with which passes added to its ``.grad`` since it was cleared or stepped with."""


def additions_at_steps(events: Iterable[tuple[int, Event]]) -> Iterator[tuple[int, OptimizerStepped, Additions] | None]:
    """Yield each step with the additions to the gradients that it used; None for the other events in between.

    `events` has the events of the classes `GradAccumulated`, `GradSet` and `OptimizerStepped`, in order.
    """
    used: Additions = defaultdict(list)
    for seq, event in events:
        match event:
            case GradAccumulated(node=node, value=value):
                used[node] = [*(used[node] if value is not None else []), (seq, event)]
            case GradSet(node=node, how=how) if how in CLEARED:
                used.pop(node, None)
            case OptimizerStepped(parameters=parameters):
                yield seq, event, {node: used.pop(node) for node in parameters if node in used}
                continue
        yield None

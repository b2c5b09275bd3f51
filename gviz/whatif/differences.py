"""The gradients that one recorded node sent to its inputs, beside central differences of its operation in float64."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import numpy as np

from gviz import emit
from gviz import events as e
from gviz.errors import GvizError
from gviz.trace.state import NodeInfo
from gviz.trace.timeline import Timeline
from gviz.values import Array, Value
from gviz.whatif.functions import Forward, forward_of
from gviz.whatif.inputs import inputs_of, stored
from gviz.whatif.moved import Moved

MOST_ELEMENTS = 200
"""Elements of one input that are tried; of a larger one so many, some from all over it and some of every magnitude."""

_STEP, _FINE_STEP = 1e-6, 1e-9
"""By so much an element is moved, for each unit of its size; where that does not agree by less: it may bend there."""

_TOLERANCES = {"float16": (2e-2, 2e-2), "bfloat16": (2e-2, 2e-2), "float32": (1e-3, 1e-4)}
_TOLERANCE = 1e-5, 1e-6
"""By how much of itself, and of the largest beside it, what was sent may miss the slope in numbers of a dtype."""

_DECISIVE = 1e-2
"""By so much of the largest a rule that is wrong misses it somewhere."""

_DIGITS = 1e-15
"""Digits that are lost where an output is moved."""

_CANCELLED = 1e-2
"""So much of the gradients that arrived counts as the largest, where most of it cancels."""


@dataclass(frozen=True, slots=True)
class Checked:
    """What went to one input, `recorded`, and what differences give, for the elements at `places` of the input.

    The input has the `shape`, and holds the `numbers` there. `agrees` says of each whether the two are as close as
    numbers of the recording's dtype can be; `at_kink` whether what was sent lies between the slopes to both sides,
    which are two there (relu at 0): any of these is right.
    """

    slot: str
    node: int
    recorded: Array
    differences: Array
    places: Array
    shape: tuple[int, ...]
    numbers: Array
    agrees: Array
    at_kink: Array

    @property
    def size(self) -> int:
        """The number of elements of the input."""
        return prod(self.shape)

    @property
    def indices(self) -> list[tuple[int, ...]]:
        """Where the elements that were tried are."""
        return [tuple(map(int, np.unravel_index(place, self.shape))) for place in self.places]

    @property
    def differs(self) -> Array:
        """Of which elements what was sent is wrong, or is meant to be something else."""
        differs: Array = ~(self.agrees | self.at_kink)
        return differs

    @property
    def is_decisive(self) -> bool:
        """Whether some of it is so wrong that no rounding within the rule explains it."""
        misses = np.abs(self.recorded - self.differences)[self.differs]
        return float(misses.max(initial=0.0)) > _DECISIVE * float(np.abs(self.differences).max(initial=0.0))

    @property
    def largest(self) -> float:
        """The largest difference between the two."""
        return float(np.abs(self.recorded - self.differences).max(initial=0.0))


def checked(
    timeline: Timeline, node: int, n: int, most: int = MOST_ELEMENTS, work: float = float("inf")
) -> list[Checked]:
    """Try every input to which the node sent a gradient in the last pass up to moment `n`, else in the first later one.

    Of each input `most` elements are tried. GvizError for a node that has no rule, that no pass went through, whose
    numbers were not stored, that cannot be run on its own, or that is more than so much `work` (see `work_of`).
    """
    info = timeline.info(node)
    started = _step_at(timeline, info, n)
    flows = _flows(timeline, node, started)
    forward = forward_of(timeline, info)
    if work_of(timeline, info, forward) > work:
        raise GvizError(f"{info.op.name} of #{node} takes long to be run again and again", exit_code=2)
    arrays = inputs_of(timeline, info)
    event = timeline.event(started)
    grads = event.grads if isinstance(event, e.StepStarted) else ()
    seeds = [None if grad is None else stored(timeline, node, "gradient", grad) for grad in grads]
    with emit.silence():
        operation = Moved(info, forward, arrays, seeds)
        return [_compared(timeline, operation, slot, part, most) for slot, part in flows.items()]


def work_of(timeline: Timeline, info: NodeInfo, forward: Forward) -> int:
    """How much it is to run a node once: its operations, times the elements that it was given and gave."""
    given = (timeline.held(*edge, info.born - 1) for edge in info.created.inputs if edge[0])
    values = [*given, *(output.value for output in info.created.outputs)]
    return forward.operations * max((value.size for value in values if value is not None), default=0)


def _step_at(timeline: Timeline, info: NodeInfo, n: int) -> int:
    """The event that began the node's step in the pass that counts."""
    steps = [seq for seq in timeline.events_of(info.node) if isinstance(timeline.event(seq), e.StepStarted)]
    if info.created.kind != "op":
        raise GvizError(f"#{info.node} is a {info.created.kind}: it has no rule to check", exit_code=2)
    if not steps:
        hint = f"explain #{info.node} says why"
        raise GvizError(f"no backward pass went through #{info.node}", hint=hint, exit_code=2)
    return max((seq for seq in steps if seq <= n), default=steps[0])


def _flows(timeline: Timeline, node: int, started: int) -> Mapping[int, Value]:
    """What the node sent to its inputs after the event `started`, by input."""
    found: dict[int, Value] = {}
    for _, event in timeline.select((e.GradFlowed, e.StepFinished), started):
        if isinstance(event, e.StepFinished) and event.node == node:
            break
        if isinstance(event, e.GradFlowed) and event.source == node:
            found[event.slot] = event.part
    return found


def _compared(timeline: Timeline, operation: Moved, slot: int, part: Value, most: int) -> Checked:
    info, array = operation.info, operation.arrays[slot]
    places = _chosen(array.reshape(-1), most)
    slopes = operation.slopes(slot, places.tolist(), _STEP)
    defined = np.isfinite(slopes).all(axis=1)  # at the border of where it is a function there is no slope to one side
    places, slopes = places[defined], slopes[defined]
    sent = stored(timeline, info.node, "gradient", part).reshape(-1)[places]
    slack = _Slack.of(sent, slopes, part.dtype, operation)
    doubtful = np.flatnonzero(~(slack.agrees(sent, slopes) | slack.is_between(sent, slopes)))
    finer = operation.slopes(slot, places[doubtful].tolist(), _FINE_STEP)
    better = slack.agrees(sent[doubtful], finer) | slack.is_between(sent[doubtful], finer)
    slopes[doubtful[better]] = finer[better]
    agrees = slack.agrees(sent, slopes)
    return Checked(
        slot=_name(info, slot),
        node=info.created.inputs[slot][0],
        recorded=sent,
        differences=slopes.mean(axis=1),
        places=places,
        shape=array.shape,
        numbers=array.reshape(-1)[places],
        agrees=agrees,
        at_kink=~agrees & slack.is_between(sent, slopes),
    )


def _name(info: NodeInfo, slot: int) -> str:
    slots = info.op.slots
    return slots[min(slot, len(slots) - 1)] if slots else str(slot)


@dataclass(frozen=True, slots=True)
class _Slack:
    """By how much what was sent may miss the slopes, as its dtype has only so many digits: of its size, and any."""

    relative: float
    absolute: float

    @classmethod
    def of(cls, sent: Array, slopes: Array, dtype: str, operation: Moved) -> _Slack:
        """By the largest that was sent, or that arrived where this cancels, and by the digits of float64."""
        relative, of_largest = _TOLERANCES.get(dtype, _TOLERANCE)
        largest = min(float(np.abs(one).max(initial=0.0)) for one in (sent, slopes.mean(axis=1)))
        digits = operation.largest_output * operation.largest_seed * _DIGITS / _STEP
        cancelled = relative * _CANCELLED * operation.largest_seed
        return cls(relative, max(of_largest * largest, cancelled, digits))

    def agrees(self, sent: Array, slopes: Array) -> Array:
        """Of which elements what was sent is the slope."""
        close: Array = np.isclose(sent, slopes.mean(axis=1), rtol=self.relative, atol=self.absolute, equal_nan=True)
        return close

    def is_between(self, sent: Array, slopes: Array) -> Array:
        """Of which elements it lies between the slopes to both sides."""
        between: Array = (sent >= slopes.min(axis=1) - self.absolute) & (sent <= slopes.max(axis=1) + self.absolute)
        return between


def _chosen(numbers: Array, most: int) -> Array:
    """The elements to move: some from all over, and some of every magnitude, as a rule may be wrong beyond a border."""
    finite: Array = np.flatnonzero(np.isfinite(numbers))  # an infinity cannot be moved
    if len(finite) <= most:
        return finite
    of_all_sizes = _evenly(finite[np.argsort(numbers[finite], kind="stable")], most // 2)
    others = np.setdiff1d(finite, of_all_sizes)
    chosen: Array = np.sort(np.concatenate([of_all_sizes, _evenly(others, most - most // 2)]))
    return chosen


def _evenly(places: Array, n: int) -> Array:
    """So many of them, the first and the last among them."""
    chosen: Array = places[np.linspace(0, len(places) - 1, n).round().astype(np.int64)]
    return chosen

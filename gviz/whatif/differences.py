"""The gradients that one recorded node sent to its inputs, beside central differences of its operation in float64."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from math import prod
from operator import add

import numpy as np

from gviz import emit
from gviz import events as e
from gviz.errors import GvizError
from gviz.trace.state import NodeInfo
from gviz.trace.step_grads import step_grads
from gviz.trace.timeline import Timeline
from gviz.values import Array, Value
from gviz.whatif.functions import Forward, forward_of
from gviz.whatif.inputs import inputs_of, stored
from gviz.whatif.moved import Moved
from gviz.whatif.own_forward import given_twice

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

    The input, of number `position` and called `slot`, has the `shape`, and holds the `numbers` there. `agrees` says of
    each whether the two are as close as numbers of the recording's dtype can be; `at_kink` whether what was sent lies
    between the slopes to both sides, which are two there (relu at 0): any of these is right. It is of several inputs
    `together` that were given one tensor.
    """

    slot: str
    position: int
    node: int
    recorded: Array
    differences: Array
    places: Array
    shape: tuple[int, ...]
    numbers: Array
    agrees: Array
    at_kink: Array
    together: bool = False

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

    A function of the program is to send one to every input that requires it: where it sent none, that counts as 0. Of
    each input `most` elements are tried. Where one tensor was given for several inputs, the sum of what was sent is
    compared `together`, and each alone as its uses by the forward fit best, if they are few. GvizError for a node that
    has no rule, that no pass went through, whose rule did not end, whose numbers were not stored, that cannot be run on
    its own, or that is more than so much `work` (see `work_of`).
    """
    operation, started = moved_at(timeline, node, n, work)
    flows = _flows(timeline, operation.info, started)
    with emit.silence():
        sent = {slot: _Sent.of(timeline, operation, slot, part) for slot, part in flows.items()}
        return list(_all_compared(operation, sent, most))


def moved_at(timeline: Timeline, node: int, n: int, work: float = float("inf")) -> tuple[Moved, int]:
    """A node as it may be run again, and the event with which its rule began in the pass that counts by moment `n`.

    Raises as `checked` does.
    """
    info = timeline.info(node)
    started = _step_at(timeline, info, n)
    forward = forward_of(timeline, info)
    if work_of(timeline, info, forward) > work:
        raise GvizError(f"{info.op.name} of #{node} takes long to be run again and again", exit_code=2)
    arrays = inputs_of(timeline, info)
    arrived = step_grads(timeline, started)
    grads = forward.of_outputs(arrived) if arrived else []
    if len([grad for grad in arrived if grad is not None]) > len([grad for grad in grads if grad is not None]):
        why = "a gradient arrived at an output of which it is not known what made it"
        raise GvizError(f"{info.op.name} of #{node} cannot be run on its own", why=why, exit_code=2)
    seeds = [None if grad is None else stored(timeline, node, "gradient", grad) for grad in grads]
    return Moved(info, forward, arrays, seeds), started


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


def _flows(timeline: Timeline, info: NodeInfo, started: int) -> Mapping[int, Value | None]:
    """What the node sent to its inputs after the event `started`, by input; None where it sent nothing that is due.

    GvizError if its rule did not end.
    """
    found = _due(timeline, info, started)
    for _, event in timeline.select((e.GradFlowed, e.StepFinished, e.BackwardFinished), started):
        if isinstance(event, e.GradFlowed) and event.source == info.node:
            found[event.slot] = event.part
        elif isinstance(event, e.BackwardFinished) and event.error:
            raise GvizError(f"the backward of #{info.node} did not end", why=event.error, exit_code=2)
        elif isinstance(event, e.StepFinished) and event.node == info.node:
            break
    return found


def _due(timeline: Timeline, info: NodeInfo, started: int) -> dict[int, Value | None]:
    """The inputs to which a gradient is due of a function of the program, in a pass that asks for all."""
    passes = (event for _, event in timeline.select((e.BackwardStarted,)) if isinstance(event, e.BackwardStarted))
    step = timeline.event(started)
    pass_nr = step.pass_nr if isinstance(step, e.StepStarted) else 0
    if not info.op.is_of_program or any(event.inputs for event in passes if event.pass_nr == pass_nr):
        return {}
    return {slot: None for slot, edge in enumerate(info.created.inputs) if _requires_grad(timeline, *edge)}


def _requires_grad(timeline: Timeline, node: int, output_nr: int) -> bool:
    created = timeline.info(node).created if node else None
    value = created.outputs[output_nr].value if created is not None and created.requires_grad else None
    return value is not None and "float" in value.dtype


@dataclass(frozen=True, slots=True)
class _Sent:
    """What was sent to an input, all elements in a row, and the dtypes in which it was computed."""

    array: Array
    dtypes: set[str]

    @classmethod
    def of(cls, timeline: Timeline, operation: Moved, slot: int, part: Value | None) -> _Sent:
        info = operation.info
        array = np.zeros(operation.arrays[slot].size) if part is None else stored(timeline, info.node, "gradient", part)
        return cls(array.reshape(-1), _dtypes(info, part))

    def __add__(self, other: _Sent) -> _Sent:
        return _Sent(self.array + other.array, self.dtypes | other.dtypes)


def _all_compared(operation: Moved, sent: Mapping[int, _Sent], most: int) -> Iterator[Checked]:
    """Each input by itself; those that were given one tensor together, and then as its uses fit best."""
    inputs = operation.info.created.inputs
    shared = [slot for slot in sent if inputs[slot] in given_twice(operation.info)]
    yield from (_compared(operation, (slot,), one, most) for slot, one in sent.items() if slot not in shared)
    for edge in dict.fromkeys(inputs[slot] for slot in shared):
        slots = [slot for slot in shared if inputs[slot] == edge]
        yield _compared(operation, slots, reduce(add, (sent[slot] for slot in slots)), most)
    if operation.forward.otherwise:
        ways = (replace(operation, forward=way) for way in operation.forward.each())
        found = ([_compared(way, (slot,), sent[slot], most) for slot in shared] for way in ways)
        yield from min(found, key=lambda way: sum(int(one.differs.sum()) for one in way))


def _compared(operation: Moved, slots: Sequence[int], all_sent: _Sent, most: int) -> Checked:
    info, array = operation.info, operation.arrays[slots[0]]
    places = _chosen(array.reshape(-1), most)
    slopes = operation.slopes(slots, places.tolist(), _STEP)
    defined = np.isfinite(slopes).all(axis=1)  # at the border of where it is a function there is no slope to one side
    places, slopes = places[defined], slopes[defined]
    sent = all_sent.array[places]
    slack = _Slack.of(sent, slopes, all_sent.dtypes, operation)
    doubtful = np.flatnonzero(~(slack.agrees(sent, slopes) | slack.is_between(sent, slopes)))
    finer = operation.slopes(slots, places[doubtful].tolist(), _FINE_STEP)
    better = slack.agrees(sent[doubtful], finer) | slack.is_between(sent[doubtful], finer)
    slopes[doubtful[better]] = finer[better]
    agrees = slack.agrees(sent, slopes)
    return Checked(
        slot=" + ".join(_name(info, slot) for slot in slots),
        position=slots[0],
        node=info.created.inputs[slots[0]][0],
        recorded=sent,
        differences=slopes.mean(axis=1),
        places=places,
        shape=array.shape,
        numbers=array.reshape(-1)[places],
        agrees=agrees,
        at_kink=~agrees & slack.is_between(sent, slopes),
        together=len(slots) > 1,
    )


def _dtypes(info: NodeInfo, part: Value | None) -> set[str]:
    """In which dtypes a gradient and what it is of were computed: under autocast in another than the inputs have."""
    values = (part, *(output.value for output in info.created.outputs))
    return {value.dtype for value in values if value is not None}


def _name(info: NodeInfo, slot: int) -> str:
    slots = info.op.slots
    return slots[min(slot, len(slots) - 1)] if slots else str(slot)


@dataclass(frozen=True, slots=True)
class _Slack:
    """By how much what was sent may miss the slopes, as its dtype has only so many digits: of its size, and any."""

    relative: float
    absolute: float

    @classmethod
    def of(cls, sent: Array, slopes: Array, dtypes: Iterable[str], operation: Moved) -> _Slack:
        """By the largest that was sent, or that arrived where this cancels, and by the digits of float64."""
        relative, of_largest = max(_TOLERANCES.get(dtype, _TOLERANCE) for dtype in dtypes)
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

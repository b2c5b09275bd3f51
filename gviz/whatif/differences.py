"""The gradients that one recorded node sent to its inputs, beside central differences of its operation in float64."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gviz import emit
from gviz import events as e
from gviz.engine.tensor import new_tensor
from gviz.errors import GvizError
from gviz.trace.state import NodeInfo
from gviz.trace.timeline import Timeline
from gviz.values import Array, Value
from gviz.whatif import operations
from gviz.whatif.functions import Forward, forward_of, operation_of
from gviz.whatif.inputs import inputs_of, stored

MOST_ELEMENTS = 200
"""Elements of one input that are tried; of a larger one so many, evenly chosen."""

_STEP = 1e-6
_TOLERANCES = {"float16": 2e-2, "bfloat16": 2e-2, "float32": 1e-3}
_TOLERANCE = 1e-5


@dataclass(frozen=True, slots=True)
class Checked:
    """What went to one input, `recorded`, and what differences give, for the elements at `places` (of `size`).

    `agrees` says of each whether the two are as close as numbers of the recording's dtype can be; `at_kink` whether
    what was sent lies between the slopes to both sides, which are two there (relu at 0): any of these is right.
    """

    slot: str
    node: int
    recorded: Array
    differences: Array
    places: Array
    size: int
    agrees: Array
    at_kink: Array

    @property
    def largest(self) -> float:
        """The largest difference between the two."""
        return float(np.abs(self.recorded - self.differences).max(initial=0.0))


def checked(timeline: Timeline, node: int, n: int, most: int = MOST_ELEMENTS) -> list[Checked]:
    """Try every input to which the node sent a gradient in the last pass up to moment `n`, else in the first later one.

    Of each input `most` elements are tried, evenly chosen. GvizError for a node that has no rule, that no pass went
    through, whose numbers were not stored, or that cannot be run on its own.
    """
    info = timeline.info(node)
    started = _step_at(timeline, info, n)
    flows = _flows(timeline, node, started)
    arrays = inputs_of(timeline, info)
    forward = forward_of(timeline, info)
    _refuse_repeated(timeline, info)
    event = timeline.event(started)
    grads = event.grads if isinstance(event, e.StepStarted) else ()
    seeds = [None if grad is None else stored(timeline, node, "gradient", grad) for grad in grads]
    with emit.silence():
        operation = _Operation(info, forward, arrays, seeds)
        return [_compared(timeline, operation, slot, part, most) for slot, part in flows.items()]


def _refuse_repeated(timeline: Timeline, info: NodeInfo) -> None:
    """GvizError for a function of the program that was given a tensor twice: which it used is not recorded."""
    given = [edge for edge in info.created.inputs if edge[0]]
    if len({*given}) < len(given) and operation_of(timeline, info) is None:
        why = "it was given one tensor twice, and which of them its forward used is not recorded"
        hint = "torch.autograd.gradcheck(f, inputs) in the program tells them apart"
        raise GvizError(f"{info.op.name} of #{info.node} cannot be tried", why=why, hint=hint, exit_code=2)


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


@dataclass(frozen=True, slots=True)
class _Operation:
    """The operation of a node, the numbers that went into it, and the gradients that arrived at what it gave."""

    info: NodeInfo
    forward: Forward
    arrays: Sequence[Array]
    seeds: Sequence[Array | None]

    def slopes(self, slot: int, places: Sequence[int]) -> Array:
        """What its weighted outputs change by for each unit that an element of an input is moved: down, and up.

        Of shape ``(elements, 2)``.
        """
        here = self._weighted(slot, places[0], 0.0) if places else 0.0
        return np.array([self._slopes_at(slot, place, here) for place in places]).reshape(-1, 2)

    def _slopes_at(self, slot: int, place: int, here: float) -> tuple[float, float]:
        step = _STEP * max(1.0, abs(float(self.arrays[slot].reshape(-1)[place])))
        return (here - self._weighted(slot, place, -step)) / step, (self._weighted(slot, place, step) - here) / step

    def _weighted(self, slot: int, place: int, by: float) -> float:
        """Its outputs with one element moved, weighted by the gradients that arrived at them and added up."""
        try:
            outputs = self.forward([new_tensor(array) for array in _moved(self.arrays, slot, place, by)])
        except operations.FAILURES as error:
            raise GvizError(f"{self.info.op.name} cannot be run on its own", why=str(error), exit_code=2) from None
        pairs = zip(outputs, self.seeds, strict=False)
        return sum(_dot(output._array.astype(np.float64), seed) for output, seed in pairs if seed is not None)


def _compared(timeline: Timeline, operation: _Operation, slot: int, part: Value, most: int) -> Checked:
    info, array = operation.info, operation.arrays[slot]
    recorded = stored(timeline, info.node, "gradient", part)
    places = np.unique(np.linspace(0, array.size - 1, min(array.size, most)).round().astype(np.int64))
    places = places[np.isfinite(array.reshape(-1)[places])]  # an infinity cannot be moved
    slopes = operation.slopes(slot, places.tolist())
    differences = slopes.mean(axis=1)
    sent = recorded.reshape(-1)[places]
    tolerance = _TOLERANCES.get(part.dtype, _TOLERANCE)
    scale = max(1.0, float(np.abs(differences).max(initial=0.0)))
    agrees = np.isclose(sent, differences, rtol=tolerance, atol=tolerance * scale, equal_nan=True)
    slack = tolerance * scale
    at_kink = ~agrees & (sent >= slopes.min(axis=1) - slack) & (sent <= slopes.max(axis=1) + slack)
    slots = info.op.slots
    name = slots[min(slot, len(slots) - 1)] if slots else str(slot)
    return Checked(name, info.created.inputs[slot][0], sent, differences, places, array.size, agrees, at_kink)


def _moved(arrays: Sequence[Array], slot: int, place: int, by: float) -> Iterator[Array]:
    for at, array in enumerate(arrays):
        copy = np.array(array)
        if at == slot:
            copy.reshape(-1)[place] += by
        yield copy


def _dot(array: Array, seed: Array) -> float:
    """The sum of the products; an infinity at which no gradient arrived does not count."""
    arrived = seed != 0
    return float(np.sum(array[arrived] * seed[arrived]))

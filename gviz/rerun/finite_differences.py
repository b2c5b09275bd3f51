"""Compares the outgoing gradients of a recorded node with central differences of its operation in float64.

Idea: with the incoming gradients ``s`` at the outputs, the backward rule must send to an element ``x`` the slope of
``sum(s * f(x))``. That slope is measured: the operation is run again with ``x`` moved slightly down and up.

Example: ``y = relu(x)`` at ``x = 0`` has slope 0 to the left and ``s`` to the right. Any number between them is right:
a kink.

Limits: for a large input, only `MOST_ELEMENTS` elements are tested. A gradient has only the digits of its dtype, so it
may differ from the slope by that much (`_Slack`). A step across a bend is repeated with a smaller one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from math import comb, prod
from operator import add

import numpy as np

from gviz import emit
from gviz import events as e
from gviz.engine.tensor import new_tensor
from gviz.errors import GvizError
from gviz.rerun import node_forward
from gviz.rerun.custom_function_forward import repeated_inputs
from gviz.rerun.inputs import inputs_of, stored_array
from gviz.rerun.node_forward import Forward, forward_of
from gviz.trace.graph_state import NodeInfo
from gviz.trace.node_gradients import step_grads
from gviz.trace.timeline import Timeline
from gviz.values.number_text import number
from gviz.values.value import Array, Value

MOST_ELEMENTS = 200
"""The most elements of one input that are tested: some spread evenly, some of every magnitude."""

_STEP, _FINE_STEP = 1e-6, 1e-9
"""The step, relative to the size of an element; if the result does not agree, the smaller one, as it may bend there."""

_TOLERANCES = {"float16": (2e-2, 2e-2), "bfloat16": (2e-2, 2e-2), "float32": (1e-3, 1e-4)}
_TOLERANCE = 1e-5, 1e-6
"""Relative tolerance, and tolerance relative to the largest element, by dtype of the recording."""

_DECISIVE = 1e-2
"""A wrong rule differs somewhere by at least this share of the largest element."""

_DIGITS = 1e-15
"""The precision that is lost when an output changes."""

_CANCELLED = 1e-2
"""The share of the incoming gradients that counts as the largest, where most of them cancel."""


@dataclass(frozen=True, slots=True)
class GradientCheck:
    """The outgoing gradient of one input, `recorded`, and the `differences`, for the elements at `places` of the input.

    The input has number `position`, name `slot`, shape `shape`, and the values `numbers` at `places`. `agrees` is,
    for each element, whether the two are as close as the recording's dtype allows. `at_kink` is whether the recorded
    gradient is between the different slopes to both sides (relu at 0): any of these is right. `together` means that
    several inputs were given the same tensor.
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
        """The indices of the tested elements."""
        return [tuple(map(int, np.unravel_index(place, self.shape))) for place in self.places]

    @property
    def differs(self) -> Array:
        """Which elements have a gradient that is wrong, or deliberately different."""
        differs: Array = ~(self.agrees | self.at_kink)
        return differs

    @property
    def is_decisive(self) -> bool:
        """Whether some gradient is so wrong that rounding cannot explain it."""
        misses = np.abs(self.recorded - self.differences)[self.differs]
        return float(misses.max(initial=0.0)) > _DECISIVE * float(np.abs(self.differences).max(initial=0.0))

    @property
    def largest(self) -> float:
        """The largest difference between the two."""
        return float(np.abs(self.recorded - self.differences).max(initial=0.0))


def check_gradients(
    timeline: Timeline, node: int, n: int, most: int = MOST_ELEMENTS, work: float = float("inf")
) -> list[GradientCheck]:
    """Check every input to which the node sent a gradient in the last pass up to moment `n`, otherwise the first later.

    A function of the program must send a gradient to every input that requires one; a missing gradient counts as 0. For
    each input, `most` elements are tested. If one tensor was given for several inputs, the sum of their gradients is
    compared `together`; each by itself is compared with the assignment of its uses in the forward that fits best, if
    there are few.

    Raises GvizError if the node has no backward rule, no pass went through it, its rule did not end, its numbers were
    not stored, it cannot be run on its own, or it needs more than `work` (see `work_of`).
    """
    operation, started = probe_of(timeline, node, n, work)
    flows = _sent_gradients(timeline, operation.info, started)
    with emit.silence():
        sent = {slot: _Sent.of(timeline, operation, slot, part) for slot, part in flows.items()}
        return list(_compare_all(operation, sent, most))


def probe_of(timeline: Timeline, node: int, n: int, work: float = float("inf")) -> tuple[Probe, int]:
    """Return a node that can be run again, and the event that started its rule in the relevant pass at moment `n`.

    Raises as `check_gradients` does.
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
        why = "a gradient arrived at an output whose origin is unknown"
        raise GvizError(f"{info.op.name} of #{node} cannot be run on its own", why=why, exit_code=2)
    seeds = [None if grad is None else stored_array(timeline, node, "gradient", grad) for grad in grads]
    return Probe(info, forward, arrays, seeds), started


def work_of(timeline: Timeline, info: NodeInfo, forward: Forward) -> int:
    """Return the cost of running a node once: its operations times the elements of its inputs and outputs."""
    inputs = (timeline.memory_value(*edge, info.born - 1) for edge in info.created.inputs if edge[0])
    values = [*inputs, *(output.value for output in info.created.outputs)]
    return forward.operations * max((value.size for value in values if value is not None), default=0)


def _step_at(timeline: Timeline, info: NodeInfo, n: int) -> int:
    """Return the event that began the node's step in the relevant pass."""
    steps = [seq for seq in timeline.events_of(info.node) if isinstance(timeline.event(seq), e.StepStarted)]
    if info.created.kind != "op":
        raise GvizError(f"#{info.node} is a {info.created.kind}: it has no rule to check", exit_code=2)
    if not steps:
        hint = f"explain #{info.node} shows the reason"
        raise GvizError(f"no backward pass went through #{info.node}", hint=hint, exit_code=2)
    return max((seq for seq in steps if seq <= n), default=steps[0])


def _sent_gradients(timeline: Timeline, info: NodeInfo, started: int) -> Mapping[int, Value | None]:
    """Return the outgoing gradients of the step that event `started` began, by input; None for missing ones.

    Raises GvizError if the rule did not end.
    """
    gradients = _due_gradients(timeline, info, started)
    for _, event in timeline.select((e.GradFlowed, e.StepFinished, e.BackwardFinished), started):
        if isinstance(event, e.GradFlowed) and event.source == info.node:
            gradients[event.slot] = event.part
        elif isinstance(event, e.BackwardFinished) and event.error:
            raise GvizError(f"the backward of #{info.node} did not end", why=event.error, exit_code=2)
        elif isinstance(event, e.StepFinished) and event.node == info.node:
            break
    return gradients


def _due_gradients(timeline: Timeline, info: NodeInfo, started: int) -> dict[int, Value | None]:
    """Return the inputs of a program's function that must get a gradient, in a pass over all inputs."""
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
    """The gradient of an input, flattened, and the dtypes in which it was computed."""

    array: Array
    dtypes: set[str]

    @classmethod
    def of(cls, timeline: Timeline, operation: Probe, slot: int, part: Value | None) -> _Sent:
        info = operation.info
        array = (
            np.zeros(operation.arrays[slot].size)
            if part is None
            else stored_array(timeline, info.node, "gradient", part)
        )
        return cls(array.reshape(-1), _dtypes(info, part))

    def __add__(self, other: _Sent) -> _Sent:
        return _Sent(self.array + other.array, self.dtypes | other.dtypes)


def _compare_all(operation: Probe, sent: Mapping[int, _Sent], most: int) -> Iterator[GradientCheck]:
    """Yield checks for each input; for inputs that share a tensor, together, and then as their uses fit best."""
    inputs = operation.info.created.inputs
    shared = [slot for slot in sent if inputs[slot] in repeated_inputs(operation.info)]
    yield from (_compare_input(operation, (slot,), one, most) for slot, one in sent.items() if slot not in shared)
    for edge in dict.fromkeys(inputs[slot] for slot in shared):
        slots = [slot for slot in shared if inputs[slot] == edge]
        yield _compare_input(operation, slots, reduce(add, (sent[slot] for slot in slots)), most)
    if operation.forward.otherwise:
        probes = (replace(operation, forward=forward) for forward in operation.forward.each())
        choices = ([_compare_input(probe, (slot,), sent[slot], most) for slot in shared] for probe in probes)
        yield from min(choices, key=lambda checks: sum(int(one.differs.sum()) for one in checks))


def _compare_input(operation: Probe, slots: Sequence[int], all_sent: _Sent, most: int) -> GradientCheck:
    info, array = operation.info, operation.arrays[slots[0]]
    places = _choose_elements(array.reshape(-1), most)
    slopes = operation.slopes(slots, places.tolist(), _STEP)
    defined = np.isfinite(slopes).all(axis=1)  # at the border of its domain, a function has no slope to one side
    places, slopes = places[defined], slopes[defined]
    sent = all_sent.array[places]
    slack = _Slack.of(sent, slopes, all_sent.dtypes, operation)
    doubtful = np.flatnonzero(~(slack.agrees(sent, slopes) | slack.is_between(sent, slopes)))
    finer = operation.slopes(slots, places[doubtful].tolist(), _FINE_STEP)
    better = slack.agrees(sent[doubtful], finer) | slack.is_between(sent[doubtful], finer)
    slopes[doubtful[better]] = finer[better]
    agrees = slack.agrees(sent, slopes)
    return GradientCheck(
        slot=" + ".join(_slot_name(info, slot) for slot in slots),
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
    """Return the dtypes in which a gradient and its value were computed; autocast changes them."""
    values = (part, *(output.value for output in info.created.outputs))
    return {value.dtype for value in values if value is not None}


def _slot_name(info: NodeInfo, slot: int) -> str:
    slots = info.op.slots
    return slots[min(slot, len(slots) - 1)] if slots else str(slot)


@dataclass(frozen=True, slots=True)
class _Slack:
    """The relative and absolute tolerance between a gradient and its slope, from the digits of its dtype."""

    relative: float
    absolute: float

    @classmethod
    def of(cls, sent: Array, slopes: Array, dtypes: Iterable[str], operation: Probe) -> _Slack:
        """Return the tolerance from the largest gradient (incoming, where it cancels) and the digits of float64."""
        relative, of_largest = max(_TOLERANCES.get(dtype, _TOLERANCE) for dtype in dtypes)
        largest = min(float(np.abs(one).max(initial=0.0)) for one in (sent, slopes.mean(axis=1)))
        digits = operation.largest_output * operation.largest_seed * _DIGITS / _STEP
        cancelled = relative * _CANCELLED * operation.largest_seed
        return cls(relative, max(of_largest * largest, cancelled, digits))

    def agrees(self, sent: Array, slopes: Array) -> Array:
        """Return which gradients equal the slope."""
        close: Array = np.isclose(sent, slopes.mean(axis=1), rtol=self.relative, atol=self.absolute, equal_nan=True)
        return close

    def is_between(self, sent: Array, slopes: Array) -> Array:
        """Return which gradients are between the slopes to both sides."""
        between: Array = (sent >= slopes.min(axis=1) - self.absolute) & (sent <= slopes.max(axis=1) + self.absolute)
        return between


def _choose_elements(numbers: Array, most: int) -> Array:
    """Return the elements to move: some from everywhere and some of every magnitude, as a rule may be wrong past a
    limit.
    """
    finite: Array = np.flatnonzero(np.isfinite(numbers))  # an infinity cannot be moved
    if len(finite) <= most:
        return finite
    of_all_sizes = _evenly(finite[np.argsort(numbers[finite], kind="stable")], most // 2)
    others = np.setdiff1d(finite, of_all_sizes)
    chosen: Array = np.sort(np.concatenate([of_all_sizes, _evenly(others, most - most // 2)]))
    return chosen


def _evenly(places: Array, n: int) -> Array:
    """Return `n` evenly spaced places, including the first and the last."""
    chosen: Array = places[np.linspace(0, len(places) - 1, n).round().astype(np.int64)]
    return chosen


# An operation with one element of one input moved


@dataclass(frozen=True)
class Probe:
    """The operation of a node, its input values, and the incoming gradients of its outputs."""

    info: NodeInfo
    forward: Forward
    arrays: Sequence[Array]
    seeds: Sequence[Array | None]

    @cached_property
    def here(self) -> list[Array]:
        """Its outputs without a move."""
        return self._outputs(self.arrays)

    @cached_property
    def largest_output(self) -> float:
        """The largest output."""
        finite = (np.abs(array[np.isfinite(array)]).max(initial=0.0) for array in self.here)
        return float(max(finite, default=0.0))

    @cached_property
    def largest_seed(self) -> float:
        """The largest incoming gradient."""
        return max((float(np.abs(seed).max(initial=0.0)) for seed in self.seeds if seed is not None), default=0.0)

    def inputs_given_on(self) -> list[int]:
        """Return the input that each output is, unchanged, whatever the values of all inputs; empty if it does more."""
        others = [0.3 - 1.7 * array if array.dtype.kind == "f" else array for array in self.arrays]
        try:
            gave = self._outputs(others)
        except GvizError:  # it accepts only numbers like the recorded ones
            return []
        slots = [next((nr for nr, one in enumerate(others) if np.array_equal(each, one)), -1) for each in gave]
        return slots if -1 not in slots else []

    def slopes(self, slots: Sequence[int], places: Sequence[int], step: float) -> Array:
        """Return the changes of the weighted outputs per unit move of an element: down and up, shape ``(elements, 2)``.

        If several inputs share a tensor, the element is moved in all of them. Large elements are moved by
        proportionally more.
        """
        return np.array([self._slopes_at(slots, place, step) for place in places]).reshape(-1, 2)

    def _slopes_at(self, slots: Sequence[int], place: int, step: float) -> tuple[float, float]:
        by = step * max(1.0, abs(float(self.arrays[slots[0]].reshape(-1)[place])))
        return -self._change(slots, place, -by) / by, self._change(slots, place, by) / by

    def _change(self, slots: Sequence[int], place: int, by: float) -> float:
        """Return the change of the outputs when one element is moved, weighted by their incoming gradients."""
        arrays = list(self.arrays)
        for slot in slots:
            arrays[slot] = np.array(arrays[slot], order="C")
            arrays[slot].reshape(-1)[place] += by
        changes = zip(self._outputs(arrays), self.here, self.seeds, strict=False)
        with np.errstate(invalid="ignore"):
            return sum(_weighted_sum(after - before, seed) for after, before, seed in changes if seed is not None)

    def _outputs(self, arrays: Sequence[Array]) -> list[Array]:
        inputs = [new_tensor(np.array(array)) for array in arrays]  # an operation may write to its inputs
        try:
            outputs = self.forward(inputs)
        except node_forward.FAILURES as error:
            raise GvizError(f"{self.info.op.name} cannot be run on its own", why=str(error), exit_code=2) from None
        return [output._array.astype(np.float64) for output in outputs]


def _weighted_sum(array: Array, seed: Array) -> float:
    """Return the sum of the products; an infinity without a gradient does not count."""
    arrived = seed != 0
    return float(np.sum(array[arrived] * seed[arrived]))


# What the elements with a wrong gradient have in common

_UNLIKELY = 100
"""A border is reported only if a random choice of elements would give it with a probability below 1 in this number."""

_SURE = 1e-2
"""The relative error up to which a gradient certainly agrees."""


def mismatch_patterns(one: GradientCheck) -> Iterator[str]:
    """Yield sentences about the elements that differ: a common factor, a border."""
    by = common_factor(one)
    if by is not None:
        yield _FACTORS.get(by) or f"what is sent is {number(by)} times what differences say"
    where = _border(one)
    if where:
        yield where


_FACTORS = {
    0.0: "nothing but 0 is sent where differences say something else",
    -1.0: "what is sent has the other sign than what differences say",
}


def common_factor(one: GradientCheck) -> float | None:
    """Return the factor by which all that differ are too large, if there is a common one."""
    sent, expected = one.recorded[one.differs], one.differences[one.differs]
    if len(sent) < 2 or not expected.all():
        return None
    factors = sent / expected
    factor = float(f"{factors.mean():.3g}")
    return factor if np.allclose(factors, factors[0], rtol=1e-2, atol=0) else None


def _border(one: GradientCheck) -> str:
    """Describe the border, by input values, between the elements that differ and those that agree."""
    surely = np.isclose(one.recorded, one.differences, rtol=_SURE, atol=0)  # where both are near 0, it is unknown
    wrong, right = one.numbers[one.differs], one.numbers[one.agrees & surely]
    if one.numbers.dtype.kind != "f" or comb(len(wrong) + len(right), len(wrong)) < _UNLIKELY:
        return ""
    for sign, numbers in (("", np.positive), ("±", np.abs)):
        for far, near in ((wrong, right), (right, wrong)):
            low, high = _gap(numbers(far), numbers(near))
            if low < high:
                return _border_words(sign, far is wrong, number(low), number(high))
    return ""


def _gap(far: Array, near: Array) -> tuple[float, float]:
    """Return the largest value near zero or below, and the smallest of the others."""
    return float(near.max()), float(far.min())


def _border_words(sign: str, far_is_wrong: bool, low: str, high: str) -> str:
    beyond, up_to = ("beyond", "within") if sign else ("from", "up to")
    far, near = f"those {beyond} {sign}{high}", f"those {up_to} {sign}{low}"
    up = "" if sign else " on"
    if far_is_wrong:
        return f"{far}{up} differ, {near} agree"
    return f"{near} differ, {far}{up} agree"

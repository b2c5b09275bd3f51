"""Surrogate gradients: backward rules that deliberately send something other than the derivative.

A kind is reported only if the forward has the form that the kind is made for, on other numbers as well as on the
recorded ones. Everything else may be a mistake.

Example: ``forward: x.round()``, ``backward: g``. The derivative of ``round`` is 0 everywhere, the differences are 0,
and ``g`` was sent unchanged: a straight-through estimator. If ``forward`` were ``x * 2``, sending ``g`` would be a
mistake.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from gviz import events as e
from gviz.errors import GvizError
from gviz.rerun.finite_differences import GradientCheck, Probe, common_factor, probe_of
from gviz.trace.timeline import Timeline
from gviz.values.value import Array

HOOKED, STRAIGHT_THROUGH, SURROGATE = "hook", "straight-through estimator", "surrogate gradient"
REVERSAL, SCALING, CLIPPING = "gradient reversal", "gradient scaling", "gradient clipping"
STOPPED, REPLACED = "stopped gradient", "replaced gradient"
BOUNDED, GUIDED = "bounded derivative", "guided backpropagation"

SURROGATES = {
    HOOKED: "a hook gave another gradient there",
    STRAIGHT_THROUGH: "what arrived is sent on where the derivative is 0, or is of no use",
    SURROGATE: "the forward has steps, with a derivative of 0, and something else is sent in its place",
    REVERSAL: "an input is given on as it is, and its gradient turned round",
    SCALING: "an input is given on as it is, and its gradient scaled",
    CLIPPING: "an input is given on as it is, and its gradient made smaller",
    STOPPED: "an input is given on as it is, and its gradient stopped",
    REPLACED: "an input is given on as it is, and another gradient sent",
    BOUNDED: "the derivative is sent up to a bound",
    GUIDED: "gradients below 0 are not sent on",
}
"""What a function does that deliberately sends something other than the derivative, by the kind's name."""

_FAR = 0.5, 2.0, 16.0
"""The distances by which an element is moved, in multiples of its size, to see beyond the steps of a forward."""

_FEW = 4
"""The number of elements that must be alike to rule out chance."""

_CLOSE = 1e-3


def surrogate_kind(timeline: Timeline, node: int, n: int, compared: Sequence[GradientCheck]) -> str:
    """Return the kind of surrogate that a node most likely sends deliberately; empty if it may be a mistake.

    `compared` is the result of `check_gradients` for it; without differences there is nothing to find.
    """
    differing = [one for one in compared if one.differs.any()]
    if not differing:
        return ""
    if _is_hooked(timeline, node):
        return HOOKED
    if not all(np.isfinite(one.recorded).all() for one in differing):
        return ""
    if any(one.together for one in compared):
        return ""  # which input is meant is unknown
    operation, _ = probe_of(timeline, node, n)
    return (
        _identity_surrogate(operation, compared)
        or _step_surrogate(operation, differing)
        or _elementwise_surrogate(operation, differing)
    )


def _is_hooked(timeline: Timeline, node: int) -> bool:
    """Return whether a hook replaced a gradient there, before its rule or after it."""
    events = map(timeline.event, timeline.events_of(node))
    return any(isinstance(event, e.HookRan) and event.value is not None for event in events)


def _identity_surrogate(operation: Probe, compared: Sequence[GradientCheck]) -> str:
    """Return the kind of a function that returns an input unchanged: it exists for its backward, for example to reverse
    it.

    If it returns several inputs, it may also send the gradient of one to another by mistake. So it must reverse all
    that differ.
    """
    positions = operation.inputs_given_on()
    if len(positions) > 1:
        differing = [one for one in compared if one.differs.any()]
        changes = {_change_of(one.recorded, one.differences) for one in differing if one.position in positions}
        is_of_all = all(one.position in positions for one in differing)
        return REVERSAL if is_of_all and changes == {REVERSAL} else ""
    if not positions:
        return ""
    (position,) = positions
    if any(one.position != position and one.differs.any() for one in compared):
        return REPLACED
    return next((_change_of(one.recorded, one.differences) for one in compared if one.position == position), "")


def _change_of(sent: Array, arrived: Array) -> str:
    """Return how an incoming gradient was changed."""
    is_clipped = (sent * arrived >= 0) & (np.abs(sent) <= np.abs(arrived) * (1 + _CLOSE))
    there = arrived != 0
    ratios = sent[there] / arrived[there]
    if not sent.any():
        return STOPPED
    if len(ratios) and np.allclose(ratios, ratios[0], rtol=_CLOSE, atol=0) and not sent[~there].any():
        return REVERSAL if ratios[0] < 0 else SCALING
    return CLIPPING if is_clipped.all() else REPLACED


def _step_surrogate(operation: Probe, differing: Sequence[GradientCheck]) -> str:
    """Return the kind of a function that rounds, compares or takes signs: its derivative is 0, but it sends something.

    The step size of the rounding may be learned too. A constant factor of the slope is then a mistake.
    """
    flat = [one for one in differing if not one.differences.any()]
    if not flat:
        return ""
    jumps = [(one, _jumps(operation, one, one.places)) for one in flat]
    if any(not jump.any() or _is_opposed(one.recorded, jump) for one, jump in jumps):
        return ""  # the forward does not depend on it at all, or the gradient has the wrong sign
    if any(common_factor(one) is not None for one in differing if one.differences.any()):
        return ""
    return STRAIGHT_THROUGH if all(_passes_on(operation, one) for one in flat) else SURROGATE


def _jumps(operation: Probe, one: GradientCheck, places: Array) -> Array:
    """Return the change of the weighted outputs per unit for a far move of each element: the first nonzero one."""
    jumps = np.zeros(len(places))
    for step in _FAR:
        still = np.flatnonzero(jumps == 0)
        try:
            slopes = operation.slopes([one.position], places[still].tolist(), step)
        except GvizError:  # so far away it is not defined
            continue
        jumps[still] = np.nan_to_num(slopes.mean(axis=1), nan=0.0, posinf=0.0, neginf=0.0)
    return jumps


def _is_opposed(sent: Array, jumps: Array) -> bool:
    """Return whether a gradient has the opposite sign of all changes by a far move: then it is most likely a
    mistake.
    """
    both = (sent != 0) & (jumps != 0)
    return int(both.sum()) >= _FEW and bool((sent[both] * jumps[both] < 0).all())


def _passes_on(operation: Probe, one: GradientCheck) -> bool:
    """Return whether each element was sent exactly its incoming gradient, or nothing."""
    arrived = _arriving_gradients(operation, one)
    return arrived is not None and bool((_is_close(one.recorded, arrived) | (one.recorded == 0)).all())


def _arriving_gradients(operation: Probe, one: GradientCheck) -> Array | None:
    """Return the incoming gradient of the output elements that correspond to those of an input; None if shapes
    differ.
    """
    seeds = [seed for seed in operation.seeds if seed is not None]
    fits = len(seeds) == 1 and seeds[0].shape == operation.here[0].shape == one.shape
    return seeds[0].reshape(-1)[one.places] if fits else None


def _is_close(one: Array, other: Array | float) -> Array:
    alike: Array = np.isclose(one, other, rtol=_CLOSE, atol=0)
    return alike


@dataclass(frozen=True, slots=True)
class _Elements:
    """For each tested element: input, output, incoming and outgoing gradient, slope, and whether it differs."""

    input: Array
    output: Array
    arrived: Array
    sent: Array
    due: Array
    differs: Array


def _elementwise_surrogate(operation: Probe, differing: Sequence[GradientCheck]) -> str:
    """Return the kind of an elementwise function, for example a clip; empty if its inputs disagree."""
    names = {_surrogate_of_elements(operation, one) for one in differing}
    return names.pop() if len(names) == 1 else ""


def _surrogate_of_elements(operation: Probe, one: GradientCheck) -> str:
    arrived = _arriving_gradients(operation, one)
    if arrived is None:
        return ""
    output = operation.here[0].reshape(-1)[one.places]
    elements = _Elements(one.numbers, output, arrived, one.recorded, one.differences, one.differs)
    if _is_past_a_clamp(elements):
        moved = _jumps(operation, one, one.places[one.differs])
        return STRAIGHT_THROUGH if moved.all() else ""  # a mask that does not depend on it indicates a mistake
    return next((kind for kind, holds in _ELEMENTWISE.items() if holds(elements)), "")


def _is_past_a_clamp(all_: _Elements) -> bool:
    """Return whether only clipped elements differ, and got the same factor as the others.

    A ReLU does not count: a forgotten mask is the usual mistake there.
    """
    clipped, right = all_.differs, ~all_.differs & (all_.due != 0)
    if all_.due[clipped].any() or not right.any() or not all_.arrived[clipped].all():
        return False
    inside, beyond = all_.sent[right] / all_.arrived[right], all_.sent[clipped] / all_.arrived[clipped]
    is_linear = bool(_is_close(inside, inside[0]).all() and _is_close(beyond, beyond[0]).all())
    is_relu = bool(_is_close(all_.output, np.maximum(all_.input, 0)).all())
    return is_linear and not is_relu and 0 < beyond[0] / inside[0] <= 1 + _CLOSE


def _is_two_valued(all_: _Elements) -> bool:
    """Return whether the forward keeps only scaled signs, as for binary weights, and each gradient is the incoming one
    or 0.
    """
    sizes = np.abs(all_.output)
    if len(sizes) < 2 * _FEW or not sizes[0] or not _is_close(sizes, sizes[0]).all():
        return False
    has_many = len(np.unique(np.abs(all_.input))) > len(sizes) // 2
    return has_many and bool((_is_close(all_.sent, all_.arrived) | (all_.sent == 0)).all())


def _is_bounded(all_: _Elements) -> bool:
    """Return whether the derivative of each element was sent within bounds, which are reached more than once."""
    there = all_.arrived != 0
    sent, due = (part[there] / all_.arrived[there] for part in (all_.sent, all_.due))
    wrong, right = all_.differs[there], ~all_.differs[there]
    if wrong.sum() < 2 or not sent[wrong].all() or _distinct(due[right]) < _FEW:
        return False
    low = sent[wrong & (due < sent)].min(initial=float(due[right].min()))
    high = sent[wrong & (due > sent)].max(initial=float(due[right].max()))
    return bool(_is_close(sent[wrong], np.clip(due[wrong], low, high)).all())


def _distinct(numbers: Array) -> int:
    """Return the number of clearly different values."""
    return len(np.unique(np.round(numbers / max(np.abs(numbers).max(initial=0.0), 1e-300), 2)))


def _is_guided(all_: _Elements) -> bool:
    """Return whether only gradients above 0 were sent, and these are right (guided backpropagation)."""
    below = all_.arrived < 0
    is_so = not all_.sent[below].any() and bool((~all_.differs | below).all())
    return is_so and bool((~below & ~all_.differs & (all_.due != 0)).sum() >= _FEW)


_ELEMENTWISE: dict[str, Callable[[_Elements], bool]] = {
    STRAIGHT_THROUGH: _is_two_valued,
    BOUNDED: _is_bounded,
    GUIDED: _is_guided,
}
"""By kind: whether the gradients of an elementwise function fit it."""

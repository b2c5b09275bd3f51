"""How far to go in one direction: a search for a point that fulfils the strong Wolfe conditions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt

from gviz.engine.tensor import Tensor

ENOUGH = 1e-4
"""A step must lower the loss by this part of what the slope promises."""
FLAT = 0.9
"""At the end the slope must be at most this part of the first one."""
NARROW = 1e-9


@dataclass(frozen=True, slots=True)
class Point:
    """How far it is, the loss and gradient there, and the slope in the direction of the search."""

    at: float
    loss: float
    grad: Tensor
    slope: float


Look = Callable[[float], tuple[float, Tensor, float]]


def strong_wolfe(
    look: Look, size: float, widest: float, start: tuple[float, Tensor, float], max_ls: int
) -> tuple[float, Tensor, float, int]:
    """The loss and gradient at a good distance, that distance, and how often `look` was asked.

    `start` are loss, gradient and slope at 0; `widest` is the largest element of the direction.
    """
    origin = Point(0, start[0], start[1].clone(), start[2])
    bracket, done, looks = _bracketed(look, size, origin, max_ls)
    best, looks = _zoomed(look, bracket, widest, origin, done, looks, max_ls)
    return best.loss, best.grad, best.at, looks


def _point(look: Look, at: float) -> Point:
    loss, grad, slope = look(at)
    return Point(at, loss, grad.clone(), slope)


def _bracketed(look: Look, size: float, origin: Point, max_ls: int) -> tuple[list[Point], bool, int]:
    """One good point, or two with a good one between them; whether it is good already; how often it looked."""
    before, now = origin, _point(look, size)
    tries = 0
    while tries < max_ls:
        if _too_high(now, origin) or (tries > 1 and now.loss >= before.loss):
            return [before, now], False, tries + 1
        if abs(now.slope) <= -FLAT * origin.slope:
            return [now], True, tries + 1
        if now.slope >= 0:
            return [before, now], False, tries + 1
        bounds = now.at + 0.01 * (now.at - before.at), now.at * 10
        before, now = now, _point(look, _lowest(before, now, bounds))
        tries += 1
    return [origin, now], False, tries + 1


def _zoomed(
    look: Look, bracket: list[Point], widest: float, origin: Point, done: bool, looks: int, max_ls: int
) -> tuple[Point, int]:
    """The good point in a bracket, and how often it looked by then."""
    low, high = sorted((bracket[0], bracket[-1]), key=lambda point: point.loss)
    stuck = False
    while not done and looks - 1 < max_ls and abs(high.at - low.at) * widest >= NARROW:
        at, stuck = _inside(low, high, stuck)
        now = _point(look, at)
        looks += 1
        if _too_high(now, origin) or now.loss >= low.loss:
            low, high = sorted((low, now), key=lambda point: point.loss)
            continue
        if abs(now.slope) <= -FLAT * origin.slope:
            done = True
        elif now.slope * (high.at - low.at) >= 0:
            high = low
        low = now
    return low, looks


def _too_high(point: Point, origin: Point) -> bool:
    return point.loss > origin.loss + ENOUGH * point.at * origin.slope


def _inside(low: Point, high: Point, stuck: bool) -> tuple[float, bool]:
    """Where to look next, not too near an end twice in a row; and whether it is near one."""
    first, last = sorted((low.at, high.at))
    at = _lowest(low, high, (first, last))
    margin = 0.1 * (last - first)
    if min(last - at, at - first) >= margin:
        return at, False
    if not (stuck or at >= last or at <= first):
        return at, True
    return (last - margin if abs(at - last) < abs(at - first) else first + margin), False


def _lowest(a: Point, b: Point, bounds: tuple[float, float]) -> float:
    """Where the cubic through two points with their slopes is lowest, within bounds."""
    d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.at - b.at)
    square = d1**2 - a.slope * b.slope
    if square < 0:
        return (bounds[0] + bounds[1]) / 2.0
    d2 = sqrt(square)
    left, right = (a, b) if a.at <= b.at else (b, a)
    part = (right.slope + d2 - d1) / (right.slope - left.slope + 2 * d2)
    return min(max(right.at - (right.at - left.at) * part, bounds[0]), bounds[1])

"""Points, paths with corners, and lines in Graphviz's notation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import hypot

Spot = tuple[float, float]
"""A point. As in Graphviz, y points upwards."""

SAMPLES = 0.2, 0.4, 0.6, 0.8, 1.0
"""Where the points of a Bezier curve are that stand for it."""


@dataclass(frozen=True, slots=True)
class Spline:
    """A line as in ``s,1,2 3,4 5,6 7,8 9,10``: Bezier curves through knots, and the tips of arrows at its ends."""

    knots: Sequence[Spot]
    start: Spot | None = None
    end: Spot | None = None

    @classmethod
    def of(cls, text: str) -> Spline:
        """Return a line or, as one knot, a single place from Graphviz's text."""
        knots: list[Spot] = []
        tips: dict[str, Spot] = {}
        for word in text.split():
            mark, _, rest = word.partition(",")
            if mark in ("s", "e"):
                tips[mark] = _spot(rest)
            else:
                knots.append(_spot(word))
        return cls(knots, tips.get("s"), tips.get("e"))

    def moved(self, x: float, y: float) -> Spline:
        start, end = (spot and (spot[0] + x, spot[1] + y) for spot in (self.start, self.end))
        return Spline([(at + x, up + y) for at, up in self.knots], start, end)

    def sampled(self) -> list[Spot]:
        """Return points on the line, from end to end."""
        spots = [self.start] if self.start else []
        spots.append(self.knots[0])
        for at in range(0, len(self.knots) - 3, 3):
            spots += (_on_curve(self.knots[at : at + 4], t) for t in SAMPLES)
        return [*spots, self.end] if self.end else spots

    def __str__(self) -> str:
        """Return the line in Graphviz's notation."""
        tips = [f"{mark},{place(spot)}" for mark, spot in (("s", self.start), ("e", self.end)) if spot]
        return " ".join([*tips, *map(place, self.knots)])


def place(spot: Spot) -> str:
    """Return a point in Graphviz's notation."""
    return ",".join(f"{number:.2f}".rstrip("0").rstrip(".") for number in spot)


def _spot(text: str) -> Spot:
    x, y = text.rstrip("!").split(",")
    return float(x), float(y)


def _on_curve(knots: Sequence[Spot], t: float) -> Spot:
    weights = (1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3
    weighted = [*zip(weights, knots, strict=True)]
    return sum(weight * x for weight, (x, _) in weighted), sum(weight * y for weight, (_, y) in weighted)


def between(one: Spot, other: Spot, part: float) -> Spot:
    """Return the point at a part of the way from one point to the other."""
    return one[0] + (other[0] - one[0]) * part, one[1] + (other[1] - one[1]) * part


def without_repeats(path: Sequence[Spot]) -> list[Spot]:
    """Return a path without corners at which it does not turn."""
    kept: list[Spot] = []
    for spot in path:
        if kept and hypot(spot[0] - kept[-1][0], spot[1] - kept[-1][1]) < 0.01:
            continue
        if len(kept) > 1 and turn(kept[-2], kept[-1], spot) == 0:
            kept.pop()
        kept.append(spot)
    return kept


def turn(before: Spot, spot: Spot, after: Spot) -> int:
    """Return 1 if a path turns to its left at a point, -1 to its right, else 0."""
    across = (spot[0] - before[0]) * (after[1] - spot[1]) - (spot[1] - before[1]) * (after[0] - spot[0])
    return (across > 0.01) - (across < -0.01)

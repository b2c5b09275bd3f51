"""The places of the titles of frames, at the upper border of each: where no line runs through them.

    .- layer2 ----+-------.        .---------+- layer2 ----.
    |             v       |        |         v             |
    |         .-------.   |        |     .-------.         |

A title is at the left if it can be, else close to the lines. Where neither side has room for it, its frame is made
wider, and the graph is laid out once more. `_worker` does that; it reads the width of a title from the attribute
``titlewidth`` of its frame.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from rich.cells import cell_len

from gviz.render.graphviz.spline import Spot, between

LETTER, HEIGHT = 5.0, 12.0
"""Points of a character of a title, and the height of a title."""
INSET, BESIDE = 8.0, 4.0
"""Points between a title and the side of its frame, and between a title and a line."""


def title_width(title: str) -> float:
    """Return the points that a title takes."""
    return LETTER * cell_len(title)


class Title(NamedTuple):
    """The title of a frame: the sides of the frame, and the left end, the middle height and the width of its text."""

    left: float
    right: float
    start: float
    up: float
    width: float


class TitlePlace(NamedTuple):
    """Where as little of a title as possible is behind lines, and the width that frees it: 0 if it is free."""

    start: float
    wider: float = 0.0


def title_places(titles: Sequence[Title], traces: Sequence[Sequence[Spot]]) -> list[TitlePlace]:
    """Return the best places of titles between the lines that run into their frames."""
    return [_place(title, [*_spans(traces, title)]) for title in titles]


def _place(title: Title, crossed: Sequence[tuple[float, float]]) -> TitlePlace:
    last = title.right - INSET - title.width
    starts = [title.start, *(right for _, right in crossed), *(left - title.width for left, _ in crossed), last]

    def hidden(start: float) -> float:
        """Return how much of a title lines run through."""
        ends = ((max(left, start), min(right, start + title.width)) for left, right in crossed)
        return round(sum(max(right - left, 0.0) for left, right in ends), 1)

    possible = [start for start in starts if start == title.start or title.left + BESIDE <= start <= last]
    best = min(possible, key=lambda start: (hidden(start), abs(start - title.start)))
    if not hidden(best):
        return TitlePlace(best)
    lines = max(right for _, right in crossed) - min(left for left, _ in crossed)
    return TitlePlace(best, wider=2 * (title.width + INSET) + lines)


def _spans(traces: Iterable[Sequence[Spot]], title: Title) -> Iterator[tuple[float, float]]:
    """Yield where lines run through the strip of a title, with room at both sides of each."""
    low, high = title.up - HEIGHT / 2, title.up + HEIGHT / 2
    for trace in traces:
        across = [
            x
            for one, other in pairwise(trace)
            if min(one[1], other[1]) <= high and max(one[1], other[1]) >= low
            for x in _within(low, high, one, other)
        ]
        if across and min(across) < title.right and max(across) > title.left:
            yield min(across) - BESIDE, max(across) + BESIDE


def _within(low: float, high: float, one: Spot, other: Spot) -> tuple[float, float]:
    """Return where the part of a straight line within a strip begins and ends."""
    if one[1] == other[1]:
        return one[0], other[0]
    parts = [min(max((up - one[1]) / (other[1] - one[1]), 0.0), 1.0) for up in (low, high)]
    return between(one, other, parts[0])[0], between(one, other, parts[1])[0]

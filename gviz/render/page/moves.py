"""Where every key of the terminal leads, for the page: the same functions answer, once for each moment."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from gviz.render.boxes.selection import shown_ends
from gviz.trace import navigation
from gviz.trace.timeline import Timeline

Steps = tuple[list[int], list[int]]
"""A function of the moment that keeps its value for a while: from which moments on, which value."""


@dataclass(frozen=True, slots=True)
class Moves:
    """Moments to stop at, ascending (`nodes`, `phases`, `stops`), and where `finish` and its reverse lead to."""

    nodes: list[int]
    phases: list[int]
    stops: list[int]
    finish: Steps
    reverse_finish: Steps


def moves(timeline: Timeline, low: int, high: int, part: Collection[int] | None = None) -> Moves:
    """The ways within moments ``low..high``; who would leave them stops at the border. Of a `part`, whole nodes are
    those that lie in it."""

    def within(moments: Iterable[int]) -> list[int]:
        return [n for n in moments if low <= n <= high]

    return Moves(
        [n for n in shown_ends(timeline, low, high) if part is None or timeline.at(n).actor in part],
        within(phase.start for phase in timeline.phases),
        within(navigation.stops(timeline)),
        steps((n, min(navigation.finish(timeline, n), high)) for n in range(low, high + 1)),
        steps((n, max(navigation.reverse_finish(timeline, n), low)) for n in range(low, high + 1)),
    )


def steps(values: Iterable[tuple[int, int]]) -> Steps:
    """Values by moment, with every repetition left out."""
    found: Steps = ([], [])
    for n, value in values:
        if not found[1] or found[1][-1] != value:
            found[0].append(n)
            found[1].append(value)
    return found

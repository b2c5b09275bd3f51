"""Which part of a trace one page holds: the iteration of a moment, and its neighbours as far as there is room."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gviz.trace.state import Iteration
from gviz.trace.timeline import Timeline

EVENTS = 100_000
NODES = 1500
ITERATIONS = 24
"""What fits: a browser shows it at once, and every iteration is laid out while somebody waits."""


@dataclass(frozen=True, slots=True)
class Extent:
    """Iterations in a row, and the moments ``low..high`` of them; `left_out` says in words what is not there."""

    iterations: tuple[Iteration, ...]
    low: int
    high: int
    left_out: str


def extent(timeline: Timeline, n: int, *, alone: bool = False, moments: Sequence[int] = ()) -> Extent:
    """What a page opened at moment `n` holds: its iteration `alone`, or as much around it as fits; of `moments`, if
    they are given, nothing else."""
    every = timeline.iterations
    here = timeline.iteration_at(n)
    wanted = _around(every, moments) if moments else every
    kept = (here,) if alone else _grown(timeline, wanted, wanted.index(here))
    first, last = kept[0], kept[-1]
    low, high = (0 if first is every[0] else first.start), last.end
    if moments:
        low, high = max(low, moments[0]), min(high, moments[-1])
    if high - low > EVENTS:
        low = max(low, min(n - EVENTS // 2, high - EVENTS))
        high = low + EVENTS
    held = _held(every, kept, low, high, len(timeline))
    rest = "" if moments else "; exported at another moment, a page holds the rest"
    return Extent(kept, low, high, f"This page holds {held}{rest}." if held else "")


def _around(every: Sequence[Iteration], moments: Sequence[int]) -> Sequence[Iteration]:
    """The iterations in which the moments lie; what is before the first one belongs to it."""
    within = [one for one in every if one.start <= moments[-1] and moments[0] <= one.end]
    return within or every[:1]


def _grown(timeline: Timeline, every: Sequence[Iteration], at: int) -> tuple[Iteration, ...]:
    """The iteration at a place, with those after and before it in turn until no more fit."""
    first = last = at
    events, nodes = _size(timeline, every[at])
    for _ in range(ITERATIONS - 1):
        for place in (last + 1, first - 1):
            if not 0 <= place < len(every):
                continue
            more_events, more_nodes = _size(timeline, every[place])
            if events + more_events > EVENTS or nodes + more_nodes > NODES or last - first + 1 >= ITERATIONS:
                return tuple(every[first : last + 1])
            events, nodes = events + more_events, nodes + more_nodes
            first, last = min(first, place), max(last, place)
    return tuple(every[first : last + 1])


def _size(timeline: Timeline, iteration: Iteration) -> tuple[int, int]:
    return iteration.end - iteration.start + 1, len(timeline.nodes.of(iteration))


def _held(every: Sequence[Iteration], kept: Sequence[Iteration], low: int, high: int, count: int) -> str:
    """What is held, in words, where that is not everything."""
    words = []
    if len(kept) < len(every):
        first, last = kept[0].index + 1, kept[-1].index + 1
        which = f"iteration {first}" if first == last else f"iterations {first} to {last}"
        words.append(f"{which} of {len(every)}")
    if high - low < count - 1 or words:
        words.append(f"events {max(low, min(high, 1)):,} to {high:,} of {count:,}")
    return ", ".join(words)

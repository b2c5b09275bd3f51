"""Whether optimizers stepped with other options on either side: another learning rate, before any weight differs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gviz.compare.side import Side
from gviz.events import OptimizerStarted
from gviz.events.options import Option, options_in

Steps = list[tuple[int, OptimizerStarted]]


@dataclass(frozen=True, slots=True)
class OtherOption:
    """An option of a group of parameters (from 0) that has two values."""

    group: int
    name: str
    values: tuple[Option, Option]


@dataclass(frozen=True, slots=True)
class OtherStep:
    """The first step that was made with other options: in which iteration of either side, said by which events.

    `stack` is where the second side called it.
    """

    iterations: tuple[int, int]
    events: tuple[int, int]
    kind: str
    stack: int
    options: tuple[OtherOption, ...]


def other_step(a: Side, b: Side) -> OtherStep | None:
    """The first step with other options in the iterations of two sides, or in those before of two recordings.

    Options that only one of them tells of do not count, as two versions of a framework may have others.
    """
    from_start = a.timeline is not b.timeline and a.number == b.number
    numbers = range(1, a.number + 1) if from_start else (0,)
    for number in numbers:
        places = (number, number) if from_start else (a.number, b.number)
        left, right = _steps(a, places[0]), _steps(b, places[1])
        for (seq, mine), (other_seq, other) in zip(left, right, strict=False):
            found = tuple(_others(mine, other)) if mine.kind == other.kind else ()
            if found:
                return OtherStep(places, (seq, other_seq), mine.kind, other.stack, found)
    return None


def _steps(side: Side, number: int) -> Steps:
    """The steps that begin in an iteration."""
    iteration = side.timeline.iterations[number - 1]
    return list(side.timeline.select((OptimizerStarted,), iteration.start, iteration.end + 1))


def _others(a: OptimizerStarted, b: OptimizerStarted) -> Iterator[OtherOption]:
    for group in range(min(len(a.options), len(b.options))):
        mine, other = options_in(a.options, group), options_in(b.options, group)
        for name in mine:
            if name in other and mine[name] != other[name]:
                yield OtherOption(group, name, (mine[name], other[name]))

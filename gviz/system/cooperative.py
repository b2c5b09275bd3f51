"""Work that takes long, done a little at a time: who drives it tells how far it is, stays awake, or gives it up.

It rests often. `finished` drives it to its end in one go, `paced` makes it rest as rarely as who drives it wants.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import TypeAlias, TypeVar

T = TypeVar("T")

AT_ONCE = 500
"""So many nodes are asked about in one go."""


@dataclass(frozen=True, slots=True)
class Far:
    """How far work has come; `doing` is what is done, to be read before ``7 of 23``."""

    doing: str
    done: int
    total: int

    def __str__(self) -> str:
        """``checking: unused losses, 7 of 23``."""
        return f"{self.doing} {self.done:,} of {self.total:,}"


Driven: TypeAlias = Generator[Far, None, T]
"""Work that gives, wherever it may rest, how far it has come, and returns its result."""


def finished(work: Driven[T], told: Callable[[Far], None] | None = None) -> T:
    """The result of work, done in one go; wherever it could rest `told` hears how far it has come."""
    results: list[T] = []
    for far in _resulting(work, results):
        if told is not None:
            told(far)
    return results[0]


def paced(work: Driven[T], seconds: float) -> Driven[T]:
    """The same work, which rests only after it has gone on for so long."""
    results: list[T] = []
    until = monotonic() + seconds
    for far in _resulting(work, results):
        if monotonic() > until:
            yield far
            until = monotonic() + seconds
    return results[0]


def _resulting(work: Driven[T], results: list[T]) -> Iterator[Far]:
    """The rests of work, whose result joins others: a loop over the work itself would lose it."""
    results.append((yield from work))


def collected(found: Iterable[T | Far]) -> Driven[list[T]]:
    """All that is found, but for how far that is: who drives it is told."""
    kept: list[T] = []
    for one in found:
        if isinstance(one, Far):
            yield one
        else:
            kept.append(one)
    return kept


def parts(things: Sequence[T], doing: str) -> Iterator[Far | Sequence[T]]:
    """The things in parts that are soon done, and before each how many were."""
    for start in range(0, len(things), AT_ONCE):
        yield Far(doing, start, len(things))
        yield things[start : start + AT_ONCE]

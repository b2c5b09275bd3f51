"""Long work in small steps: the caller can show progress, stay responsive, or abort it.

Work yields often. `finished` runs it to its end, `paced` makes it yield only every so often.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import TypeAlias, TypeVar

T = TypeVar("T")

AT_ONCE = 500
"""The number of nodes processed per step."""


@dataclass(frozen=True, slots=True)
class WorkProgress:
    """The progress of work. `doing` describes it, to be read before ``7 of 23``."""

    doing: str
    done: int
    total: int

    def __str__(self) -> str:
        """Format the progress: ``checking: unused losses, 7 of 23``."""
        return f"{self.doing} {self.done:,} of {self.total:,}"


LongWork: TypeAlias = Generator[WorkProgress, None, T]
"""Work that yields its progress wherever it can pause, and returns its result."""


def finished(work: LongWork[T], report: Callable[[WorkProgress], None] | None = None) -> T:
    """Run work to its end and return its result. `report` is called with the progress wherever it could pause."""
    results: list[T] = []
    for far in _resulting(work, results):
        if report is not None:
            report(far)
    return results[0]


def paced(work: LongWork[T], seconds: float) -> LongWork[T]:
    """Return the same work, which yields only after `seconds` have passed."""
    results: list[T] = []
    until = monotonic() + seconds
    for far in _resulting(work, results):
        if monotonic() > until:
            yield far
            until = monotonic() + seconds
    return results[0]


def _resulting(work: LongWork[T], results: list[T]) -> Iterator[WorkProgress]:
    """Yield the progress of work and append its result to a list; a loop over the work itself would lose it."""
    results.append((yield from work))


def collected(items: Iterable[T | WorkProgress]) -> LongWork[list[T]]:
    """Collect everything that is found into a list; yields the progress among it."""
    results: list[T] = []
    for item in items:
        if isinstance(item, WorkProgress):
            yield item
        else:
            results.append(item)
    return results


def parts(things: Sequence[T], doing: str) -> Iterator[WorkProgress | Sequence[T]]:
    """Yield the things in small parts, and before each part the progress."""
    for start in range(0, len(things), AT_ONCE):
        yield WorkProgress(doing, start, len(things))
        yield things[start : start + AT_ONCE]

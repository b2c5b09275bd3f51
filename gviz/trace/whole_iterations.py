"""Which iterations of a run a trace contains in full, if not all.

There are two reasons: the recording paused within a budget (see `gviz.adapters.recording_budget`; a sentinel looked at
the iterations between), or iterations were dropped from a long trace (see `gviz.trace.file.ring`). In both cases a mark
``iteration 512`` names the iteration that follows. Text from a trace is not trusted: a record without the right form is
ignored.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from gviz.trace.graph_state import Iteration

NUMBERED = re.compile("iteration ([1-9][0-9]{0,14})")
"""A mark that names the iteration that follows."""
_LISTED = 7
_LONGEST_PATH = 1000


@dataclass(frozen=True, slots=True)
class TimedCall:
    """A module call of a timed iteration: its own nanoseconds, and the index of the call around it (-1: none)."""

    path: str
    kind: str
    parent: int
    forward: int
    backward: int


@dataclass(frozen=True, slots=True)
class TimedIteration:
    """An iteration in which module calls were timed and nothing else was recorded. All times are in nanoseconds.

    `outside` are backward rules that belong to no module. `clock` is ``cpu`` or ``cuda``.
    """

    iteration: int
    clock: str
    total: int
    calls: tuple[TimedCall, ...]
    outside: int
    optimizer: int


@dataclass(frozen=True, slots=True)
class RecordedIterations:
    """A run with this number of `iterations`.

    `whole` has the first and last iteration of each recorded stretch. `looks` has iterations with their losses (None:
    unknown) and the norms of their gradients: one for every `every`-th iteration, fewer for old ones. `alarms` has
    iterations and what was wrong there, in words. `paused` is false if every iteration was recorded at first.
    `times` are the iterations whose module calls were timed.
    """

    iterations: int
    every: int
    whole: tuple[tuple[int, int], ...]
    looks: tuple[tuple[int, float | None, float], ...]
    alarms: tuple[tuple[int, str], ...]
    paused: bool = True
    times: tuple[TimedIteration, ...] = ()

    def has_whole(self, iteration: int) -> bool:
        """Return whether an iteration of the run is recorded."""
        return any(first <= iteration <= last for first, last in self.whole)

    @property
    def words(self) -> str:
        """How much of the run was recorded, in a sentence."""
        count = sum(min(last, self.iterations) - first + 1 for first, last in self.whole if first <= self.iterations)
        how_often = "every iteration" if self.every == 1 else f"one iteration in {self.every}"
        looked = f"; loss and gradients were checked in {how_often}" if self.looks else ""
        verb = "recorded whole" if self.paused else "kept"
        return f"{count:,} of {self.iterations:,} iterations are {verb}{looked}"

    @property
    def numbers(self) -> str:
        """The numbers of the iterations that are whole: ``1, 512, 724 to 726``; of many, the first and last ones."""
        texts = [f"{first:,}" if first == last else f"{first:,} to {last:,}" for first, last in self.whole]
        if len(texts) > _LISTED:
            texts = [*texts[: _LISTED // 2], "…", *texts[-(_LISTED // 2) :]]
        return ", ".join(texts)


def recorded_iterations(meta: Mapping[str, str]) -> RecordedIterations | None:
    """Return the record in the `meta` of a trace; None if all iterations are whole, as far as it says."""
    with suppress(ArithmeticError, ValueError, TypeError, KeyError, RecursionError):
        data = json.loads(meta["monitored"])
        return RecordedIterations(
            int(data["iterations"]),
            max(int(data["every"]), 1),
            tuple([(int(first), int(last)) for first, last in data["whole"]]),
            tuple([(int(at), None if loss is None else float(loss), float(norm)) for at, loss, norm in data["looks"]]),
            tuple([(int(at), str(what)) for at, what in data["alarms"]]),
            times=tuple([_timed(int(at), times) for at, times in data.get("times", ())]),
        )
    return RecordedIterations(0, 1, (), (), (), paused=False) if "gaps" in meta else None


def _timed(iteration: int, data: Mapping[str, Any]) -> TimedIteration:
    """Return a timed iteration from its stored form.

    Raises ValueError if a call is before the one around it, and if a time has more than 64 bits.
    """
    calls = [TimedCall(str(path)[:_LONGEST_PATH], str(kind)[:_LONGEST_PATH], int(parent), int(forward), int(backward))
             for path, kind, parent, forward, backward in data["calls"]]  # fmt: skip
    if any(not -1 <= call.parent < at for at, call in enumerate(calls)):
        raise ValueError("a call is inside a later one")
    total, outside, optimizer = (int(data[name]) for name in ("total", "outside", "optimizer"))
    if any(abs(time) >> 63 for call in calls for time in (call.forward, call.backward)):
        raise ValueError("a call took too long")
    if any(abs(time) >> 63 for time in (total, outside, optimizer)):
        raise ValueError("an iteration took too long")
    return TimedIteration(iteration, str(data["clock"])[:_LONGEST_PATH], total, tuple(calls), outside, optimizer)


def numbered(
    recorded: RecordedIterations, iterations: Sequence[Iteration], marks: Iterable[tuple[int, str]]
) -> tuple[Iteration, ...]:
    """Return the iterations of a trace with their numbers in the run, which its marks name.

    If the recording paused, its marks name steps of an optimizer; several iterations may belong to one. Otherwise they
    name the first iteration after each gap.
    """
    named = [(seq, int(match[1])) for seq, name in marks if (match := NUMBERED.fullmatch(name))]
    result: list[Iteration] = []
    place = number = 0
    for one in iterations:
        number += not recorded.paused
        if not place and named and not result and recorded.paused and named[0][0] <= one.end:
            place, number = 1, named[0][1]
        while place < len(named) and named[place][0] <= one.start:
            number = named[place][1]
            place += 1
        result.append(replace(one, in_run=number))
    return tuple(result)


def of_numbers(recorded: RecordedIterations, numbers: Sequence[int]) -> RecordedIterations:
    """Return the record with the numbers of the iterations that are in the trace."""
    there = sorted({number for number in numbers if number > 0})
    firsts = [*there[:1], *(after for before, after in pairwise(there) if after > before + 1)]
    lasts = [*(before for before, after in pairwise(there) if after > before + 1), *there[-1:]]
    count = max(recorded.iterations, *there[-1:], 0)
    return replace(recorded, iterations=count, whole=tuple(zip(firsts, lasts, strict=True)))

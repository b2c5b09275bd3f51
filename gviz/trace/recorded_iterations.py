"""The record of a recording that paused: which iterations it contains whole, and what the sentinel saw between them.

The recorder writes it as JSON into the trace (see `gviz.adapters.recording_budget`). Text from a trace is not trusted:
anything without this form is ignored.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RecordedIterations:
    """A run with this number of `iterations`.

    `whole` has the first and last iteration of each recorded stretch. `looks` has iterations with their losses (None:
    unknown) and the norms of their gradients: one for every `every`-th iteration, fewer for old ones. `alarms` has
    iterations and what was wrong there, in words.
    """

    iterations: int
    every: int
    whole: tuple[tuple[int, int], ...]
    looks: tuple[tuple[int, float | None, float], ...]
    alarms: tuple[tuple[int, str], ...]

    def has_whole(self, iteration: int) -> bool:
        """Return whether an iteration of the run is recorded."""
        return any(first <= iteration <= last for first, last in self.whole)

    @property
    def words(self) -> str:
        """How much of the run was recorded, in a sentence."""
        count = sum(min(last, self.iterations) - first + 1 for first, last in self.whole if first <= self.iterations)
        how_often = "every iteration" if self.every == 1 else f"one iteration in {self.every}"
        looked = f"; loss and gradients were checked in {how_often}" if self.looks else ""
        return f"{count:,} of {self.iterations:,} iterations are recorded whole{looked}"


def recorded_iterations(meta: Mapping[str, str]) -> RecordedIterations | None:
    """Return the record in the `meta` of a trace; None if the recording did not pause."""
    with suppress(ArithmeticError, ValueError, TypeError, KeyError, RecursionError):
        data = json.loads(meta["monitored"])
        return RecordedIterations(
            int(data["iterations"]),
            max(int(data["every"]), 1),
            tuple([(int(first), int(last)) for first, last in data["whole"]]),
            tuple([(int(at), None if loss is None else float(loss), float(norm)) for at, loss, norm in data["looks"]]),
            tuple([(int(at), str(what)) for at, what in data["alarms"]]),
        )
    return None

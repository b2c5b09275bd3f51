"""What a trace says about a recording that paused: which iterations it holds whole, and what was seen between them.

The recorder writes it as JSON into the trace, see `gviz.adapters.recording_budget`. A trace is data: what does not have
this form is taken for not said.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Monitored:
    """A run of so many `iterations`.

    `whole` are those that are recorded, from the first to the last of each stretch. `looks` are an iteration, its loss
    (None: not known) and the norm of its gradients; there was one at every `every`-th, of which old ones grow rarer.
    `alarms` are iterations and what was wrong there, in words.
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
        how_often = "each" if self.every == 1 else f"every {self.every}th"
        looked = f"; {how_often} was looked at" if self.looks else ""
        return f"{count:,} of {self.iterations:,} iterations are recorded whole{looked}"


def monitored_of(meta: Mapping[str, str]) -> Monitored | None:
    """Return what a trace with this `meta` says, if it is of a recording that paused."""
    with suppress(ArithmeticError, ValueError, TypeError, KeyError, RecursionError):
        told = json.loads(meta["monitored"])
        return Monitored(
            int(told["iterations"]),
            max(int(told["every"]), 1),
            tuple([(int(first), int(last)) for first, last in told["whole"]]),
            tuple([(int(at), None if loss is None else float(loss), float(norm)) for at, loss, norm in told["looks"]]),
            tuple([(int(at), str(what)) for at, what in told["alarms"]]),
        )
    return None

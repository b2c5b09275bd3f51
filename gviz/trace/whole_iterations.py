"""For a trace that does not contain every iteration of its run in full: which ones it contains.

Iterations are missing for one of two reasons:

* The recording *paused*. To record each iteration would have taken too much time. So most of them were not recorded,
  and only their loss and gradients were checked (see `gviz.adapters.monitor_budget`).
* The trace became too long, and iterations were deleted from it (see `gviz.trace.file.ring_buffer`).

In both cases a mark ``iteration 512`` precedes the events of iteration 512 of the run; `with_run_numbers` reads the
marks. Text from a trace is not trusted: a record without the right form is ignored.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from gviz.trace.graph_state import Iteration
from gviz.trace.timed_iterations import TimedIteration, timed_iteration
from gviz.values.plain_text import clipped, shown

NUMBERED = re.compile("iteration ([1-9][0-9]{0,14})")
"""A mark with the number of the iteration that follows."""
_MOST_LISTED = 7


@dataclass(frozen=True, slots=True)
class RecordedIterations:
    """What a trace says about its run: the number of `iterations`, and which of them it contains in full.

    `whole_ranges` has the first and the last iteration of each range that is recorded in full. `checks` has for each
    checked iteration its number, its loss (None: unknown) and the norm of its gradients (None: it had none); of older
    checks only some are kept. There were `check_count` checks (0: unknown), and in the end one iteration in
    `check_interval` was checked. `alarms` has iterations and what was
    wrong there, in words, and `last_good` the last iteration without trouble before each alarm. `paused` is false if
    every iteration was recorded and some were deleted later. `timed_iterations` are those whose module calls were
    timed. `program` is the command line that was run.
    """

    iterations: int
    check_interval: int
    whole_ranges: tuple[tuple[int, int], ...]
    checks: tuple[tuple[int, float | None, float | None], ...]
    alarms: tuple[tuple[int, str], ...]
    paused: bool = True
    timed_iterations: tuple[TimedIteration, ...] = ()
    last_good: tuple[int, ...] = ()
    program: tuple[str, ...] = ()
    check_count: int = 0

    def command_from(self, iteration: int, what: str = "") -> str:
        """Return the command that runs the program again and records from an iteration on; empty if it is unknown.

        If `what`, the words of an alarm, names a nan or an infinity, the recording ends at the first one.
        """
        if not self.program:
            return ""
        number = next((number for number in ("nan", "inf") if f" is {number}" in what), "")
        until = ["--on", number] if number else []
        return shlex.join(["gviz", "record", "--from-iteration", str(iteration), *until, *self.program])

    def has_whole(self, iteration: int) -> bool:
        """Return whether an iteration of the run is recorded in full."""
        return any(first <= iteration <= last for first, last in self.whole_ranges)

    @property
    def range_of_last_alarm(self) -> tuple[int, int]:
        """The iterations from the first to the last in which the last alarm may have begun; zeros if there is none.

        They are those after the last iteration without trouble, unless the words of the alarm name one.
        """
        if not self.alarms:
            return 0, 0
        iteration, what = self.alarms[-1]
        good = self.last_good[-1] if len(self.last_good) == len(self.alarms) else 0
        is_exact = not 0 < good < iteration - 1 or "iteration" in what
        return iteration if is_exact else good + 1, iteration

    @property
    def last_alarm(self) -> str:
        """The last alarm in words, with the iterations among which it began; empty if there is none."""
        return self.last_alarm_within(*self.range_of_last_alarm)

    def last_alarm_within(self, first: int, last: int) -> str:
        """Return the last alarm in words, which began in one of these iterations; empty if there is none."""
        if not self.alarms:
            return ""
        where = f"iteration {last:,}" if first == last else f"iterations {first:,} to {last:,}"
        return shown(f"{where}: {clipped(self.alarms[-1][1], 200)}")

    @property
    def summary(self) -> str:
        """How much of the run was recorded, in a sentence."""
        ranges = (one for one in self.whole_ranges if one[0] <= self.iterations)
        count = sum(min(last, self.iterations) - first + 1 for first, last in ranges)
        if self.check_interval == 1 and not 0 < self.check_count < self.iterations:
            how_often = "every iteration"
        elif self.check_count:
            how_often = f"{self.check_count:,} of them"
        else:
            how_often = f"one iteration in {self.check_interval}"
        checked = f"; loss and gradients were checked in {how_often}" if self.checks else ""
        verb = "recorded whole" if self.paused else "kept"
        return f"{count:,} of {self.iterations:,} iterations are {verb}{checked}"

    @property
    def numbers(self) -> str:
        """The numbers of the iterations recorded in full: ``1, 512, 724 to 726``; of many, the first and last ones."""
        texts = [f"{first:,}" if first == last else f"{first:,} to {last:,}" for first, last in self.whole_ranges]
        if len(texts) > _MOST_LISTED:
            texts = [*texts[: _MOST_LISTED // 2], "…", *texts[-(_MOST_LISTED // 2) :]]
        return ", ".join(texts)


def recorded_iterations(meta: Mapping[str, str]) -> RecordedIterations | None:
    """Return what the `meta` table of a trace says; None if, by this table, all iterations are recorded in full."""
    with suppress(ArithmeticError, ValueError, TypeError, KeyError, RecursionError):
        data = json.loads(meta["monitored"])
        return RecordedIterations(
            int(data["iterations"]),
            max(int(data["every"]), 1),
            tuple([(int(first), int(last)) for first, last in data["whole"]]),
            tuple([(int(at), _number(loss), _number(norm)) for at, loss, norm in data["looks"]]),
            tuple([(int(at), str(what)) for at, what in data["alarms"]]),
            last_good=tuple([int(at) for at in data.get("since", ())]),
            program=tuple([str(word) for word in data.get("program", ())]),
            check_count=int(data.get("looked", 0)),
            timed_iterations=tuple([timed_iteration(int(at), times) for at, times in data.get("times", ())]),
        )
    return RecordedIterations(0, 1, (), (), (), paused=False) if "gaps" in meta else None


def _number(stored: Any) -> float | None:
    return None if stored is None else float(stored)


def with_run_numbers(
    recorded: RecordedIterations, iterations: Sequence[Iteration], marks: Iterable[tuple[int, str]]
) -> tuple[Iteration, ...]:
    """Return the iterations of a trace with their numbers in the run, which its marks contain.

    If the recording paused, its marks number optimizer steps, and several iterations of the trace may belong to one
    step: they all get its number. Otherwise a mark numbers the first iteration after a gap, and the next ones count on.
    """
    numbered_marks = [(seq, int(match[1])) for seq, name in marks if (match := NUMBERED.fullmatch(name))]
    result: list[Iteration] = []
    next_mark = number = 0
    for one in iterations:
        number += not recorded.paused
        if not next_mark and numbered_marks and not result and recorded.paused and numbered_marks[0][0] <= one.end:
            next_mark, number = 1, numbered_marks[0][1]
        while next_mark < len(numbered_marks) and numbered_marks[next_mark][0] <= one.start:
            number = numbered_marks[next_mark][1]
            next_mark += 1
        result.append(replace(one, in_run=number))
    return tuple(result)


def with_recorded_numbers(recorded: RecordedIterations, numbers: Sequence[int]) -> RecordedIterations:
    """Return a copy whose `iterations` and `whole_ranges` follow from the numbers of the iterations in the trace."""
    present = sorted({number for number in numbers if number > 0})
    firsts = [*present[:1], *(after for before, after in pairwise(present) if after > before + 1)]
    lasts = [*(before for before, after in pairwise(present) if after > before + 1), *present[-1:]]
    count = max(recorded.iterations, *present[-1:], 0)
    return replace(recorded, iterations=count, whole_ranges=tuple(zip(firsts, lasts, strict=True)))

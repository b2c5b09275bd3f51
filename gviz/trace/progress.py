"""What one backward pass has done at one node so far, and how that grew."""

from __future__ import annotations

from collections.abc import Sequence
from operator import eq
from typing import overload

from gviz import events as e
from gviz.trace.log import EventLog
from gviz.trace.passes import Reach, replacement, seed_of
from gviz.trace.state import Contribution, Step
from gviz.values import Value

LONG = 256
"""A node at which more has happened in a pass (a weight of a recurrent net) is remembered as a `History`."""


class FirstOf(Sequence[Contribution]):
    """The first `count` items of a list that only grows, without a copy of them."""

    __slots__ = ("_count", "_items")

    def __init__(self, items: list[Contribution], count: int) -> None:
        self._items = items
        self._count = count

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> Contribution: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Contribution, ...]: ...
    def __getitem__(self, index: int | slice) -> Contribution | tuple[Contribution, ...]:
        places = range(self._count)[index]
        if isinstance(places, range):
            return tuple(self._items[place] for place in places)
        return self._items[places]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and len(other) == len(self) and all(map(eq, self, other))

    __hash__ = None  # type: ignore[assignment]  # equal to a tuple, but not made to be a key


class Progress:
    """What one pass has done at one node so far."""

    __slots__ = ("complete", "parts", "pass_nr", "reach", "step", "totals")

    def __init__(self, pass_nr: int, reach: Reach) -> None:
        self.pass_nr = pass_nr
        self.reach = reach
        self.parts: dict[int, list[Contribution]] = {}
        self.totals: dict[int, Value] = {}
        self.step: Step = "pending"
        self.complete = False

    def arrived(self, output_nr: int) -> Sequence[Contribution]:
        """The contributions that have arrived at an output."""
        return tuple(self.parts.get(output_nr, ()))

    def happen(self, seq: int, node: int, event: e.Event, log: EventLog) -> None:
        """Take in one event at the node; those of other passes change nothing."""
        if pass_of(event) != self.pass_nr:
            return
        match event:
            case e.GradFlowed(output_nr=output_nr, part=part, total=total):
                self._arrive(output_nr, Contribution(event.source, event.slot, part, seq), total)
            case e.BackwardStarted():
                for slot, (root, seed) in enumerate(zip(event.roots, event.seeds, strict=False)):
                    if root[0] == node:
                        self._arrive(root[1], Contribution(0, slot, seed, seq), seed_of(event, root, log.array))
            case e.HookRan(output_nr=output_nr):
                given = replacement(event)
                if given is not None:
                    self.totals[output_nr] = given
            case e.StepStarted():
                self.step, self.complete = "running", True
            case e.StepFinished() | e.GradAccumulated() | e.GradCaptured():
                self.step, self.complete = "done", True

    def _arrive(self, output_nr: int, part: Contribution, total: Value | None) -> None:
        self.parts.setdefault(output_nr, []).append(part)
        self.totals[output_nr] = part.value if total is None else total


class Earlier(Progress):
    """A progress as it was when fewer contributions had arrived."""

    __slots__ = ("_counts",)

    def __init__(self, now: Progress, counts: dict[int, int]) -> None:
        super().__init__(now.pass_nr, now.reach)
        self.parts = now.parts
        self._counts = counts

    def arrived(self, output_nr: int) -> Sequence[Contribution]:
        """The first of the contributions."""
        return FirstOf(self.parts.get(output_nr, []), self._counts.get(output_nr, 0))


class History:
    """How a progress grew, event by event, so that any moment of it can be had without reading it anew."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._moments: list[tuple[dict[int, int], dict[int, Value], Step, bool]] = []

    def __len__(self) -> int:
        return len(self._moments)

    def happen(self, seq: int, node: int, event: e.Event, log: EventLog) -> None:
        """Take in the next event."""
        now = self._progress
        now.happen(seq, node, event, log)
        counts = {output_nr: len(parts) for output_nr, parts in now.parts.items()}
        self._moments.append((counts, dict(now.totals), now.step, now.complete))

    def after(self, count: int) -> Progress:
        """The progress after the first `count` events, of which there must be one."""
        counts, totals, step, complete = self._moments[count - 1]
        earlier = Earlier(self._progress, counts)
        earlier.totals, earlier.step, earlier.complete = totals, step, complete
        return earlier


def pass_of(event: e.Event) -> int:
    """The pass an event belongs to, 0 for none."""
    return int(getattr(event, "pass_nr", 0))

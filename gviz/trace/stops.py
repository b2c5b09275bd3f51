"""Where a timeline meets what users asked to stop at: forward and backward in time the same moments."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

import numpy as np

from gviz import events as e
from gviz.driven import Far
from gviz.events import Event
from gviz.plain_text import clipped, told
from gviz.trace.codec import KIND_NUMBERS, values
from gviz.trace.entering import Entering
from gviz.trace.log import Columns
from gviz.trace.meaning import Meant
from gviz.trace.situation import Absent, Situation
from gviz.trace.timeline import Timeline
from gviz.values import Array
from gviz.where.stop import CALLED, Stop

STRETCH = 4096
"""Events looked at in one go; the moments found in them are remembered."""

READ_TO_TELL = frozenset(("forward", "view", "nan", "inf"))
"""The words of ``on EVENT`` for which the kind of an event is not enough."""

_WORTH_ALL = 0.1
"""From which share of a stretch on reading one event after the other costs less than picking the wanted ones."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A moment at which a stop fits; `note` says what was found there, or why a condition could not be told."""

    n: int
    note: str = ""


def stretches(timeline: Timeline, n: int, *, backward: bool = False) -> Iterator[range]:
    """The moments of a timeline in parts of `STRETCH`, from the one in which moment `n` lies to the end (start)."""
    here = n // STRETCH
    for at in range(here, -1, -1) if backward else range(here, len(timeline) // STRETCH + 1):
        yield range(at * STRETCH, min((at + 1) * STRETCH, len(timeline) + 1))


class Hits:
    """The moments at which one stop fits, found stretch by stretch where they are asked for."""

    def __init__(self, timeline: Timeline, stop: Stop) -> None:
        self._timeline = timeline
        self._stop = stop
        self._place, self._kinds, self._word = stop.at.place, stop.at.kinds, stop.event
        self._forget()

    def _forget(self) -> None:
        self._known: dict[int, tuple[int, list[Hit]]] = {}
        self._naming = self._timeline.nodes.last_naming
        once = self._stop.once_a_run
        self._meant = None if self._place is None else Meant(self._timeline, self._place, once_a_run=once)
        module = self._place if self._stop.once_a_call else None
        self._entering = None if module is None else Entering(self._timeline, module)

    def after(self, n: int) -> Iterator[Hit]:
        """The hits after moment `n`, in order."""
        for stretch in stretches(self._timeline, n):
            yield from (hit for hit in self.within(stretch) if hit.n > n)

    def before(self, n: int) -> Iterator[Hit]:
        """The hits before moment `n`, the latest first."""
        for stretch in stretches(self._timeline, n, backward=True):
            yield from (hit for hit in reversed(self.within(stretch)) if hit.n < n)

    def untold(self, n: float = inf) -> int:
        """At how many moments by `n` it could not be told whether the stop fits, of those that were looked at."""
        return 0

    def missing(self) -> str:
        """What was not stored and is needed to tell it, as `NotStored` says it; judged by the first moment it could be.

        Empty where all is there.
        """
        return ""

    def looking(self) -> Iterator[Far]:
        """Look for what must be known before anything can be told of the stop, if there is such a thing."""
        return iter(())

    def nowhere(self) -> str:
        """What the stop names and no node is, as it is written; empty where there is one, or it names nothing."""
        return "" if self._meant is None or self._place is None or self._meant.any() else self._place.text

    def can_hit(self) -> bool:
        """Whether there is what the stop names; True where it names nothing."""
        return not self.nowhere()

    def means(self, node: int) -> bool:
        """Whether the stop's place means this node, or a module call that begins with it."""
        meant = self._meant is not None and node in self._meant
        return meant and (self._entering is None or self._entering.is_met_at(node))

    def within(self, stretch: range) -> list[Hit]:
        """The hits in one of the `stretches`, looked for once."""
        if self._timeline.nodes.last_naming != self._naming:  # older nodes may have got theirs
            self._forget()
        if not self._timeline.growing and not self.can_hit():
            return []
        searched, hits = self._known.get(stretch.start, (stretch.start, []))
        if searched < stretch.stop:
            hits = [*hits, *self._search(max(searched, 1), stretch.stop)]
            decided = min(stretch.stop, self._timeline.nodes.open_from or stretch.stop)
            self._known[stretch.start] = max(searched, decided), [hit for hit in hits if hit.n < decided]
        return hits

    def _search(self, start: int, end: int) -> Iterator[Hit]:
        rows, nodes = self._candidates(start, end)
        if self._stop.condition is None and self._word not in READ_TO_TELL:
            yield from (Hit(start + row) for row in rows)
            return
        for n, node, event in self._read(start, rows, nodes):
            if is_of(self._word, event) and (hit := self._tested(n, node, event)) is not None:
                yield hit

    def _candidates(self, start: int, end: int) -> tuple[list[int], list[int]]:
        """The places in a stretch of the events that concern the stop's place, and their nodes, from columns alone."""
        columns = self._timeline.columns(start, end)
        wanted = np.isin(columns.kind, [KIND_NUMBERS[kind] for kind in self._kinds])
        if self._word == "error":  # a pass may have ended without one, or with that of the failure after it
            wanted &= np.isin(np.arange(start, end), self._timeline.errors)
        if self._meant is not None:
            wanted &= self._concerning(self._meant, columns, wanted, start)
        if self._entering is not None:
            wanted = self._entering.rows(columns, wanted, start)
        rows = np.flatnonzero(wanted)
        return rows.tolist(), columns.node[rows].tolist()

    def _concerning(self, meant: Meant, columns: Columns, wanted: Array, start: int) -> Array:
        """Which of the wanted events are of what is meant, or write to what such a node holds."""
        nodes = np.unique(columns.node[wanted]).tolist()
        fitting = np.isin(columns.node, [node for node in nodes if node in meant])
        begun = np.isin(columns.kind, [KIND_NUMBERS[kind] for kind in CALLED])
        unknown = begun | (~fitting & (columns.kind == KIND_NUMBERS[e.StorageWritten]))
        for row in np.flatnonzero(wanted & unknown).tolist():
            event = self._timeline.event(start + row)
            if isinstance(event, e.StorageWritten):
                fitting[row] = meant.memory().get(event.storage, inf) < start + row
            elif isinstance(event, CALLED):
                fitting[row] = meant.begins(event)
        return fitting

    def _read(self, start: int, rows: list[int], nodes: list[int]) -> Iterator[tuple[int, int, Event]]:
        """The events of some rows of a stretch; all of their kinds are read at once where most of them are wanted."""
        if not rows:
            return
        if len(rows) < (rows[-1] - rows[0]) * _WORTH_ALL:
            yield from (
                (start + row, node, self._timeline.event(start + row)) for row, node in zip(rows, nodes, strict=True)
            )
            return
        by_number = dict(zip(rows, nodes, strict=True))
        for n, event in self._timeline.select(self._kinds, start + rows[0], start + rows[-1] + 1):
            if n - start in by_number:
                yield n, by_number[n - start], event

    def _tested(self, n: int, node: int, event: Event) -> Hit | None:
        if self._stop.condition is None:
            return Hit(n)
        try:
            situation = Situation(self._timeline, n, node, event, self._output_nr(node))
            return Hit(n) if self._stop.condition.holds(situation) else None
        except Absent:
            return None
        except Exception as trouble:  # whatever the user's expression raises is shown where it happened
            return Hit(n, f"{self._stop.condition.text}: {clipped(told(trouble), 120)}")

    def _output_nr(self, node: int) -> int:
        """Which output the stop's place means of a node that it means."""
        if self._place is None or node not in self._timeline.nodes.parts:
            return 0
        return self._timeline.info(node).output_called(self._place.word)


def is_of(word: str, event: Event) -> bool:
    """Whether an event of one of `where.EVENTS[word]` is what the word means; no word means all."""
    match word:
        case "forward":
            return isinstance(event, e.NodeCreated) and event.kind == "op"
        case "view":
            return isinstance(event, e.NodeCreated) and any(output.view_of for output in event.outputs)
        case "nan" | "inf":
            return any(getattr(stats, word) for value in values(event) if (stats := value.statistics()) is not None)
        case "error":
            return not isinstance(event, e.BackwardFinished) or bool(event.error)
    return True

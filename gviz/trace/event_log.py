"""The ordered list of the events of a program, in memory or in a file."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping
from threading import get_ident
from typing import NamedTuple, Protocol, TypeVar

import numpy as np

from gviz.errors import GvizError
from gviz.events import Event, Named, NodeCreated, OpSeen, SourceSeen, StackSeen
from gviz.trace.codec import KIND_NUMBERS, subject
from gviz.trace.iterations import IterationPattern
from gviz.trace.stack_tree import Stacks
from gviz.trace.whole_iterations import RecordedIterations
from gviz.values.value import Array, Value

E = TypeVar("E", bound=Event)


class Columns(NamedTuple):
    """The subjects and threads of a stretch of events, one entry per event: arrays of equal length."""

    kind: Array
    node: Array
    output_nr: Array
    pass_nr: Array
    thread: Array


class Gap(NamedTuple):
    """Events that were dropped from the middle of a log. The `again` events from number `start` on replace them: they
    lead to the state after the gap.
    """

    start: int
    again: int
    events: int

    @property
    def end(self) -> int:
        """The first event after the gap that is as it was recorded."""
        return self.start + self.again


class MissingParts(NamedTuple):
    """What is missing from a log that keeps only some parts of a run.

    `events` is the number of events dropped from its beginning. The first `again` events of the log replace them: they
    recreate the state at that point. `patterns` are the loop iterations that the dropped part had shown. `gaps` are
    those between kept parts.
    """

    events: int
    again: int
    patterns: tuple[IterationPattern, ...] = ()
    gaps: tuple[Gap, ...] = ()

    def replaces(self, n: int) -> bool:
        """Return whether an event is not one of the program's, but repeats what followed from dropped ones."""
        if n <= self.again:
            return True
        at = bisect_right(self.gaps, n, key=_start_of) - 1
        return at >= 0 and n < self.gaps[at].end

    @property
    def words(self) -> str:
        """A description of what is missing; empty if nothing is."""
        parts = []
        if self.events:
            parts.append(f"only the last part was kept, {self.events:,} events before it were dropped")
        if self.again:
            parts.append(f"the first {self.again:,} events say what was still there")
        if self.gaps:
            where = "1 place" if len(self.gaps) == 1 else f"{len(self.gaps):,} places"
            count = sum(gap.events for gap in self.gaps)
            parts.append(f"{count:,} events were dropped between kept iterations, in {where}")
        return "; ".join(parts)


def _start_of(gap: Gap) -> int:
    return gap.start


NOTHING_DROPPED = MissingParts(0, 0)


class EventLog(Protocol):
    """Events numbered from 1, and the definitions they refer to by number or path. It can grow only at its end.

    Definitions (`events.DEFINITIONS`) have no event number: they are in `ops`, `stacks` and `sources`.
    """

    @property
    def framework(self) -> str: ...  # the framework of the operations: ``gviz.engine`` or ``torch``
    @property
    def dropped(self) -> MissingParts: ...
    @property
    def recorded_iterations(self) -> RecordedIterations | None: ...  # None if it has every iteration of the run
    @property
    def cut_off(self) -> bool: ...  # whether the recording was ended before the program, by its `until` condition
    @property
    def finished(self) -> bool: ...  # whether it was closed; if not, it is still running or its program was killed
    @property
    def ops(self) -> Mapping[int, OpSeen]: ...
    @property
    def stacks(self) -> Stacks: ...
    @property
    def sources(self) -> Mapping[str, str | None]: ...

    def __len__(self) -> int: ...

    def event(self, seq: int) -> Event:
        """Return event number `seq`, which must be in ``1..len``."""
        ...

    def prefetch(self, seqs: Iterable[int]) -> None:
        """Load the events that `event` will be asked for next; many at once are cheaper than one by one."""
        ...

    def select(self, start: int, stop: int, kinds: Collection[int]) -> Iterator[tuple[int, Event]]:
        """Yield the events ``start <= seq < stop`` of these kinds (numbers in `events.KINDS`), in order."""
        ...

    def columns(self, start: int, stop: int) -> Columns:
        """Return the subjects of the events ``start <= seq < stop``."""
        ...

    def array(self, value: Value) -> Array | None:
        """Return all elements of a value, wherever they are stored; None if they were not stored."""
        ...

    def index(self) -> Mapping[str, Array] | None:
        """Return the columns of a stored `gviz.trace.index.search_index.Index` over the whole log, or None."""
        ...

    def refresh(self) -> int:
        """Read what was added to the log, and return the new length."""
        ...


class MemoryLog:
    """A log in memory, for programs that show their own graph and for tests. `append` is a listener."""

    framework = "gviz.engine"
    dropped = NOTHING_DROPPED
    recorded_iterations: RecordedIterations | None = None
    cut_off = False
    finished = True

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self._events: list[Event] = []
        self._threads: list[int] = []
        self._speakers: dict[int, int] = {}
        self.ops: dict[int, OpSeen] = {}
        self.stacks = Stacks()
        self.sources: dict[str, str | None] = {}
        for event in events:
            self.append(event)

    def append(self, event: Event) -> None:
        """Append an event, or store a definition."""
        match event:
            case OpSeen():
                self.ops[event.op] = event
            case StackSeen():
                self.stacks.add(event)
            case SourceSeen():
                self.sources[event.path] = event.text
            case _:
                self._threads.append(self._speakers.setdefault(get_ident(), len(self._speakers) + 1))
                self._events.append(event)

    def __len__(self) -> int:
        return len(self._events)

    def everything(self) -> Iterator[Event]:
        """Yield the definitions, then the events in order: everything needed to copy the log."""
        yield from self.ops.values()
        yield from (SourceSeen(path, text) for path, text in self.sources.items())
        yield from self.stacks.definitions()
        yield from self._events

    def event(self, seq: int) -> Event:
        """Return event number `seq`."""
        if not 1 <= seq <= len(self._events):
            raise IndexError(seq)
        return self._events[seq - 1]

    def prefetch(self, seqs: Iterable[int]) -> None:
        """Do nothing: all events are in memory."""

    def select(self, start: int, stop: int, kinds: Collection[int]) -> Iterator[tuple[int, Event]]:
        """Yield the events ``start <= seq < stop`` of these kinds, in order."""
        stretch = enumerate(self._events[start - 1 : stop - 1], start)
        return ((seq, event) for seq, event in stretch if KIND_NUMBERS[type(event)] in kinds)

    def columns(self, start: int, stop: int) -> Columns:
        """Return the subjects of the events ``start <= seq < stop``."""
        stretch = self._events[start - 1 : stop - 1]
        kinds = np.array([KIND_NUMBERS[type(event)] for event in stretch], np.uint8)
        node, output_nr, pass_nr = np.array([subject(event) for event in stretch], np.int64).reshape(-1, 3).T
        threads = np.array(self._threads[start - 1 : stop - 1], np.int64)
        return Columns(kinds, node, output_nr, pass_nr, threads)

    def array(self, value: Value) -> Array | None:
        """Return the elements of the value itself."""
        return value.array()

    def index(self) -> None:
        """Return None: a log in memory has no index."""

    def refresh(self) -> int:
        """Return the length."""
        return len(self._events)


def with_names(log: EventLog, names: Mapping[int, str]) -> MemoryLog:
    """Return a copy of a log in memory, with these node names appended. Large arrays keep only their statistics."""
    copy = MemoryLog([*log.ops.values(), *log.stacks.definitions()])
    copy.framework = log.framework
    copy.sources |= log.sources
    for _, event in log.select(1, len(log) + 1, KIND_NUMBERS.values()):
        copy.append(event)
    for node, name in names.items():
        copy.append(Named(node, name))
    return copy


class Reads(Protocol):
    """Anything that returns events by number."""

    def event(self, seq: int) -> Event:
        """Return event number `seq`, counted from 1."""


def expect(log: Reads, seq: int, kind: type[E]) -> E:
    """Return event number `seq`, which must be of this kind according to an index.

    Raises GvizError if it is not: the file is damaged or was manipulated.
    """
    event = log.event(seq)
    if not isinstance(event, kind):
        raise damaged(f"event {seq} is {type(event).__name__}, its index says {kind.__name__}")
    return event


def birth(log: Reads, seq: int, node: int) -> NodeCreated:
    """Return event number `seq`, which must have created `node` according to an index. Raises GvizError if it
    did not.
    """
    created = expect(log, seq, NodeCreated)
    if created.node != node:
        raise damaged(f"event {seq} made node {created.node}, its index says {node}")
    return created


def damaged(why: str) -> GvizError:
    """Return the error for a log whose events contradict each other."""
    return GvizError(f"the trace is damaged: {why}", exit_code=3)

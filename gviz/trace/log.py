"""The ordered list of what a program said, wherever it is kept."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from threading import get_ident
from typing import NamedTuple, Protocol, TypeVar

import numpy as np

from gviz.errors import GvizError
from gviz.events import Event, NodeCreated, OpSeen, SourceSeen, StackSeen
from gviz.trace.codec import KIND_NUMBERS, subject
from gviz.trace.iterations import Turn
from gviz.trace.stacks import Stacks
from gviz.values.value import Array, Value

E = TypeVar("E", bound=Event)


class Columns(NamedTuple):
    """What the events of a stretch concern and which thread said them, one entry an event: arrays of equal length."""

    kind: Array
    node: Array
    output_nr: Array
    pass_nr: Array
    thread: Array


class Dropped(NamedTuple):
    """What a log that keeps the last part of a run has lost: `events` of it, in whose place stand the first `again` of
    those it has, which say again what was there then. It had shown some `turns` of the program's loop."""

    events: int
    again: int
    turns: tuple[Turn, ...] = ()

    @property
    def words(self) -> str:
        """What is missing, as one says it; empty if nothing is."""
        if not self.events:
            return ""
        begins = f"; the first {self.again:,} events say what was still there" if self.again else ""
        return f"only the last part was kept, {self.events:,} events before it were dropped{begins}"


NOTHING_DROPPED = Dropped(0, 0)


class EventLog(Protocol):
    """Events numbered from 1, and what they refer to by number or path. It may grow at its end, and only there.

    Definitions (`events.DEFINITIONS`) have no number of their own: they are in `ops`, `stacks` and `sources`.
    """

    @property
    def framework(self) -> str: ...  # whose operations these are: ``gviz.engine``, ``torch``
    @property
    def dropped(self) -> Dropped: ...
    @property
    def cut_off(self) -> bool: ...  # whether it was ended in the midst of the program, at what it was to end with
    @property
    def finished(self) -> bool: ...  # whether it was closed: else it still goes on, or its program was killed
    @property
    def ops(self) -> Mapping[int, OpSeen]: ...
    @property
    def stacks(self) -> Stacks: ...
    @property
    def sources(self) -> Mapping[str, str | None]: ...

    def __len__(self) -> int: ...

    def event(self, seq: int) -> Event:
        """Event number `seq`, which must be in ``1..len``."""
        ...

    def prefetch(self, seqs: Iterable[int]) -> None:
        """Make ready what `event` will be asked for next; many at once are cheaper than one by one."""
        ...

    def select(self, start: int, stop: int, kinds: Collection[int]) -> Iterator[tuple[int, Event]]:
        """The events ``start <= seq < stop`` of these kinds (numbers in `events.KINDS`), in order."""
        ...

    def columns(self, start: int, stop: int) -> Columns:
        """What the events ``start <= seq < stop`` concern."""
        ...

    def array(self, value: Value) -> Array | None:
        """All elements of a value, from wherever they are kept; None if they were not stored."""
        ...

    def index(self) -> Mapping[str, Array] | None:
        """The columns of a `gviz.trace.index.columns.Index` over the whole log, if it keeps one."""
        ...

    def refresh(self) -> int:
        """Notice what was added meanwhile, and give the new length."""
        ...


class MemoryLog:
    """A log in memory, for programs that show their own graph and for tests. `append` is a listener."""

    framework = "gviz.engine"
    dropped = NOTHING_DROPPED
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
        """Add an event at the end, or keep a definition."""
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
        """The definitions, then the events in order: what it takes to say all of it again."""
        yield from self.ops.values()
        yield from (SourceSeen(path, text) for path, text in self.sources.items())
        yield from self.stacks.definitions()
        yield from self._events

    def event(self, seq: int) -> Event:
        """Event number `seq`."""
        if not 1 <= seq <= len(self._events):
            raise IndexError(seq)
        return self._events[seq - 1]

    def prefetch(self, seqs: Iterable[int]) -> None:
        """Nothing: all events are at hand."""

    def select(self, start: int, stop: int, kinds: Collection[int]) -> Iterator[tuple[int, Event]]:
        """The events ``start <= seq < stop`` of these kinds, in order."""
        stretch = enumerate(self._events[start - 1 : stop - 1], start)
        return ((seq, event) for seq, event in stretch if KIND_NUMBERS[type(event)] in kinds)

    def columns(self, start: int, stop: int) -> Columns:
        """What the events ``start <= seq < stop`` concern."""
        stretch = self._events[start - 1 : stop - 1]
        kinds = np.array([KIND_NUMBERS[type(event)] for event in stretch], np.uint8)
        node, output_nr, pass_nr = np.array([subject(event) for event in stretch], np.int64).reshape(-1, 3).T
        threads = np.array(self._threads[start - 1 : stop - 1], np.int64)
        return Columns(kinds, node, output_nr, pass_nr, threads)

    def array(self, value: Value) -> Array | None:
        """The elements in the value itself."""
        return value.array()

    def index(self) -> None:
        """Nothing: a log in memory keeps no index."""

    def refresh(self) -> int:
        """The length now."""
        return len(self._events)


class Reads(Protocol):
    """Whatever gives events by their numbers."""

    def event(self, seq: int) -> Event:
        """Event number `seq`, from 1."""


def expect(log: Reads, seq: int, kind: type[E]) -> E:
    """Event number `seq`, which an index says is of this kind.

    Raises GvizError if it is not: the file was damaged or made to mislead.
    """
    event = log.event(seq)
    if not isinstance(event, kind):
        raise damaged(f"event {seq} is {type(event).__name__}, its index says {kind.__name__}")
    return event


def birth(log: Reads, seq: int, node: int) -> NodeCreated:
    """Event number `seq`, which an index says made a node; GvizError if it made none, or another one."""
    made = expect(log, seq, NodeCreated)
    if made.node != node:
        raise damaged(f"event {seq} made node {made.node}, its index says {node}")
    return made


def damaged(why: str) -> GvizError:
    """The error for a log whose events contradict each other."""
    return GvizError(f"the trace is damaged: {why}", exit_code=3)

"""Writes events to the tables of a trace file: batches, definitions, and chunks with the elements of large values."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from hashlib import blake2b

from gviz.events import Event
from gviz.trace.codec import DEFINITION_KINDS, KINDS_AND_SUBJECTS, encode, with_values
from gviz.trace.file.event_batches_and_gaps import LARGEST_BODIES, MOST_EVENTS, RowFields, encode_rows
from gviz.trace.file.format import CHUNK_BYTES, HASH_BYTES
from gviz.trace.file.ring_buffer import Ring
from gviz.values.value import INLINE_BYTES, Value, statistics

TimedEvent = tuple[Event, int, int]
"""An event, its time (of the writer's clock) and its thread."""


class EventTable:
    """The events of a file whose recording began at the time `started`."""

    def __init__(self, connection: sqlite3.Connection, chunks: Chunks, started: int) -> None:
        self._connection = connection
        self._chunks = chunks
        self._started = started
        self._threads: dict[int, int] = {}

    def put(self, taken: Iterable[TimedEvent], before: int, ring: Ring | None) -> list[Event]:
        """Write events to batches after event number `before`, and definitions to their table. Returns the events."""
        rows: list[RowFields] = []
        bodies: list[bytes] = []
        definitions: list[tuple[int, bytes]] = []
        events: list[Event] = []
        length, started, speakers = 0, self._started, self._threads
        for event, at, thread in taken:
            kind, subject = KINDS_AND_SUBJECTS[event.__class__]
            if kind in DEFINITION_KINDS:
                definitions.append((kind, encode(event)))
                continue
            if ring is not None and ring.begins(before + len(events) + 1, event, fresh=not rows) and rows:
                self._insert(before + len(events), rows, bodies, ring)
                length, rows, bodies = 0, [], []
            body = encode(event)
            size = len(body)
            if size > INLINE_BYTES:
                body = encode(with_values(event, self._chunks.put))
                size = len(body)
            events.append(event)
            bodies.append(body)
            node, output_nr, pass_nr = subject(event)
            speaker = speakers.get(thread) or self._speaker(thread)
            rows.append((kind, node, output_nr, pass_nr, at - started, speaker, length, size))
            length += size
            if length > LARGEST_BODIES or len(rows) == MOST_EVENTS:
                self._insert(before + len(events), rows, bodies, ring)
                length, rows, bodies = 0, [], []
        self._insert(before + len(events), rows, bodies, ring)
        self._connection.executemany("INSERT INTO definition (kind, body) VALUES (?, ?)", definitions)
        return events

    def put_at(self, events: Iterable[Event], before: int, time: int) -> None:
        """Write events after event number `before`, all with one time (since the start) and the first thread that
        recorded.
        """
        thread = next(iter(self._threads))
        self.put(((event, self._started + time, thread) for event in events), before, None)

    def speak_for(self, thread: int, other: int) -> None:
        """Record the events of `thread` as those of thread `other` from now on."""
        self._threads[thread] = self._speaker(other)

    def _insert(self, last: int, rows: list[RowFields], bodies: list[bytes], ring: Ring | None) -> None:
        """Insert a batch whose last event is number `last`."""
        if rows:
            texts = encode_rows(rows), b"".join(bodies)
            self._connection.execute("INSERT INTO batch VALUES (?, ?, ?, ?)", (last - len(rows) + 1, last, *texts))
            if ring is not None:
                chunks, added = self._chunks.take()
                ring.note(len(rows), sum(map(len, texts)) + added, chunks)

    def _speaker(self, thread: int) -> int:
        """Return the number of a thread, counted from 1 in the order of their first events."""
        return self._threads.get(thread) or self._threads.setdefault(thread, len(self._threads) + 1)


class Chunks:
    """The chunks of a file that is being written, each stored once. `used` is set when a value needed chunks.

    `named` are the chunks of the values since the last `take`, and `added` the bytes that were new to the file.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._known: set[bytes] = set()
        self.used = False
        self.named: set[bytes] = set()
        self.added = 0

    def take(self) -> tuple[frozenset[bytes], int]:
        """Return `named` and `added`, and reset them."""
        taken = frozenset(self.named), self.added
        self.named, self.added = set(), 0
        return taken

    def drop(self, names: Iterable[bytes]) -> None:
        """Delete chunks that no value refers to any more."""
        for name in names:
            self._connection.execute("DELETE FROM chunk WHERE hash = ?", (name,))
            self._known.discard(name)

    def put(self, value: Value) -> Value:
        """Return the value; a large one with its elements moved to chunks."""
        array = value.array()
        if array is None or value.data is None or len(value.data) <= INLINE_BYTES:
            return value
        self.used = True
        hashes = [self._chunk(value.data[at : at + CHUNK_BYTES]) for at in range(0, len(value.data), CHUNK_BYTES)]
        return Value(value.dtype, value.shape, None, value.stats or statistics(array), b"".join(hashes))

    def _chunk(self, piece: bytes) -> bytes:
        name = blake2b(piece, digest_size=HASH_BYTES).digest()
        if name not in self._known:
            self._connection.execute("INSERT OR IGNORE INTO chunk VALUES (?, ?)", (name, piece))
            self._known.add(name)
            self.added += len(piece)
        self.named.add(name)
        return name

"""Writes a trace while the program runs: one list append per event, everything else in batches.

`TraceWriter` takes the events from the program, `EventTable` writes them to the tables of the file, and `Chunks` the
elements of large values.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import signal
import sqlite3
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from hashlib import blake2b
from itertools import islice, starmap
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import get_ident

from gviz.errors import GvizError, SystemRefusal
from gviz.events import BackwardFinished, Event, StepFinished, StepStarted
from gviz.trace.codec import (
    DEFINITION_KINDS,
    KIND_NUMBERS,
    KINDS_AND_SUBJECTS,
    NOT_PLAIN,
    VALUE_READERS,
    decode,
    encode,
    encode_plain,
    with_values,
)
from gviz.trace.file import format as file_format
from gviz.trace.file.bulk_statistics import shorten
from gviz.trace.file.event_batches_and_gaps import LARGEST_BODIES, MOST_EVENTS, Batch, RowFields, encode_rows
from gviz.trace.file.format import CHUNK_BYTES, HASH_BYTES, utc_now
from gviz.trace.file.paths import fold, remove_trace
from gviz.trace.file.retention_policy import UNBOUNDED, Bounds, Until
from gviz.trace.file.ring_buffer import Ring
from gviz.trace.nan_and_inf import FirstBad, any_nonfinite, first_bad, first_bad_place
from gviz.values.value import INLINE_BYTES, LONGEST_ANSWER, AwaitedValue, Value, statistics
from gviz.version import __version__

FLUSH_SECONDS = 0.05
CHECKPOINT_SECONDS = 2.0
MOST_PENDING = 50 * MOST_EVENTS
"""The most events that may wait for values from a device; beyond it the program waits too."""
LONGEST_WAIT = 0.2
"""Seconds after which a thread waiting for the writer checks whether the writer still runs."""

_clock = time.perf_counter_ns
_open_writers: weakref.WeakSet[TraceWriter] = weakref.WeakSet()

_at_files = threading.RLock()
"""Held during SQLite writes and during a fork. SQLite has process-wide locks: if a fork happened while one is held, it
would stay locked in the child, and the child's own trace would wait forever.
"""


class TraceWriter:
    """Writes one trace. `record` is the listener of a `Channel`.

    Events are written to the file after 1000 of them, after 50 ms, at `flush` (call it whenever the program pauses),
    and at `close`. An error with the file detaches the writer: `on_error` is called once with a description, the
    program continues, and the file keeps what was written. After a fork, the child's copy does nothing.

    For elements above `limit` bytes only statistics are kept; None keeps everything. `ending` can end the recording
    before the program ends. Only the owner may read the file unless `share` is set; then the umask decides.

    Only the writer's own thread touches the file; the program's threads append and wait. A signal handler can raise an
    exception between any two instructions of the main thread, which would leave a batch half written there.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        about: Mapping[str, str],
        on_error: Callable[[str], None],
        bounds: Bounds = UNBOUNDED,
        limit: int | None = None,
        ending: EndCondition | None = None,
        share: bool = False,
    ) -> None:
        self.path = Path(path)
        self.dead = False
        self._on_error = on_error
        self._limit = limit
        self._ending = ending
        self._pending: list[TimedEvent] = []
        self._requests: SimpleQueue[Request] = SimpleQueue()
        self._facts: dict[str, str] = {}
        self._due = MOST_EVENTS  # length of `_pending` at which it is handed over
        # large arrays are coming: the program waits for the file, so that they do not fill the memory
        self._heavy = False
        self._count = 0
        self._first_bad, self._bad = 0, FirstBad()
        started = _clock()
        create = partial(file_format.created, share=True) if share else file_format.created
        with _at_files, _signals_blocked(_FILE_SIZE):
            self._connection, self._lock = create(self.path, about)
        self._chunks = Chunks(self._connection)
        self._events = EventTable(self._connection, self._chunks, started)
        self._ring = Ring(self._connection, bounds, self._events.put_at) if bounds else None
        self._checkpointed = time.monotonic()
        self._ended = False
        self._thread = threading.Thread(target=self._work, name="gviz trace writer", daemon=True)
        try:
            with _signals_blocked(_OF_THE_PROGRAM):  # a new thread inherits the blocked signals
                self._thread.start()
        except RuntimeError as error:  # the program may be out of threads
            self._let_go()
            with suppress(GvizError):
                remove_trace(self.path)
            raise SystemRefusal(f"{self.path} cannot be written: {error}") from error
        _open_writers.add(self)

    def record(self, event: Event) -> None:
        """Record an event."""
        self._pending.append((event, _clock(), get_ident()))
        if self._heavy or len(self._pending) >= self._due:
            self._hand_over()

    def record_several(self, events: Sequence[Event]) -> None:
        """Record events that happened at once, in order."""
        now, thread = _clock(), get_ident()
        self._pending.extend([(event, now, thread) for event in events])
        if self._heavy or len(self._pending) >= self._due:
            self._hand_over()

    def set_fact(self, name: str, text: str) -> None:
        """Set a fact about the whole trace; it is written with the next events."""
        self._facts[name] = text

    def flush(self) -> None:
        """Write all events so far to the file, where other processes see them."""
        if self._is_own_thread():
            return  # a destructor recorded an event while the writer was working
        request = Request(waits=True)
        self._requests.put(request)
        while not (self.dead or request.is_done):
            request.wait()

    def close(self, last_words: Callable[[], None] | None = None) -> None:
        """Write the remaining events and the index, and leave one file. Can be called twice.

        `last_words` runs first, in the writer's thread, where no signal handler can interrupt it. An exception during
        the wait is raised at the end.
        """
        interrupted: BaseException | None = None
        put = False
        request = Request(last_words or _nothing, get_ident(), waits=True)
        while not self._ended:
            try:
                if not put:
                    self._requests.put(request)
                    put = True
                request.wait()
            except BaseException as error:
                interrupted = error
        if interrupted is not None:
            raise interrupted

    def failing_node(self, error: str) -> int:
        """Return the node whose backward rule ended a pass with this error just now; else 0.

        Only for use in `last_words`: it reads the file.
        """
        self._write_or_give_up(waits=True)
        return 0 if self.dead else failing_node(self._connection, error)

    def abandon(self) -> None:
        """Never touch the file again: it belongs to the parent of this forked process.

        Closing the connection here would merge and delete the parent's write-ahead log, so it is leaked on purpose.
        """
        _open_writers.discard(self)
        self._lock.leave()
        self.dead = self._ended = True
        self._pending.clear()
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._connection))

    def __len__(self) -> int:
        return self._count

    @property
    def thread(self) -> int:
        """The id of the thread that touches the file."""
        return self._thread.ident or 0

    def _is_own_thread(self) -> bool:
        return get_ident() == self._thread.ident

    def _hand_over(self) -> None:
        """Wait until the writer has taken the pending events, so that it never falls far behind the program."""
        if self.dead:
            self._pending.clear()
        elif not self._is_own_thread():
            request = Request(waits=len(self._pending) >= MOST_PENDING)
            self._requests.put(request)
            request.wait()

    def _work(self) -> None:
        try:
            while (request := self._next_request()).last_words is None:
                self._serve(request)
            with _at_files:
                self._end(request.last_words, request.thread)
            # this thread may outlive what they refer to, for example the error that ended the program
            request.last_words = _nothing
        finally:
            with _at_files:
                self._let_go()  # however this thread ends, no other thread keeps waiting
        request.finish()

    def _next_request(self) -> Request:
        try:
            return self._requests.get(timeout=FLUSH_SECONDS)
        except Empty:
            return Request()

    def _serve(self, request: Request) -> None:
        if not self.dead:
            with _at_files:
                self._write_or_give_up(waits=request.waits)
                self._checkpoint()
        request.finish()

    def _end(self, last_words: Callable[[], None], thread: int) -> None:
        try:
            self._events.speak_for(get_ident(), thread)  # events recorded now count as those of the closing thread
            last_words()
            self._write_or_give_up(waits=True)
            if not self.dead:
                self._finish()
        except Exception as error:
            self._give_up(error)

    def _let_go(self) -> None:
        """Close the file and release all waiting threads."""
        self.dead = True
        try:
            if self._lock.is_open:
                with suppress(sqlite3.Error, MemoryError):  # after an error there may be no room for this
                    fold(self._connection)
                with suppress(sqlite3.Error, OSError):
                    self._connection.close()
                    self._lock.close()
            else:  # its descriptors may belong to the program's files by now
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._connection))
        finally:
            _open_writers.discard(self)
            self._ended = True  # the only condition that `close` waits for

    def _checkpoint(self) -> None:
        """Merge the write-ahead log into the file from time to time, so that the log does not grow without limit."""
        now = time.monotonic()
        if self.dead or now - self._checkpointed < CHECKPOINT_SECONDS:
            return
        self._checkpointed = now
        try:
            self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        except sqlite3.Error as error:
            self._give_up(error)

    def _write_or_give_up(self, *, waits: bool) -> None:
        try:
            if self._pending and not self.dead:
                self._lock.refuse_closed()
                self._write(waits=waits)
        except Exception as error:  # the program continues after any error
            self._give_up(error)

    def _write(self, *, waits: bool) -> None:
        until = time.monotonic() + LONGEST_ANSWER if waits else 0.0
        taken, values = _complete(self._pending[:], until)
        del self._pending[: len(taken)]  # other threads may have appended meanwhile, but only this one removes
        self._due = len(self._pending) + MOST_EVENTS
        if self._limit is not None:
            shorten(values, self._limit)
        if self._ending is not None:
            taken = self._ending.up_to_last(taken, self._facts)
        self._chunks.used = False
        with self._connection as connection:
            connection.execute("BEGIN")
            self._write_facts()
            events = self._events.put(taken, self._count, self._ring)
            self._look_for_nonfinite(events, values)
            self._trim(self._count + len(events))
        self._count += len(events)
        self._heavy = self._chunks.used

    def _write_facts(self) -> None:
        while self._facts:
            self._connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", self._facts.popitem())

    def _trim(self, end: int, *, exactly: bool = False) -> None:
        if self._ring is not None:
            self._chunks.drop(self._ring.trim(end, exactly=exactly))

    def _look_for_nonfinite(self, events: list[Event], values: list[Value]) -> None:
        """Find the first nan or infinity while the values are in memory; later it would mean reading the whole file."""
        if not self._first_bad and any_nonfinite(values) and (place := first_bad_place(events, self._bad)):
            self._first_bad = self._count + place
            if self._ring is not None:
                self._ring.pin(self._first_bad)

    def _finish(self) -> None:

        if not self._lock.is_at(self.path):
            fold(self._connection)  # the open file still gets everything, whatever its name is now
            raise GvizError("it was moved or deleted while it was written")
        with self._connection as connection:
            connection.execute("BEGIN")
            self._write_facts()
            self._trim(self._count, exactly=True)
        while self._ring is not None and self._ring.has_more:
            with self._connection as connection:
                connection.execute("BEGIN")
                self._trim(self._count, exactly=True)
        cut = self._ring is not None and self._ring.is_cut
        finalize(self._connection, self.path, None if cut else self._first_bad)

    def _give_up(self, error: Exception) -> None:
        if not self.dead:
            self.dead = True
            self._pending.clear()
            which = "the" if self._ring is None else self._ring.which
            self._on_error(f"{file_format.in_words(error)}; the trace holds {which} {self._count:,} events before")


def _nothing() -> None:
    """Do nothing: a placeholder."""


_FILE_SIZE = {signal.SIGXFSZ} if hasattr(signal, "SIGXFSZ") else set()
"""The system sends this signal on a write beyond the file size limit; the write fails as well."""

_FAULTS = {
    getattr(signal, name)
    for name in ("SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGABRT", "SIGKILL", "SIGSTOP")
    if hasattr(signal, name)
}
_OF_THE_PROGRAM = signal.valid_signals() - _FAULTS
"""Blocked in gviz's threads. A program may block a signal in all its threads and wait for it; the system would deliver
it to a thread that does not block it, and end the program.
"""


@contextmanager
def _signals_blocked(numbers: set[signal.Signals]) -> Iterator[None]:
    """Block signals in this thread, and discard a file size signal that gviz caused meanwhile."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    try:
        yield
    finally:
        if numbers == _FILE_SIZE and not numbers & before and numbers & signal.sigpending():
            signal.sigwait(numbers)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _complete(batch: list[TimedEvent], until: float) -> tuple[Sequence[TimedEvent], list[Value]]:
    """Return what precedes the first event whose value has not arrived by the time `until`, and all its values."""
    captured: list[Value] = []
    for place, (event, _, _) in enumerate(batch):
        values = VALUE_READERS.get(event.__class__)
        if values is not None:
            known = len(captured)
            for value in values(event):
                if value is not None:
                    if value.__class__ is AwaitedValue and not value.arrives(until):
                        return batch[:place], captured[:known]
                    captured.append(value)
    return batch, captured


class Request:
    """A request to the writer: write the pending events, or end after `last_words` of thread `thread`.

    `waits` includes events that wait for a device. Built from atomic operations: an exception from a signal handler
    leaves no lock held that the writer or other threads need.
    """

    __slots__ = ("_lock", "is_done", "last_words", "thread", "waits")

    def __init__(self, last_words: Callable[[], None] | None = None, thread: int = 0, *, waits: bool = False) -> None:
        self.waits = waits
        self.last_words = last_words
        self.thread = thread
        self.is_done = False
        self._lock = threading.Lock()
        self._lock.acquire()

    def wait(self) -> None:
        """Wait for the writer with a timeout: the writer may be running a destructor that waits for this thread."""
        self._lock.acquire(timeout=LONGEST_WAIT)

    def finish(self) -> None:
        """Release the waiting thread."""
        self.is_done = True
        self._lock.release()


def about(framework: str) -> dict[str, str]:
    """Return the facts about this process that a new recording stores."""
    return {
        "gviz": __version__,
        "framework": framework,
        "python": platform.python_version(),
        "argv": json.dumps(sys.argv),
        "process": str(os.getpid()),
        "started": utc_now(),
    }


class EndCondition:
    """Looks for the event that ends the recording: the first with a ``nan`` or an ``inf``. Calls `on_end` there."""

    def __init__(self, word: Until, on_end: Callable[[], None]) -> None:
        self._word = word
        self._looking = FirstBad(word)
        self._on_end = on_end
        self._has_come = False

    def up_to_last(self, taken: Sequence[TimedEvent], meta: dict[str, str]) -> Sequence[TimedEvent]:
        """Return the events that still belong to the recording; sets in `meta` what ended it."""
        if self._has_come:
            return ()
        place = first_bad_place([event for event, _, _ in taken], self._looking)
        if not place:
            return taken
        self._has_come = True
        self._on_end()
        meta["until"] = self._word
        return taken[:place]


_PASS_KINDS = {KIND_NUMBERS[kind] for kind in (BackwardFinished, StepStarted, StepFinished)}


def failing_node(connection: sqlite3.Connection, error: str) -> int:
    """Return the node whose backward rule ended a pass with this error as the last event; else 0."""
    match list(islice(_backwards(connection), 2)):
        case [BackwardFinished(error=ended_by), StepStarted(node=node)] if ended_by == error:
            return node
    return 0


def _backwards(connection: sqlite3.Connection) -> Iterator[Event]:
    """Yield the events of `_PASS_KINDS` in the file, last first."""
    sql = "SELECT first, last, events, bodies FROM batch ORDER BY first DESC"
    for batch in starmap(Batch, connection.execute(sql)):
        for row in reversed(batch.rows):
            if row.kind in _PASS_KINDS:
                yield decode(row.kind, batch.body(row))


def finalize(connection: sqlite3.Connection, path: Path, first_nonfinite: int | None) -> None:
    """Store the index of a complete trace in it, mark it as finished, and leave one file.

    `first_nonfinite` is the first event with a nan or infinity, 0 if there is none, None if unknown.
    """
    from gviz.trace.file.reader import open_trace  # not needed by a running program, whose start these would slow down
    from gviz.trace.index.search_index import Index

    with open_trace(path) as log:
        index = Index(log.dropped.patterns)
        index.extend(log)
        known = first_nonfinite is not None
        index.first_bad = first_nonfinite if known else first_bad(log, 1, len(log) + 1, FirstBad())
    columns = [(name, array.dtype.str, array.tobytes()) for name, array in index.arrays()]
    with connection:
        connection.execute("BEGIN")
        connection.executemany("INSERT INTO index_column VALUES (?, ?, ?)", columns)
        connection.execute("INSERT INTO meta VALUES ('finished', ?)", (utc_now(),))
    fold(connection)


def _abandon_all() -> None:
    for writer in tuple(_open_writers):
        writer.abandon()


os.register_at_fork(before=_at_files.acquire, after_in_parent=_at_files.release, after_in_child=_at_files.release)
os.register_at_fork(after_in_child=_abandon_all)


# ----------------------------------------------------------------------------------------------------------------------
# Writes events to the tables of a trace file: batches, definitions, and chunks with the elements of large values.

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
            try:
                body = encode_plain(event)
            except NOT_PLAIN:
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

"""Ring buffer: keeps only the last part of a trace that is being written, and replaces the rest by a snapshot."""

from __future__ import annotations

import sqlite3
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain, starmap

import msgspec

from gviz import events as e
from gviz.errors import GvizError
from gviz.trace.codec import KIND_NUMBERS, decode, values
from gviz.trace.file import format as file_format
from gviz.trace.file.batch import Batch
from gviz.trace.file.bounds import Bounds
from gviz.trace.file.snapshot import MATTERING, Snapshot
from gviz.trace.iterations import Iterations
from gviz.trace.phases import DECIDING
from gviz.values.number_text import bytes_text

Put = Callable[[list[e.Event], int, int], None]
"""Writes events to the file; takes the event number before the first of them, and their time."""

_MATTERING = frozenset(KIND_NUMBERS[kind] for kind in MATTERING)
_ENTERING = frozenset(KIND_NUMBERS[kind] for kind in e.changing("call"))
_DECIDING = frozenset(DECIDING)
_WAL_SHARE = 16  # the log is merged at this part of the size; it and one write stay below 4 parts
_INDEX_BYTES = 20  # bytes per event in the index that a clean close adds, approximately
_WORTH = 4  # drop at least this many times the size of the snapshot, or it would cost more than it saves
_FILLED_AGAIN = 0.7  # cut the file to this part of its size, so that not every event triggers a cut


@dataclass(frozen=True, slots=True)
class _Kept:
    """A batch in the file: its first event, whether that is outside of any pass, its size and its chunks."""

    first: int
    quiet: bool
    size: int = 0
    chunks: frozenset[bytes] = frozenset()


class Ring:
    """The bounds of one trace. Event numbers count over the whole run, in the file too.

    `cut` is the number of events before the part that is kept.
    """

    def __init__(self, connection: sqlite3.Connection, bounds: Bounds, put: Put) -> None:
        self.cut = 0
        self._connection = connection
        self._bounds = bounds
        self._put = put
        self._snapshot = Snapshot()
        self._again = 0
        self._again_chunks: frozenset[bytes] = frozenset()
        self._iterations = Iterations()
        self._begun: deque[_Kept] = deque()
        self._batches: deque[_Kept] = deque()
        self._marks: list[int] = [1]
        self._page = connection.execute("PRAGMA page_size").fetchone()[0]
        if bounds.size:
            # otherwise dropped pages would be overwritten first
            connection.execute("PRAGMA secure_delete = OFF").fetchall()
            pages = min(1000, bounds.size // _WAL_SHARE // self._page)
            connection.execute(f"PRAGMA wal_autocheckpoint = {pages}").fetchall()
            connection.execute(f"PRAGMA journal_size_limit = {bounds.size // _WAL_SHARE}").fetchall()

    def begins(self, seq: int, event: e.Event, *, fresh: bool) -> bool:
        """Return whether event `seq` must begin a batch because a part of the run may begin there; `fresh`: it begins
        one anyway.
        """
        quiet = not self._iterations.running
        if event.__class__ in _DECIDING:
            self._iterations.process(seq, event)
        part = quiet and self._may_begin_part(seq, event)
        if part or fresh:
            self._begun.append(_Kept(seq, quiet))
        return part

    def note(self, events: int, size: int, chunks: frozenset[bytes]) -> None:
        """Record that the next batch is in the file, with its number of events, bytes and chunks."""
        begun = self._begun.popleft()
        self._batches.append(_Kept(begun.first, begun.quiet, size + events * _INDEX_BYTES, chunks))

    def trim(self, end: int, *, exactly: bool = False) -> frozenset[bytes]:
        """Drop what exceeds the bounds, up to event `end`, and return the chunks that are no longer needed.

        Parts are dropped several at a time unless `exactly` is set. Call it in a transaction. Raises GvizError if
        nothing can be dropped.
        """
        first = max(self._first_of_last_parts(exactly=exactly), self._first_that_fits(end))
        return self._drop(first) if first > self.cut + 1 else frozenset()

    def _may_begin_part(self, seq: int, event: e.Event) -> bool:
        """Return whether a part of the run begins, or may begin, with an event: inputs of a forward pass are created
        first.
        """
        if self._bounds.unit == "iterations":
            return seq in (1, self._iterations.starts[-1], self._iterations.prepared_from)
        if isinstance(event, e.Marked):
            self._marks.append(seq)
            return True
        return seq == 1

    @property
    def _parts(self) -> list[int]:
        """The first events of the parts that are in the file."""
        starts = self._marks if self._bounds.unit == "marks" else self._iterations.starts
        return starts[bisect_right(starts, self.cut) :]

    def _first_of_last_parts(self, *, exactly: bool) -> int:
        """Return the first event to keep of the last parts, 0 if nothing is to be dropped yet.

        An iteration without a pass is kept in addition to the last ones that have one.
        """
        parts = self._parts
        last = self._bounds.last + (self._bounds.unit == "iterations" and self._iterations.begun > 0)
        if not self._bounds.last or len(parts) < last:
            return 0
        first = parts[-last]
        worth_it = first - self.cut > _WORTH * self._again or len(parts) > 2 * last
        return first if exactly or worth_it else 0

    def _first_that_fits(self, end: int) -> int:
        """Return the first event to keep so that the file fits its size, 0 if everything fits."""
        limit = self._bounds.size
        if not limit:
            return 0
        room = limit - 4 * limit // _WAL_SHARE
        pages, free = (self._connection.execute(f"PRAGMA {what}_count").fetchone()[0] for what in ("page", "freelist"))
        excess = (pages - free) * self._page + (end - self.cut + self._again) * _INDEX_BYTES - room
        if excess <= 0:
            return 0
        possible = self._first_after(excess + room - int(room * _FILLED_AGAIN))
        if not possible:
            raise GvizError(f"the trace is limited to {bytes_text(limit)}, and a single backward pass is larger")
        return possible

    def _first_after(self, size: int) -> int:
        """Return an event at which the file could begin to save about `size` bytes, the start of a part if possible;
        else 0.
        """
        anywhere, part, parts = 0, 0, {*self._parts}
        for batch in self._batches:
            if batch.quiet and batch.first > self.cut + 1 and (size > 0 or not anywhere or batch.first in parts):
                anywhere = batch.first
                if batch.first in parts and size <= 0:
                    part = batch.first
                    break
            size -= batch.size
        return part or anywhere

    def _drop(self, first: int) -> frozenset[bytes]:
        sql = "SELECT first, last, events, bodies FROM batch WHERE first > ? AND first < ? ORDER BY first"
        time, entered = 0, 0
        for batch in starmap(Batch, self._connection.execute(sql, (self.cut, first))):
            time = batch.rows[-1].time
            for row in batch.rows:
                entered = entered + 1 if row.kind in _ENTERING else 0
                if row.kind in _MATTERING:
                    self._snapshot.process(decode(row.kind, batch.body(row)))
        self._connection.execute("DELETE FROM batch WHERE first < ?", (first,))
        again = self._snapshot.said_again()
        self._put(again, first - 1 - len(again), time)
        self.cut, self._again = first - 1, len(again)
        # the calls around the first kept event belong to its forward pass, not to the dropped part
        count = len(again) - entered
        known = msgspec.json.encode(self._iterations.loop.turns).decode()
        rows = [("said_again", str(count)), ("turns", known)]
        self._connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", rows)
        return self._forget(first, again)

    def _forget(self, first: int, again: list[e.Event]) -> frozenset[bytes]:
        """Forget the batches before event `first`. Returns the chunks that only they used."""
        gone = set(self._again_chunks)
        while self._batches and self._batches[0].first < first:
            gone |= self._batches.popleft().chunks
        del self._marks[: bisect_left(self._marks, first)]
        self._iterations.forget(first)
        if not gone:
            return frozenset()
        self._again_chunks = frozenset(chain.from_iterable(map(_chunks_of, again)))
        return frozenset(gone.difference(self._again_chunks, *(batch.chunks for batch in self._batches)))


def _chunks_of(event: e.Event) -> list[bytes]:
    size = file_format.HASH_BYTES
    blobs = [value.blob for value in values(event) if value.blob]
    return [blob[at : at + size] for blob in blobs for at in range(0, len(blob), size)]

"""Ring buffer: keeps some parts of a trace that is being written, and replaces the rest with events that recreate it.

A part begins with an iteration or a mark. What precedes the first kept part is replaced by a snapshot, and a gap
between two kept parts by a bridge: events that lead to the state after the gap. Events keep their numbers::

    parts      1          2  3  4          5          6          7
    events     1..107     dropped          430..536   537..640   641..
    file       1..107     bridge 424..429  430..536   537..640   641..

A gap grows when one of its neighbours is dropped: a new bridge replaces the old ones and the part between them.
"""

from __future__ import annotations

import sqlite3
from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, starmap

import msgspec

from gviz import events as e
from gviz.errors import GvizError
from gviz.trace.codec import KIND_NUMBERS, decode, encode, values
from gviz.trace.file import format as file_format
from gviz.trace.file.event_batches_and_gaps import Batch
from gviz.trace.file.retention_policy import DENSITY, Bounds
from gviz.trace.file.snapshot import MATTERING, Bridge, Snapshot
from gviz.trace.iterations import Iterations
from gviz.trace.phases import PHASE_EVENTS
from gviz.trace.whole_iterations import NUMBERED
from gviz.values.number_text import bytes_text

Put = Callable[[list[e.Event], int, int], None]
"""Writes events to the file; takes the event number before the first of them, and their time."""

_MATTERING = frozenset(KIND_NUMBERS[kind] for kind in MATTERING)
_ENTERING = frozenset(KIND_NUMBERS[kind] for kind in e.changing("call"))
_PHASE_EVENTS = frozenset(PHASE_EVENTS)
_WAL_SHARE = 16  # the log is merged at this part of the size; it and one write stay below 4 parts
_INDEX_BYTES = 20  # bytes per event in the index that a clean close adds, approximately
_WORTH = 4  # drop at least this many times the size of the snapshot, or it would cost more than it saves
_FILLED_AGAIN = 0.7  # cut the file to this part of its size, so that not every event triggers a cut
_FEW = 8  # parts are dropped from the middle if at least this many, and a quarter of the settled ones, are unwanted
_CHANGED_PAGES = 8  # pages that change where a gap begins or grows, besides those of the dropped part
_FOR_GAPS = 1 << 19  # bytes that the log may grow by these
_UNLIMITED = 1 << 40  # a density at which no part is dropped
_MARKED = KIND_NUMBERS[e.Marked]
ALARM = "alarm"
"""How the recorder's marks of an alarm begin."""


@dataclass(frozen=True, slots=True)
class _Kept:
    """A batch in the file: its first event, whether that is outside of any pass, the highest number of a storage before
    it, its size and its chunks.
    """

    first: int
    quiet: bool
    storage: int = 0
    events: int = 0
    size: int = 0
    chunks: frozenset[bytes] = frozenset()


@dataclass(frozen=True, slots=True)
class _Part:
    """A part before the last ones: its number in the run and its first event."""

    number: int
    first: int


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
        self._batches: list[_Kept] = []
        self.has_more = False
        """Whether the last `trim` left parts that are not to be kept, because it dropped enough for one transaction."""
        self._storage = 0
        self._settled: list[_Part] = []
        """The parts before the last ones that are in the file. Only these are dropped from the middle."""
        self._count = 0
        """The number of parts that have settled so far."""
        self._density = _UNLIMITED if bounds.size else DENSITY
        self._bridges: dict[int, int] = {}
        """The lengths of the bridges, by the first event after each."""
        self._finding_seqs: list[int] = []
        self._has_new_alarm = False
        """Whether no pass has begun since an alarm. The next pass, which may be in a new part, is then kept, too."""
        self._with_finding: set[int] = set()
        """The numbers of parts that are kept because of a finding."""
        self._names_iterations = bounds.unit == "iterations"
        """Whether the iteration after a gap gets a mark with its number, because the recorder does not name them."""
        self._marks: list[int] = [1]
        self._evaluated = True
        """Whether the program had only evaluated when parts settled last."""
        self._page = connection.execute("PRAGMA page_size").fetchone()[0]
        if bounds.older is not None:
            self._write_gaps()
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
        quiet = not self._iterations.running_passes
        if event.__class__ in _PHASE_EVENTS:
            self._iterations.process(seq, event)
        part = quiet and self._may_begin_part(seq, event)
        if part or fresh:
            self._begun.append(_Kept(seq, quiet, self._storage))
        if self._bounds.older is not None:
            self._see(seq, event)
        return part

    def pin(self, seq: int) -> None:
        """Note a finding at an event: its part, and those around it, are kept if ``findings`` are."""
        insort(self._finding_seqs, seq)

    @property
    def is_cut(self) -> bool:
        """Whether anything has been dropped, so that events in the file have other numbers than in the run."""
        return self.cut > 0 or bool(self._bridges)

    @property
    def which(self) -> str:
        """Which of the recorded events are in the file, in words."""
        return "the last of the" if self._bounds.older is None else "some of the"

    def _see(self, seq: int, event: e.Event) -> None:
        match event:
            case e.NodeCreated(outputs=outputs):
                self._storage = max(self._storage, *(output.storage for output in outputs), 0)
            case e.Failed():
                self.pin(seq)
            case e.BackwardStarted() if self._has_new_alarm:
                self.pin(seq)
                self._has_new_alarm = False
            case e.Marked(name=name):
                if name.startswith(ALARM):
                    self.pin(seq)
                    self._has_new_alarm = True
                elif NUMBERED.fullmatch(name):
                    self._names_iterations = False

    def note(self, events: int, size: int, chunks: frozenset[bytes]) -> None:
        """Record that the next batch is in the file, with its number of events, bytes and chunks."""
        begun = self._begun.popleft()
        size += events * _INDEX_BYTES
        self._batches.append(_Kept(begun.first, begun.quiet, begun.storage, events, size, chunks))

    def trim(self, end: int, *, exactly: bool = False) -> frozenset[bytes]:
        """Drop what exceeds the bounds, up to event `end`, and return the chunks that are no longer needed.

        Parts are dropped several at a time unless `exactly` is set. Call it in a transaction. Raises GvizError if
        nothing can be dropped.
        """
        if self._bounds.older is not None:
            chunks, is_enough = self._drop_unwanted(end, exactly=exactly)
            first = 0 if is_enough else self._first_that_fits(end)
        else:
            chunks = frozenset[bytes]()
            first = max(self._first_of_last_parts(exactly=exactly), self._first_that_fits(end))
        return chunks | (self._drop(first) or frozenset()) if first > self.cut + 1 else chunks

    def _drop_unwanted(self, end: int, *, exactly: bool) -> tuple[frozenset[bytes], bool]:
        """Drop older parts that are not to be kept, and return the chunks that only they used, and whether the file
        then fits its size.

        At most a share of the file is dropped at a time, because SQLite's log gets every page that changes.
        """
        again = self._settle(exactly=exactly)
        excess = self._excess(end)
        unwanted = self._unwanted()
        if excess > 0:
            self._density = min(self._density, 2 * len(self._settled) or 1)
            while sum(map(self._size_of, unwanted)) < excess and self._density > 1:
                self._density = self._density * 3 // 4
                unwanted = self._unwanted()
        elif not exactly and len(unwanted) < max(_FEW, len(self._settled) // 4):
            return again, True
        numbers, size, log = set[int](), 0, 0
        for part in unwanted:
            if self._bounds.size and size >= excess and log >= 2 * self._bounds.size // _WAL_SHARE:
                break
            numbers.add(part.number)
            size += self._size_of(part)
            log += self._size_of(part) + _CHANGED_PAGES * self._page
        self.has_more = len(numbers) < len(unwanted)
        chunks, are_dropped = self._drop_parts(numbers)
        return again | chunks, size >= excess and are_dropped

    def _settle(self, *, exactly: bool) -> frozenset[bytes]:
        """Move parts that are not among the last ones any more to `_settled`, unless they may turn out to be no parts.
        Nothing follows if `exactly` is set. Returns the chunks that are no longer needed.
        """
        starts, chunks = self._parts, frozenset[bytes]()
        last = self._bounds.last + (self._bounds.unit == "iterations" and self._iterations.start_without_pass > 0)
        if self._bounds.unit == "iterations" and not exactly:
            last = max(last, self._iterations.provisional)
        old, new = starts[: max(len(starts) - last, 0)], starts[max(len(starts) - last, 0) :]
        if self._evaluated and not self._iterations.evaluates and self._bounds.unit == "iterations":
            second = next((first for first in old if first > 1), 0)
            if not second:
                return chunks
            chunks = self._count_again(second)
        self._evaluated = self._iterations.evaluates
        self._number(old)
        while self._finding_seqs and self._settled and new and self._finding_seqs[0] < new[0]:
            at = bisect_right(self._settled, self._finding_seqs.pop(0), key=lambda part: part.first) - 1
            number = self._settled[max(at, 0)].number
            self._with_finding.update((number - 1, number, number + 1))
        if self._settled:
            self._iterations.forget(self._settled[-1].first)
            del self._marks[: max(bisect_left(self._marks, self._settled[-1].first), 0)]
        return chunks

    def _count_again(self, second: int) -> frozenset[bytes]:
        """Count the parts of a program that has started to train from 1: all that it evaluated belongs to the first
        iteration, and event `second` begins the second one.

        If some of it was dropped, the rest is too, except its first part and the last ones: the marks in it have wrong
        numbers.
        """
        begin = next((part.first - self._bridges.get(part.first, 0) for part in self._settled if part.first > 1), 0)
        after = _Part(2, self._settled[-1].first if self._settled else 0)
        was_cut, has_gaps = self.cut > 0, bool(self._bridges)
        self._settled, self._count, self._with_finding = [], int(was_cut), set()
        if was_cut:
            return self._drop(second) or frozenset()
        chunks = (self._replace(begin, after) if begin and has_gaps else None) or frozenset()
        self._write_gaps()
        return chunks

    def _number(self, starts: list[int]) -> None:
        """Count the parts that begin at these events, except those known, and let them settle."""
        known = self._settled[-1].first if self._settled else 0
        for first in starts[bisect_right(starts, known) :]:
            self._count += 1
            self._settled.append(_Part(self._count, first))

    def _unwanted(self) -> list[_Part]:
        """The settled parts that are not kept. The newest one stays: the next may turn out to have a finding."""
        older = self._bounds.older
        newest = self._count + self._bounds.last
        return [
            part for part in self._settled[:-1]
            if older is not None and not older.keeps(
                part.number, newest - part.number, self._density, has_finding=part.number in self._with_finding
            )
        ]  # fmt: skip

    def _size_of(self, part: _Part) -> int:
        """The bytes of a settled part in the file, without the bridge before it."""
        after = self._settled[bisect_right(self._settled, part.first, key=lambda each: each.first)].first
        end = after - self._bridges.get(after, 0)
        low, high = (bisect_left(self._batches, seq, key=_first_of) for seq in (part.first, end))
        return sum(batch.size for batch in self._batches[low:high])

    def _drop_parts(self, numbers: set[int]) -> tuple[frozenset[bytes], bool]:
        """Drop settled parts by number. Returns the chunks that only they used, and whether all parts were dropped.

        Parts that stay count from then on as the end of the part before them.
        """
        if not numbers:
            return frozenset(), True
        unused, stay = frozenset[bytes](), False
        kept = [part for part in self._settled if part.number not in numbers]
        for begin, after in reversed([*self._stretches(numbers)]):
            first = begin <= self.cut + 1
            chunks = self._drop(after.first, may_stay=True) if first else self._replace(begin, after)
            unused |= chunks or frozenset()
            stay = stay or chunks is None
        self._settled = [part for part in kept if part.first > self.cut]
        self._write_gaps()
        return unused, not stay

    def _stretches(self, numbers: set[int]) -> Iterator[tuple[int, _Part]]:
        """Yield the first event of each stretch of parts to drop, its bridge included, and the part after it."""
        begin = 0
        for part in self._settled:
            if part.number not in numbers:
                if begin:
                    yield begin, part
                begin = 0
            elif not begin:
                begin = part.first - self._bridges.get(part.first, 0)

    def _shortened(self, snapshot: Snapshot, begin: int, after: _Part) -> tuple[list[e.Event], int, int]:
        """Return the events that replace those from `begin` to a part, how many of them belong to that part (the calls
        around its first event), and the time of the last event.

        They name the part if it is a kept iteration, so they can be one event longer than what they replace.
        """
        name, time, entered = self._name_of(after.number), 0, 0
        sql = "SELECT first, last, events, bodies FROM batch WHERE first >= ? AND first < ? ORDER BY first"
        for batch in starmap(Batch, self._connection.execute(sql, (begin, after.first))):
            time = batch.rows[-1].time
            for row in batch.rows:
                entered = entered + 1 if row.kind in _ENTERING else 0
                if row.kind in _MATTERING:
                    snapshot.process(decode(row.kind, batch.body(row)))
                elif row.kind == _MARKED and self._bounds.older is not None and not self._names_iterations:
                    name = _name_after(name, decode(row.kind, batch.body(row)))
        again = snapshot.as_events()
        again[len(again) - entered : len(again) - entered] = name
        return again, entered, time

    def _replace(self, begin: int, after: _Part) -> frozenset[bytes] | None:
        """Replace the events from `begin` to the part `after` by a bridge. Returns the chunks that only they used, None
        if the bridge would not be shorter than the events, which then stay.
        """
        stop = after.first
        low, high = (bisect_left(self._batches, seq, key=_first_of) for seq in (begin, stop))
        dropped = self._batches[low:high]
        again, _, time = self._shortened(Bridge(dropped[0].storage), begin, after)
        grows = any(begin < first <= stop for first in self._bridges)
        if len(again) >= stop - begin + grows:
            return None
        self._connection.execute("DELETE FROM batch WHERE first >= ? AND first < ?", (begin, stop))
        self._put(again, stop - 1 - len(again), time)
        for first in [first for first in self._bridges if begin < first <= stop]:
            del self._bridges[first]
        self._bridges[stop] = len(again)
        if again:
            chunks = frozenset(chain.from_iterable(map(_chunks_of, again)))
            size = sum(len(encode(event)) + _INDEX_BYTES for event in again)
            kept = [_Kept(stop - len(again), False, dropped[0].storage, len(again), size, chunks)]
        self._batches[low:high] = kept if again else []
        old_chunks = frozenset(chain.from_iterable(batch.chunks for batch in dropped))
        return self._unused(old_chunks)

    def _name_of(self, number: int) -> list[e.Event]:
        """The mark that names a part (0: unknown), if it is an iteration and the recorder does not name them."""
        return [e.Marked(f"iteration {number}")] if number and self._names_iterations else []

    def _unused(self, chunks: frozenset[bytes]) -> frozenset[bytes]:
        """Return those chunks that nothing in the file refers to."""
        return chunks.difference(self._again_chunks, *(batch.chunks for batch in self._batches)) if chunks else chunks

    def _write_gaps(self) -> None:
        """Write where the gaps are."""
        self._bridges = {first: length for first, length in self._bridges.items() if first > self.cut + 1}
        text = msgspec.json.encode(sorted(self._bridges.items())).decode()
        self._connection.execute("INSERT OR REPLACE INTO meta VALUES ('gaps', ?)", (text,))

    def _may_begin_part(self, seq: int, event: e.Event) -> bool:
        """Return whether a part of the run begins, or may begin, with an event: inputs of a forward pass are created
        first.
        """
        if self._bounds.unit == "iterations":
            return seq in (
                1,
                self._iterations.starts[-1],
                self._iterations.prepared_from,
                self._iterations.result_start,
            )
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
        last = self._bounds.last + (self._bounds.unit == "iterations" and self._iterations.start_without_pass > 0)
        if not self._bounds.last or len(parts) < last:
            return 0
        first = parts[-last]
        worth_it = first - self.cut > _WORTH * self._again or len(parts) > 2 * last
        return first if exactly or worth_it else 0

    def _first_that_fits(self, end: int) -> int:
        """Return the first event to keep so that the file fits its size, 0 if everything fits."""
        excess, room = self._excess(end), self._room
        if excess <= 0:
            return 0
        possible = self._first_after(excess + room - int(room * _FILLED_AGAIN))
        if not possible:
            limit = bytes_text(self._bounds.size)
            raise GvizError(f"the trace is limited to {limit}, and a single backward pass is larger")
        return possible

    @property
    def _room(self) -> int:
        """The bytes that the file itself may have."""
        size = self._bounds.size
        for_gaps = min(2 * size // _WAL_SHARE, _FOR_GAPS) if self._bounds.older is not None else 0
        return size - 4 * size // _WAL_SHARE - for_gaps

    def _excess(self, end: int) -> int:
        """The bytes by which the file and its index exceed their size; 0 without a limit."""
        if not self._bounds.size:
            return 0
        pages, free = (self._connection.execute(f"PRAGMA {what}_count").fetchone()[0] for what in ("page", "freelist"))
        return int((pages - free) * self._page + (self._events_in_file(end) + self._again) * _INDEX_BYTES - self._room)

    def _events_in_file(self, end: int) -> int:
        """The number of events after the cut, at most."""
        return end - self.cut if not self._bridges else sum(batch.events for batch in self._batches)

    def _first_after(self, size: int) -> int:
        """Return an event at which the file could begin to save about `size` bytes, the start of a part if possible;
        else 0.
        """
        anywhere, part, parts = 0, 0, {*self._parts, *(part.first for part in self._settled)}
        for batch in self._batches:
            if batch.quiet and batch.first > self.cut + 1 and (size > 0 or not anywhere or batch.first in parts):
                anywhere = batch.first
                if batch.first in parts and size <= 0:
                    part = batch.first
                    break
            size -= batch.size
        return part or anywhere

    def _drop(self, first: int, *, may_stay: bool = False) -> frozenset[bytes] | None:
        """Drop the events before event `first`, and return the chunks that only they used.

        If a snapshot would be longer than the events, it does not name the part that follows. If `may_stay` is set and
        nothing has been dropped before, it must be shorter, otherwise the events stay and this returns None.
        """
        number = 0
        if self._bounds.older is not None:
            self._number(self._parts[: bisect_right(self._parts, first)])
            at = bisect_right(self._settled, first, key=lambda part: part.first)
            number = self._settled[at - 1].number if at else 0
        again, entered, time = self._shortened(self._snapshot, self.cut + 1, _Part(number, first))
        if may_stay and not self.cut and len(again) >= first - 1:
            self._snapshot = Snapshot()
            return None
        if len(again) > first - 1:
            del again[len(again) - entered - 1]
        self._connection.execute("DELETE FROM batch WHERE first < ?", (first,))
        self._put(again, first - 1 - len(again), time)
        self.cut, self._again = first - 1, len(again)
        # the calls around the first kept event belong to its forward pass, not to the dropped part
        count = len(again) - entered
        if self._bridges:
            self._write_gaps()
        known = msgspec.json.encode(self._iterations.loop.patterns).decode()
        rows = [("said_again", str(count)), ("turns", known)]
        self._connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", rows)
        return self._forget(first, again)

    def _forget(self, first: int, again: list[e.Event]) -> frozenset[bytes]:
        """Forget the batches before event `first`. Returns the chunks that only they used."""
        chunks = set(self._again_chunks)
        low = bisect_left(self._batches, first, key=_first_of)
        chunks.update(chain.from_iterable(batch.chunks for batch in self._batches[:low]))
        del self._batches[:low]
        self._settled = [part for part in self._settled if part.first >= first]
        del self._marks[: bisect_left(self._marks, first)]
        self._iterations.forget(first)
        if not chunks:
            return frozenset()
        self._again_chunks = frozenset(chain.from_iterable(map(_chunks_of, again)))
        return self._unused(frozenset(chunks))


def _first_of(batch: _Kept) -> int:
    return batch.first


def _name_after(names: list[e.Event], mark: e.Event) -> list[e.Event]:
    """Return a mark if it names the next iteration, otherwise those before."""
    return [mark] if isinstance(mark, e.Marked) and NUMBERED.fullmatch(mark.name) else names


def _chunks_of(event: e.Event) -> list[bytes]:
    size = file_format.HASH_BYTES
    blobs = [value.blob for value in values(event) if value.blob]
    return [blob[at : at + size] for blob in blobs for at in range(0, len(blob), size)]

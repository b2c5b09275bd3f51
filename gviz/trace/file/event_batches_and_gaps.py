"""The rows of the table `batch`: up to a thousand events each, written to the file together.

A row keeps the subjects of its events as JSON, which can be queried with SQL, and their bodies concatenated. The writer
creates the text with `encode_rows`. `Batches` finds the batch of an event, and `Batch` the event in it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator
from functools import cached_property
from typing import Annotated

import msgspec
import numpy as np

from gviz.errors import GvizError
from gviz.events import COUNTS, Count
from gviz.trace.event_log import Gap
from gviz.trace.file.connection import Connection, damaged
from gviz.values.plain_text import shown

MOST_EVENTS = 1000
LARGEST_BODIES = 1 << 18
"""A batch ends with the event that makes its bodies longer than this, so that reading one event stays cheap."""

_LONGEST_TEXT = 1 << 20
_KEPT_BATCHES = 80

RowFields = tuple[int, int, int, int, int, int, int, int]
"""The fields of a `Row`, as they are written."""


class Row(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One event: its kind, its subject, its time and thread, and the position of its body."""

    kind: Count
    node: Count
    output_nr: Count
    pass_nr: Count
    time: Annotated[int, msgspec.Meta(ge=0)]
    thread: Count
    start: Count
    size: Count


class Batch:
    """Events that were written to the file together, starting with event number `first`.

    Raises ValueError if a row of the file does not hold the events `first` to `last`. Single rows are decoded on
    demand, so that a jump to one event does not decode a thousand.
    """

    def __init__(self, first: int, last: int, events: object, bodies: object) -> None:
        if not isinstance(events, str) or not isinstance(bodies, bytes) or len(events) > _LONGEST_TEXT:
            raise ValueError("they are not of the right types, or too long")
        self.first = first
        self.bodies = bodies
        self._text = events.encode()
        openings = np.flatnonzero(np.frombuffer(self._text, np.uint8) == ord("["))
        self._ends = np.append(openings[1:] - 1, len(self._text) - 1)
        if len(openings) != last - first + 2:
            raise ValueError(f"they are {len(openings) - 1} events")

    def row(self, seq: int) -> Row:
        """Return the row of event `seq`. Raises ValueError if it is invalid."""
        before, end = self._ends[seq - self.first : seq - self.first + 2].tolist()
        return _decode_row(self._text[before + 1 : end])

    @cached_property
    def rows(self) -> list[Row]:
        """All rows. Raises ValueError if they cannot be read."""
        rows = _decode_rows(self._text)
        if len(rows) != len(self._ends) - 1:
            raise ValueError(f"they are {len(rows)} events")
        return rows

    def body(self, row: Row) -> bytes:
        """Return the encoded body of one of the events."""
        return self.bodies[row.start : row.start + row.size]


def encode_rows(rows: Iterable[RowFields]) -> str:
    """Return the rows as the JSON text that the file stores."""
    return _encode(rows).decode()


_encode = msgspec.json.Encoder().encode
_decode_row = msgspec.json.Decoder(Row).decode
_decode_rows = msgspec.json.Decoder(list[Row]).decode


class Batches:
    """The first `count` events of a file, by batch. Caches the batches it read last.

    A file that keeps only its last part starts with an event number above 1, which is number 1 here. `base` is the
    difference. The numbers in the file may have gaps; here they are consecutive. `gaps` lists the gaps.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._firsts: list[int] = []
        self._kept: dict[int, Batch] = {}
        self._kinds: dict[int, frozenset[int]] = {}
        """The kinds of the events of each batch whose rows were read: most searches are for rare kinds."""
        self._numbers: list[int] = []
        """The number in the file of the first event of each batch."""
        self._last = 0
        """The number in the file of the last event."""
        self.count = 0
        self.base = 0
        self.gaps: list[Gap] = []

    def refresh(self) -> int:
        """Read which batches were added to the file, and return the new number of events."""
        seen = self._last
        # one statement, because the writer may drop a part between two of them; Python 3.12 warns of ?1
        sql = (
            "SELECT 0 AS kind, first, last FROM batch WHERE first > ? OR ? = 0"
            " UNION ALL SELECT 1, value, 0 FROM meta WHERE key = 'gaps' ORDER BY kind, first"
        )
        rows = self._connection.rows(sql, (seen, seen))
        text = str(rows.pop()[1]) if rows and rows[-1][0] else "[]"
        bridges = self._decoded(text) if rows else {}
        for _, first, last in rows:
            if not isinstance(first, int) or not isinstance(last, int) or not first <= last < first + MOST_EVENTS:
                raise self._missing(self.count + 1)
            if last >= COUNTS:
                raise damaged(self._connection.path, f"it cannot hold {last} events")
            if not self._firsts and first > 0:
                self.base = first - 1
            elif first != self._last + 1:
                again = bridges.get(first)
                if again is None or first <= self._last or (self._last == seen and not self._ends_at(seen)):
                    raise self._missing(self.count + 1)
                self.gaps.append(Gap(self.count + 1, again, first - self._last - 1 + again))
            self._firsts.append(self.count + 1)
            self._numbers.append(first)
            self.count += last - first + 1
            self._last = last
        self._clamp_gaps()
        return self.count

    def _clamp_gaps(self) -> None:
        """Let no more events replace others than there are before the next gap: the numbers are not trusted."""
        stops = [*(gap.start for gap in self.gaps[1:]), self.count + 1]
        for at, (gap, stop) in enumerate(zip(self.gaps, stops, strict=False)):
            more = max(gap.again - (stop - gap.start), 0)
            self.gaps[at] = Gap(gap.start, gap.again - more, gap.events - more)

    def _ends_at(self, last: int) -> bool:
        """Return whether a batch of the file ends with this event: it may have been dropped since it was read."""
        return last > 0 and bool(self._connection.rows("SELECT 1 FROM batch WHERE last = ?", (last,)))

    def _bridges(self) -> dict[int, int]:
        """The gaps of the file: the number of the first event after each, and how many events there replace others."""
        rows = self._connection.rows("SELECT value FROM meta WHERE key = 'gaps'")
        return self._decoded(str(rows[0][0])) if rows else {}

    def _decoded(self, text: str) -> dict[int, int]:
        try:
            pairs = msgspec.json.decode(text, type=list[tuple[Count, Count]])
        except msgspec.MsgspecError as error:
            raise damaged(self._connection.path, f"its gaps cannot be read: {error}") from error
        return {first - again: again for first, again in pairs}

    @property
    def were_cut(self) -> bool:
        """Whether something that was there at the first read has been dropped since: the beginning, or a part between
        others.
        """
        if not self._firsts:
            return False
        has_new_gap = any(first not in self._numbers for first in self._bridges())
        return has_new_gap or self._connection.rows("SELECT min(first) FROM batch") != [(self.base + 1,)]

    def _missing(self, seq: int) -> GvizError:
        path = self._connection.path
        if self.were_cut:
            what = f"event {seq} of {shown(str(path))} has been dropped: only the last part of the recording is kept"
            return GvizError(what, hint="open the trace again to see what it holds now", exit_code=3)
        return damaged(path, f"event {seq} is missing")

    def of(self, seq: int) -> tuple[Batch, Row]:
        """Return the batch that holds event `seq`, and the event's row."""
        batch = self._batch(bisect_right(self._firsts, seq) - 1)
        try:
            return batch, batch.row(seq)
        except ValueError as error:
            raise self._unreadable(f"event {seq}", error) from error

    def between(self, start: int, stop: int, kinds: Collection[int] | None = None) -> Iterator[tuple[Batch, list[Row]]]:
        """Yield the batches that hold the events ``start <= seq < stop``, each with all its rows.

        With `kinds`, batches are left out that are known to have no event of these kinds.
        """
        for place in range(max(bisect_right(self._firsts, start) - 1, 0), bisect_right(self._firsts, stop - 1)):
            if kinds is not None and place in self._kinds and self._kinds[place].isdisjoint(kinds):
                continue
            batch = self._batch(place)
            try:
                rows = batch.rows
            except (ValueError, RecursionError) as error:
                raise self._unreadable(f"the events from {batch.first} on", error) from error
            if kinds is not None and place not in self._kinds:
                self._kinds[place] = frozenset(row.kind for row in rows)
            yield batch, rows

    def _batch(self, place: int) -> Batch:
        batch = self._kept.get(place)
        if batch is None:
            if len(self._kept) >= _KEPT_BATCHES:
                self._kept.clear()
            batch = self._kept[place] = self._read(place)
        return batch

    def _read(self, place: int) -> Batch:
        first = self._firsts[place]
        last = self._firsts[place + 1] - 1 if place + 1 < len(self._firsts) else self.count
        rows = self._connection.rows("SELECT events, bodies FROM batch WHERE first = ?", (self._numbers[place],))
        if not rows:
            raise self._missing(first)
        try:
            return Batch(first, last, *rows[0])
        except ValueError as error:
            raise self._unreadable(f"the events from {first} on", error) from error

    def _unreadable(self, what: str, error: Exception) -> GvizError:
        return damaged(self._connection.path, f"{what} cannot be read: {error}")

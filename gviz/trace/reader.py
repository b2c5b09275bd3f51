"""Reads a trace, also while it is being written, also one from a stranger."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec
import numpy as np

from gviz.events import KINDS, Event, OpSeen, SourceSeen, StackSeen
from gviz.site import Frame
from gviz.trace import file_format
from gviz.trace.checks import check
from gviz.trace.codec import DEFINITION_KINDS, decode, subject
from gviz.trace.connection import Connection, damaged
from gviz.trace.log import Columns
from gviz.values import ITEM_SIZES, Array, Value
from gviz.values import decode as decode_array

_EVENT = "seq, kind, node, output_nr, pass_nr, body"
_TOGETHER = 500
_KEPT_EVENTS = 1 << 15
_LARGEST_NUMBER = 1 << 32
_LARGEST_ARRAY = 1 << 31
_INDEX_DTYPES = ("|u1", "<u2", "<u4", "<u8")


class Trace:
    """An `EventLog` in a file. Close it, or use it as a context manager.

    Everything it raises is a GvizError with exit code 3: whatever is in the file, it is data, and never trusted.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._connection = Connection(self.path)
        self._count = 0
        self._kept: dict[int, Event] = {}
        self._definitions = 0
        self._ops: dict[int, OpSeen] = {}
        self._stacks: dict[int, tuple[Frame, ...]] = {}
        self._sources: dict[str, str | None] = {}
        self.refresh()

    def __enter__(self) -> Trace:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __len__(self) -> int:
        return self._count

    @property
    def meta(self) -> dict[str, str]:
        """What is known about the recording as a whole: the rows of the table `meta`."""
        return {str(key): str(value) for key, value in self._connection.rows("SELECT key, value FROM meta")}

    @property
    def finished(self) -> bool:
        """Whether the recording was closed; else it still goes on, or its program was killed."""
        return bool(self._connection.rows("SELECT 1 FROM meta WHERE key = 'finished'"))

    @property
    def ops(self) -> Mapping[int, OpSeen]:
        """The operations, by number."""
        self._read_definitions()
        return self._ops

    @property
    def stacks(self) -> Mapping[int, tuple[Frame, ...]]:
        """The call stacks, by number, innermost frame first."""
        self._read_definitions()
        return self._stacks

    @property
    def sources(self) -> Mapping[str, str | None]:
        """The program's files, by path, as they were when it ran."""
        self._read_definitions()
        return self._sources

    def event(self, seq: int) -> Event:
        """Event number `seq`."""
        found = self._kept.get(seq)
        if found is not None:
            return found
        if not 1 <= seq <= self._count:
            raise IndexError(seq)
        rows = self._connection.rows(f"SELECT {_EVENT} FROM event WHERE seq = ?", (seq,))
        if not rows:
            raise damaged(self.path, f"event {seq} is missing")
        return self._keep(rows[0])

    def prefetch(self, seqs: Iterable[int]) -> None:
        """Read many events at once."""
        missing = [seq for seq in set(seqs) if seq not in self._kept]
        for at in range(0, len(missing), _TOGETHER):
            some = missing[at : at + _TOGETHER]
            marks = ", ".join("?" * len(some))
            for row in self._connection.rows(f"SELECT {_EVENT} FROM event WHERE seq IN ({marks})", some):
                self._keep(row)

    def select(self, start: int, stop: int, kinds: Collection[int]) -> Iterator[tuple[int, Event]]:
        """The events ``start <= seq < stop`` of these kinds, in order."""
        marks = ", ".join(str(int(kind)) for kind in kinds)
        sql = f"SELECT {_EVENT} FROM event WHERE seq >= ? AND seq < ? AND kind IN ({marks}) ORDER BY seq"
        for at in range(start, stop, _KEPT_EVENTS):
            for row in self._connection.rows(sql, (at, min(at + _KEPT_EVENTS, stop))):
                yield row[0], self._event(*row)

    def columns(self, start: int, stop: int) -> Columns:
        """What the events ``start <= seq < stop`` concern."""
        sql = "SELECT kind, node, output_nr, pass_nr FROM event WHERE seq >= ? AND seq < ? ORDER BY seq"
        rows = self._connection.rows(sql, (start, stop))
        try:
            table = np.fromiter(chain.from_iterable(rows), np.int64, 4 * len(rows)).reshape(-1, 4).T
        except (TypeError, ValueError, OverflowError) as trouble:
            raise damaged(self.path, "an event's columns are not whole numbers") from trouble
        if table.shape[1] != stop - start or (table < 0).any() or (table >= _LARGEST_NUMBER).any():
            raise damaged(self.path, f"events {start} to {stop - 1} do not hold together")
        return Columns(*table)

    def array(self, value: Value) -> Array | None:
        """All elements of a value, read from their chunks if they are not in the value itself."""
        if value.data is not None or value.blob is None:
            return value.array()
        data = b"".join(self._chunks(value))
        try:
            return decode_array(value.dtype, value.shape, data)
        except ValueError as trouble:
            raise damaged(self.path, str(trouble)) from trouble

    def index(self) -> Mapping[str, Array] | None:
        """The columns written at a clean close, or None."""
        rows = self._connection.rows("SELECT name, dtype, bytes FROM index_column")
        try:
            columns = {str(name): np.frombuffer(data, dtype) for name, dtype, data in rows if dtype in _INDEX_DTYPES}
        except (TypeError, ValueError):
            return None
        return columns or None

    def refresh(self) -> int:
        """Notice what was written meanwhile, and give the new length."""
        [(first, last)] = self._connection.rows(
            "SELECT (SELECT min(seq) FROM event WHERE seq > ?1), (SELECT max(seq) FROM event)", (self._count,)
        )
        if first is not None:
            if first != self._count + 1 or not first <= last < _LARGEST_NUMBER:
                raise damaged(self.path, f"after event {self._count} some are missing")
            self._count = last
        return self._count

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    def _keep(self, row: Any) -> Event:
        event = self._event(*row)
        if len(self._kept) >= _KEPT_EVENTS:
            self._kept.clear()
        self._kept[row[0]] = event
        return event

    def _event(self, seq: int, kind: object, node: object, output_nr: object, pass_nr: object, body: object) -> Event:
        if not isinstance(kind, int) or kind in DEFINITION_KINDS:
            raise damaged(self.path, f"event {seq} is of no known kind")
        event = self._decoded(f"event {seq}", kind, body)
        if subject(event) != (node, output_nr, pass_nr):
            raise damaged(self.path, f"event {seq} contradicts itself")
        return event

    def _decoded(self, what: str, kind: object, body: object) -> Event:
        if not isinstance(kind, int) or not 0 <= kind < len(KINDS) or not isinstance(body, bytes):
            raise damaged(self.path, f"{what} is of no known kind")
        try:
            event = decode(kind, body)
            check(event)
        except (msgspec.MsgspecError, ValueError, RecursionError, OverflowError) as trouble:
            raise damaged(self.path, f"{what} cannot be read: {trouble}") from trouble
        return event

    def _chunks(self, value: Value) -> Iterator[bytes]:
        blob, size = value.blob or b"", file_format.HASH_BYTES
        if value.dtype not in ITEM_SIZES or not 0 <= value.nbytes <= _LARGEST_ARRAY:
            raise damaged(self.path, f"a {value.dtype[:20]} array of {value.nbytes} bytes is impossible")
        if len(blob) != size * -(-value.nbytes // file_format.CHUNK_BYTES):
            raise damaged(self.path, "an array has the wrong number of chunks")
        for at in range(0, len(blob), size):
            rows = self._connection.rows("SELECT bytes FROM chunk WHERE hash = ?", (blob[at : at + size],))
            if not rows or not isinstance(rows[0][0], bytes) or len(rows[0][0]) > file_format.CHUNK_BYTES:
                raise damaged(self.path, "a chunk of an array is missing")
            yield rows[0][0]

    def _read_definitions(self) -> None:
        sql = "SELECT id, kind, body FROM definition WHERE id > ? ORDER BY id"
        for number, kind, body in self._connection.rows(sql, (self._definitions,)):
            self._define(self._decoded(f"definition {number}", kind, body))
            self._definitions = number

    def _define(self, event: Any) -> None:
        match event:
            case OpSeen():
                self._ops[event.op] = event
            case StackSeen():
                self._stacks[event.stack] = event.frames
            case SourceSeen():
                self._sources[event.path] = event.text
            case _:
                raise damaged(self.path, "an event stands among the definitions")


def open_trace(path: str | os.PathLike[str]) -> Trace:
    """Open a trace for reading.

    Raises GvizError with exit code 3 if it is missing, unreadable, not a trace, damaged, or of a newer format.
    """
    return Trace(path)

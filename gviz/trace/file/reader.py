"""Reads a trace, including one that is still being written and one from an untrusted source."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain
from operator import attrgetter
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any

import msgspec
import numpy as np

from gviz import argument_checks
from gviz.events import KINDS, Event, OpSeen, Reading, SourceSeen, StackSeen
from gviz.source.call_stack import DEEPEST, Frame
from gviz.trace.codec import DEFINITION_KINDS, decode, subject
from gviz.trace.event_log import NOTHING_DROPPED, Columns, E, MissingParts
from gviz.trace.file import format as file_format
from gviz.trace.file.connection import Connection, damaged
from gviz.trace.file.event_batches_and_gaps import Batch, Batches, Row
from gviz.trace.iterations import IterationPattern
from gviz.trace.naming.bindings import LARGEST_SOURCE
from gviz.trace.stack_tree import Stacks
from gviz.trace.whole_iterations import RecordedIterations, recorded_iterations
from gviz.values.value import ITEM_SIZES, Array, Value
from gviz.values.value import decode as decode_array

LONGEST_NAME = 1000
"""The longest accepted text that many events share. Untrusted texts can have any length, and every event shows them."""
LONGEST_RULE = 10_000
LONGEST_WORD = 100
"""The longest accepted meaning of a name in a formula, in characters; it may occur there many times."""
LONGEST_PATH = 4096

_Patterns = tuple[Annotated[IterationPattern, msgspec.Meta(min_length=1)], ...]
_KEPT_EVENTS = 1 << 15
_LARGEST_ARRAY = 1 << 31
_SUBJECT = attrgetter(*Columns._fields)
_INDEX_DTYPES = ("|u1", "<u2", "<u4", "<u8")


class Trace:
    """An `EventLog` in a file. Close it, or use it as a context manager.

    Every error is a GvizError with exit code 3: the content of the file is never trusted.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(argument_checks.path_text("path", path))
        self._connection = Connection(self.path)
        self._batches = Batches(self._connection)
        self._kept: dict[int, Event] = {}
        self._definitions = 0
        self._has_new_definitions = True
        self._ops: dict[int, OpSeen] = {}
        self._stacks = Stacks()
        self._sources: dict[str, str | None] = {}
        self.refresh()

    def __enter__(self) -> Trace:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __len__(self) -> int:
        return self._batches.count

    @property
    def meta(self) -> dict[str, str]:
        """Facts about the recording as a whole: the rows of the table `meta`."""
        return {str(key): str(value) for key, value in self._connection.rows("SELECT key, value FROM meta")}

    @property
    def framework(self) -> str:
        """The framework whose operations were recorded."""
        return self.meta.get("framework", "")

    @property
    def dropped(self) -> MissingParts:
        """What the file no longer has because only some parts of the run were kept."""
        base, gaps = self._batches.base, tuple(self._batches.gaps)
        if not base:
            return NOTHING_DROPPED if not gaps else MissingParts(0, 0, gaps=gaps)
        meta = self.meta
        count = meta.get("said_again", "")
        again = min(int(count), len(self)) if count.isdecimal() and len(count) < 12 else 0
        try:
            patterns = msgspec.json.decode(meta.get("turns", "[]"), type=_Patterns)
        except msgspec.MsgspecError as error:
            raise damaged(self.path, f"its turns cannot be read: {error}") from error
        return MissingParts(base + again, again, patterns, gaps)

    @property
    def recorded_iterations(self) -> RecordedIterations | None:
        """Which iterations of the run the file has, if these are not all."""
        return recorded_iterations(self.meta)

    @property
    def cut_off(self) -> bool:
        """Whether the recording ended at the first nan or infinity, before the program did."""
        return "until" in self.meta

    @property
    def finished(self) -> bool:
        """Whether the recording was closed. If not, it is still running or its program was killed."""
        return bool(self._connection.rows("SELECT 1 FROM meta WHERE key = 'finished'"))

    @property
    def ops(self) -> Mapping[int, OpSeen]:
        """The operations, by number."""
        self._read_definitions()
        return self._ops

    @property
    def stacks(self) -> Stacks:
        """The call stacks, by number."""
        self._read_definitions()
        return self._stacks

    @property
    def sources(self) -> Mapping[str, str | None]:
        """The program's source files, by path, as they were when it ran."""
        self._read_definitions()
        return self._sources

    def event(self, seq: int) -> Event:
        """Return event number `seq`."""
        if (kept := self._kept.get(seq)) is not None:
            return kept
        if not 1 <= seq <= len(self):
            raise damaged(self.path, f"its index speaks of event {seq}, and it has {len(self)}")
        if len(self._kept) >= _KEPT_EVENTS:
            self._kept.clear()
        self._kept[seq] = event = self._event(*self._batches.of(seq), seq)
        return event

    def prefetch(self, seqs: Iterable[int]) -> None:
        """Read and cache many events, batch by batch."""
        for seq in sorted(set(seqs).difference(self._kept)):
            self.event(seq)

    def select(self, start: int, stop: int, kinds: Collection[int]) -> Iterator[tuple[int, Event]]:
        """Yield the events ``start <= seq < stop`` of these kinds, in order."""
        for batch, rows in self._batches.between(start, stop, kinds):
            for seq, row in enumerate(rows, batch.first):
                if row.kind in kinds and start <= seq < stop:
                    yield seq, self._kept.get(seq) or self._event(batch, row, seq)

    def columns(self, start: int, stop: int) -> Columns:
        """Return the subjects of the events ``start <= seq < stop`` as columns."""
        rows: list[Row] = []
        for batch, column_rows in self._batches.between(start, stop):
            rows += column_rows[max(start - batch.first, 0) : max(stop - batch.first, 0)]
        table = np.fromiter(chain.from_iterable(map(_SUBJECT, rows)), np.int64, len(Columns._fields) * len(rows))
        return Columns(*table.reshape(len(rows), len(Columns._fields)).T)

    def array(self, value: Value) -> Array | None:
        """Return all elements of a value, read from chunks if the value does not have them; None if not stored."""
        if value.data is not None or value.blob is None:
            return value.array()
        data = b"".join(self._chunks(value))
        try:
            return decode_array(value.dtype, value.shape, data)
        except ValueError as error:
            raise damaged(self.path, str(error)) from error

    def index(self) -> Mapping[str, Array] | None:
        """Return the index columns written at a clean close, or None."""
        rows = self._connection.rows("SELECT name, dtype, bytes FROM index_column")
        try:
            columns = {str(name): np.frombuffer(data, dtype) for name, dtype, data in rows if dtype in _INDEX_DTYPES}
        except (TypeError, ValueError):
            return None
        return columns or None

    def refresh(self) -> int:
        """Read what was added to the file, and return the new length."""
        self._has_new_definitions = True
        return self._batches.refresh()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def _event(self, batch: Batch, row: Row, seq: int) -> Event:
        if row.kind in DEFINITION_KINDS:
            raise damaged(self.path, f"event {seq} is of no known kind")
        event = self._decoded(f"event {seq}", row.kind, batch.body(row))
        if subject(event) != (row.node, row.output_nr, row.pass_nr):
            raise damaged(self.path, f"event {seq} contradicts itself")
        return event

    def _decoded(self, what: str, kind: object, body: object) -> Event:
        if not isinstance(kind, int) or not 0 <= kind < len(KINDS) or not isinstance(body, bytes):
            raise damaged(self.path, f"{what} is of no known kind")
        try:
            return decode(kind, body)
        except (ValueError, RecursionError, OverflowError) as error:
            raise damaged(self.path, f"{what} cannot be read: {error}") from error

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
        """Read the definitions added since the last call, if there was a `refresh` in between."""
        if not self._has_new_definitions:
            return
        sql = "SELECT id, kind, body FROM definition WHERE id > ? ORDER BY id"
        for number, kind, body in self._connection.rows(sql, (self._definitions,)):
            self._define(bounded(self._decoded(f"definition {number}", kind, body)))
            self._definitions = number
        self._has_new_definitions = False

    def _define(self, event: Any) -> None:
        match event:
            case OpSeen():
                self._ops[event.op] = event
            case StackSeen():
                try:
                    self._stacks.add(event)
                except ValueError as error:
                    raise damaged(self.path, str(error)) from error
            case SourceSeen():
                self._sources[event.path] = event.text
            case _:
                raise damaged(self.path, "there is an event among the definitions")


def open_trace(path: str | os.PathLike[str]) -> Trace:
    """Open a trace for reading.

    Raises GvizError with exit code 3 if it is missing, unreadable, not a trace, damaged, or of a newer format.
    """
    return Trace(path)


def bounded(event: E) -> E:
    """Return the definition with long names cut and overlong texts removed; no recorder writes such texts."""
    match event:
        case OpSeen():
            return msgspec.structs.replace(
                event, name=_cut(event.name), grad_fn=_cut(event.grad_fn), slots=_all_cut(event.slots),
                call=_cut(event.call), rules=tuple(map(_rule, event.rules)), saved=_all_cut(event.saved),
                formula=_rule(event.formula), readings=tuple(filter(_is_readable, event.readings)),
            )  # fmt: skip
        case StackSeen():
            whole = event.frames if event.shared else event.frames[:DEEPEST]  # older recordings have more frames
            return msgspec.structs.replace(event, frames=tuple(map(_frame, whole)))
        case SourceSeen(text=str(text)) if len(text) > LARGEST_SOURCE:
            return msgspec.structs.replace(event, text=None)
    return event


def _is_readable(reading: Reading) -> bool:
    words = [part for pair in (*reading.given, *reading.words) for part in pair]
    is_short = all(len(word) <= LONGEST_WORD for word in (*words, *reading.beside))
    return is_short and len(reading.formula) <= LONGEST_RULE


def _frame(frame: Frame) -> Frame:
    if len(frame.path) <= LONGEST_PATH and len(frame.function) <= LONGEST_NAME:
        return frame
    return msgspec.structs.replace(frame, path=_cut(frame.path, LONGEST_PATH), function=_cut(frame.function))


def _cut(text: str, longest: int = LONGEST_NAME) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def _all_cut(texts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(_cut, texts))


def _rule(text: str) -> str:
    return text if len(text) <= LONGEST_RULE else ""

"""The events of one row of a trace file: what each concerns as JSON, for whoever asks in SQL, and their bodies."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Annotated

import msgspec
import numpy as np

from gviz.events import Count

MOST_EVENTS = 1000
LARGEST_BODIES = 1 << 18
"""A batch is ended by the event that makes its bodies longer than this: one event should not cost a look at many."""

_LONGEST_TEXT = 1 << 20

RowFields = tuple[int, int, int, int, int, int, int, int]
"""The fields of a `Row`, as they are written."""


class Row(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One event: its kind, what it concerns, when and by which thread it was said, and which bytes are its body."""

    kind: Count
    node: Count
    output_nr: Count
    pass_nr: Count
    time: Annotated[int, msgspec.Meta(ge=0)]
    thread: Count
    start: Count
    size: Count


class Batch:
    """Events that reached the file together, the first of them number `first`.

    Raises ValueError if a row of the file does not hold the events `first` to `last`. A single row is decoded when
    somebody asks for it: then a jump to one event is not a look at a thousand.
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
        """The row of event `seq`; ValueError if it is none."""
        before, end = self._ends[seq - self.first : seq - self.first + 2].tolist()
        return _decode_row(self._text[before + 1 : end])

    @cached_property
    def rows(self) -> list[Row]:
        """All rows; ValueError if they cannot be read."""
        rows = _decode_rows(self._text)
        if len(rows) != len(self._ends) - 1:
            raise ValueError(f"they are {len(rows)} events")
        return rows

    def body(self, row: Row) -> bytes:
        """The body of one of its events."""
        return self.bodies[row.start : row.start + row.size]


def encode_rows(rows: Iterable[RowFields]) -> str:
    """The rows as the text that a file keeps."""
    return _encode(rows).decode()


_encode = msgspec.json.Encoder().encode
_decode_row = msgspec.json.Decoder(Row).decode
_decode_rows = msgspec.json.Decoder(list[Row]).decode

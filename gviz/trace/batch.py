"""The events of one row of a trace file: what each concerns as JSON, for whoever asks in SQL, and their bodies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated

import msgspec

from gviz.trace.checks import LARGEST_NUMBER

MOST_EVENTS = 1000
LARGEST_BODIES = 1 << 18
"""A batch is ended by the event that makes its bodies longer than this: one event should not cost a look at many."""

_LONGEST_TEXT = 1 << 20

Number = Annotated[int, msgspec.Meta(ge=0, lt=LARGEST_NUMBER)]
RowFields = tuple[int, int, int, int, int, int, int, int]
"""The fields of a `Row`, as they are written."""


class Row(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One event: its kind, what it concerns, when and by which thread it was said, and which bytes are its body."""

    kind: Number
    node: Number
    output_nr: Number
    pass_nr: Number
    time: Annotated[int, msgspec.Meta(ge=0)]
    thread: Number
    start: Number
    size: Number


@dataclass(frozen=True, slots=True)
class Batch:
    """Events that reached the file together, the first of them number `first`."""

    first: int
    rows: list[Row]
    bodies: bytes

    @classmethod
    def of(cls, first: int, last: int, events: object, bodies: object) -> Batch:
        """The batch in a row of the file. ValueError if it does not hold the events `first` to `last`."""
        if not isinstance(events, str) or not isinstance(bodies, bytes) or len(events) > _LONGEST_TEXT:
            raise ValueError("they are not of the right types, or too long")
        rows = _decode(events)
        if len(rows) != last - first + 1:
            raise ValueError(f"they are {len(rows)} events")
        return cls(first, rows, bodies)

    def part(self, start: int, stop: int) -> Sequence[Row]:
        """The rows of the events ``start <= seq < stop``."""
        return self.rows[max(start - self.first, 0) : max(stop - self.first, 0)]

    def body(self, row: Row) -> bytes:
        """The body of one of its events."""
        return self.bodies[row.start : row.start + row.size]


def encode_rows(rows: Iterable[RowFields]) -> str:
    """The rows as the text that a file keeps."""
    return _encode(rows).decode()


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(list[Row]).decode

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

    def part(self, start: int, stop: int) -> Sequence[Row]:
        """The rows of the events ``start <= seq < stop``."""
        return self.rows[max(start - self.first, 0) : max(stop - self.first, 0)]


def encode_rows(rows: Iterable[RowFields]) -> str:
    """The rows as the text that a file keeps."""
    return _encode(rows).decode()


def decode_rows(text: object, count: int) -> list[Row]:
    """The rows of a batch of so many events. ValueError if the text is not theirs."""
    if not isinstance(text, str) or len(text) > _LONGEST_TEXT:
        raise ValueError("it is no text, or too long")
    rows = _decode(text)
    if len(rows) != count:
        raise ValueError(f"it holds {len(rows)} events instead of {count}")
    return rows


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(list[Row]).decode

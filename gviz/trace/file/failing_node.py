"""Whose backward rule ended a pass, read from the file while it is written."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from itertools import islice, starmap

from gviz.events import BackwardFinished, Event, StepFinished, StepStarted
from gviz.trace.codec import KIND_NUMBERS, decode
from gviz.trace.file.batch import Batch

_PASS_KINDS = {KIND_NUMBERS[kind] for kind in (BackwardFinished, StepStarted, StepFinished)}


def failing_node(connection: sqlite3.Connection, error: str) -> int:
    """The node whose backward rule ended a pass with this error, as the last thing that happened; else 0."""
    match list(islice(_backwards(connection), 2)):
        case [BackwardFinished(error=said), StepStarted(node=node)] if said == error:
            return node
    return 0


def _backwards(connection: sqlite3.Connection) -> Iterator[Event]:
    """The events of `_PASS_KINDS` in the file, the last first."""
    sql = "SELECT first, last, events, bodies FROM batch ORDER BY first DESC"
    for batch in starmap(Batch, connection.execute(sql)):
        for row in reversed(batch.rows):
            if row.kind in _PASS_KINDS:
                yield decode(row.kind, batch.body(row))

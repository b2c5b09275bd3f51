"""The end of a trace that is closed: what is looked up in it later is made now, and one file is left."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from gviz.trace import nonfinite
from gviz.trace.file.format import utc_now
from gviz.trace.file.reader import open_trace
from gviz.trace.file.wal import fold
from gviz.trace.index.columns import Index


def finish(connection: sqlite3.Connection, path: Path, first_bad: int | None) -> None:
    """Keep the index of a whole trace in it, and say that it is finished.

    `first_bad` is the first event with a nan or infinity, 0 if there is none, None if it is not known.
    """
    with open_trace(path) as log:
        index = Index(log.dropped.turns)
        index.extend(log)
        found = nonfinite.first_bad(log, 1, len(log) + 1, nonfinite.FirstBad()) if first_bad is None else first_bad
        index.first_bad = found
    columns = [(name, array.dtype.str, array.tobytes()) for name, array in index.arrays()]
    with connection:
        connection.execute("BEGIN")
        connection.executemany("INSERT INTO index_column VALUES (?, ?, ?)", columns)
        connection.execute("INSERT INTO meta VALUES ('finished', ?)", (utc_now(),))
    fold(connection)

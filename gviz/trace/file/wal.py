"""Brings SQLite's write-ahead log into the file of a trace, so that this can be copied and sent alone."""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from pathlib import Path


def fold(connection: sqlite3.Connection) -> None:
    """Bring the log into the file, and leave that alone; raises `sqlite3.Error` if there is no room for it."""
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    # A reader that follows the file keeps it in this mode, complete but with an empty log beside it.
    with suppress(sqlite3.OperationalError):
        _leave_alone(connection)


def fold_file(path: Path) -> None:
    """Leave one file of a trace that nobody writes any more, or whose program was killed.

    Nothing happens where there is none, somebody has it open, or the disk is full: it can be read as it is. Nor where
    the program has removed the folder that it was started in.
    """
    with suppress(sqlite3.Error, FileNotFoundError), closing(_opened(path)) as connection:
        fold(connection)


def is_open(path: Path) -> bool:
    """Whether somebody reads or writes an unfinished trace: by SQLite's locks, which no process outlives."""
    try:
        with closing(_opened(path)) as connection:
            _leave_alone(connection)
    except sqlite3.Error as trouble:
        return getattr(trouble, "sqlite_errorcode", 0) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
    return False


def _opened(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, isolation_level=None, timeout=0)


def _leave_alone(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA journal_mode = DELETE").fetchall()

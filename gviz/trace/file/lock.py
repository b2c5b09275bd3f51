"""Ensures a single writer per trace, with a file lock that the system releases when the process ends.

SQLite's own locks do not work here: readers hold them too, and a process loses them when it reopens the file.
"""

from __future__ import annotations

import os
import time
from contextlib import closing, suppress
from pathlib import Path

from gviz.errors import GvizError

PATIENCE_SECONDS = 0.1
"""How long a writer retries: a process that only checks the lock holds it for a moment."""


class Lock:
    """The lock on a file, held while it is open. Raises GvizError if another writer holds it."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDONLY)
        self._as_opened = os.fstat(self._file)
        if not _taken_in_time(self._file) or not self.is_at(path):
            os.close(self._file)
            raise _being_written(path)

    @property
    def is_open(self) -> bool:
        """Whether the descriptor still refers to the opened file; a program may close descriptors it does not own."""
        try:
            return os.path.samestat(os.fstat(self._file), self._as_opened)
        except OSError:
            return False

    def refuse_closed(self) -> None:
        """Raise GvizError if the file was closed: SQLite would retry for seconds and then report a lock error."""
        if not self.is_open:
            raise GvizError("the program closed files that it had not opened, the trace among them (os.closerange?)")

    def close(self) -> None:
        """Release the lock, even if a forked copy of this process still has the file open.

        If the program closed the descriptor, its number may belong to another file by now, so it is left alone.
        """
        if self.is_open:
            _let_go(self._file)
            os.close(self._file)

    def leave(self) -> None:
        """Close the file in a forked child; the parent keeps the lock."""
        if self.is_open:
            os.close(self._file)

    def is_at(self, path: Path) -> bool:
        """Return whether the locked file is still the one at this path."""
        try:
            return os.path.samestat(path.stat(), self._as_opened)
        except OSError:
            return False


def is_locked(path: Path) -> bool:
    """Return whether a process is writing the trace."""
    try:
        file = os.open(path, os.O_RDONLY)
    except OSError:
        return False
    try:
        return not _taken(file, shared=True)
    finally:
        os.close(file)


def _taken_in_time(file: int) -> bool:
    until = time.monotonic() + PATIENCE_SECONDS
    while not _taken(file):
        if time.monotonic() > until:
            return False
        time.sleep(PATIENCE_SECONDS / 20)
    return True


def _taken(file: int, *, shared: bool = False) -> bool:
    """Return whether this process now holds the lock. True if the system or file system has no locks."""
    try:
        import fcntl  # not available on Windows

        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (ImportError, OSError):  # or a file system without locks
        return True
    return True


def _let_go(file: int) -> None:
    with suppress(ImportError, OSError):
        import fcntl

        fcntl.flock(file, fcntl.LOCK_UN)


def refuse_locked(path: Path) -> None:
    """Raise GvizError if a process is writing the trace."""
    if is_locked(path):
        raise _being_written(path)


def _being_written(path: Path) -> GvizError:
    process = writer_of(path)
    by = f"process {process}" if process else "another process"
    return GvizError(f"{path} is being written by {by}", hint="choose another name, or wait until it has ended")


def writer_of(path: Path) -> int:
    """Return the id of the process that began the trace; 0 if there is none or it is not stored yet."""
    import sqlite3

    with (
        suppress(sqlite3.Error, FileNotFoundError),
        closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as file,
    ):
        row = file.execute("SELECT value FROM meta WHERE key = 'process'").fetchone()
        return int(row[0]) if row and str(row[0]).isdecimal() else 0
    return 0

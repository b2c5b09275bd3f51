"""Who writes a trace: one process, by a lock on its file that the system frees when the process is gone.

SQLite's own locks do not tell: readers hold them too, and a process loses them when it opens and closes the file again.
"""

from __future__ import annotations

import os
import time
from contextlib import closing, suppress
from pathlib import Path

from gviz.errors import GvizError

PATIENCE_SECONDS = 0.1
"""So long a writer tries: who only asks has the lock for a moment, too."""


class Lock:
    """The lock on a file, held while it is open; GvizError if another writer has it."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDONLY)
        self._as_opened = os.fstat(self._file)
        if not _taken_in_time(self._file) or not self.is_at(path):
            os.close(self._file)
            raise _being_written(path)

    @property
    def is_open(self) -> bool:
        """Whether it is still the file that was opened: a program may close what is not its own."""
        try:
            return os.path.samestat(os.fstat(self._file), self._as_opened)
        except OSError:
            return False

    def refuse_closed(self) -> None:
        """Raise GvizError if it was closed: SQLite would try for seconds, and then speak of locks."""
        if not self.is_open:
            raise GvizError("the program closed files that it had not opened, the trace among them (os.closerange?)")

    def close(self) -> None:
        """Let another one write, even if a copy of this process has the file open still.

        What the program has closed may be a file of its own by now.
        """
        if self.is_open:
            _let_go(self._file)
            os.close(self._file)

    def leave(self) -> None:
        """Close it in a forked child: the lock stays the parent's."""
        if self.is_open:
            os.close(self._file)

    def is_at(self, path: Path) -> bool:
        """Whether nobody has put another file in its place before it was locked."""
        try:
            return os.path.samestat(path.stat(), self._as_opened)
        except OSError:
            return False


def is_locked(path: Path) -> bool:
    """Whether somebody writes the trace."""
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
    """Whether the lock is ours now; where there are none, nobody is refused."""
    try:
        import fcntl  # there is none on Windows

        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (ImportError, OSError):  # nor on some file systems
        return True
    return True


def _let_go(file: int) -> None:
    with suppress(ImportError, OSError):
        import fcntl

        fcntl.flock(file, fcntl.LOCK_UN)


def refuse_locked(path: Path) -> None:
    """Raise GvizError if somebody writes the trace."""
    if is_locked(path):
        raise _being_written(path)


def _being_written(path: Path) -> GvizError:
    process = writer_of(path)
    by = f"process {process}" if process else "another process"
    return GvizError(f"{path} is being written by {by}", hint="choose another name, or wait until it has ended")


def writer_of(path: Path) -> int:
    """The number of the process that began the trace; 0 if there is none, or it does not say so yet."""
    import sqlite3

    with (
        suppress(sqlite3.Error, FileNotFoundError),
        closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as file,
    ):
        found = file.execute("SELECT value FROM meta WHERE key = 'process'").fetchone()
        return int(found[0]) if found and str(found[0]).isdecimal() else 0
    return 0

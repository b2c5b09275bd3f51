"""Opens an untrusted file: read-only, with limits, and only if it is a trace and nothing else."""

from __future__ import annotations

import os
import sqlite3
import stat
import time
import weakref
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from gviz.errors import GvizError
from gviz.trace.file import format as file_format
from gviz.trace.file.paths import log_of
from gviz.values.plain_text import clipped, shown
from gviz.version import __version__

SECONDS_A_QUERY = 20.0
LARGEST_FIELD = 256 << 20
_ALLOWED = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION}
_INSTRUCTIONS_BETWEEN_LOOKS = 100_000
_LONGEST_REASON = 200
_TOO_LONG = "cannot be opened where it is", "copy it to where its path is shorter", "it may be too long for SQLite"


class _Limit:
    """The time limit of a query. SQLite holds this object, which therefore does not refer to the connection."""

    def __init__(self) -> None:
        self._deadline = 0.0

    def begin(self) -> None:
        """Start the time of a query."""
        self._deadline = time.monotonic() + SECONDS_A_QUERY

    def is_over(self) -> bool:
        """Return whether the query has run out of time."""
        return time.monotonic() > self._deadline


class Connection:
    """A trace file open for reading. Every failure is a GvizError with exit code 3."""

    def __init__(self, path: Path) -> None:
        self.path = path
        _look_at(path)
        self._limit = _Limit()
        self._sqlite = self._connected()
        self._closed = weakref.finalize(self, self._sqlite.close)  # closes it at the latest when this object is freed
        try:
            self._check()
        except BaseException:
            self.close()
            raise

    def rows(self, sql: str, parameters: Iterable[object] = ()) -> list[Any]:
        """Return the rows of a query, which may take `SECONDS_A_QUERY`."""
        self._limit.begin()
        try:
            return self._sqlite.execute(sql, tuple(parameters)).fetchall()
        except (sqlite3.Error, sqlite3.Warning, UnicodeDecodeError, OverflowError, MemoryError) as error:
            raise damaged(self.path, str(error)) from error

    def close(self) -> None:
        """Close the file. Also works at interpreter exit, when finalizers no longer run."""
        self._closed.detach()
        self._sqlite.close()

    def _connected(self) -> sqlite3.Connection:
        try:
            return self._open("mode=ro")
        except sqlite3.OperationalError as error:
            if "open" not in str(error) and "readonly" not in str(error):
                raise damaged(self.path, str(error)) from error
            self._refuse_log()
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise damaged(self.path, str(error)) from error
        try:
            return self._open("mode=ro&immutable=1")  # there is only this file: safe to read as it is
        except (sqlite3.Error, UnicodeDecodeError) as error:
            if file_format.has_long_path(self.path):
                raise _refusal(self.path, *_TOO_LONG) from error
            raise damaged(self.path, str(error)) from error

    def _refuse_log(self) -> None:
        """Raise GvizError if part of the trace is in a write-ahead log that SQLite could not open here."""
        log = log_of(self.path)
        if log.exists() and log.stat().st_size:
            raise _refusal(
                self.path,
                "cannot be opened where it is",
                f"copy it to another folder, together with {shown(log.name)}",
                "its recording was not closed; the rest of it can only be read in a folder that can be written to",
            )

    def _open(self, options: str) -> sqlite3.Connection:
        uri = f"file:{quote(os.fsencode(os.path.abspath(self.path)))}?{options}"
        connection = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LARGEST_FIELD)
        connection.set_progress_handler(self._limit.is_over, _INSTRUCTIONS_BETWEEN_LOOKS)
        self._limit.begin()
        try:
            for pragma in ("trusted_schema = OFF", "cell_size_check = ON", "mmap_size = 0", "query_only = ON"):
                connection.execute(f"PRAGMA {pragma}").fetchall()
            connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
        except (sqlite3.Error, UnicodeDecodeError):  # the second: an error message quotes the file's content
            connection.close()
            raise
        return connection

    def _check(self) -> None:
        """Raise GvizError unless the file is a trace that this version reads, and defines nothing else."""
        [(application,)] = self.rows("PRAGMA application_id")
        [(version,)] = self.rows("PRAGMA user_version")
        if application != file_format.APPLICATION_ID:
            raise _not_a_trace(self.path, "it is an SQLite database of another program")
        if version > file_format.FORMAT:
            raise self._too_new(version)
        self._sqlite.set_authorizer(_authorize)
        schema = file_format.defined(self.rows(file_format.SCHEMA_ROWS))
        if version < 1 or schema != file_format.expected_schema():
            raise damaged(self.path, "its tables are not those of a trace")

    def _too_new(self, version: int) -> GvizError:
        tables = self.rows(
            "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'meta' AND sql NOT LIKE '%virtual%'"
        )
        rows = self.rows("SELECT value FROM meta WHERE key = 'gviz'") if tables else []
        writer = f"gviz {clipped(str(rows[0][0]), 40)}" if rows else "a newer gviz"
        what = f"was written by {writer} (format {version}); this is {__version__} (format {file_format.FORMAT})"
        return _refusal(self.path, what, "pip install -U gviz")


def damaged(path: Path, why: str) -> GvizError:
    """Return the error for a trace that is damaged."""
    return _refusal(path, f"is damaged: {clipped(why, _LONGEST_REASON)}", "record the program again")


def _not_a_trace(path: Path, why: str) -> GvizError:
    program = path.suffix == ".py"
    hint = f"gviz run {shown(str(path))}" if program else "gviz record SCRIPT writes one"
    return _refusal(path, f"is not a gviz trace: {'it is a program' if program else why}", hint)


def _refusal(path: Path, what: str, hint: str, why: str = "") -> GvizError:
    return GvizError(f"{shown(str(path))} {what}", why=why, hint=hint, exit_code=3)


def _look_at(path: Path) -> None:
    """Raise GvizError if there is no file, or it is not a database."""
    try:
        if not stat.S_ISREG(path.stat().st_mode) and not path.is_dir():
            raise _not_a_trace(path, "it is not a regular file")
        with path.open("rb") as file:
            head = file.read(len(file_format.MAGIC))
    except FileNotFoundError:
        raise _refusal(path, "does not exist", "gviz record -o FILE SCRIPT writes a trace") from None
    except IsADirectoryError:
        raise _refusal(path, "is a folder", "name a trace in it") from None
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise _refusal(path, f"cannot be read: {why}", "look at its permissions") from error
    if head != file_format.MAGIC:
        raise _not_a_trace(path, "it is empty" if not head else "its first bytes are not those of an SQLite file")


def _authorize(action: int, *names: str | None) -> int:
    return sqlite3.SQLITE_OK if action in _ALLOWED else sqlite3.SQLITE_DENY

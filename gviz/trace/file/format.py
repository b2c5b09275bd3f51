"""What makes a file a trace: magic numbers, format version and tables."""

from __future__ import annotations

import errno
import os
import re
import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from gviz.errors import GvizError, SystemRefusal
from gviz.trace.file.lock import Lock

FORMAT = 8
"""Increases when a reader of the old format would misread a new file; `schema.sql` has the history."""

MAGIC = b"SQLite format 3\0"
"""The first bytes of any SQLite file. `APPLICATION_ID` further in shows that it is a trace."""

APPLICATION_ID = 0x67766973  # "gvis"; `file` and SQLite clients show it
CHUNK_BYTES = 1 << 20
HASH_BYTES = 16
_SURE_TO_FIT = 500

SchemaRow = tuple[str, str, str, str | None]
"""``(type, name, table, sql)``"""

SCHEMA_ROWS = "SELECT type, name, tbl_name, sql FROM sqlite_schema"
_COMMENT = re.compile("--[^\n]*")
_BLANKS = re.compile("[ \t\n\f\r]+")  # exactly what SQLite treats as blanks


_FULL = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE, sqlite3.SQLITE_IOERR_TRUNCATE}


_OWNER_ONLY, _BY_UMASK = 0o600, 0o666
"""File modes: a trace is private unless it is shared. SQLite gives its own files next to the trace the same mode."""

_WRONG_NAME = {errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG, errno.ELOOP, errno.EINVAL}


class NoRoom(SystemRefusal):
    """The disk has no room for the trace file."""


def created(path: Path, about: Mapping[str, str], *, share: bool = False) -> tuple[sqlite3.Connection, Lock]:
    """Create an empty trace for one writer. Only its owner may read it; if `share` is set, the umask decides.

    Raises GvizError if the file exists or its name is not possible, SystemRefusal if the system refuses.
    """
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, _BY_UMASK if share else _OWNER_ONLY))
    except FileExistsError:
        raise GvizError(f"{path} already exists", hint="choose another name, or allow it to be replaced") from None
    except OSError as error:
        raise _refusal(path, error) from error
    try:
        lock = Lock(path)
    except OSError as error:
        with suppress(OSError):
            path.unlink()
        raise _refusal(path, error) from error
    try:
        return _prepared(path, about), lock
    except (sqlite3.Error, OSError, MemoryError) as error:
        with suppress(OSError):
            path.unlink()
        lock.close()
        raise _refusal(path, error) from error


def _refusal(path: Path, error: Exception) -> GvizError:
    """Return the error for a trace that cannot be written."""
    hint = ""
    if isinstance(error, OSError):
        kind = NoRoom if _is_full(error) else GvizError if error.errno in _WRONG_NAME else SystemRefusal
        return kind(f"{path} cannot be written: {error.strerror}")
    if has_long_path(path) and getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_CANTOPEN:
        kind, hint = GvizError, "choose a shorter path: this may be too long for SQLite"
    else:
        kind = NoRoom if _is_full(error) else SystemRefusal
    return kind(f"{path} cannot be written: {in_words(error)}", hint=hint)


def has_long_path(path: Path) -> bool:
    """Return whether the path may be too long for SQLite: it has 512 bytes for a name, and appends suffixes."""
    return len(os.fsencode(path.absolute())) > _SURE_TO_FIT


def utc_now() -> str:
    """Return the current time in the format of a trace."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def in_words(error: Exception) -> str:
    """Describe why a file cannot be written. SQLite reports a file size limit as a disk error."""
    if _is_full(error):
        return f"the disk is full, or a limit on the size of files is reached ({error})"
    return str(error) if isinstance(error, sqlite3.Error | OSError | GvizError) else repr(error)


def _is_full(error: Exception) -> bool:
    if isinstance(error, OSError):
        return error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    return isinstance(error, sqlite3.Error) and getattr(error, "sqlite_errorcode", 0) in _FULL


def _prepared(path: Path, about: Mapping[str, str]) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    try:
        _prepare(connection, about)
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: sqlite3.Connection, about: Mapping[str, str]) -> None:
    from gviz.trace.codec import kind_rows  # it imports numpy, which is not needed to recognize a trace

    connection.execute("PRAGMA synchronous = OFF")  # only a power loss can lose flushed events
    connection.execute("BEGIN")
    for statement in _statements():
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {FORMAT}")
    connection.executemany("INSERT INTO kind VALUES (?, ?, ?)", kind_rows())
    connection.executemany("INSERT INTO meta VALUES (?, ?)", about.items())
    connection.execute("COMMIT")
    # Only now: otherwise a file copied without its log would have no tables at all.
    connection.execute("PRAGMA journal_mode = WAL").fetchall()


def defined(rows: Iterable[SchemaRow]) -> frozenset[SchemaRow]:
    """Return the definitions in rows of ``sqlite_schema`` without comments, which may change between versions."""
    return frozenset((kind, name, table, _without_comments(sql)) for kind, name, table, sql in rows)


def _without_comments(sql: str | None) -> str | None:
    """Return the text without comments. In a damaged file it may be something else, which fits no definition."""
    return _BLANKS.sub(" ", _COMMENT.sub("", sql)).strip(" ") if isinstance(sql, str) else sql


@cache
def expected_schema() -> frozenset[SchemaRow]:
    """Return everything that a trace of this format defines."""
    empty = sqlite3.connect(":memory:")
    try:
        for statement in _statements():
            empty.execute(statement)
        return defined(empty.execute(SCHEMA_ROWS))
    finally:
        empty.close()


def _statements() -> list[str]:
    """Return the statements of the schema one by one; `executescript` would commit the surrounding transaction."""
    text = Path(__file__).with_name("schema.sql").read_text(encoding="utf-8")
    return [part + ";" for part in text.split(";\n") if "CREATE" in part]

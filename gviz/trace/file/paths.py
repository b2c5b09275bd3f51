"""The files of a trace on disk: the cache of unnamed traces, replacing and removing traces, merging into one file.

While a trace is written, SQLite keeps a write-ahead log and its shared memory next to it. The log of a killed program
stays. `fold` merges it into the trace file, so that this file can be copied and sent without the others.
"""

from __future__ import annotations

import os
import re
import stat
import time
from contextlib import closing, suppress
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING

from gviz.errors import GvizError, SystemRefusal
from gviz.system.files import make_private
from gviz.trace.file.lock import Lock, is_locked

if TYPE_CHECKING:
    import sqlite3  # imported where it is used: the folder of traces does not need it

_ID_AT = 68
"""Offset of the application id in the header of an SQLite file."""

_WHEN = re.compile(r"-\d{8}-\d{6}-\d+(-\d+)?\.gviz$")
"""What `new_trace` appends to the name of the program."""

KEPT = 20
"""The number of traces kept in the cache; the oldest are removed first."""

_JUST_WRITTEN = 60.0
"""Seconds for which a new trace is never removed: its writer may be about to open it while other programs start."""


def cached_traces() -> list[Path]:
    """Return the traces in the cache, newest first."""
    return sorted(traces().glob("*.gviz"), key=_written, reverse=True)


def new_trace(program: str) -> Path:
    """Return a path in the cache for a new trace of `program`. Removes old traces, except those in use.

    Traces that cannot be removed stay, for example those of another user in a shared cache.
    """
    folder = _created(traces())
    for old in cached_traces()[KEPT - 1 :]:
        if time.time() - _written(old) > _JUST_WRITTEN and not _is_being_written(old):
            with suppress(GvizError):
                remove_trace(old)
    # With the process id: the same program may be started several times in one second.
    stem = f"{_stem(program)}-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"
    names = chain([f"{stem}.gviz"], (f"{stem}-{number}.gviz" for number in count(2)))
    return next(folder / name for name in names if not (folder / name).exists())


def title_of(path: Path) -> str:
    """Return the title of a trace: its file name, or the program's name for a trace in the cache."""
    return _WHEN.sub("", path.name) if path.parent == traces() else path.name


def remove_trace(path: Path) -> None:
    """Remove a trace and the files that SQLite may have left next to it."""
    for part in _parts(path):
        try:
            part.unlink(missing_ok=True)
        except OSError as error:
            raise SystemRefusal(f"{part} cannot be removed", why=error.strerror or "") from error


def remove_for_new(path: Path) -> None:
    """Remove a trace to make room for a new one. Raises GvizError if a process is writing it."""
    if path.exists():
        with closing(Lock(path)):
            remove_trace(path)


def refuse_other_file(path: Path) -> None:
    """Raise `GvizError` if the path is a file that is not a trace, which must not be overwritten.

    An empty file is allowed: a process killed at the start of a recording leaves one.
    """
    from gviz.trace.file.format import APPLICATION_ID, MAGIC  # imports SQLite, not needed for the folder of traces

    try:
        if not stat.S_ISREG(path.stat().st_mode) and not path.is_dir():  # a device, or a pipe without a writer
            raise GvizError(f"{path} is not a regular file", hint="choose another name")
        with path.open("rb") as file:
            head = file.read(_ID_AT + 4)
    except FileNotFoundError:
        return
    except OSError as error:
        raise GvizError(f"cannot write {path}", why=error.strerror or str(error)) from error
    if head and (not head.startswith(MAGIC) or head[_ID_AT:] != APPLICATION_ID.to_bytes(4, "big")):
        raise GvizError(f"{path} exists and is not a gviz trace", hint="choose another name")


def trace_size(path: Path) -> int:
    """Return the size of a trace in bytes, including the files that a killed program left next to it."""
    return sum(part.stat().st_size for part in _parts(path) if part.exists())


def log_of(path: Path) -> Path:
    """Return the path of the write-ahead log of a trace."""
    return path.with_name(f"{path.name}-wal")


def traces() -> Path:
    """Return the folder of unnamed traces."""
    import platformdirs

    return platformdirs.user_cache_path("gviz") / "traces"


def fold(connection: sqlite3.Connection) -> None:
    """Merge the write-ahead log into the file and remove it. Raises `sqlite3.Error` if the disk is full."""
    import sqlite3

    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    # A concurrent reader keeps the file in WAL mode, complete but with an empty log next to it.
    with suppress(sqlite3.OperationalError):
        _leave_alone(connection)


def fold_file(path: Path) -> None:
    """Merge the files of a finished trace, or of one whose program was killed, into one.

    Does nothing if there is no file, it is open elsewhere, or the disk is full: the trace is readable as it is. Also
    does nothing if the program removed its working directory.
    """
    import sqlite3

    with suppress(sqlite3.Error, FileNotFoundError), closing(_opened(path)) as connection:
        fold(connection)


def is_open(path: Path) -> bool:
    """Return whether a process reads or writes an unfinished trace, by SQLite's locks, which end with their process."""
    import sqlite3

    try:
        with closing(_opened(path)) as connection:
            _leave_alone(connection)
    except sqlite3.Error as error:
        return getattr(error, "sqlite_errorcode", 0) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
    return False


def _is_being_written(path: Path) -> bool:
    """Return whether a process is writing the trace, or has it open unfinished."""

    return is_locked(path) or is_open(path)


def _parts(path: Path) -> list[Path]:
    return [path.with_name(path.name + suffix) for suffix in ("", "-wal", "-shm", "-journal")]


def _stem(program: str) -> str:
    stem = Path(program).stem or "program"
    return "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in stem)[:60]


def _written(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0  # another gviz process removed it meanwhile


def _created(folder: Path) -> Path:
    try:
        make_private(folder)
    except OSError as error:
        raise SystemRefusal(f"cannot make the folder {folder}", why=error.strerror or "", hint="name a file") from error
    return folder


def _opened(path: Path) -> sqlite3.Connection:
    import sqlite3

    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, isolation_level=None, timeout=0)


def _leave_alone(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA journal_mode = DELETE").fetchall()

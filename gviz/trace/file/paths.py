"""The files of a trace on disk: the cache of traces without a name, replacing and removing them, leaving one file.

While it is written, a trace is up to three files: SQLite keeps a write-ahead log and its shared memory next to it. The
log of a program that was killed stays. `fold` brings it into the file, so that this can be copied and sent alone.
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
"""Where the header of an SQLite file says whose it is."""

_WHEN = re.compile(r"-\d{8}-\d{6}-\d+(-\d+)?\.gviz$")
"""What `new_trace` writes behind the name of the program."""

KEPT = 20
"""So many traces are kept; the oldest go first."""

_JUST_WRITTEN = 60.0
"""Seconds for which a trace stays all the same: whoever has closed it may be about to open it, while others begin."""


def cached_traces() -> list[Path]:
    """The traces in the cache, newest first."""
    return sorted(traces().glob("*.gviz"), key=_written, reverse=True)


def new_trace(program: str) -> Path:
    """A path in the cache for a new trace of `program`; makes room for it, but removes none that is in use.

    What cannot be removed, as another user's trace in a shared cache, stays.
    """
    folder = _made(traces())
    for old in cached_traces()[KEPT - 1 :]:
        if time.time() - _written(old) > _JUST_WRITTEN and not _is_being_written(old):
            with suppress(GvizError):
                remove_trace(old)
    # With the process: the same program may be started several times in one second.
    stem = f"{_stem(program)}-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"
    names = chain([f"{stem}.gviz"], (f"{stem}-{number}.gviz" for number in count(2)))
    return next(folder / name for name in names if not (folder / name).exists())


def title_of(path: Path) -> str:
    """What a trace is called where it is shown: the name of its file, of one in the cache that of its program."""
    return _WHEN.sub("", path.name) if path.parent == traces() else path.name


def remove_trace(path: Path) -> None:
    """Remove a trace and what SQLite may have left beside it."""
    for part in _parts(path):
        try:
            part.unlink(missing_ok=True)
        except OSError as trouble:
            raise SystemRefusal(f"{part} cannot be removed", why=trouble.strerror or "") from trouble


def make_way(path: Path) -> None:
    """Remove a trace so that a new one takes its place; GvizError if somebody is writing it."""
    if path.exists():
        with closing(Lock(path)):
            remove_trace(path)


def refuse_other_file(path: Path) -> None:
    """Raise `GvizError` if there is a file that is not a trace, so that nobody writes a trace over it.

    An empty one has nothing to lose: a process that is killed as it begins to record leaves it.
    """
    from gviz.trace.file.format import APPLICATION_ID, MAGIC  # brings SQLite, which the folder of traces does not need

    try:
        if not stat.S_ISREG(path.stat().st_mode) and not path.is_dir():  # a device, or a pipe that nobody writes to
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
    """The bytes of a trace, with what a killed program has left beside it."""
    return sum(part.stat().st_size for part in _parts(path) if part.exists())


def log_of(path: Path) -> Path:
    """Where SQLite keeps what has not been brought into the file of a trace yet."""
    return path.with_name(f"{path.name}-wal")


def traces() -> Path:
    """The folder of traces that nobody gave a name."""
    import platformdirs

    return platformdirs.user_cache_path("gviz") / "traces"


def fold(connection: sqlite3.Connection) -> None:
    """Bring the log into the file, and leave that alone; raises `sqlite3.Error` if there is no room for it."""
    import sqlite3

    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    # A reader that follows the file keeps it in this mode, complete but with an empty log beside it.
    with suppress(sqlite3.OperationalError):
        _leave_alone(connection)


def fold_file(path: Path) -> None:
    """Leave one file of a trace that nobody writes any more, or whose program was killed.

    Nothing happens where there is none, somebody has it open, or the disk is full: it can be read as it is. Nor where
    the program has removed the folder that it was started in.
    """
    import sqlite3

    with suppress(sqlite3.Error, FileNotFoundError), closing(_opened(path)) as connection:
        fold(connection)


def is_open(path: Path) -> bool:
    """Whether somebody reads or writes an unfinished trace: by SQLite's locks, which no process outlives."""
    import sqlite3

    try:
        with closing(_opened(path)) as connection:
            _leave_alone(connection)
    except sqlite3.Error as trouble:
        return getattr(trouble, "sqlite_errorcode", 0) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
    return False


def _is_being_written(path: Path) -> bool:
    """Whether somebody writes a trace, or has an unfinished one open."""

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
        return 0.0  # removed meanwhile by another gviz


def _made(folder: Path) -> Path:
    try:
        make_private(folder)
    except OSError as trouble:
        raise SystemRefusal(
            f"cannot make the folder {folder}", why=trouble.strerror or "", hint="name a file"
        ) from trouble
    return folder


def _opened(path: Path) -> sqlite3.Connection:
    import sqlite3

    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, isolation_level=None, timeout=0)


def _leave_alone(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA journal_mode = DELETE").fetchall()

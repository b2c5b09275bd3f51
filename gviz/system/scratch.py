"""Folders for the time of one command; those that a killed one has left are removed by the next."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

_PREFIX = "gviz-scratch-"
_SECONDS_TO_BEGIN = 60.0
"""A folder is not locked yet for a moment: so young it is nobody's to remove."""


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder of its own, which is gone afterwards, with what is in it."""
    if os.name == "posix":
        _remove_left()
    with tempfile.TemporaryDirectory(prefix=_PREFIX) as folder, ExitStack() as held:
        with suppress(OSError, ImportError):  # without locks there are none to ask for either, and nothing is removed
            held.enter_context(_locked(folder))
        yield Path(folder)


def _remove_left() -> None:
    """Remove what belongs to this user, and to no process any more: the system has let go of its lock."""
    for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError):  # somebody has it, or it is gone meanwhile
            if _is_old_folder_of_ours(path.lstat()):
                with _locked(str(path)):
                    shutil.rmtree(path)


def _is_old_folder_of_ours(status: os.stat_result) -> bool:
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        return False
    return time.time() - status.st_mtime > _SECONDS_TO_BEGIN


@contextmanager
def _locked(folder: str) -> Iterator[None]:
    """Hold the folder, by a lock that no process outlives; OSError if somebody has it."""
    import fcntl  # there is none on Windows

    handle = os.open(folder, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)

"""Temporary folders for one command; those left by a killed command are removed by the next."""

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
"""A new folder is not locked for a moment, so younger ones are never removed."""


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Create a temporary folder, which is removed afterwards with its contents."""
    if os.name == "posix":
        _remove_left()
    with tempfile.TemporaryDirectory(prefix=_PREFIX) as folder, ExitStack() as resources:
        with suppress(OSError, ImportError):  # without locks, nothing is checked or removed
            resources.enter_context(_locked(folder))
        yield Path(folder)


def _remove_left() -> None:
    """Remove folders of this user whose process has ended, so that the system released their lock."""
    for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError):  # in use, or already gone
            if _is_old_folder_of_ours(path.lstat()):
                with _locked(str(path)):
                    shutil.rmtree(path)


def _is_old_folder_of_ours(status: os.stat_result) -> bool:
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        return False
    return time.time() - status.st_mtime > _SECONDS_TO_BEGIN


@contextmanager
def _locked(folder: str) -> Iterator[None]:
    """Lock the folder for the block; the lock ends with the process. Raises OSError if it is already locked."""
    import fcntl  # not available on Windows

    handle = os.open(folder, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)

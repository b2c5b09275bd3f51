"""Folders of gviz's own, which only their owner can look into: traces and reports hold what a program computed."""

from __future__ import annotations

import os
import stat
from pathlib import Path

_OWNER_ONLY = 0o700


def make_private(folder: Path) -> None:
    """Make a folder, and those above it that are missing, for their owner only, whatever the umask.

    A folder that is there already is closed to others if it belongs to this user. OSError if none can be made.
    """
    if not folder.parent.exists():
        make_private(folder.parent)
    try:
        folder.mkdir(_OWNER_ONLY)
    except FileExistsError:
        status = folder.stat()
        if not stat.S_ISDIR(status.st_mode):
            raise
        if os.name == "posix" and status.st_uid == os.getuid() and stat.S_IMODE(status.st_mode) & 0o077:
            folder.chmod(_OWNER_ONLY)

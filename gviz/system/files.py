"""Files that are written atomically, and folders that only their owner can read.

Traces and reports are kept in such folders, because they contain what a program computed.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from gviz.errors import GvizError
from gviz.values.plain_text import shown

_OWNER_ONLY = 0o700


def write_whole(files: Sequence[tuple[Path, bytes]]) -> None:
    """Write all files to temporary files first, then move them into place, replacing existing ones.

    A symbolic link stays, and its target is written; file permissions stay too. Raises GvizError naming the file that
    cannot be written.
    """
    from tempfile import TemporaryDirectory

    with ExitStack() as temporary:
        finished: list[tuple[Path, Path]] = []
        for path, data in files:
            with naming(path):
                target = path.resolve()
                mode = _mode(target)
                folder = temporary.enter_context(TemporaryDirectory(prefix=".gviz-", dir=target.parent))
                finished.append((Path(folder) / target.name, target))
                finished[-1][0].write_bytes(data)
                if mode is not None:
                    finished[-1][0].chmod(mode)
        for (path, _), (written, target) in zip(files, finished, strict=True):
            with naming(path):
                os.replace(written, target)


def _mode(target: Path) -> int | None:
    """Return the permissions of the file to replace, None if there is none. Raises OSError if it is not a
    regular file.
    """
    try:
        mode = target.lstat().st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISREG(mode):
        return stat.S_IMODE(mode)
    code = errno.EISDIR if stat.S_ISDIR(mode) else errno.ELOOP if stat.S_ISLNK(mode) else errno.EINVAL
    raise OSError(code, "Not a regular file" if code == errno.EINVAL else os.strerror(code))


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Turn system errors in the block into a GvizError about this path; before Python 3.13 also circular links."""
    try:
        yield
    except (OSError, ValueError, RuntimeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise GvizError(f"cannot write {shown(str(path))}", why=why) from error


def make_private(folder: Path) -> None:
    """Create a folder and its missing parents for their owner only, regardless of the umask.

    An existing folder is closed to others if it belongs to this user. Raises OSError if it cannot be created.
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

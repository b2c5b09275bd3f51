"""Files that are written whole or not at all, and folders that only their owner can look into.

Traces and reports are kept in such folders: they hold what a program computed.
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
    """Write every file beside where it goes, then put all in their places, over what may be there.

    A link stays: what it names is written; who may read and write a file stays as well. Raises GvizError, which names
    the file that cannot be written.
    """
    from tempfile import TemporaryDirectory

    with ExitStack() as temporary:
        finished: list[tuple[Path, Path]] = []
        for path, data in files:
            with naming(path):
                target = path.resolve()
                mode = _mode(target)
                beside = temporary.enter_context(TemporaryDirectory(prefix=".gviz-", dir=target.parent))
                finished.append((Path(beside) / target.name, target))
                finished[-1][0].write_bytes(data)
                if mode is not None:
                    finished[-1][0].chmod(mode)
        for (path, _), (written, target) in zip(files, finished, strict=True):
            with naming(path):
                os.replace(written, target)


def _mode(target: Path) -> int | None:
    """Who may do what with the file that will be written over, None if there is none; OSError for what is no file."""
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
    """What the system refuses in here it refuses of this path: GvizError; before Python 3.13 also links in a circle."""
    try:
        yield
    except (OSError, ValueError, RuntimeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise GvizError(f"cannot write {shown(str(path))}", why=why) from error


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

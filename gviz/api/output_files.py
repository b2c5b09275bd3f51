"""Output files of a command: never overwritten without permission, and written completely or not at all."""

from __future__ import annotations

import stat
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from gviz.errors import GvizError
from gviz.system.files import naming, write_whole

AS_OPTION = "use --force to overwrite it"
AS_ARGUMENT = "choose another name, or pass force=True"
"""How to allow overwriting an existing file: for a command, and for a program."""


def refuse_picture(path: Path, source: Path | None, *, force: bool, hint: str = AS_OPTION) -> None:
    """Raise `GvizError` if a picture of `source` may not or cannot be written at `path`."""
    _refuse_place(path, source)
    _refuse_existing(path, force=force, hint=hint)


def refuse_folder(path: Path) -> None:
    """Raise `GvizError` if a folder cannot be created at `path`."""
    if not path.absolute().parent.is_dir():
        raise GvizError(f"cannot write {path}", why=f"there is no folder {path.absolute().parent}")


def write_all(files: Sequence[tuple[Path, bytes]], *, force: bool, hint: str = AS_OPTION) -> None:
    """Write all files, or none; creates their folder if it is missing.

    A symbolic link stays, and its target is written. Raises GvizError naming the file that cannot be written.
    """
    for path, _ in files:
        if path.exists():
            _refuse_place(path, None)
        _refuse_existing(path, force=force, hint=hint)
    folder = files[0][0].absolute().parent
    is_new = not folder.exists()
    try:
        with naming(folder):
            folder.mkdir(exist_ok=True)
        write_whole(files)
    except GvizError:
        if is_new:
            with suppress(OSError):
                folder.rmdir()
        raise


def refuse_trace(path: Path, program: Path, *, force: bool) -> None:
    """Raise `GvizError` if a trace may not be written at `path`.

    A file that is not a trace is never overwritten, not even with `force`; nor is a trace that is being written.
    """
    from gviz.trace.file.lock import refuse_locked
    from gviz.trace.file.paths import refuse_other_file

    _refuse_place(path, program)
    refuse_other_file(path)
    _refuse_existing(path, force=force, hint=AS_OPTION)
    refuse_locked(path)


def _refuse_place(path: Path, source: Path | None) -> None:
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        if not path.absolute().parent.is_dir():
            raise GvizError(f"cannot write {path}", why=f"there is no folder {path.absolute().parent}") from None
        return
    except (OSError, ValueError) as error:
        raise GvizError(f"cannot write {path}", why=getattr(error, "strerror", "") or str(error)) from error
    if stat.S_ISDIR(mode):
        raise GvizError(f"{path} is a folder")
    if not stat.S_ISREG(mode):
        raise GvizError(f"{path} is not a regular file", hint="choose another name")
    if source is not None and source.exists() and path.samefile(source):
        raise GvizError(f"{path} is the input itself", hint="choose another name")


def _refuse_existing(path: Path, *, force: bool, hint: str) -> None:
    if path.exists() and not force:
        raise GvizError(f"{path} already exists", hint=hint)

"""Files a command writes: never over an existing one unasked, and either whole or not at all."""

from __future__ import annotations

import stat
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from gviz.errors import GvizError
from gviz.system.files import naming, write_whole

AS_OPTION = "--force writes over it"
AS_ARGUMENT = "choose another name, or pass force=True"
"""What lets an existing file be written over, to whom types a command and to whom writes a program."""


def refuse_picture(path: Path, source: Path | None, *, force: bool, hint: str = AS_OPTION) -> None:
    """Raise `GvizError` if no picture of `source` may or can be written at `path`."""
    _refuse_place(path, source)
    _refuse_existing(path, force=force, hint=hint)


def refuse_folder(path: Path) -> None:
    """Raise `GvizError` if no folder can be made at `path`."""
    if not path.absolute().parent.is_dir():
        raise GvizError(f"cannot write {path}", why=f"there is no folder {path.absolute().parent}")


def write_all(files: Sequence[tuple[Path, bytes]], *, force: bool, hint: str = AS_OPTION) -> None:
    """Write all files, or none; the folder they lie in is made if it is missing.

    A link stays: what it names is written. Raises GvizError, which names the file that cannot be written.
    """
    for path, _ in files:
        if path.exists():
            _refuse_place(path, None)
        _refuse_existing(path, force=force, hint=hint)
    folder = files[0][0].absolute().parent
    made = not folder.exists()
    try:
        with naming(folder):
            folder.mkdir(exist_ok=True)
        write_whole(files)
    except GvizError:
        if made:
            with suppress(OSError):
                folder.rmdir()
        raise


def refuse_trace(path: Path, program: Path, *, force: bool) -> None:
    """Raise `GvizError` if no trace may be written at `path`: over a file that is not a trace not even by force.

    Nor may one over a trace that somebody is writing.
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

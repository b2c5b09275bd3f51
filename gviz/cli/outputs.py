"""Files a command writes: never over an existing one unasked, and either whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gviz.errors import GvizError


def refuse_existing(path: Path, *, force: bool) -> None:
    """Raise `GvizError` if nothing may or can be written at `path`."""
    if path.is_dir():
        raise GvizError(f"{path} is a folder")
    if path.exists() and not force:
        raise GvizError(f"{path} already exists", hint="--force writes over it")
    if not path.absolute().parent.is_dir():
        raise GvizError(f"cannot write {path}", why=f"there is no folder {path.absolute().parent}")


@contextmanager
def whole_file(path: Path, *, force: bool) -> Iterator[Path]:
    """Give a path to write to that becomes `path` once everything is written, and disappears otherwise."""
    import tempfile

    refuse_existing(path, force=force)
    try:
        with tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=path.absolute().parent) as folder:
            unfinished = Path(folder) / path.name
            yield unfinished
            os.replace(unfinished, path)
    except OSError as error:
        raise GvizError(f"cannot write {path}", why=error.strerror or str(error)) from error

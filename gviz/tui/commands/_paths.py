"""Paths of files as the user types them."""

from __future__ import annotations

from pathlib import Path

from gviz.errors import GvizError
from gviz.system.files import naming
from gviz.values.plain_text import shown


def path_of(text: str) -> Path:
    """Return the path of a file to read; ``~`` is a home folder. Raises GvizError for an unknown user."""
    return _path(text, f"there is no {shown(text)}")


def new_file(text: str) -> Path:
    """Return the path of a file to write. Raises GvizError if the file exists or cannot be written."""
    target = _path(text, f"cannot write {shown(text)}")
    with naming(target):
        there = target.is_symlink() or target.exists()
    if there:
        raise GvizError(f"{shown(text)} already exists", hint="choose another name")
    return target


def _path(text: str, refusal: str) -> Path:
    try:
        return Path(text).expanduser()
    except RuntimeError as error:
        raise GvizError(refusal, why="there is no such user") from error

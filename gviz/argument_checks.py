"""What programs hand to the functions of gviz, looked at before it is used: GvizError for what makes no sense."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Mapping
from math import isfinite
from numbers import Real
from operator import index
from typing import Any

from gviz.errors import GvizError


def refused(name: str, given: object, wanted: str) -> GvizError:
    """What to raise of an argument: its name, what was given, and what it should be."""
    said = repr(given) if isinstance(given, str | bytes | int | float | None) else f"of type {type(given).__name__}"
    said = said if len(said) <= 60 else f"{said[:57]}..."
    return GvizError(f"{name} cannot be {said}", hint=f"it is {wanted}", exit_code=2)


def path_text(name: str, given: object) -> str:
    """A path as its text, as it was given: its last ``/`` may say that it is a folder."""
    if not isinstance(given, str | os.PathLike) or not isinstance(path := os.fspath(given), str):
        raise refused(name, given, "a path: a text, or a pathlib.Path")
    return path


def new_path(name: str, given: object) -> str:
    """The path of a file that is to be written, as its text."""
    path = path_text(name, given)
    if not path:
        raise refused(name, given, "the path of a file")
    try:
        os.lstat(path)
    except ValueError:  # a NUL, half of a surrogate pair
        raise refused(name, given, "a path, and no file can be called so") from None
    except OSError as trouble:
        if trouble.errno == errno.ENAMETOOLONG:
            raise refused(name, given, "a path, and no file can have so long a name") from None
    return path


def text(name: str, given: object) -> str:
    """A text that can be written."""
    if not isinstance(given, str):
        raise refused(name, given, "a text")
    try:
        given.encode()
    except UnicodeEncodeError:
        raise refused(name, given, "a text, and half of a surrogate pair is none") from None
    return given


def texts(name: str, given: object) -> tuple[str, ...]:
    """One text, or several."""
    if isinstance(given, str):
        return (given,)
    if isinstance(given, bytes) or not isinstance(given, Iterable):
        raise refused(name, given, "a text, or several")
    return tuple(text(f"each of {name}", each) for each in given)


def whole(name: str, given: object, least: int = 0) -> int:
    """A whole number, at least `least`; of numpy too."""
    try:
        number = index(given) if not isinstance(given, bool) else None  # type: ignore[arg-type]
    except TypeError:
        number = None
    if number is None or number < least:
        raise refused(name, given, f"a whole number, {least} or more")
    return number


def place(name: str, given: object) -> str:
    """A place in a graph, as it is typed: its text, or the number of a node."""
    if isinstance(given, str):
        return text(name, given)
    try:
        return str(whole(name, given))
    except GvizError:
        raise refused(name, given, "a text, or the number of a node") from None


def flag(name: str, given: object) -> bool:
    """Yes or no, and nothing that merely counts as one of them: ``"no"`` would mean yes."""
    if not isinstance(given, bool):
        raise refused(name, given, "True or False")
    return given


def at_least_0(name: str, given: object) -> float:
    """A number that is not negative."""
    number = _number(given)
    if number is None or number < 0:
        raise refused(name, given, "a finite number, 0 or more")
    return number


def above_0(name: str, given: object, example: str) -> float:
    """A number above 0; the `example` says what one means."""
    number = _number(given)
    if number is None or number <= 0:
        raise refused(name, given, f"a finite number above 0: {example}")
    return number


def _number(given: object) -> float | None:
    if isinstance(given, bool) or not isinstance(given, Real) or not isfinite(given):
        return None
    return float(given)


def pairs(name: str, given: Any) -> list[tuple[str, Any]]:
    """Names and what they name, as a mapping or as pairs."""
    wanted = "names and tensors, as a dict or as model.named_parameters() gives them"
    try:
        found = [(key, value) for key, value in (given.items() if isinstance(given, Mapping) else given)]
    except (TypeError, ValueError):
        raise refused(name, given, wanted) from None
    if any(not isinstance(key, str) for key, _ in found):
        raise refused(name, given, wanted)
    return found

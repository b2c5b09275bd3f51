"""Checks the arguments of gviz's public functions, and raises GvizError for invalid ones."""

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
    """Return the error for an invalid argument, with its name, the value passed, and what is expected."""
    said = repr(given) if isinstance(given, str | bytes | int | float | None) else f"of type {type(given).__name__}"
    said = said if len(said) <= 60 else f"{said[:57]}..."
    return GvizError(f"{name} cannot be {said}", hint=f"it is {wanted}", exit_code=2)


def path_text(name: str, given: object) -> str:
    """Return a path as the string that was passed: a trailing ``/`` can mark a folder."""
    if not isinstance(given, str | os.PathLike) or not isinstance(path := os.fspath(given), str):
        raise refused(name, given, "a path: a text, or a pathlib.Path")
    return path


def new_path(name: str, given: object) -> str:
    """Return the path of a file to be written, as a string."""
    path = path_text(name, given)
    if not path:
        raise refused(name, given, "the path of a file")
    try:
        os.lstat(path)
    except ValueError:  # a NUL or an unpaired surrogate
        raise refused(name, given, "a path, and no file can be called so") from None
    except OSError as trouble:
        if trouble.errno == errno.ENAMETOOLONG:
            raise refused(name, given, "a path, and no file can have so long a name") from None
    return path


def text(name: str, given: object) -> str:
    """Return a string that can be encoded."""
    if not isinstance(given, str):
        raise refused(name, given, "a text")
    try:
        given.encode()
    except UnicodeEncodeError:
        raise refused(name, given, "a text, and half of a surrogate pair is none") from None
    return given


def texts(name: str, given: object) -> tuple[str, ...]:
    """Return one string or several as a tuple."""
    if isinstance(given, str):
        return (given,)
    if isinstance(given, bytes) or not isinstance(given, Iterable):
        raise refused(name, given, "a text, or several")
    return tuple(text(f"each of {name}", each) for each in given)


def whole(name: str, given: object, least: int = 0) -> int:
    """Return an integer that is at least `least`; accepts NumPy's too."""
    try:
        number = index(given) if not isinstance(given, bool) else None  # type: ignore[arg-type]
    except TypeError:
        number = None
    if number is None or number < least:
        raise refused(name, given, f"a whole number, {least} or more")
    return number


def place(name: str, given: object) -> str:
    """Return a place in a graph as it would be typed: a string, or the number of a node."""
    if isinstance(given, str):
        return text(name, given)
    try:
        return str(whole(name, given))
    except GvizError:
        raise refused(name, given, "a text, or the number of a node") from None


def flag(name: str, given: object) -> bool:
    """Return a bool. Other truthy values are refused: ``"no"`` would mean yes."""
    if not isinstance(given, bool):
        raise refused(name, given, "True or False")
    return given


def at_least_0(name: str, given: object) -> float:
    """Return a finite number that is not negative."""
    number = _number(given)
    if number is None or number < 0:
        raise refused(name, given, "a finite number, 0 or more")
    return number


def above_0(name: str, given: object, example: str) -> float:
    """Return a finite number above 0; `example` explains its meaning in the error."""
    number = _number(given)
    if number is None or number <= 0:
        raise refused(name, given, f"a finite number above 0: {example}")
    return number


def _number(given: object) -> float | None:
    if isinstance(given, bool) or not isinstance(given, Real) or not isfinite(given):
        return None
    return float(given)


def pairs(name: str, given: Any) -> list[tuple[str, Any]]:
    """Return (name, value) pairs from a mapping or from pairs."""
    wanted = "names and tensors, as a dict or as model.named_parameters() gives them"
    try:
        found = [(key, value) for key, value in (given.items() if isinstance(given, Mapping) else given)]
    except (TypeError, ValueError):
        raise refused(name, given, wanted) from None
    if any(not isinstance(key, str) for key, _ in found):
        raise refused(name, given, wanted)
    return found

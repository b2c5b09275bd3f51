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


def refused(name: str, value: object, expected: str) -> GvizError:
    """Return the error for an invalid argument, with its name, the value passed, and what is expected."""
    description = (
        repr(value) if isinstance(value, str | bytes | int | float | None) else f"of type {type(value).__name__}"
    )
    description = description if len(description) <= 60 else f"{description[:57]}..."
    return GvizError(f"{name} cannot be {description}", hint=f"it is {expected}", exit_code=2)


def path_text(name: str, value: object) -> str:
    """Return a path as the string that was passed: a trailing ``/`` can mark a folder."""
    if not isinstance(value, str | os.PathLike) or not isinstance(path := os.fspath(value), str):
        raise refused(name, value, "a path: a text, or a pathlib.Path")
    return path


def new_path(name: str, value: object) -> str:
    """Return the path of a file to be written, as a string."""
    path = path_text(name, value)
    if not path:
        raise refused(name, value, "the path of a file")
    try:
        os.lstat(path)
    except ValueError:  # a NUL or an unpaired surrogate
        raise refused(name, value, "a path, and no file can be called so") from None
    except OSError as trouble:
        if trouble.errno == errno.ENAMETOOLONG:
            raise refused(name, value, "a path, and no file can have so long a name") from None
    return path


def text(name: str, value: object) -> str:
    """Return a string that can be encoded."""
    if not isinstance(value, str):
        raise refused(name, value, "a text")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise refused(name, value, "a text, and half of a surrogate pair is none") from None
    return value


def texts(name: str, value: object) -> tuple[str, ...]:
    """Return one string or several as a tuple."""
    if isinstance(value, str):
        return (value,)
    if isinstance(value, bytes) or not isinstance(value, Iterable):
        raise refused(name, value, "a text, or several")
    return tuple(text(f"each of {name}", each) for each in value)


def whole(name: str, value: object, least: int = 0) -> int:
    """Return an integer that is at least `least`; accepts NumPy's too."""
    try:
        number = index(value) if not isinstance(value, bool) else None  # type: ignore[arg-type]
    except TypeError:
        number = None
    if number is None or number < least:
        raise refused(name, value, f"a whole number, {least} or more")
    return number


def place(name: str, value: object) -> str:
    """Return a place in a graph as it would be typed: a string, or the number of a node."""
    if isinstance(value, str):
        return text(name, value)
    try:
        return str(whole(name, value))
    except GvizError:
        raise refused(name, value, "a text, or the number of a node") from None


def flag(name: str, value: object) -> bool:
    """Return a bool. Other truthy values are refused: ``"no"`` would mean yes."""
    if not isinstance(value, bool):
        raise refused(name, value, "True or False")
    return value


def at_least_0(name: str, value: object) -> float:
    """Return a finite number that is not negative."""
    number = _number(value)
    if number is None or number < 0:
        raise refused(name, value, "a finite number, 0 or more")
    return number


def above_0(name: str, value: object, example: str) -> float:
    """Return a finite number above 0; `example` explains its meaning in the error."""
    number = _number(value)
    if number is None or number <= 0:
        raise refused(name, value, f"a finite number above 0: {example}")
    return number


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, Real) or not isfinite(value):
        return None
    return float(value)


def pairs(name: str, argument: Any) -> list[tuple[str, Any]]:
    """Return (name, value) pairs from a mapping or from pairs."""
    expected = "names and tensors, as a dict or as model.named_parameters() gives them"
    try:
        items = [(key, value) for key, value in (argument.items() if isinstance(argument, Mapping) else argument)]
    except (TypeError, ValueError):
        raise refused(name, argument, expected) from None
    if any(not isinstance(key, str) for key, _ in items):
        raise refused(name, argument, expected)
    return items

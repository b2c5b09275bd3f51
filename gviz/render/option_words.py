"""How notes and hints name an option of a picture: as it is typed, ``--level calls``, or as an argument in Python.

The command line draws through `gviz.export`, as programs do, so it calls `as_typed` first.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal

_words: ContextVar[Literal["", "typed", "arguments"]] = ContextVar("option_words", default="")


@contextmanager
def as_typed() -> Iterator[None]:
    """Name options as they are typed in a shell, in everything that is called in the context."""
    token = _words.set("typed")
    try:
        yield
    finally:
        _words.reset(token)


@contextmanager
def as_arguments() -> Iterator[None]:
    """Name options as keyword arguments, unless the command line is the caller."""
    token = _words.set(_words.get() or "arguments")
    try:
        yield
    finally:
        _words.reset(token)


def option(name: str, value: str | int | None = None) -> str:
    """Return ``--level calls`` or ``level="calls"``, to paste; without a value ``--node`` or ``node=``."""
    if _words.get() == "arguments":
        return f"{name}={'' if value is None else json.dumps(value, ensure_ascii=False)}"
    return f"--{name}" if value is None else f"--{name} {shlex.quote(str(value))}"

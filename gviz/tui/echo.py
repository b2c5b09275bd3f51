"""What is typed before the first frame is kept for it, and not shown on the screen that it will cover."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gviz.tui.terminal import is_terminal

_LOCAL = 3  # where the attributes of a terminal have its local modes
_quieted = False


@contextmanager
def unechoed(*, plain: bool) -> Iterator[None]:
    """While this is entered, keys do not show: those typed before the first frame are taken when it is there.

    A debugger that goes line by line (`plain`) has no frame, and lets what is typed show.
    """
    global _quieted
    if plain or os.name != "posix" or not is_terminal(sys.stdin):
        yield
        return
    import termios  # there is none on Windows

    before = termios.tcgetattr(sys.stdin)
    quiet = [*before]
    quiet[_LOCAL] &= ~termios.ECHO
    termios.tcsetattr(sys.stdin, termios.TCSANOW, quiet)
    _quieted = quiet != before
    try:
        yield
    finally:
        _quieted = False
        termios.tcsetattr(sys.stdin, termios.TCSANOW, before)


def is_off() -> bool:
    """Whether the echo was switched off here."""
    return _quieted


def with_echo(attributes: list[Any] | None) -> None:
    """Let the terminal that a screen found, and brings back for a shell or an editor, be the one before `unechoed`."""
    if _quieted and attributes is not None:
        import termios

        attributes[_LOCAL] |= termios.ECHO

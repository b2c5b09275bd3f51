"""Writes gviz's messages to the standard error of the program it runs in, safely and without disturbing it."""

from __future__ import annotations

import sys
from contextlib import suppress

from gviz.values.plain_text import shown


def show(*lines: str) -> None:
    """Write lines, made safe, to standard error; failures to write are ignored."""
    if sys.__stderr__ is not None:  # closed from the start: printing to None would go to standard output
        with suppress(OSError, ValueError):  # full, gone, or closed meanwhile
            print(*map(shown, lines), sep="\n", file=sys.__stderr__, flush=True)

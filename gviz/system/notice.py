"""What gviz says beside the program it is in: on its standard error, harmlessly, and never at its cost."""

from __future__ import annotations

import sys
from contextlib import suppress

from gviz.values.plain_text import shown


def say(*lines: str) -> None:
    """Tell the person, in lines made harmless; where nobody can be told, the program goes on all the same."""
    if sys.__stderr__ is not None:  # closed from the start: printing to None would go to standard output
        with suppress(OSError, ValueError):  # full, gone, or closed meanwhile
            print(*map(shown, lines), sep="\n", file=sys.__stderr__, flush=True)

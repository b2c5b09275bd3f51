"""What a program that ends without Python's own end would lose of its recording, brought into the file before it.

Signals are left as they are: a handler in Python acts only between two of its instructions, so that a program that is
stuck in C would not end, and Python forgets the signal that a child gets while it is being forked.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from typing import Any

from gviz.trace.recording.record import Recording


def keep_the_last(recording: Recording) -> None:
    """Before ``os._exit``, ``os.abort`` and ``os.exec…``, which run nothing that was registered for the end.

    Only the first closes the recording: ``exec`` may fail, and the program goes on; after one that does not, and after
    ``abort``, the recording has broken off.
    """
    _let("_exit", recording.close)
    for name in ("abort", "execv", "execve"):  # every other ``exec`` calls one of these two
        _let(name, recording.flush)


def _let(name: str, come_first: Callable[[], None]) -> None:
    """Do this before the function of ``os`` with this name, in this process and in no child of it."""
    leave, process = getattr(os, name), os.getpid()

    @wraps(leave)
    def keep_and_leave(*given: Any, **named: Any) -> Any:
        if os.getpid() == process:
            come_first()
        return leave(*given, **named)

    setattr(os, name, keep_and_leave)

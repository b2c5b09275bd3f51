"""What a program that ends without Python's own end would lose of its recording, brought into the file before it.

Signals are left as they are: a handler in Python acts only between two of its instructions, so that a program that is
stuck in C would not end, and Python forgets the signal that a child gets while it is being forked.
"""

from __future__ import annotations

import os
from functools import wraps
from typing import NoReturn

from gviz.trace.recording.record import Recording


def close_before_exit(recording: Recording) -> None:
    """``os._exit`` runs nothing that was registered for the end: close before it, in this process alone."""
    leave, process = os._exit, os.getpid()

    @wraps(leave)
    def close_and_leave(status: int) -> NoReturn:
        if os.getpid() == process:
            recording.close()
        leave(status)

    os._exit = close_and_leave

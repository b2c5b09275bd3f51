"""What a program that ends without Python's own end would lose of its recording, brought into the file before it."""

from __future__ import annotations

import os
import signal
from functools import wraps
from typing import NoReturn

from gviz.trace.record import Recording


def close_before_exit(recording: Recording) -> None:
    """``os._exit`` runs nothing that was registered for the end: close before it, in this process alone."""
    leave, process = os._exit, os.getpid()

    @wraps(leave)
    def close_and_leave(status: int) -> NoReturn:
        if os.getpid() == process:
            recording.close()
        leave(status)

    os._exit = close_and_leave


def flush_before_sigterm(recording: Recording) -> None:
    """SIGTERM ends a program at once: flush before it, unless it is ignored. The program may set its own handler."""
    if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        return

    def flush_and_end(number: int, frame: object) -> None:
        recording.flush()  # in a forked child its copy does nothing
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    signal.signal(signal.SIGTERM, flush_and_end)

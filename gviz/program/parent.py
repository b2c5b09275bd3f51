"""A recorded program must not live on where the gviz that started it was killed."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

_PR_SET_PDEATHSIG = 1
_SECONDS_BETWEEN_LOOKS = 1.0


def end_with(parent: int) -> None:
    """Let this process get SIGTERM when the process `parent`, which started it, ends; its own children do not."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM))
        if os.getppid() != parent:  # it ended before it could be watched
            os.kill(os.getpid(), signal.SIGTERM)
    elif os.name == "posix":
        threading.Thread(target=_watch, args=(parent,), name="gviz parent", daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_SECONDS_BETWEEN_LOOKS)
    os.kill(os.getpid(), signal.SIGTERM)

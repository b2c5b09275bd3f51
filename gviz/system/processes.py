"""Processes of gviz's own. Run as a script, this file calls the `main` of a module of the gviz it belongs to.

This way the right gviz is used even if another one is first on the path.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NamedTuple

_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_PR_SET_PDEATHSIG = 1
_SECONDS_BETWEEN_LOOKS = 1.0


class Start(NamedTuple):
    """How to start a process: its command line and its whole environment."""

    command: list[str]
    environment: dict[str, str]


def command(module: str, arguments: Sequence[str]) -> list[str]:
    """Return the command line that runs the `main` of a gviz module, with the arguments in ``sys.argv[1:]``."""
    return [sys.executable, os.path.abspath(__file__), module, *arguments]


def keep_to_this() -> None:
    """Import this gviz, whose folder is first on the path, and move the folder to its old position or to the end."""
    import_module("gviz")  # this one, even if another one is earlier on the path
    del sys.path[0]
    if _ROOT not in sys.path:
        sys.path.append(_ROOT)


def end_with(parent: int) -> None:
    """Make this process receive SIGTERM when its parent process `parent` ends; its own children do not.

    A recorded program must not survive the gviz that started it, even if that was killed.
    """
    import signal  # here, so that a worker that only needs `keep_to_this` starts fast

    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM))
        if os.getppid() != parent:  # it ended before it could be watched
            os.kill(os.getpid(), signal.SIGTERM)
    elif os.name == "posix":
        import threading

        threading.Thread(target=_watch, args=(parent,), name="gviz parent", daemon=True).start()


def _watch(parent: int) -> None:
    import signal
    import time

    while os.getppid() == parent:
        time.sleep(_SECONDS_BETWEEN_LOOKS)
    os.kill(os.getpid(), signal.SIGTERM)


def _main() -> None:
    if not sys.flags.safe_path:
        del sys.path[0]  # this folder
    sys.path.insert(0, _ROOT)
    keep_to_this()
    import_module(sys.argv.pop(1)).main()


if __name__ == "__main__":
    _main()

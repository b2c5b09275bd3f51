"""Brings the terminal back into order when the debugger is killed and cannot do it itself."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from gviz.tui import echo

_ORDINARY = (
    r"\033[<u"  # the keyboard protocol of kitty
    r"\033[?1000l\033[?1002l\033[?1003l\033[?1006l\033[?1015l\033[?1004l\033[?2004l\033[?2048l"  # mouse, focus, paste
    r"\033[?25h\033[0m\033[?1049l"  # cursor, colours, the screen of before
)
_WATCH = f"trap '' TTOU INT HUP TERM; read -r left || {{ printf '{_ORDINARY}' >&2; stty \"$@\" <&2; }}"


@contextmanager
def guarded_terminal() -> Iterator[None]:
    """While this is entered, a shell waits for the end of this process, and cleans up if nobody has told it to go."""
    watch = _watching()
    try:
        yield
    finally:
        if watch is not None and watch.stdin is not None:
            with suppress(OSError):
                watch.stdin.write(b"left\n")
                watch.stdin.close()
            watch.wait()


def _watching() -> subprocess.Popen[bytes] | None:
    """The shell that waits, None where there is no terminal or no shell."""
    if os.name != "posix" or not (sys.__stderr__ is not None and sys.__stderr__.isatty()):
        return None
    try:
        terminal = sys.__stderr__.fileno()
        asked = subprocess.run(["stty", "-g"], stdin=terminal, capture_output=True, text=True, check=True)
        command = ["sh", "-c", _WATCH, "gviz", asked.stdout.strip(), *(["echo"] if echo.is_off() else [])]
        return subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=terminal, process_group=0
        )
    except (OSError, subprocess.SubprocessError):
        return None

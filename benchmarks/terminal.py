"""A program in a terminal of its own."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import termios
from collections.abc import Sequence

COLUMNS, ROWS = 150, 50


def opened(command: Sequence[str]) -> tuple[int, int]:
    """Start a command in a new terminal of 150x50; its process number and our end of the terminal."""
    child, terminal = pty.fork()
    if child == 0:
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        os.environ.update(TERM="xterm-256color", COLORTERM="truecolor")
        os.execv(command[0], list(command))
    return child, terminal

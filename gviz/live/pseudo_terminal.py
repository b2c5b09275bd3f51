"""The debugger's end of the program's terminal, a pty, and whether the program waits for its input."""

from __future__ import annotations

import fcntl
import os
import platform
import pty
import struct
import termios
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_PIECE = 65536
_MARK = b"\xfe"
"""The second end-of-line character. It occurs in no text, so it is never typed; it marks the terminal as gviz's."""
_CHARACTERS = 6
"""The index of the special characters in the result of `termios`."""

_READS: dict[str, frozenset[tuple[int, int]]] = {
    "x86_64": frozenset({(0, 0), (23, 1), (270, 1)}),
    "aarch64": frozenset({(63, 0), (72, 1)}),
}
"""System call numbers with their first argument: reading from 0, and selecting from only 0, as readline does."""


class Terminal:
    """Our end of a pty. The other end belongs to the program once it has been started with it."""

    def __init__(self, columns: int, rows: int) -> None:
        ours, self._inner = pty.openpty()
        _mark(self._inner)
        os.set_inheritable(ours, False)
        self._ours = open(ours, "r+b", buffering=0)  # noqa: SIM115  # closed by the reader
        self.resize(columns, rows)

    def resize(self, columns: int, rows: int) -> None:
        """Set the size of the terminal in cells; the program gets a signal."""
        with suppress(OSError, ValueError):  # it has ended
            fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", max(rows, 1), max(columns, 1), 0, 0))

    @contextmanager
    def handed_over(self) -> Iterator[int]:
        """Yield the program's end, to start it with; afterwards only the program has it open."""
        try:
            yield self._inner
        finally:
            os.close(self._inner)

    def read(self) -> bytes:
        """Wait for output; empty if no process can write any more."""
        try:
            return self._ours.read(_PIECE) or b""
        except (OSError, ValueError):
            return b""

    def write(self, text: str) -> None:
        """Type a text into the terminal."""
        data = text.encode("utf-8", "surrogateescape")
        with suppress(OSError, ValueError):
            while data:
                data = data[self._ours.write(data) or 0 :]

    def close(self) -> None:
        """Close the terminal: programs still running in it get SIGHUP."""
        with suppress(OSError):
            self._ours.close()


def is_of_a_program(number: int) -> bool:
    """Return whether this is the terminal of a program under control or of its child: the user is at another
    terminal.
    """
    try:
        mark: object = termios.tcgetattr(number)[_CHARACTERS][termios.VEOL2]
    except (OSError, termios.error):
        return False
    return mark == _MARK


def _mark(number: int) -> None:
    modes = termios.tcgetattr(number)
    modes[_CHARACTERS][termios.VEOL2] = _MARK
    termios.tcsetattr(number, termios.TCSANOW, modes)


def reads_input(process: int) -> bool:
    """Return whether one of its threads waits in a system call for standard input; False if that is unknown.

    Only Linux shows this, for child processes.
    """
    calls = _READS.get(platform.machine(), frozenset())
    return any(_call(thread) in calls for thread in Path(f"/proc/{process}/task").glob("*/syscall"))


def _call(thread: Path) -> tuple[int, int] | None:
    """Return the system call a thread is in, and its first argument; None if it is running."""
    try:
        number, first, *_ = thread.read_text().split()
        return int(number), int(first, 16)
    except (OSError, ValueError):  # it has ended, is running, or may not be read
        return None

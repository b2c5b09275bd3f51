"""The terminal of the user: which debugger it can show, the echo of keys, and how it is restored.

The debugger is full screen on standard error, or line by line if `why_plain` gives a reason. Keys that are typed while
a program is imported are kept for the first frame and are not echoed (`unechoed`). `guarded_terminal` restores the
terminal if the debugger was killed and cannot do it itself. The terminal of a program under control is in
`gviz.live.pseudo_terminal`.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any

from gviz.tui.glyphs import encoding_of, wants_ascii

if TYPE_CHECKING:
    import subprocess

_ERRORS = 2
"""Standard error, where the screen is drawn, even if a program has replaced ``sys.stderr``."""


def is_terminal(stream: object) -> bool:
    """Return whether a stream is a terminal; a stream object of the program may be closed or lack ``isatty``."""
    try:
        return bool(stream.isatty())  # type: ignore[attr-defined]  # if it has one
    except (AttributeError, OSError, ValueError):
        return False


def asks_for_lines() -> bool:
    """Return whether ``GVIZ_PLAIN`` requests the line-by-line debugger."""
    return os.environ.get("GVIZ_PLAIN", "0") not in ("", "0")


def why_plain(*, plain: bool) -> str:
    """Return why the debugger works line by line; empty if the terminal can show the full screen."""
    if plain:
        return "--plain"
    no_input = "" if is_terminal(sys.stdin) else "standard input is not a terminal"
    return _why_dumb() or no_input or why_no_screen() or _why_not_here()


def _why_not_here() -> str:
    """Return why the caller cannot wait for the screen in this process."""
    if threading.current_thread() is not threading.main_thread():
        return "only the main thread receives keys and signals"
    loops = sys.modules.get("asyncio")
    return "an event loop is running here" if loops is not None and loops._get_running_loop() is not None else ""


def why_no_screen() -> str:
    """Return why no full screen can be shown, apart from a missing keyboard; empty if it can."""
    if not is_terminal(sys.stderr):
        return "standard error, where the screen is drawn, is not a terminal"
    if _is_of_a_program(_ERRORS):
        return "this is the terminal of a program under the debugger"
    return _why_dumb()


def _why_dumb() -> str:
    term = os.environ.get("TERM", "")
    return f"TERM={term}" if term in ("", "dumb") else ""


def _is_of_a_program(number: int) -> bool:
    """Return whether this terminal belongs to a program under a debugger.

    The user is then at another terminal, whose screen the debugger has, so a debugger in here works line by line.
    """
    if os.name != "posix":
        return False
    from gviz.live.pseudo_terminal import is_of_a_program  # imports modules of POSIX only

    return is_of_a_program(number)


@contextmanager
def keyboard() -> Iterator[int | None]:
    """Provide the user's input: standard input, else the controlling terminal of this process; None without one."""
    if is_terminal(sys.stdin):
        yield None if _is_of_a_program(sys.stdin.fileno()) else sys.stdin.fileno()
        return
    try:
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY)
    except OSError:
        yield None
        return
    try:
        yield None if _is_of_a_program(terminal) else terminal
    finally:
        os.close(terminal)


def is_of_another_job(keyboard: int) -> bool:
    """Return whether a terminal belongs to another job of the shell: a process that reads from it would be stopped."""
    if os.name != "posix":
        return False
    try:
        return os.tcgetpgrp(keyboard) != os.getpgrp()
    except OSError:  # not the terminal of this session
        return False


@contextmanager
def screen_lock() -> Iterator[None]:
    """Give the screen to one process at a time: workers of a program may want it at once, with one keyboard."""
    with ExitStack() as locks:
        with suppress(ImportError, OSError):  # a terminal that cannot be locked is not waited for
            _lock_screen(locks)
        yield


def is_screen_taken() -> bool:
    """Return whether another process has locked the screen, because it shows the debugger there."""
    try:
        with ExitStack() as locks:
            _lock_screen(locks, waits=False)
    except BlockingIOError:
        return True
    except (ImportError, OSError):  # a terminal that cannot be locked
        return False
    return False


def _lock_screen(locks: ExitStack, *, waits: bool = True) -> None:
    import fcntl  # there is none on Windows

    name = os.ttyname(_ERRORS)
    if name == os.ctermid():
        return  # /dev/tty is one file for all terminals
    screen = os.open(name, os.O_RDONLY | os.O_NOCTTY)
    locks.callback(os.close, screen)
    fcntl.flock(screen, fcntl.LOCK_EX if waits else fcntl.LOCK_EX | fcntl.LOCK_NB)
    locks.callback(fcntl.flock, screen, fcntl.LOCK_UN)  # a fork of this process may still have it open


def needs_ascii(*, ascii: bool) -> bool:
    """Return whether only ASCII characters can be drawn on standard error, where Textual draws."""
    return ascii or wants_ascii(encoding=encoding_of(sys.__stderr__))


def exists() -> bool:
    """Return whether the terminal still exists; after a hang-up it does not."""
    stdin = sys.__stdin__
    return stdin is not None and not stdin.closed and stdin.isatty()


_LOCAL_MODES = 3
"""The index of the local modes among the attributes of a terminal."""

_echo_off = False


@contextmanager
def unechoed(*, plain: bool) -> Iterator[None]:
    """Switch the echo off: keys typed before the first frame are kept for it, and must not show below it.

    A debugger that works line by line (`plain`) has no frame, so the echo stays on.
    """
    global _echo_off
    if plain or os.name != "posix" or not is_terminal(sys.stdin):
        yield
        return
    import termios  # there is none on Windows

    before = termios.tcgetattr(sys.stdin)
    quiet = [*before]
    quiet[_LOCAL_MODES] &= ~termios.ECHO
    termios.tcsetattr(sys.stdin, termios.TCSANOW, quiet)
    _echo_off = quiet != before
    try:
        yield
    finally:
        _echo_off = False
        termios.tcsetattr(sys.stdin, termios.TCSANOW, before)


def echo_is_off() -> bool:
    """Return whether `unechoed` switched the echo off."""
    return _echo_off


def with_echo(attributes: list[Any] | None) -> None:
    """Switch the echo on in the attributes that a screen restores for a shell or an editor: they had no echo."""
    if _echo_off and attributes is not None:
        import termios

        attributes[_LOCAL_MODES] |= termios.ECHO


_RESTORE = (
    r"\033[<u"  # the keyboard protocol of kitty
    r"\033[?1000l\033[?1002l\033[?1003l\033[?1006l\033[?1015l\033[?1004l\033[?2004l\033[?2048l"  # mouse, focus, paste
    r"\033[?25h\033[0m\033[?1049l"  # cursor, colours, the previous screen
)
_WATCH = f"trap '' TTOU INT HUP TERM; read -r left || {{ printf '{_RESTORE}' >&2; stty \"$@\" <&2; }}"


@contextmanager
def guarded_terminal() -> Iterator[None]:
    """Start a shell that waits for the end of this process, and restores the terminal if it was killed."""
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
    """Return the shell that waits; None if there is no terminal or no shell."""
    if os.name != "posix" or not (sys.__stderr__ is not None and sys.__stderr__.isatty()):
        return None
    import subprocess  # lazy: the command line imports this file, too

    try:
        terminal = sys.__stderr__.fileno()
        settings = subprocess.run(["stty", "-g"], stdin=terminal, capture_output=True, text=True, check=True)
        command = ["sh", "-c", _WATCH, "gviz", settings.stdout.strip(), *(["echo"] if echo_is_off() else [])]
        return subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=terminal, process_group=0
        )
    except (OSError, subprocess.SubprocessError):
        return None

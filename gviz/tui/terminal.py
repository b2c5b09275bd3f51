"""The terminal of the user: which debugger fits it, the echo of keys, and how it is left in order.

Which debugger: full screen on standard error, or line by line where `why_plain` gives a reason. Echo: keys that are
typed while a program is imported are for the first frame, and do not show (`unechoed`). Order: `guarded_terminal`
restores the terminal where the debugger was killed and cannot do it itself. The terminal that a program under control
gets is in `gviz.live.pseudo_terminal`.
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
"""Standard error, whatever object a program has put in the place of ``sys.stderr``: the screen is drawn there."""


def is_terminal(stream: object) -> bool:
    """Whether a stream is a terminal; one of the program's own kind may be closed, or know of no such question."""
    try:
        return bool(stream.isatty())  # type: ignore[attr-defined]  # or not
    except (AttributeError, OSError, ValueError):
        return False


def asks_for_lines() -> bool:
    """Whether ``GVIZ_PLAIN`` asks for the debugger that goes line by line."""
    return os.environ.get("GVIZ_PLAIN", "0") not in ("", "0")


def why_plain(*, asked: bool) -> str:
    """Why the debugger goes line by line instead of full screen; empty if the terminal can show it."""
    if asked:
        return "--plain"
    no_input = "" if is_terminal(sys.stdin) else "standard input is not a terminal"
    return _why_dumb() or no_input or why_no_screen() or _why_not_here()


def _why_not_here() -> str:
    """Why the caller cannot wait for the screen in this process."""
    if threading.current_thread() is not threading.main_thread():
        return "only the main thread hears of keys and signals"
    loops = sys.modules.get("asyncio")
    return "an event loop is running here" if loops is not None and loops._get_running_loop() is not None else ""


def why_no_screen() -> str:
    """Why nothing can be shown in full screen, whatever there is to type into; empty if it can."""
    if not is_terminal(sys.stderr):
        return "standard error, where the screen is drawn, is not a terminal"
    if _is_of_a_program(_ERRORS):
        return "this is the terminal of a program under the debugger"
    return _why_dumb()


def _why_dumb() -> str:
    term = os.environ.get("TERM", "")
    return f"TERM={term}" if term in ("", "dumb") else ""


def _is_of_a_program(number: int) -> bool:
    """Whether the person is at another terminal, where a debugger has the screen: what runs in here gets lines."""
    if os.name != "posix":
        return False
    from gviz.live.pseudo_terminal import is_of_a_program  # needs what other systems do not have

    return is_of_a_program(number)


@contextmanager
def keyboard() -> Iterator[int | None]:
    """What a person types into: standard input, else the terminal that this process belongs to; None without one."""
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


@contextmanager
def in_turn() -> Iterator[None]:
    """The screen for one process at a time: workers of a program may want it at once, and there is one keyboard."""
    with ExitStack() as held:
        with suppress(ImportError, OSError):  # where a terminal cannot be locked, no process waits
            _lock_screen(held)
        yield


def _lock_screen(held: ExitStack) -> None:
    import fcntl  # there is none on Windows

    name = os.ttyname(_ERRORS)
    if name == os.ctermid():
        return  # what each process calls its own terminal is one file for all of them
    screen = os.open(name, os.O_RDONLY | os.O_NOCTTY)
    held.callback(os.close, screen)
    fcntl.flock(screen, fcntl.LOCK_EX)
    held.callback(fcntl.flock, screen, fcntl.LOCK_UN)  # a copy of this process may have it open still


def needs_ascii(*, asked: bool) -> bool:
    """Whether only ASCII characters can be drawn, on standard error as Textual does."""
    return asked or wants_ascii(encoding=encoding_of(sys.__stderr__))


def is_there() -> bool:
    """Whether there still is a terminal to type into; after a hang-up there is none."""
    stdin = sys.__stdin__
    return stdin is not None and not stdin.closed and stdin.isatty()


_LOCAL_MODES = 3
"""The place of the local modes among the attributes of a terminal."""

_echo_off = False


@contextmanager
def unechoed(*, plain: bool) -> Iterator[None]:
    """Switch the echo off: keys typed before the first frame are kept for it, and do not show on the screen it covers.

    A debugger that goes line by line (`plain`) has no frame, and the echo stays on.
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
    """Whether `unechoed` switched the echo off."""
    return _echo_off


def with_echo(attributes: list[Any] | None) -> None:
    """Switch the echo on in the attributes that a screen restores for a shell or an editor: it found them without."""
    if _echo_off and attributes is not None:
        import termios

        attributes[_LOCAL_MODES] |= termios.ECHO


_RESTORE = (
    r"\033[<u"  # the keyboard protocol of kitty
    r"\033[?1000l\033[?1002l\033[?1003l\033[?1006l\033[?1015l\033[?1004l\033[?2004l\033[?2048l"  # mouse, focus, paste
    r"\033[?25h\033[0m\033[?1049l"  # cursor, colours, the screen of before
)
_WATCH = f"trap '' TTOU INT HUP TERM; read -r left || {{ printf '{_RESTORE}' >&2; stty \"$@\" <&2; }}"


@contextmanager
def guarded_terminal() -> Iterator[None]:
    """Let a shell wait for the end of this process, and restore the terminal if the process was killed."""
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
    import subprocess  # for the full screen only; the command line imports this file

    try:
        terminal = sys.__stderr__.fileno()
        asked = subprocess.run(["stty", "-g"], stdin=terminal, capture_output=True, text=True, check=True)
        command = ["sh", "-c", _WATCH, "gviz", asked.stdout.strip(), *(["echo"] if echo_is_off() else [])]
        return subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=terminal, process_group=0
        )
    except (OSError, subprocess.SubprocessError):
        return None

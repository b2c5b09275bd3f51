"""What the terminal can do, and so which debugger fits it."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

from gviz.tui.glyphs import encoding_of, wants_ascii

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
    """Why who calls cannot wait for the screen in this process."""
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
    from gviz.live.terminal import is_of_a_program  # needs what other systems do not have

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
        with suppress(ImportError, OSError):  # where a terminal cannot be locked, nobody waits
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
    """Whether there still is a terminal to type into: one that hung up is none any more."""
    stdin = sys.__stdin__
    return stdin is not None and not stdin.closed and stdin.isatty()

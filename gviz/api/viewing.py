"""Shows a recording where its program calls for it: full screen beside the program, or line by line in it.

The full screen is a process of its own. Within the program's it would need the main thread without an event loop, and
who calls may be a hook, a worker or a coroutine.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from gviz.representation import in_notebook, notebook_front
from gviz.source.site import Frame
from gviz.system import notice, processes
from gviz.tui import terminal
from gviz.tui.session_options import ExitAction, by_exit_code

if TYPE_CHECKING:
    from gviz.trace.timeline import Timeline

uncaptured: Callable[[], AbstractContextManager[object]] = nullcontext
"""What gives standard input and output back to the person for a while, where a test runner has taken them."""


def view(path: Path, at: int | None = None, *, waited_for: bool = False, stack: tuple[Frame, ...] = ()) -> ExitAction:
    """Open the debugger on a trace, at event `at`, else where its program failed, else at its first event.

    It gives what is to become of this program, which is asked about where it has `waited_for` that, at this `stack`.

    A person at a terminal gets the full screen there, whatever standard input is. Without one, or if ``GVIZ_PLAIN``
    asks for lines, commands come from standard input, as for pdb. A notebook shows the page that steps through it.
    """
    if in_notebook():
        with _timeline(path) as timeline:
            play_in_notebook(timeline, at)
        return "go on"
    with uncaptured(), terminal.keyboard() as keyboard:
        if keyboard is not None and not (terminal.asks_for_lines() or terminal.why_no_screen()):
            with terminal.in_turn():
                return _full_screen(path, at, keyboard, waited_for=waited_for, stack=stack)
    if any(getattr(stream, "closed", stream is None) for stream in (sys.stdin, sys.stdout)):
        notice.say(f"gviz: recorded to {path}")
        return "go on"
    return _line_by_line(path, at, waited_for=waited_for, stack=stack)


def play_in_notebook(timeline: Timeline, at: int | None) -> None:
    """Show the page that steps through a recording, opened at event `at`, else at its end."""
    notebook = notebook_front()
    notebook.remark("gviz: a notebook has no terminal for the debugger; this page steps through what was recorded")
    notebook.play(timeline, at)


@contextmanager
def _timeline(path: Path) -> Iterator[Timeline]:
    from gviz.trace.file.reader import open_trace
    from gviz.trace.timeline import Timeline

    with open_trace(path) as log:
        yield Timeline(log)


def _line_by_line(path: Path, at: int | None, *, waited_for: bool, stack: tuple[Frame, ...]) -> ExitAction:
    from gviz.trace.file.paths import title_of
    from gviz.tui import open_debugger
    from gviz.tui.session_options import SessionOptions, Title

    with _timeline(path) as timeline:
        options = SessionOptions(Title(title_of(path)), at, waited_for=waited_for, stack=stack)
        return by_exit_code(open_debugger(timeline, options, plain=True))


def _full_screen(
    path: Path, at: int | None, keyboard: int, *, waited_for: bool, stack: tuple[Frame, ...]
) -> ExitAction:
    how = [*(["--at", f"@{at}"] if at is not None else []), *(["--waited-for"] if waited_for else [])]
    how += ["--stack", msgspec.json.encode(stack).decode()] if stack else []
    with _terminal_to_itself() as (output, errors):
        command = processes.command("gviz.cli.viewer", [str(os.getpid()), "open", str(path), *how])
        viewer = subprocess.Popen(command, stdin=keyboard, stdout=output, stderr=errors)
        try:
            _wait_for(viewer)
        except BaseException:  # Ctrl-C before the screen is there
            viewer.terminate()
            viewer.wait()
            raise
    return by_exit_code(viewer.returncode)


def _wait_for(viewer: subprocess.Popen[bytes]) -> None:
    """Wait for its end; where Ctrl-Z stops it this process, for which the shell waits, stops as well."""
    while True:
        try:
            _, status = os.waitpid(viewer.pid, os.WUNTRACED)
        except ChildProcessError:  # a program that ignores SIGCHLD hears of its end alone
            viewer.returncode = 0
            return
        if not os.WIFSTOPPED(status):
            viewer.returncode = os.waitstatus_to_exitcode(status)
            return
        os.killpg(os.getpgrp(), signal.SIGSTOP)


@contextmanager
def _terminal_to_itself() -> Iterator[tuple[int, int]]:
    """Standard output and error for somebody else; what this process prints there meanwhile comes afterwards."""
    shown = [number for number in (1, 2) if os.isatty(number)]
    kept = {number: os.dup(number) for number in shown}
    with tempfile.TemporaryFile() as waiting:
        _flush()
        for number in shown:
            os.dup2(waiting.fileno(), number)
        try:
            yield kept.get(1, 1), kept.get(2, 2)
        finally:
            _flush()
            for number, terminal_end in kept.items():
                os.dup2(terminal_end, number)
                os.close(terminal_end)
            waiting.seek(0)
            for number in shown[:1]:
                with open(number, "wb", closefd=False) as screen:
                    shutil.copyfileobj(waiting, screen)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):  # closed, or of the program's own kind
            stream.flush()

"""Functions with which a program is debugged from within: it stops under ``gviz run``, otherwise it records and shows.

A program that runs by itself cannot be paused and inspected in one process. What is shown then is a recording, either
up to the call or of the ``with`` block.
"""

from __future__ import annotations

import _thread
import atexit
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import msgspec

from gviz import emit, frameworks
from gviz.errors import GvizError
from gviz.live.protocol import PauseReason
from gviz.rich_representation import in_notebook, notebook_front
from gviz.source import call_stack
from gviz.source.call_stack import Frame
from gviz.system import notice, processes
from gviz.trace.recording import record as recording
from gviz.trace.recording.record import NestedRecording, Recording
from gviz.tui import terminal
from gviz.tui.session_options import ExitAction, by_exit_code

if TYPE_CHECKING:
    from gviz.trace.timeline import Timeline


def breakpoint(*_: Any, **__: Any) -> None:
    """Stop here under ``gviz run``; otherwise start to record, or show what was recorded so far.

    ``PYTHONBREAKPOINT=gviz.breakpoint`` makes Python's own ``breakpoint()`` call this. A recording with events that
    were not shown yet is shown at the end of the program.
    """
    if paused_by_debugger("breakpoint"):
        return
    with _debugger_lock:
        current = active()
        if current is not None:
            _show(current, here=True)
        elif in_notebook():
            message = "gviz: nothing is recorded here: %%gviz at the top of a cell, or with gviz.debug(): …, does that"
            notebook_front().remark(message)
        else:
            _RestOfProgram(Path(sys.argv[0]).name).begin()


class debug:  # used as a function: with gviz.debug(): …
    """Stop where the block starts under ``gviz run``; otherwise record the block, and show it when it ends or fails.

    Inside another recording, no new one is made; that one is shown, up to the end of the block.
    """

    def __enter__(self) -> None:
        self._recording: Recording | NestedRecording | None = None
        self._own = False
        if not paused_by_debugger("breakpoint"):
            self._recording = active()
            self._own = self._recording is None
            if self._recording is None:
                if in_notebook():
                    notebook_front().hide_machinery()
                self._recording = frameworks.record().__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._recording is not None:
            if self._own:
                self._recording.__exit__(kind, error, trace)
            _show(self._recording)


def pause_monitored(recording: Recording) -> bool:
    """Pause at an alarm of a monitored program, and open the debugger at the end of its recording.

    Returns whether it did. A program that no user could continue does not pause, and reports it: without a terminal, or
    in the background.
    """
    if paused_by_debugger("breakpoint"):
        return not _left_alone
    why = _why_no_pause()
    if why:
        notice.show(f"gviz: the program does not pause: {why}; gviz open {recording.path} shows the recording so far")
        return False
    _show(recording, here=True)
    return not _left_alone


def _why_no_pause() -> str:
    """Return why no user can look at this program now and continue it; empty if one can."""
    if in_notebook() or terminal.asks_for_lines():
        return ""
    with terminal.keyboard() as keyboard:
        if keyboard is None:
            return "it has no terminal"
        if terminal.is_of_another_job(keyboard):
            return "it runs in the background"
    return "" if terminal.is_terminal(sys.stdin) else terminal.why_no_screen()


def post_mortem() -> None:
    """Show what happened up to the exception being handled, or up to now.

    Under ``gviz run`` the program stops here. Raises GvizError if nothing was recorded.
    """
    error, current = sys.exception(), active()
    if error is not None and current is not None:
        current.fail(error)
    if paused_by_debugger("post-mortem"):
        return
    latest = recording.latest
    if latest is None:
        raise GvizError("nothing was recorded", hint="with gviz.debug(): … records and shows a block")
    if error is not None and not latest.knows(error):
        notice.show(f"gviz: {type(error).__name__} came when nothing was recorded; this is what was recorded last")
    _show(latest, here=error is None)


class _RestOfProgram:
    """A recording up to the end of the program, which is then shown from where it was last seen."""

    def __init__(self, program: str) -> None:
        self._recording = frameworks.record()
        self._program = program

    def begin(self) -> None:
        self._recording.__enter__()
        atexit.register(self._end)
        shown = f"the next breakpoint() shows it; gviz run {self._program} stops at the first, too"
        notice.show(f"gviz: recording {self._program} from here on, {shown}")

    def _end(self) -> None:
        """Without a terminal, print the path instead: an interpreter that is about to end cannot take commands."""
        self._recording.__exit__(None, None, None)
        seen = _seen.get(self._recording.path, 0)
        with terminal.keyboard() as keyboard:
            if keyboard is not None and len(self._recording) > seen and not _left_alone:
                view(self._recording.path, seen or None)
            else:
                notice.show(f"gviz: recorded to {self._recording.path}")


def active() -> Recording | None:
    """Return the recording in progress in this process, None if there is none."""
    latest = recording.latest
    return latest if latest is not None and latest.active else None


def paused_by_debugger(reason: PauseReason, node: int = 0) -> bool:
    """Pause if a debugger runs this process. Return whether it did, or whether the user wants no more stops."""
    if _left_alone:
        return True
    debuggee = sys.modules.get("gviz.live.debuggee")
    current = getattr(debuggee, "current", None)
    if current is not None:
        _show_where()
    return current is not None and bool(current.stop_here(reason, node))


def _show_where() -> None:
    """Give the recording the text of the file that calls this, if nothing was created there yet."""
    if (channel := emit.channel) is not None:
        channel.stack()


_left_alone = False
"""Whether the user has chosen to continue, or to end the program, without any further stop."""

_debugger_lock = threading.RLock()
"""Held by the thread that shows a recording or starts one. Others wait, because there is only one terminal."""

_seen: dict[Path, int] = {}
"""The number of events of each recording that have been shown."""


def _show(recording: Recording | NestedRecording, *, here: bool = False) -> None:
    """Open the debugger on a recording as far as it goes, without recording that; with `here`, at its end."""
    with _debugger_lock:
        if not _left_alone:  # the user may have chosen that at a previous stop
            _open(recording, here=here)


def _open(recording: Recording | NestedRecording, *, here: bool) -> None:
    if here:
        _show_where()
    recording.flush()
    _seen[recording.path] = len(recording)
    with emit.silence():
        if here:
            _obey(view(recording.path, len(recording), waited_for=True, stack=call_stack.user_frames()))
        else:
            _obey(view(recording.path, waited_for=True))


def _obey(action: ExitAction) -> None:
    """Continue the program as the user chose on leaving the debugger. Raises SystemExit if it is to end."""
    global _left_alone
    _left_alone = action != "continue"
    if action == "stop":
        if threading.current_thread() is not threading.main_thread():
            _thread.interrupt_main()  # ending only this thread would not end the program
        sys.exit("gviz: the program was stopped in the debugger")


def _alone() -> None:
    """Reset the lock in a forked child, which lacks the threads that hold it or wait for it."""
    global _debugger_lock
    _debugger_lock = threading.RLock()


os.register_at_fork(after_in_child=_alone)


uncaptured: Callable[[], AbstractContextManager[object]] = nullcontext
"""Gives standard input and output back to the user for a while, if a test runner captures them."""


def view(path: Path, at: int | None = None, *, waited_for: bool = False, stack: tuple[Frame, ...] = ()) -> ExitAction:
    """Open the debugger on a trace at event `at`, otherwise where its program failed, otherwise at its first event.

    Returns what this program should do next; the user is asked if the program has `waited_for` that, at this `stack`.

    In a terminal, it uses the full screen, whatever standard input is. Without one, or if ``GVIZ_PLAIN`` is set,
    commands come from standard input, as for pdb. A notebook shows the page that steps through the recording.
    """
    if in_notebook():
        with _timeline(path) as timeline:
            play_in_notebook(timeline, at)
        return "continue"
    with uncaptured(), terminal.keyboard() as keyboard:
        if keyboard is not None and not (terminal.asks_for_lines() or terminal.why_no_screen()):
            with terminal.screen_lock():
                return _full_screen(path, at, keyboard, waited_for=waited_for, stack=stack)
    if any(getattr(stream, "closed", stream is None) for stream in (sys.stdin, sys.stdout)):
        notice.show(f"gviz: recorded to {path}")
        return "continue"
    return _line_by_line(path, at, waited_for=waited_for, stack=stack)


def play_in_notebook(timeline: Timeline, at: int | None) -> None:
    """Show the page that steps through a recording, opened at event `at`, otherwise at its end."""
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
        except BaseException:  # Ctrl+C before the screen is there
            viewer.terminate()
            viewer.wait()
            raise
    return by_exit_code(viewer.returncode)


def _wait_for(viewer: subprocess.Popen[bytes]) -> None:
    """Wait for its end. If Ctrl+Z stops it, stop this process as well, because the shell waits for this one."""
    while True:
        try:
            _, status = os.waitpid(viewer.pid, os.WUNTRACED)
        except ChildProcessError:  # a program that ignores SIGCHLD only learns of the end
            viewer.returncode = 0
            return
        if not os.WIFSTOPPED(status):
            viewer.returncode = os.waitstatus_to_exitcode(status)
            return
        os.killpg(os.getpgrp(), signal.SIGSTOP)


@contextmanager
def _terminal_to_itself() -> Iterator[tuple[int, int]]:
    """Yield the terminal's output and error; what this process prints there meanwhile is shown afterwards."""
    shown = [number for number in (1, 2) if os.isatty(number)]
    copies = {number: os.dup(number) for number in shown}
    with tempfile.TemporaryFile() as waiting:
        _flush()
        for number in shown:
            os.dup2(waiting.fileno(), number)
        try:
            yield copies.get(1, 1), copies.get(2, 2)
        finally:
            _flush()
            for number, terminal_end in copies.items():
                os.dup2(terminal_end, number)
                os.close(terminal_end)
            waiting.seek(0)
            for number in shown[:1]:
                with open(number, "wb", closefd=False) as screen:
                    shutil.copyfileobj(waiting, screen)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):  # closed, or replaced by the program
            stream.flush()

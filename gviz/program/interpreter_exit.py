"""In the recorded program, at the exit of its interpreter: completes the recording, however the program ends.

Uncaught error: it must be recorded before Python shows it. The interpreter puts the error into ``sys.last_value`` and
``sys.last_traceback`` before it calls ``sys.excepthook``, which belongs to the program. So an object of ours is stored
in ``sys.last_traceback``, and is freed when the error replaces it.

Ends that bypass Python, such as ``os._exit``: pending events are flushed to the file first. Signals are left alone. A
handler in Python runs only between two instructions, so a program stuck in C would not end. Python also loses a signal
that a child receives during the fork.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from types import TracebackType
from typing import Any

from gviz.program.traceback_without_gviz import leave_out_listening
from gviz.trace.recording.record import Recording

_Exit = Callable[[type[BaseException] | None, BaseException | None, TracebackType | None], None]


class _EndCallback:
    """Calls back when it is freed while no Python code runs: then the interpreter has freed it.

    If the program has cleared its exit functions, the interpreter frees it during shutdown: too late, and ignored.
    """

    def __init__(self, then: Callable[[], None]) -> None:
        self._then: Callable[[], None] | None = then

    def __del__(self) -> None:
        if self._then is not None and sys._getframe().f_back is None and not sys.is_finalizing():
            self._then()

    def disarm(self) -> None:
        """Do not call back any more."""
        self._then = None


def ends_recording(recording: Recording) -> _Exit:
    """Let an uncaught error end the recording from now on. Returns the function that ends it in any case.

    The program may have replaced our object in ``sys.last_traceback``; then the error is found at the end.
    """
    sys.last_traceback = _EndCallback(lambda: _record_before_shown(recording))  # type: ignore[assignment]

    def end(*_: object) -> None:
        if isinstance(standing := getattr(sys, "last_traceback", None), _EndCallback):
            standing.disarm()
            del sys.last_traceback
        _end_recording(recording)

    return end


def _record_before_shown(recording: Recording) -> None:
    _end_recording(recording)
    if issubclass(type(sys.last_value), KeyboardInterrupt):
        with suppress(KeyboardInterrupt):
            exec("raise KeyboardInterrupt")  # Python notes whether Ctrl+C ended the text it ran last


def _end_recording(recording: Recording) -> None:
    """End the recording, with the uncaught error if there is one."""
    error: BaseException | None = getattr(sys, "last_value", None)
    entry: TracebackType | None = getattr(sys, "last_traceback", None)
    if error is not None and issubclass(type(error), BaseException) and _left_the_program(entry):
        leave_out_listening(entry)
        recording.__exit__(type(error), error, entry)
    else:
        recording.close()


def _left_the_program(entry: object) -> bool:
    """Return whether a traceback starts at an outermost frame: a debugger in the program may have stored another one
    there.
    """
    return entry is None or (isinstance(entry, TracebackType) and entry.tb_frame.f_back is None)


def keep_the_last(recording: Recording) -> None:
    """Complete the recording before ``os._exit``, ``os.abort`` and ``os.exec…``, which run no exit functions.

    Only ``_exit`` closes the recording. ``exec`` may fail, and then the program continues; after a successful ``exec``,
    and after ``abort``, the recording is unfinished.
    """
    _let("_exit", recording.close)
    for name in ("abort", "execv", "execve"):  # every other ``exec`` calls one of these two
        _let(name, recording.flush)


def _let(name: str, come_first: Callable[[], None]) -> None:
    """Call `come_first` before the ``os`` function with this name, only in this process and not in its children."""
    leave, process = getattr(os, name), os.getpid()

    @wraps(leave)
    def keep_and_leave(*args: Any, **named: Any) -> Any:
        if os.getpid() == process:
            come_first()
        return leave(*args, **named)

    setattr(os, name, keep_and_leave)

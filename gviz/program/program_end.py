"""The end of a recorded program: its recording is complete before anybody could notice, however the program ends.

An error that nobody catches: the recording gets it before Python shows it. The interpreter puts that error into
``sys.last_value`` and ``sys.last_traceback``, and then calls ``sys.excepthook``, which belongs to the program. So
something of ours stands in ``sys.last_traceback``, and goes when the error comes.

An end that is not Python's own, ``os._exit`` and its like: what would be lost is brought into the file first. Signals
are left as they are: a handler in Python acts only between two of its instructions, so that a program that is stuck in
C would not end, and Python forgets the signal that a child gets while it is being forked.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from types import TracebackType
from typing import Any

from gviz.program.hidden_frames import leave_out_listening
from gviz.trace.recording.record import Recording

_Exit = Callable[[type[BaseException] | None, BaseException | None, TracebackType | None], None]


class _Replaced:
    """Calls back as soon as nothing holds it any more, if no Python runs then: nobody but the interpreter let it go.

    Where the program has forgotten what it does at its end, the interpreter takes it out with all else: too late.
    """

    def __init__(self, then: Callable[[], None]) -> None:
        self._then: Callable[[], None] | None = then

    def __del__(self) -> None:
        if self._then is not None and sys._getframe().f_back is None and not sys.is_finalizing():
            self._then()

    def disarm(self) -> None:
        """Do nothing any more."""
        self._then = None


def told_to(recording: Recording) -> _Exit:
    """From now on an error that ends the program ends the recording; give what ends it in any case, with the program.

    The program may have taken out what stands in ``sys.last_traceback``; then the error is found at the end.
    """
    sys.last_traceback = _Replaced(lambda: _tell_before_it_is_shown(recording))  # type: ignore[assignment]

    def end(*_: object) -> None:
        if isinstance(standing := getattr(sys, "last_traceback", None), _Replaced):
            standing.disarm()
            del sys.last_traceback
        _tell(recording)

    return end


def _tell_before_it_is_shown(recording: Recording) -> None:
    _tell(recording)
    if issubclass(type(sys.last_value), KeyboardInterrupt):
        with suppress(KeyboardInterrupt):
            exec("raise KeyboardInterrupt")  # of the text that it ran last Python notes whether Ctrl-C has ended it


def _tell(recording: Recording) -> None:
    """End the recording, with the error that Python has found nobody to catch, if there is one."""
    error: BaseException | None = getattr(sys, "last_value", None)
    entry: TracebackType | None = getattr(sys, "last_traceback", None)
    if error is not None and issubclass(type(error), BaseException) and _left_the_program(entry):
        leave_out_listening(entry)
        recording.__exit__(type(error), error, entry)
    else:
        recording.close()


def _left_the_program(entry: object) -> bool:
    """Whether a traceback begins where nothing called: code of the program, a debugger, may have put another there."""
    return entry is None or (isinstance(entry, TracebackType) and entry.tb_frame.f_back is None)


def keep_the_last(recording: Recording) -> None:
    """Before ``os._exit``, ``os.abort`` and ``os.exec…``, which run nothing that was registered for the end.

    Only the first closes the recording: ``exec`` may fail, and the program goes on; after one that does not, and after
    ``abort``, the recording has broken off.
    """
    _let("_exit", recording.close)
    for name in ("abort", "execv", "execve"):  # every other ``exec`` calls one of these two
        _let(name, recording.flush)


def _let(name: str, come_first: Callable[[], None]) -> None:
    """Do this before the function of ``os`` with this name, in this process and in no child of it."""
    leave, process = getattr(os, name), os.getpid()

    @wraps(leave)
    def keep_and_leave(*given: Any, **named: Any) -> Any:
        if os.getpid() == process:
            come_first()
        return leave(*given, **named)

    setattr(os, name, keep_and_leave)

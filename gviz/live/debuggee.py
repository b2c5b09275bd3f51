"""The program's side of a session, in its process: pauses it when the gate requires, and receives the messages.

The main thread runs the program. A separate thread receives messages at any time. It ends the program if the debugger
ends without detaching. A pause must also reach a program that emits no events. So it arrives as SIGURG, a signal that
programs rarely use, whose handler runs between two instructions of the main thread.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import signal
import socket
import termios
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from queue import SimpleQueue

from gviz.emit import Listener
from gviz.live.gate import Gate
from gviz.live.protocol import (
    PAUSE_WORDS,
    CallSite,
    Connection,
    Detach,
    Detached,
    End,
    Go,
    Pause,
    Paused,
    PauseReason,
    Ready,
    Released,
    ResumeRequest,
)
from gviz.source import call_stack
from gviz.trace.file.writer import TraceWriter
from gviz.trace.recording.record import Recording

call_stack.add_recorder(os.path.dirname(__file__) + os.sep)

SECONDS_TO_END = 2.0
_SECONDS_BETWEEN_POKES = 0.05
_LONGEST_NAME = 1000  # characters of a thread's name in a message

current: Debuggee | None = None
"""The session of this process, if it is under a debugger's control."""


class Debuggee:
    """This process under the control of the debugger at a socket address."""

    def __init__(self, address: str) -> None:
        global current
        with suppress(OSError):  # without a terminal of its own, the program uses the existing one
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        _outlive_terminal()
        end = socket.socket(socket.AF_UNIX)
        end.connect(address)
        self._line = Connection(end)
        self._answers: SimpleQueue[Go] = SimpleQueue()
        self._stops = 0
        self._node = 0
        self._gate: Gate | None = None
        self._recording: Recording | None = None
        self._is_detached = False
        self._ignored_calls: tuple[str, ...] = ()
        """Call sites in the program that do not pause it any more."""
        self._process = os.getpid()
        current = self

    def paused_by(self, recording: Recording) -> Callable[[TraceWriter], Listener]:
        """Return a function that starts a recording whose program this pauses."""
        self._recording = recording
        return self._begin

    def stop_here(self, reason: PauseReason, node: int = 0) -> bool:
        """Pause the program here to look at a node, unless it was detached. Returns False in another process."""
        if self._gate is None or os.getpid() != self._process:
            return False
        ignored = self._ignored_calls
        is_ignored = bool(ignored) and CallSite(PAUSE_WORDS[reason], *call_stack.user_line()).key in ignored
        if not self._is_detached and not is_ignored:
            self._node = node
            self._gate.stop_here(reason)
        return True

    def _begin(self, writer: TraceWriter) -> Listener:
        self._line.send(Ready(self._process))
        first = self._line.receive()
        request = first.request if isinstance(first, Go) else ResumeRequest("run")
        self._ignored_calls = request.ignored_calls
        gate = self._gate = Gate(writer.record, self._wait, request)
        signal.signal(signal.SIGURG, lambda number, frame: self._pause_here())
        signal.siginterrupt(signal.SIGURG, False)  # no system call of the program's libraries fails because of it
        control = threading.Thread(target=self._listen, name="gviz control", daemon=True)
        control.start()
        gate.exempt_threads = frozenset((writer.thread, control.ident or 0))
        return gate.receive

    def _wait(self, reason: PauseReason) -> ResumeRequest:
        if self._is_detached or self._recording is None or os.getpid() != self._process:
            return ResumeRequest("run")
        self._recording.flush()
        self._stops += 1
        has_stack = reason not in ("fulfilled", "maybe") or (self._gate is not None and self._gate.is_at_module_call)
        stack = call_stack.user_frames() if has_stack else ()
        try:
            node = self._node if reason == "show" else 0
            thread = threading.current_thread().name[:_LONGEST_NAME]
            is_sent = self._line.send(Paused(reason, thread, stack, self._stops, node))
            return self._answer() if is_sent else ResumeRequest("run")
        except BaseException:
            self._line.send(Released())
            raise

    def _answer(self) -> ResumeRequest:
        """Wait until the debugger answers this stop; answers to stops that a signal ended are ignored."""
        while not self._is_detached:
            go = self._answers.get()
            if go.number == self._stops:
                self._ignored_calls = go.request.ignored_calls
                return go.request
        return ResumeRequest("run")

    def _pause_here(self) -> None:
        if self._gate is not None:
            self._gate.pause_here()

    def _listen(self) -> None:
        while (message := self._line.receive()) is not None:
            match message:
                case Go():
                    self._answers.put(message)
                case Pause():
                    self._pause()
                case Detach():
                    self._detach()
                case End():
                    break
        if not self._is_detached:
            self._end()

    def _pause(self) -> None:
        if self._gate is not None and not self._gate.is_pause_pending:
            self._gate.pause()
            threading.Thread(target=partial(self._poke, self._gate), name="gviz pause", daemon=True).start()

    def _poke(self, gate: Gate) -> None:
        """Interrupt the main thread until the program pauses: a single signal may arrive while it handles an event."""
        main = threading.main_thread().ident
        while gate.is_pause_pending and main is not None:
            signal.pthread_kill(main, signal.SIGURG)
            time.sleep(_SECONDS_BETWEEN_POKES)

    def _detach(self) -> None:
        """Continue without a debugger, and without its terminal."""
        self._is_detached = True
        _at_hang_up(1)  # ignored; Python's own handler is for the main thread only
        nowhere = os.open(os.devnull, os.O_RDWR)
        for number in range(3):
            if os.isatty(number):
                os.dup2(nowhere, number)
        os.close(nowhere)
        if self._gate is not None:
            self._gate.release()
        self._answers.put(Go(ResumeRequest("run")))  # for a waiting stop, which then sees that the program is detached
        self._line.send(Detached())

    def _end(self) -> None:
        """Close the trace and end the process, whatever the program is doing."""
        ctypes.CDLL(None).alarm(0)  # cancel the alarm of a hang-up: this thread ends the program now
        last = threading.Timer(SECONDS_TO_END, os.kill, (self._process, signal.SIGKILL))
        last.daemon = True
        last.start()
        if self._recording is not None:
            self._recording.__exit__(None, None, None)
        os.killpg(os.getpgrp(), signal.SIGTERM)


def _outlive_terminal() -> None:
    """Let SIGHUP, sent when the debugger is killed, end the program one second later, so that its trace is closed
    first.

    The handler is C's own ``alarm``, which receives the signal number 1 as its argument; it needs no Python to run.
    """
    if signal.getsignal(signal.SIGHUP) == signal.SIG_DFL:
        _at_hang_up(ctypes.cast(ctypes.CDLL(None).alarm, ctypes.c_void_p).value or 0)


def _at_hang_up(handler: int) -> None:
    """Set a handler in C, invisible to Python and to the program's children."""
    ctypes.CDLL(None).signal(signal.SIGHUP, ctypes.c_void_p(handler))

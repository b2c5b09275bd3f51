"""Forwards the signals that gviz gets to the program it waits for, so that they do what they do to ``python``.

The program is in gviz's process group. A signal to the whole group (Ctrl+C in the terminal) reaches both processes, and
must not be forwarded. A signal only to gviz's process must be. A process cannot see which of the two a signal was. So
gviz asks a third process of the group, the *witness*. It blocks every signal, so that signals to the group stay pending
there.

    kill -INT GVIZ      SIGINT is not pending in the witness: forward it to the program
    kill -INT -GROUP    SIGINT is pending in the witness: the program has it too

Not forwarded are:

* SIGKILL and SIGSTOP: no process can handle them.
* SIGSEGV, SIGBUS, SIGFPE and SIGILL: a handler that returns repeats the fault for ever. They end gviz, and the program
  ends with it.
* SIGCHLD: gviz gets it for its own children.
* SIGTTOU: a process that handles it gets it again and again.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import NoReturn

_NOT_FORWARDED = frozenset(
    getattr(signal, name)
    for name in ("SIGKILL", "SIGSTOP", "SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGCHLD", "SIGTTOU")
    if hasattr(signal, name)
)
_STOP = frozenset(getattr(signal, name) for name in ("SIGTSTP", "SIGTTIN") if hasattr(signal, name))
_CONTINUE = getattr(signal, "SIGCONT", None)
_PYTHON_IGNORES = frozenset(getattr(signal, name) for name in ("SIGPIPE", "SIGXFSZ") if hasattr(signal, name))
"""Python ignores these from its start. So their being ignored here does not mean that the caller ignores them."""


class BySignal(int):
    """The exit code that a shell shows for a process that a signal has ended: 128 and the number of the signal."""

    @classmethod
    def of(cls, number: int) -> BySignal:
        """Return the exit code for a signal."""
        return cls(128 + number)

    @property
    def number(self) -> int:
        """The signal."""
        return self - 128

    def end(self) -> NoReturn:
        """End this process by the same signal, so that a shell ends its loop, too. No core is dumped.

        If the signal does not end the process (the first process of a container), it exits with the exit code.
        """
        with suppress(ImportError, OSError, ValueError):
            import resource  # there is none on Windows

            resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        with suppress(OSError, ValueError):
            if self.number != signal.SIGKILL:
                signal.signal(self.number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {self.number})
            os.kill(os.getpid(), self.number)
        os._exit(self)


class SignalForwarder:
    """Handles the signals that gviz gets while it waits for a program. `received` is the set of those that came.

    A signal that comes before the program has started is forwarded once it has.

    Ctrl+Z must stop gviz only after the program has stopped: the shell takes the terminal back as soon as gviz stops.
    Two flags record the two halves, which may come in either order:

        _shall_stop  _program_has_stopped    next
        no           no                      running; SIGTSTP or SIGTTIN sets the first
        yes          no                      the program stops (or handles the signal, and SIGCONT clears the first)
        no           yes                     the program has stopped by itself; SIGTSTP or SIGTTIN sets the first
        yes          yes                     gviz stops itself by SIGSTOP; the first is cleared

    The second is what the system last reported of the program: set when it stops, cleared when it continues. gviz asks
    again before it stops. The handler of SIGCONT could not clear it: gviz need not see a SIGCONT, because a stop signal
    that follows at once discards it.
    """

    def __init__(self, witness: _Witness | None) -> None:
        self.received: set[int] = set()
        self.on_interrupt: Callable[[], None] = _nothing
        self._witness = witness
        self._process: subprocess.Popen[bytes] | None = None
        self._came: deque[int] = deque()
        self._busy = False
        self._shall_stop = self._program_has_stopped = False

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Handle every signal. A signal that comes while another is handled is handled after it."""
        self._came.append(number)
        while self._came and self._process is not None:
            if self._busy:
                return
            self._busy = True
            try:
                while self._came:
                    self._take(self._came.popleft())
            finally:
                self._busy = False

    def begin(self, process: subprocess.Popen[bytes]) -> None:
        """Note that the program has started."""
        early, self._came = [*self._came], deque()
        self._process = process
        for number in early:
            self.received.add(number)
            self._pass_on(number)

    def wait(self, *, patient: bool) -> int | None:
        """Return the program's exit code, negative for a signal. `patient` waits for it; else None if the program still
        runs.

        gviz stops when the program has stopped, if a signal asked for that.
        """
        assert self._process is not None
        if not hasattr(os, "WUNTRACED"):
            return self._process.wait() if patient else self._process.poll()
        while self._process.returncode is None:
            if not self._learn(patient=patient):
                return None
            self._stop_if_both()
        return self._process.returncode

    def _learn(self, *, patient: bool) -> bool:
        """Ask the system whether the program has stopped, continued or ended; `patient` waits for it."""
        assert self._process is not None
        how = os.WUNTRACED | os.WCONTINUED | (0 if patient else os.WNOHANG)
        process, status = os.waitpid(self._process.pid, how)
        if process and (os.WIFSTOPPED(status) or os.WIFCONTINUED(status)):
            self._program_has_stopped = os.WIFSTOPPED(status)
        elif process:
            self._process.returncode = os.waitstatus_to_exitcode(status)
        return bool(process)

    def _take(self, number: int) -> None:
        self.received.add(number)
        if number == signal.SIGINT:
            self.on_interrupt()
        if not self._was_for_group(number):
            self._pass_on(number)
        if number in _STOP:
            self._shall_stop = True
            self._stop_if_both()
        elif number == _CONTINUE:
            self._shall_stop = False

    def _was_for_group(self, number: int) -> bool:
        """Return whether a signal went to the group, so that the program has it, too.

        The system keeps a signal pending only once. If it came twice to gviz, the witness may know of one. So those of
        this number that wait in `_came` count as the same one.
        """
        pending = self._witness is not None and self._witness.has(number)
        while pending and self._witness is not None and number in self._came:
            self._came = deque(other for other in self._came if other != number)
            self._witness.has(number)
        return pending

    def _pass_on(self, number: int) -> None:
        assert self._process is not None
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(self._process.pid, number)

    def _stop_if_both(self) -> None:
        assert self._process is not None
        if self._shall_stop and self._program_has_stopped:
            with suppress(ChildProcessError):  # `wait` has just learnt that the program has ended
                while self._process.returncode is None and self._learn(patient=False):
                    pass
            if self._program_has_stopped and self._process.returncode is None:
                self._shall_stop = False
                os.kill(os.getpid(), signal.SIGSTOP)


class _Witness:
    """A process of this group that blocks every signal and reports which are pending. It ends with this process."""

    def __init__(self) -> None:
        before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            self._line, its = socket.socketpair()
            self._pid = os.fork()
            if not self._pid:
                _answer(self._line, its)
            its.close()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def has(self, number: int) -> bool:
        """Return whether the group has got the signal; this clears it. False if the witness was killed.

        A stop signal discards a pending SIGCONT. If the group continues and stops again before gviz has handled the
        first, the witness has only the stop signal, and that answers for both: a SIGCONT that was forwarded now would
        continue a program that has to stop.
        """
        try:
            self._line.sendall(bytes([number]))
            return self._line.recv(1) == b"\1"
        except OSError:
            return False

    def close(self) -> None:
        """End it."""
        self._line.close()
        os.waitpid(self._pid, 0)


def _answer(other: socket.socket, line: socket.socket) -> NoReturn:
    """Run the witness's loop, with every signal blocked."""
    try:
        other.close()
        while asked := line.recv(1):
            number, pending = asked[0], signal.sigpending()
            has = number in pending or (number == _CONTINUE and not pending.isdisjoint(_STOP))
            if has:  # sigwait would last for ever if a stop signal discards the SIGCONT now
                signal.signal(number, signal.SIG_IGN)  # discards it
                signal.signal(number, signal.SIG_DFL)
            line.sendall(bytes([has]))
    finally:
        os._exit(0)


@contextmanager
def forward() -> Iterator[SignalForwarder]:
    """Forward signals to the program for the length of a ``with`` block: gviz itself still has a trace to show.

    A signal that is ignored, as under ``nohup``, stays ignored. With a handler here the program would not inherit that.
    """
    witness = None
    if hasattr(os, "fork"):
        with suppress(OSError):  # no room for another process: the program runs all the same
            witness = _Witness()
    forwarder = SignalForwarder(witness)
    before = {}
    try:
        for number in signal.valid_signals() - _NOT_FORWARDED:
            if number in _PYTHON_IGNORES or signal.getsignal(number) not in (signal.SIG_IGN, None):
                with suppress(OSError, ValueError):  # the C library keeps some for itself
                    before[number] = signal.signal(number, forwarder.handle)
        yield forwarder
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if witness is not None:
            witness.close()


def _nothing() -> None:
    """Do nothing: the default of `on_interrupt`."""

"""A signal that is sent to gviz while it waits for a program: it has the effect that it would have on ``python``.

The program is in gviz's process group. A signal of the terminal (Ctrl-C) or to the whole group reaches both of them,
and must not be passed on. A signal to gviz's process only must be. Nothing that a process learns of a signal says which
of the two it was, so a third process of the group, the *witness*, is asked: it blocks every signal, so whatever is sent
to the group waits there.

    kill -INT GVIZ      the witness has no SIGINT: it is passed on to the program
    kill -INT -GROUP    the witness has it: the program has it too

SIGKILL and SIGSTOP cannot be passed on. SIGSEGV, SIGBUS, SIGFPE and SIGILL are not, since a fault of gviz itself would
be repeated for ever; they end gviz, and the program ends with it. Nor is SIGCHLD, which gviz gets for its own children,
nor SIGTTOU, which a process that handles it gets again and again.
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

_NOT_PASSED_ON = frozenset(
    getattr(signal, name)
    for name in ("SIGKILL", "SIGSTOP", "SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGCHLD", "SIGTTOU")
    if hasattr(signal, name)
)
_PYTHON_IGNORES = frozenset(getattr(signal, name) for name in ("SIGPIPE", "SIGXFSZ") if hasattr(signal, name))
"""Every Python ignores these from its start, whoever has started it: that it does so here says nothing."""


class BySignal(int):
    """The exit code that a shell shows for a process that a signal has ended: 128 and the number of the signal."""

    @classmethod
    def of(cls, number: int) -> BySignal:
        """The exit code for a signal."""
        return cls(128 + number)

    @property
    def number(self) -> int:
        """The signal."""
        return self - 128

    def end(self) -> NoReturn:
        """End this process by the same signal, without a core of its own: a shell that runs a loop then ends the loop.

        Where a signal does not end it, as where it is the first process of a container, it leaves with the exit code.
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


class Signals:
    """The signals that gviz gets while it waits for a program. `received` are those that came, each once.

    A signal that comes before the program has started is sent to it as soon as it has.
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
        """Take a signal, as a handler of Python; another may come while one is taken, and then waits its turn."""
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
        """The program has started."""
        early, self._came = [*self._came], deque()
        self._process = process
        for number in early:
            self.received.add(number)
            self._pass_on(number)

    def wait(self, *, patient: bool) -> int | None:
        """Wait until the program has ended; its exit code, negative for a signal. None at once if it has not, and this
        is not `patient`.

        While the program is stopped, gviz is stopped as well, if it was asked to: the shell then has the terminal.
        """
        assert self._process is not None
        if not hasattr(os, "WUNTRACED"):
            return self._process.wait() if patient else self._process.poll()
        how = os.WUNTRACED | os.WCONTINUED | (0 if patient else os.WNOHANG)
        while True:
            process, status = os.waitpid(self._process.pid, how)
            if not process:
                return None
            if os.WIFSTOPPED(status) or os.WIFCONTINUED(status):
                self._program_has_stopped = os.WIFSTOPPED(status)
                self._stop_if_both()
            else:
                self._process.returncode = os.waitstatus_to_exitcode(status)
                return self._process.returncode

    def _take(self, number: int) -> None:
        self.received.add(number)
        if number == signal.SIGINT:
            self.on_interrupt()
        if not self._was_for_group(number):
            self._pass_on(number)
        if number in (signal.SIGTSTP, signal.SIGTTIN):
            self._shall_stop = True
            self._stop_if_both()
        elif number == signal.SIGCONT:
            self._shall_stop = False

    def _was_for_group(self, number: int) -> bool:
        """Whether the program has got a signal itself.

        Of two that came in one moment the witness knows one, as the system does. So those that wait here are taken
        with the first, until one question has found no more of them.
        """
        found = self._witness is not None and self._witness.has(number)
        while found and self._witness is not None and number in self._came:
            self._came = deque(other for other in self._came if other != number)
            self._witness.has(number)
        return found

    def _pass_on(self, number: int) -> None:
        assert self._process is not None
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(self._process.pid, number)

    def _stop_if_both(self) -> None:
        if self._shall_stop and self._program_has_stopped:
            self._shall_stop = False
            os.kill(os.getpid(), signal.SIGSTOP)


class _Witness:
    """A process of this group that blocks every signal, and answers whether it has got one. It ends with this one."""

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
        """Whether it got a signal since this was asked last; no if somebody has killed it."""
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
    """What the witness does, with no signal able to interrupt it."""
    try:
        other.close()
        while asked := line.recv(1):
            number = asked[0]
            has = number in signal.sigpending()
            if has:
                signal.sigwait({number})
            line.sendall(bytes([has]))
    finally:
        os._exit(0)


@contextmanager
def passed_on() -> Iterator[Signals]:
    """Let signals that gviz gets in here have their effect on the program, not on gviz, which has a trace to show.

    A signal that is ignored, as under ``nohup``, stays so: a handler here would make it an ordinary one in the program.
    """
    witness = _Witness() if hasattr(os, "fork") else None
    signals = Signals(witness)
    before = {}
    try:
        for number in signal.valid_signals() - _NOT_PASSED_ON:
            if number in _PYTHON_IGNORES or signal.getsignal(number) not in (signal.SIG_IGN, None):
                with suppress(OSError, ValueError):  # the C library keeps some for itself
                    before[number] = signal.signal(number, signals.handle)
        yield signals
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if witness is not None:
            witness.close()


def _nothing() -> None:
    """Nobody wants to know."""

"""Forwards signals sent to gviz to the program that it waits for, so that they have the same effect as on ``python``.

The program is in gviz's process group. A signal to the whole group (Ctrl+C in the terminal) reaches both processes, and
must not be forwarded. A signal to gviz's process only must be forwarded. A process cannot see which of the two a signal
was. So gviz asks a third process of the group, the *witness*. It blocks every signal, so that signals to the group stay
pending there.

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
from typing import Any, NoReturn

_NOT_FORWARDED = frozenset(
    getattr(signal, name)
    for name in ("SIGKILL", "SIGSTOP", "SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGCHLD", "SIGTTOU")
    if hasattr(signal, name)
)
_STOP = frozenset(getattr(signal, name) for name in ("SIGTSTP", "SIGTTIN") if hasattr(signal, name))
_CONTINUE = getattr(signal, "SIGCONT", None)
_PYTHON_IGNORES = frozenset(getattr(signal, name) for name in ("SIGPIPE", "SIGXFSZ") if hasattr(signal, name))
"""Python itself ignores these. So if one is ignored here, the process that started gviz need not have ignored it."""


class SignalExitCode(int):
    """The exit code that a shell shows for a process that a signal has ended: 128 plus the number of the signal."""

    @classmethod
    def of(cls, number: int) -> SignalExitCode:
        """Return the exit code for a signal."""
        return cls(128 + number)

    @property
    def number(self) -> int:
        """The number of the signal."""
        return self - 128

    def end(self) -> NoReturn:
        """End this process by the same signal. No core is dumped.

        A shell that runs gviz in a loop then ends the loop, as it does when a signal ends the program itself. If the
        signal does not end this process (the first process of a container), it exits with this code.
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
    """Handles the signals that gviz gets while it waits for a program.

    `received` has the numbers of all signals that were handled. `on_interrupt` is called for each SIGINT. A signal that
    comes before the program has started is forwarded as soon as it has.

    Ctrl+Z must stop gviz only after the program has stopped: the shell takes the terminal back as soon as gviz stops.
    Two flags record the two halves, which may come in either order:

        _shall_stop  _program_has_stopped    next
        no           no                      running; SIGTSTP or SIGTTIN sets the first
        yes          no                      the program stops (or handles the signal, and SIGCONT clears the first)
        no           yes                     the program has stopped by itself; SIGTSTP or SIGTTIN sets the first
        yes          yes                     gviz stops itself by SIGSTOP; the first is cleared

    The second is what the system last reported about the program: set when it stops, cleared when it continues. gviz
    asks the system again just before it stops. It is not enough to clear this flag in the handler of SIGCONT: gviz may
    never receive that SIGCONT, because a stop signal that follows at once discards it.
    """

    def __init__(self, witness: _Witness | None, wake: _WakeSocket) -> None:
        self.received: set[int] = set()
        self.on_interrupt: Callable[[], None] = _nothing
        self._witness = witness
        self._wake = wake
        self._process: subprocess.Popen[bytes] | None = None
        self._queue: deque[int] = deque()
        self._busy = False
        self._shall_stop = self._program_has_stopped = False

    def enqueue(self, number: int, frame: FrameType | None) -> None:
        """Put a signal into the queue, and handle the queue unless another signal is being handled.

        This is Python's handler of every signal. It can interrupt itself.
        """
        self._queue.append(number)
        self._handle_queue()

    def _handle_queue(self) -> None:
        while self._queue and self._process is not None:
            if self._busy:
                return
            self._busy = True
            try:
                while self._queue:
                    self._handle(self._queue.popleft())
            finally:
                self._busy = False

    def begin(self, process: subprocess.Popen[bytes]) -> None:
        """Forward the signals that came before the program had started. From now on each signal is handled at once."""
        self._busy = True  # a signal that comes from here on only enters the queue, and is handled after the early ones
        self._process = process
        if hasattr(signal, "SIGCHLD"):  # Python writes a byte only for a signal that has a handler
            signal.signal(signal.SIGCHLD, _nothing)
        for _ in range(len(self._queue)):
            number = self._queue.popleft()
            self.received.add(number)
            self._forward(number)
        self._busy = False
        self._handle_queue()

    def wait(self, *, block: bool) -> int | None:
        """Return the program's exit code, negative if a signal ended it. If the program still runs, wait for its end
        if `block`; otherwise return None.

        If a signal asked gviz to stop, it stops as soon as the program has stopped.

        gviz does not wait in ``waitpid``. Python runs the handler of a signal between two of its own instructions. If a
        signal came just before the system call, its handler would run only when the program has ended, and the program
        may be waiting for this very signal. So Python writes a byte for each signal to a socket, SIGCHLD included, and
        gviz waits for that byte.
        """
        assert self._process is not None
        if not hasattr(os, "WUNTRACED"):
            return self._process.wait() if block else self._process.poll()
        while self._process.returncode is None:
            if self._update_program_state():
                self._stop_after_program()
            elif block:
                self._wake.wait()
            else:
                return None
        return self._process.returncode

    def _update_program_state(self) -> bool:
        """Ask the system whether the program has stopped, continued or ended. Return whether it reported a change."""
        assert self._process is not None
        try:
            process, status = os.waitpid(self._process.pid, os.WUNTRACED | os.WCONTINUED | os.WNOHANG)
        except ChildProcessError:  # it ended while SIGCHLD was still ignored, so the system has kept no exit code
            process, status = self._process.pid, 0
        if process and (os.WIFSTOPPED(status) or os.WIFCONTINUED(status)):
            self._program_has_stopped = os.WIFSTOPPED(status)
        elif process:
            self._process.returncode = os.waitstatus_to_exitcode(status)
        return bool(process)

    def _handle(self, number: int) -> None:
        self.received.add(number)
        if number == signal.SIGINT:
            self.on_interrupt()
        if not self._was_for_group(number):
            self._forward(number)
        if number in _STOP:
            self._shall_stop = True
            self._stop_after_program()
        elif number == _CONTINUE:
            self._shall_stop = False

    def _was_for_group(self, number: int) -> bool:
        """Return whether a signal went to the group, so that the program has it, too.

        The system keeps a signal pending only once. So if gviz received a signal twice, the witness may have it pending
        once. All signals of this number that still wait in the queue therefore count as this one, and are removed.
        """
        pending = self._witness is not None and self._witness.has(number)
        while pending and self._witness is not None and number in self._queue:
            for _ in range(len(self._queue)):  # in place: a signal that comes meanwhile enters the same queue
                if (other := self._queue.popleft()) != number:
                    self._queue.append(other)
            self._witness.has(number)
        return pending

    def _forward(self, number: int) -> None:
        assert self._process is not None
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(self._process.pid, number)

    def _stop_after_program(self) -> None:
        """Stop gviz if a signal asked for that and the program has stopped."""
        assert self._process is not None
        if self._shall_stop and self._program_has_stopped:
            with suppress(ChildProcessError):  # the system has just reported to `wait` that the program has ended
                while self._process.returncode is None and self._update_program_state():
                    pass
            if self._program_has_stopped and self._process.returncode is None:
                self._shall_stop = False
                os.kill(os.getpid(), signal.SIGSTOP)


class _WakeSocket:
    """A socket to which Python writes a byte for each signal, as soon as it comes."""

    def __init__(self) -> None:
        self._receiver, self._sender = socket.socketpair()
        self._sender.setblocking(False)
        self._previous_fd = signal.set_wakeup_fd(self._sender.fileno(), warn_on_full_buffer=False)

    def wait(self) -> None:
        """Wait until a signal comes; return at once if one has come since the last call."""
        self._receiver.recv(4096)

    def close(self) -> None:
        """Let Python write to the file descriptor that it used before, and close the sockets."""
        signal.set_wakeup_fd(self._previous_fd)
        self._receiver.close()
        self._sender.close()


class _Witness:
    """A process of this group that blocks every signal and reports which are pending. It ends with this process."""

    def __init__(self) -> None:
        previous_mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            self._socket, witness_socket = socket.socketpair()
            self._pid = os.fork()
            if not self._pid:
                _run_witness(self._socket, witness_socket)
            witness_socket.close()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, previous_mask)

    def has(self, number: int) -> bool:
        """Return whether a signal has come to the group, and clear it. False if the witness was killed.

        A stop signal discards a pending SIGCONT. So if the group gets SIGCONT and then a stop signal before gviz has
        handled the SIGCONT, only the stop signal is pending in the witness. It then proves the SIGCONT, too.
        Otherwise gviz would forward the SIGCONT, and continue a program that has to stop.
        """
        try:
            self._socket.sendall(bytes([number]))
            return self._socket.recv(1) == b"\1"
        except OSError:
            return False

    def close(self) -> None:
        """End it."""
        self._socket.close()
        with suppress(ChildProcessError):  # SIGCHLD is ignored: the system has already removed it
            os.waitpid(self._pid, 0)


def _run_witness(gviz_socket: socket.socket, own_socket: socket.socket) -> NoReturn:
    """Run the witness: for each signal number that it reads, answer whether the signal is pending, and clear it."""
    try:
        gviz_socket.close()
        while request := own_socket.recv(1):
            number, pending = request[0], signal.sigpending()
            has = number in pending or (number == _CONTINUE and not pending.isdisjoint(_STOP))
            if has:  # not cleared by sigwait: it would block for ever if a stop signal discards the SIGCONT now
                signal.signal(number, signal.SIG_IGN)  # clears it
                signal.signal(number, signal.SIG_DFL)
            own_socket.sendall(bytes([has]))
    finally:
        os._exit(0)


@contextmanager
def forward() -> Iterator[SignalForwarder]:
    """In the ``with`` block, forward signals to the program: they do not end gviz, which still has to show the trace.

    A signal that is ignored, as under ``nohup``, gets no handler: it stays ignored here, and the program inherits that.
    """
    witness, wake = None, _WakeSocket()
    if hasattr(os, "fork"):
        with suppress(OSError):  # the system allows no further process: the program runs without a witness
            witness = _Witness()
    forwarder = SignalForwarder(witness, wake)
    previous_handlers: dict[int, Any] = {}
    number: int
    try:
        if hasattr(signal, "SIGCHLD"):  # `begin` sets it: a program that inherits an ignored SIGCHLD ignores it, too
            previous_handlers[signal.SIGCHLD] = signal.getsignal(signal.SIGCHLD) or signal.SIG_DFL
        for number in signal.valid_signals() - _NOT_FORWARDED:
            if number in _PYTHON_IGNORES or signal.getsignal(number) not in (signal.SIG_IGN, None):
                with suppress(OSError, ValueError):  # the C library keeps some for itself
                    previous_handlers[number] = signal.signal(number, forwarder.enqueue)
        yield forwarder
    finally:
        for number, handler in previous_handlers.items():
            signal.signal(number, handler)
        wake.close()
        if witness is not None:
            witness.close()


def _nothing(*_: object) -> None:
    """Do nothing: the default of `on_interrupt`, and a handler whose signal only has to wake gviz."""

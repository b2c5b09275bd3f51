"""The debugger's side of a session: one program in a process, session and terminal of its own.

Three threads wait for the program: for messages, for output, and for its end. Each calls `on_report`, which must return
quickly. The methods that act on the program return at once, except `release` and `stop`.

The states of a `ControlledProgram`. All threads change them, through `_change_state`, under a lock:

    state      what happens                                     what follows                            next state
    starting   the program connects, ``Ready``                  reported                                starting
    starting   `go`                                             ``Go`` is sent                          running
    running    ``Paused``: a request is fulfilled, a breakpoint reported, with a number that the next   paused
               ``gviz.breakpoint()``, a pause                   ``Go`` repeats
    running    `go`                                             nothing                                 running
    running    `pause`                                          ``Pause`` is sent                       running
    paused     `go`                                             ``Go`` is sent                          running
    paused     ``Released``: a signal ended the wait            reported                                running
    these 3    `release`                                        ``Detach``, then waits for ``Detached`` released
    these 3    `stop`                                           ``End``, then SIGTERM or SIGKILL        (ended)
    these 3    `interrupt`, `type`, `hang_up`, `resize`         the process or its terminal gets it     the same
    released   ``Paused``, ``Released``, `go`                   nothing: the session has ended          released
    any        the process ends                                 reported: ``Ended``                     ended

Example: the user types ``n`` at the first node. `go` sends ``Go(ResumeRequest("next"), 0)``, and the state is
*running*. The program creates the node and sends ``Paused("fulfilled", number=1)``. The state is *paused*, and
`on_report` is called.

Stops are numbered because messages may cross: the program ignores a ``Go`` for any stop except its current one.

`stopped` is not a state: it means that the user ended the program, so that its exit code does not count as a failure.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import tempfile
import threading
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from gviz.live.debuggee import SECONDS_TO_END
from gviz.live.protocol import (
    Connection,
    Detach,
    Detached,
    End,
    Go,
    Message,
    Pause,
    Paused,
    Ready,
    Released,
    ResumeRequest,
)
from gviz.live.pseudo_terminal import Terminal, reads_input
from gviz.system.processes import Start

State = Literal["starting", "running", "paused", "released", "ended"]
_FINAL: dict[State, tuple[State, ...]] = {"released": ("ended",), "ended": ()}
"""The final states, each with the states that may still follow it."""
SECONDS_TO_WAIT = SECONDS_TO_END + 1.0
KEPT_OUTPUT = 2000
"""The number of pieces of the program's last output that are kept, for the terminal after the debugger ends."""

_LONGEST_FOLDER = 80
"""A socket's address is limited to 104 bytes on macOS; the part after the folder takes 23."""


@dataclass(frozen=True, slots=True)
class OutputWritten:
    """Any part of the program wrote to its terminal."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Ended:
    """The program has ended; `code` is its exit code, or the negative number of the signal that killed it."""

    code: int

    @property
    def words(self) -> str:
        """A description of how it ended."""
        if self.code >= 0:
            return f"the program has ended with exit code {self.code}"
        try:
            return f"the program was killed by {signal.Signals(-self.code).name}"
        except ValueError:
            return f"the program was killed by signal {-self.code}"


Report = Ready | Paused | Released | OutputWritten | Ended


class ControlledProgram:
    """Starts a process, which connects to a socket, and controls it until it ends or is detached."""

    def __init__(
        self,
        start: Callable[[str], Start],
        on_report: Callable[[Report], None],
        *,
        size: tuple[int, int] = (80, 24),
    ) -> None:
        self.state: State = "starting"
        self.ended: Ended | None = None
        self.stopped = False
        self.printed: deque[bytes] = deque(maxlen=KEPT_OUTPUT)
        self._changing = threading.Lock()
        self._stop_number = 0
        self._disconnected = threading.Event()
        self._on_report = on_report
        self._connection: Connection | None = None
        self._start(start, size)
        self._threads = [_started(self._read, "output"), _started(self._converse, "messages")]
        self._waiting = _started(self._wait, "end")

    def _start(self, start: Callable[[str], Start], size: tuple[int, int]) -> None:
        with ExitStack() as undo:
            self._folder = tempfile.mkdtemp(prefix="gviz-", dir=_temporary_folder())  # only its owner has access
            undo.callback(self._remove_socket)
            address = os.path.join(self._folder, "program")
            self._listener = undo.enter_context(_listening(address))
            self._terminal = Terminal(*size)
            undo.callback(self._terminal.close)
            with self._terminal.handed_over() as inner:
                command, environment = start(address)
                self._process = subprocess.Popen(
                    command, env=environment, stdin=inner, stdout=inner, stderr=inner, start_new_session=True,
                    close_fds=False,  # files that a shell has opened for the program
                )  # fmt: skip
            undo.pop_all()

    @property
    def pid(self) -> int:
        """The process id of the program."""
        return self._process.pid

    @property
    def waits_for_line(self) -> bool:
        """Whether the program is known to wait for typed input; not every system shows that."""
        return self.state == "running" and reads_input(self.pid)

    def go(self, request: ResumeRequest) -> None:
        """Continue the program, if it is paused or about to start."""
        if self._connection is not None and self._change_state("running", since=("paused", "starting")):
            self._connection.send(Go(request, self._stop_number))

    def pause(self) -> None:
        """Ask the program to pause."""
        self._send(Pause())

    def interrupt(self) -> None:
        """Send SIGINT to all processes of the program, as Ctrl+C does in a terminal."""
        self._kill(signal.SIGINT)

    def type(self, text: str) -> None:
        """Type a line into the program's terminal."""
        self._terminal.write(text + "\n")

    def hang_up(self) -> None:
        """Type the end of input (Ctrl+D), for a program that waits for a line."""
        self._terminal.write("\x04")

    def resize(self, columns: int, rows: int) -> None:
        """Resize the program's terminal."""
        self._terminal.resize(columns, rows)

    def release(self) -> None:
        """Detach: the program continues without a debugger. Waits until it has disconnected; the session is
        then over.
        """
        if self._change_state("released"):
            self._send(Detach())
            self._disconnected.wait(SECONDS_TO_WAIT)

    def stop(self) -> None:
        """End the program and wait until it has ended."""
        if self.state in ("released", "ended"):
            return
        self.stopped = True
        self._kill(signal.SIGCONT)  # after SIGSTOP it gets no other signal
        self._send(End())
        if self._connection is None:
            self._kill(signal.SIGTERM)
        self._waiting.join(SECONDS_TO_WAIT)
        if self._waiting.is_alive():
            self._kill(signal.SIGKILL)
            self._waiting.join(SECONDS_TO_WAIT)

    def _change_state(self, state: State, since: tuple[State, ...] = ()) -> bool:
        """Change the state, if possible, and return whether it changed. Called by all threads.

        A final state changes only as in `_FINAL`. If `since` is not empty, the current state must be in it.
        """
        with self._changing:
            changes = state in _FINAL.get(self.state, (state,)) and (not since or self.state in since)
            if changes:
                self.state = state
            return changes

    def _send(self, message: Message) -> None:
        if self._connection is not None and self.state != "ended":
            self._connection.send(message)

    def _kill(self, number: int) -> None:
        with suppress(ProcessLookupError, PermissionError):
            if self._process.poll() is None:
                os.killpg(self._process.pid, number)

    def _converse(self) -> None:
        try:
            end, _ = self._listener.accept()
        except OSError:  # closed, because the program has ended
            return
        finally:
            self._remove_socket()
        self._connection = line = Connection(end)
        while (message := line.receive()) is not None:
            self._take(message)
        self._disconnected.set()  # the connection has ended, even if no ``Detached`` arrived

    def _take(self, message: Message) -> None:
        match message:
            case Detached():
                self._disconnected.set()
            case Paused(number=number):
                self._stop_number = number
                if self._change_state("paused"):
                    self._on_report(message)
            case Released():
                if self._change_state("running"):
                    self._on_report(message)
            case Ready():
                self._on_report(message)

    def _read(self) -> None:
        while data := self._terminal.read():
            self.printed.append(data)
            self._on_report(OutputWritten(data))
        self._process.wait()  # if it closed its terminal, it may still run: closing our end would send SIGHUP
        self._terminal.close()

    def _wait(self) -> None:
        code = self._process.wait()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(0.5)  # a process it left behind may hold the other ends
        self._change_state("ended")
        self.ended = Ended(code)
        if self._connection is not None:
            self._connection.close()
        self._remove_socket()
        self._on_report(self.ended)

    def _remove_socket(self) -> None:
        """Remove the socket file: only one program connects, once."""
        with suppress(OSError):
            os.unlink(os.path.join(self._folder, "program"))
        with suppress(OSError):
            os.rmdir(self._folder)


def exit_code(ended: Ended) -> int:
    """Return the exit code as a shell reports it."""
    return 128 - ended.code if ended.code < 0 else ended.code


def _temporary_folder() -> str:
    """Return a folder for the socket: a long temporary folder does not fit into a socket's address."""
    usual = tempfile.gettempdir()
    return usual if len(os.fsencode(usual)) <= _LONGEST_FOLDER else "/tmp"


def _listening(address: str) -> socket.socket:
    with ExitStack() as undo:
        listener = undo.enter_context(socket.socket(socket.AF_UNIX))
        listener.bind(address)
        Path(address).chmod(0o600)
        listener.listen(1)
        undo.pop_all()
    return listener


def _started(work: Callable[[], None], name: str) -> threading.Thread:
    thread = threading.Thread(target=work, name=f"gviz {name}", daemon=True)
    thread.start()
    return thread

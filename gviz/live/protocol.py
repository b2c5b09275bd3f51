"""The messages between the debugger and its program: a closed vocabulary over a private Unix socket.

Every message is a msgspec struct, preceded by its length in four bytes. Neither side trusts the length that the other
sends. The program sends `Ready` once, then `Paused` whenever it pauses. The debugger answers each `Paused` with a `Go`
of the same number, whose `ResumeRequest` says how far the program runs. The program sends `Released` if it continues
without a `Go`. The debugger may send `Pause`, `Detach` and `End` at any time; the program answers `Detach` with
`Detached`. If one side closes the socket, it has ended.
"""

from __future__ import annotations

import socket
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

import msgspec

from gviz.source.call_stack import Frame

LARGEST_MESSAGE = 1 << 24
"""Far more than any set of breakpoints needs; a greater length is an error."""
_LENGTH_BYTES = 4

Mode = Literal["step", "next", "finish", "phase", "to", "backward", "continue", "run"]
"""How far the program runs: by steps or nodes (`step`, `next`), to the end of a module call or phase (`finish`), to the
next phase (`phase`), to the next event of a node (`to`), to the next backward pass (`backward`), to a breakpoint
(`continue`), or to its end without any stop (`run`).
"""

PauseReason = Literal["fulfilled", "maybe", "pause", "breakpoint", "post-mortem", "show"]
"""Why the program paused: the request is fulfilled (`fulfilled`), or it may be and the debugger has to check (`maybe`);
the debugger asked for a pause (`pause`); or the program called ``breakpoint()``, ``post_mortem()`` or ``show()``.
"""

PAUSE_WORDS: dict[PauseReason, str] = {
    "pause": "paused",
    "breakpoint": "breakpoint()",
    "post-mortem": "post_mortem()",
    "show": "show()",
}
"""The words for the reasons other than a request of the debugger."""


@dataclass(frozen=True, slots=True)
class CallSite:
    """A line of the program that pauses it by calling ``breakpoint()``, ``show()`` and so on."""

    call: str
    path: str
    line: int

    @property
    def key(self) -> str:
        """The text by which both sides identify it."""
        return f"{self.call} at {self.path}:{self.line}"


class ResumeRequest(msgspec.Struct, frozen=True, array_like=True):
    """How the program continues after a pause, or from its start.

    - `mode`: how far it runs.
    - `count`: the number of events for `step`, or of nodes for `next`.
    - `node`, `storages`: for `to`, the node, and the memory of its outputs, whose events count, too.
    - `stops`: for `continue`, the breakpoints, in the syntax of `gviz.query_syntax.stop_condition`.
    - `collapsed`: for `next`, the paths of collapsed modules, each of whose calls counts as one node, and
      `trace.graph_state.OPTIMIZER` if an optimizer step counts as one node, too.
    - `ignored_calls`: calls in the program that no longer pause it, each the `key` of a `CallSite`.
    """

    mode: Mode
    count: int = 1
    node: int = 0
    storages: tuple[int, ...] = ()
    stops: tuple[str, ...] = ()
    collapsed: tuple[str, ...] = ()
    ignored_calls: tuple[str, ...] = ()


class Ready(msgspec.Struct, frozen=True, tag=True):
    """The program is about to start and waits for its first `Go`."""

    process: int


class Paused(msgspec.Struct, frozen=True, tag=True):
    """The program is paused and its trace is complete up to now.

    `thread` is the thread that paused it. `stack` is its call stack, the user's frames only, innermost first. It is
    empty if `reason` is `fulfilled` or `maybe` and the last event has a call stack: all but the beginning of a module
    call have one, or need none. `number` counts the stops from 1. `node` is the node that the program passed to
    ``show()``, 0 for none.
    """

    reason: PauseReason
    thread: str = ""
    stack: tuple[Frame, ...] = ()
    number: int = 0
    node: int = 0


class Released(msgspec.Struct, frozen=True, tag=True):
    """The program continues without a `Go`: a signal handler raised an exception during the pause."""


class Detached(msgspec.Struct, frozen=True, tag=True):
    """The program is detached: it needs neither debugger nor terminal any more."""


class Go(msgspec.Struct, frozen=True, tag=True):
    """Continue from the stop with this number (0: the start). The program ignores it at any other stop."""

    request: ResumeRequest
    number: int = 0


class Pause(msgspec.Struct, frozen=True, tag=True):
    """Pause as soon as possible."""


class Detach(msgspec.Struct, frozen=True, tag=True):
    """Continue without the debugger from now on, even after the debugger has ended."""


class End(msgspec.Struct, frozen=True, tag=True):
    """Close the trace and end the program."""


Message = Ready | Paused | Released | Detached | Go | Pause | Detach | End

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Message).decode


class Connection:
    """One end of the socket. One thread uses `receive`, any thread `send`: messages are small and sent at once."""

    def __init__(self, endpoint: socket.socket) -> None:
        self._socket = endpoint

    def send(self, message: Message) -> bool:
        """Send a message. Returns False if the other side has ended."""
        body = _encode(message)
        try:
            self._socket.sendall(len(body).to_bytes(_LENGTH_BYTES, "big") + body)
        except OSError:
            return False
        return True

    def receive(self) -> Message | None:
        """Wait for the next message; None if the other side has ended or sent something invalid."""
        head = self._receive_exactly(_LENGTH_BYTES)
        length = int.from_bytes(head or b"", "big")
        body = self._receive_exactly(length) if 0 < length <= LARGEST_MESSAGE else None
        if body is None:
            return None
        try:
            message: Message = _decode(body)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return None
        return message

    def close(self) -> None:
        """Close the socket. A thread that waits in `receive` returns None."""
        with suppress(OSError):  # the other side has already closed it
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _receive_exactly(self, size: int) -> bytes | None:
        data = bytearray()
        while len(data) < size:
            try:
                part = self._socket.recv(size - len(data))
            except OSError:
                return None
            if not part:
                return None
            data += part
        return bytes(data)

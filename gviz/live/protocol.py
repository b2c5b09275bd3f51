"""The messages between the debugger and its program: a closed vocabulary over a private Unix socket.

Every message is a msgspec struct, preceded by its length in four bytes. Neither side trusts the other's sizes. The
program sends `Ready` once, then `Paused` whenever it pauses, and `Released` if it continues without a message. The
debugger answers `Paused` with a `Go` of the same number. `Pause`, `LetGo` and `End` may come at any time; `LetGo` is
answered with `Left`. The end of the socket is the end of the other side.
"""

from __future__ import annotations

import socket
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

import msgspec

from gviz.source.site import Frame

LARGEST_MESSAGE = 1 << 24
"""Far more than any set of breakpoints needs; a greater length is an error."""
_LENGTH_BYTES = 4

Mode = Literal["step", "next", "finish", "phase", "to", "backward", "continue", "run"]
"""How far the program runs: `backward` is to the next backward pass, `run` to its end without any stop."""

Why = Literal["wish", "maybe", "pause", "breakpoint", "post-mortem", "show"]
"""Why the program paused: the wish is fulfilled; the debugger has to check whether it is; a pause; a call in
its code.
"""

ASKED_FOR: dict[Why, str] = {
    "pause": "paused",
    "breakpoint": "breakpoint()",
    "post-mortem": "post_mortem()",
    "show": "show()",
}
"""The words for pauses that are not caused by a wish of the debugger."""


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


class Wish(msgspec.Struct, frozen=True, array_like=True):
    """How the program continues: `count` times by a mode, or to the next event of a node or of its `storages`.

    `stops` are breakpoints in the syntax of `gviz.query_syntax.stop_condition`; only `continue` uses them. `closed` are
    the paths of collapsed modules, whose calls count as one node each, and `trace.graph_state.OPTIMIZER` if optimizer
    steps do; only `next` uses them. `passed` are calls in the program that do not pause it, each the `key` of a
    `CallSite`.
    """

    mode: Mode
    count: int = 1
    node: int = 0
    storages: tuple[int, ...] = ()
    stops: tuple[str, ...] = ()
    closed: tuple[str, ...] = ()
    passed: tuple[str, ...] = ()


class Ready(msgspec.Struct, frozen=True, tag=True):
    """The program is about to start and waits for its first `Go`."""

    process: int


class Paused(msgspec.Struct, frozen=True, tag=True):
    """The program is paused and its trace is complete up to now; `thread` is the paused thread and `stack` its stack.

    The stack has the user's frames, innermost first. It is empty if a wish is fulfilled: the last event has it. Stops
    are numbered from 1. `node` is the node that the program wants to show, 0 for none.
    """

    why: Why
    thread: str = ""
    stack: tuple[Frame, ...] = ()
    number: int = 0
    node: int = 0


class Released(msgspec.Struct, frozen=True, tag=True):
    """The program continues by itself: a signal ended the wait."""


class Left(msgspec.Struct, frozen=True, tag=True):
    """The program is detached: it no longer needs debugger or terminal."""


class Go(msgspec.Struct, frozen=True, tag=True):
    """Continue from the stop with this number, 0 for the start; ignored at any other stop."""

    wish: Wish
    number: int = 0


class Pause(msgspec.Struct, frozen=True, tag=True):
    """Pause as soon as possible."""


class LetGo(msgspec.Struct, frozen=True, tag=True):
    """Continue without the debugger, also after it has ended."""


class End(msgspec.Struct, frozen=True, tag=True):
    """Close the trace and end."""


Message = Ready | Paused | Released | Left | Go | Pause | LetGo | End

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Message).decode


class Connection:
    """One end of the socket. One thread uses `receive`, any thread `send`: messages are small and sent at once."""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end

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
        head = self._exactly(_LENGTH_BYTES)
        length = int.from_bytes(head or b"", "big")
        body = self._exactly(length) if 0 < length <= LARGEST_MESSAGE else None
        if body is None:
            return None
        try:
            message: Message = _decode(body)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return None
        return message

    def close(self) -> None:
        """Close the socket, also for a thread that waits in `receive`."""
        with suppress(OSError):  # the other side was faster
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _exactly(self, size: int) -> bytes | None:
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

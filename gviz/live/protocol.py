"""The messages between the debugger and its program: a closed vocabulary over a private Unix socket.

Every message is a msgspec struct after its length, four bytes. Neither side trusts the other's sizes. The program sends
`Ready` once, then `Held` whenever it is held, and `Released` if it runs on without a message. The debugger answers
`Held` with a `Go` of the same number. `Pause`, `LetGo` and `End` may come at any time; `LetGo` is answered with `Left`.
The end of the socket is the end of the other side.
"""

from __future__ import annotations

import socket
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

import msgspec

from gviz.source.site import Frame

LARGEST_MESSAGE = 1 << 24
"""Far more than all breakpoints come to that anybody sets: a length beyond it was never meant."""
_LENGTH_BYTES = 4

Mode = Literal["step", "next", "finish", "phase", "to", "backward", "continue", "run"]
"""How far the program runs: `backward` is to the next backward pass, `run` to its end without any stop."""

Why = Literal["wish", "maybe", "pause", "breakpoint", "post-mortem", "show"]
"""Why the program is held: the wish is fulfilled; the debugger has to check whether it is; a pause; a call in its own
code."""

ASKED_FOR: dict[Why, str] = {
    "pause": "paused",
    "breakpoint": "breakpoint()",
    "post-mortem": "post_mortem()",
    "show": "show()",
}
"""The words for a program that is held for another reason than a wish of the debugger."""


@dataclass(frozen=True, slots=True)
class CallSite:
    """A line of the program that holds it by calling ``breakpoint()``, ``show()`` … itself."""

    call: str
    path: str
    line: int

    @property
    def key(self) -> str:
        """What both sides know it by."""
        return f"{self.call} at {self.path}:{self.line}"


class Wish(msgspec.Struct, frozen=True, array_like=True):
    """How the program is to run on: `count` times by a mode, or to the next event of a node or of its `storages`.

    `stops` are breakpoints as `gviz.where.stop` reads them; only `continue` looks at them. `closed` are the paths of
    modules whose calls count as one node each, and `trace.state.OPTIMIZER` if the steps of optimizers do; only
    `next` looks at them. `passed` are calls in the program that do not hold it, each the `key` of a `CallSite`.
    """

    mode: Mode
    count: int = 1
    node: int = 0
    storages: tuple[int, ...] = ()
    stops: tuple[str, ...] = ()
    closed: tuple[str, ...] = ()
    passed: tuple[str, ...] = ()


class Ready(msgspec.Struct, frozen=True, tag=True):
    """The program is about to begin; it waits for its first `Go`."""

    process: int


class Held(msgspec.Struct, frozen=True, tag=True):
    """The program is held and its trace is complete up to now; `thread` is the one that was held, at a `stack`.

    The stack has the user's frames, innermost first. It is left out where a wish of the debugger is fulfilled: the last
    event has it. Stops are numbered from 1. `node` is what the program wants to be looked at, 0 for none.
    """

    why: Why
    thread: str = ""
    stack: tuple[Frame, ...] = ()
    number: int = 0
    node: int = 0


class Released(msgspec.Struct, frozen=True, tag=True):
    """The program runs on by itself: a signal ended the wait."""


class Left(msgspec.Struct, frozen=True, tag=True):
    """The program is detached: it no longer needs debugger or terminal."""


class Go(msgspec.Struct, frozen=True, tag=True):
    """Run on from the stop of a number, 0 for the beginning; at any other stop it means nothing."""

    wish: Wish
    number: int = 0


class Pause(msgspec.Struct, frozen=True, tag=True):
    """Hold as soon as possible."""


class LetGo(msgspec.Struct, frozen=True, tag=True):
    """Run on without the debugger, also after it has ended."""


class End(msgspec.Struct, frozen=True, tag=True):
    """Close the trace and end."""


Message = Ready | Held | Released | Left | Go | Pause | LetGo | End

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Message).decode


class Connection:
    """One end of the socket. `receive` belongs to one thread, `send` to any: a message is small, and sent at once."""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end

    def send(self, message: Message) -> bool:
        """Send a message; False if the other side has ended."""
        body = _encode(message)
        try:
            self._socket.sendall(len(body).to_bytes(_LENGTH_BYTES, "big") + body)
        except OSError:
            return False
        return True

    def receive(self) -> Message | None:
        """Wait for the next message; None when the other side has ended or says what is not of the vocabulary."""
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
        """End the line, for a thread that waits in `receive` too."""
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

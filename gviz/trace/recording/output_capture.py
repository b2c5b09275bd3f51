"""Records the program's output and warnings as events, and still passes them on."""

from __future__ import annotations

import re
import sys
import threading
import warnings
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import takewhile
from typing import Any, TextIO

from gviz import emit
from gviz.emit import Channel
from gviz.events import Event, Printed, Warned
from gviz.source import call_stack

_LARGEST_PIECE = 8192
_FORK = re.compile(r"This process \(pid=\d+\) is multi-threaded, use of fork")
"""From 3.12 on, Python warns on a fork with several threads running, and gviz's writer thread always runs."""

_ended: deque[Overheard] = deque(maxlen=8)
"""The last streams of finished recordings: ``print`` only borrows ``sys.stdout``, and may still be using one."""


class Overheard:
    """A text stream that passes everything on and records it line by line.

    It behaves like the original stream, also for ``isinstance(sys.stdout, io.TextIOWrapper)`` and in a
    ``with`` statement.
    """

    def __init__(self, stream: TextIO, name: str, channel: Channel) -> None:
        self._stream = stream
        self._name = name
        self._channel: Channel | None = channel
        self._line: list[str] = []
        self._length = 0

    @property  # type: ignore[misc]  # Python allows assigning it
    def __class__(self) -> Any:
        return type(self._stream)

    def write(self, text: str) -> int:
        """Write the text, and record it when a line is complete."""
        written = self._stream.write(text)
        if self._channel is not None and emit.channel is self._channel:
            self._line.append(text)
            self._length += len(text)
            if text.endswith(("\n", "\r")) or self._length > _LARGEST_PIECE:
                self.record()
        return written

    def writelines(self, lines: Iterable[str]) -> None:
        """Write several lines."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Flush the stream, and record an incomplete line."""
        self._stream.flush()
        self.record()

    def record(self) -> None:
        """Record what was written since the last call."""
        text, self._line, self._length = "".join(self._line), [], 0
        if text and self._channel is not None:
            _emit(self._channel, Printed(self._name, text))

    def end(self) -> None:
        """Record the rest; from now on only pass text on."""
        self.record()
        self._channel = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._stream)

    def __enter__(self) -> Overheard:
        return self

    def __exit__(self, *raised: object) -> None:
        self._stream.close()

    def __repr__(self) -> str:
        return repr(self._stream)


@contextmanager
def overhearing(channel: Channel) -> Iterator[None]:
    """Record ``sys.stdout`` and ``sys.stderr`` of this process."""
    before = sys.stdout, sys.stderr
    ours = [
        Overheard(stream, name, channel) for stream, name in zip(before, ("stdout", "stderr"), strict=True) if stream
    ]
    for stream in ours:
        setattr(sys, stream._name, stream)
    try:
        yield
    finally:
        _ended.extend(ours)
        for stream in ours:
            stream.end()
            if getattr(sys, stream._name, None) is stream:  # otherwise the program replaced it, and will restore ours
                setattr(sys, stream._name, stream._stream)


@contextmanager
def overhearing_warnings(channel: Channel) -> Iterator[None]:
    """Record every warning that is shown, and suppress those that only gviz causes."""
    before = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if _FORK.match(str(message)) and not _has_threads():
            return
        _emit(channel, Warned(category.__name__, str(message), channel.stack_number(_caller())))
        before(message, category, *where, **more)

    warnings.showwarning = show
    try:
        yield
    finally:
        if warnings.showwarning is show:
            warnings.showwarning = before


def _has_threads() -> bool:
    """Return whether the program has threads of its own."""
    others = (one for one in threading.enumerate() if one is not threading.main_thread())
    return any(not one.name.startswith("gviz") for one in others)


def _caller() -> call_stack.StackKey:
    """Return the stack that warned, without the frames of Python's own `warnings` module."""
    key = call_stack.stack()
    ours = takewhile(lambda code: code.co_filename == warnings.__file__, call_stack.codes(key))
    return key[2 * len(list(ours)) :]


def _emit(channel: Channel, event: Event) -> None:
    if emit.channel is channel:
        channel.emit(event)

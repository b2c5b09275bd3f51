"""What the program writes and warns becomes events too, and still goes where it went."""

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
from gviz.source import site

_LARGEST_PIECE = 8192
_FORK = re.compile(r"This process \(pid=\d+\) is multi-threaded, use of fork")
"""Python's warning, from 3.12 on, to who forks beside other threads; the one that writes the trace is always there."""

_ended: deque[Overheard] = deque(maxlen=8)
"""The last streams of recordings that are over: ``print`` only borrows ``sys.stdout``, and may be at work with one."""


class Overheard:
    """A text stream that passes everything on, and says it line by line to a recording.

    It is what it stands for to whoever asks: ``isinstance(sys.stdout, io.TextIOWrapper)``, ``with sys.stdout as file``.
    """

    def __init__(self, stream: TextIO, name: str, channel: Channel) -> None:
        self._stream = stream
        self._name = name
        self._channel: Channel | None = channel
        self._line: list[str] = []
        self._length = 0

    @property  # type: ignore[misc]  # Python lets it be assigned to
    def __class__(self) -> Any:
        return type(self._stream)

    def write(self, text: str) -> int:
        """Write, and say what has become a line."""
        written = self._stream.write(text)
        if self._channel is not None and emit.channel is self._channel:
            self._line.append(text)
            self._length += len(text)
            if text.endswith(("\n", "\r")) or self._length > _LARGEST_PIECE:
                self.say()
        return written

    def writelines(self, lines: Iterable[str]) -> None:
        """Write several."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Flush, and say what is not a line yet."""
        self._stream.flush()
        self.say()

    def say(self) -> None:
        """Say what was written since."""
        text, self._line, self._length = "".join(self._line), [], 0
        if text and self._channel is not None:
            _say(self._channel, Printed(self._name, text))

    def end(self) -> None:
        """Say what is left, and from now on only pass on."""
        self.say()
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
    """Listen to ``sys.stdout`` and ``sys.stderr`` of this process."""
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
            if getattr(sys, stream._name, None) is stream:  # else somebody has replaced it, and will put ours back
                setattr(sys, stream._name, stream._stream)


@contextmanager
def overhearing_warnings(channel: Channel) -> Iterator[None]:
    """Say every warning that is shown, and show none of which gviz alone is the cause."""
    before = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if _FORK.match(str(message)) and not _has_threads():
            return
        _say(channel, Warned(category.__name__, str(message), channel.stack_number(_caller())))
        before(message, category, *where, **more)

    warnings.showwarning = show
    try:
        yield
    finally:
        if warnings.showwarning is show:
            warnings.showwarning = before


def _has_threads() -> bool:
    """Whether the program has threads of its own."""
    others = (one for one in threading.enumerate() if one is not threading.main_thread())
    return any(not one.name.startswith("gviz") for one in others)


def _caller() -> site.StackKey:
    """The stack that warned, without the frames of Python's own machinery for warnings."""
    key = site.stack()
    ours = takewhile(lambda code: code.co_filename == warnings.__file__, site.codes(key))
    return key[2 * len(list(ours)) :]


def _say(channel: Channel, event: Event) -> None:
    if emit.channel is channel:
        channel.say(event)

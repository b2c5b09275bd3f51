"""The stretches of a program between two of its marks: outside nobody listens, and it runs as fast as alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from gviz import emit
from gviz.emit import Channel


@dataclass(frozen=True, slots=True)
class Window:
    """Every stretch from a mark called `first` to the next one called `last`, as often as the program comes there.

    Empty, they are the beginning and the end.
    """

    first: str = ""
    last: str = ""

    @contextmanager
    def watched(self, channel: Channel) -> Iterator[None]:
        """While this is entered, the program's marks begin and end what `channel` hears."""
        global _watched
        if self == ALL:
            yield
            return
        before, _watched = _watched, (self, channel)
        if self.first:
            emit.detach()
        try:
            yield
        finally:
            _watched = before


ALL = Window()
_watched: tuple[Window, Channel] | None = None


def begin_at(mark: str) -> None:
    """The program has come to a mark: if a stretch begins there, listen."""
    if _watched is not None and _watched[0].first == mark and emit.channel is None:
        emit.attach(_watched[1])


def end_at(mark: str) -> None:
    """If a stretch ends at a mark, stop listening."""
    if _watched is not None and _watched[0].last == mark and emit.channel is _watched[1]:
        emit.detach()

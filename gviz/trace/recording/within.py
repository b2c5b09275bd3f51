"""A recording that a program makes of itself while all of it is being recorded already."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from gviz import notice
from gviz.representation import Displayed

if TYPE_CHECKING:
    from gviz.trace.recording.record import Recording


class Within(Displayed):
    """What a program gets for a recording of its own while all of it is being recorded: a stretch of that one."""

    def __init__(self, outer: Recording) -> None:
        self._outer = outer
        notice.say(f"gviz: already recording to {outer.path}; this inner recording is left out")

    def __enter__(self) -> Within:
        return self

    def __exit__(self, *raised: object) -> None:
        pass

    def __len__(self) -> int:
        """The number of events of the whole program that have reached the file."""
        return len(self._outer)

    @property
    def path(self) -> Path:
        """The trace of the whole program."""
        return self._outer.path

    @property
    def active(self) -> bool:
        """Whether the program is still recorded."""
        return self._outer.active

    def along_with(self, listen: Callable[[Recording], AbstractContextManager[object]]) -> Within:
        """Nobody else listens: the recording of the program has its listeners."""
        return self

    def node_of(self, tensor: object) -> int:
        """Which node of the recording a tensor is, 0 if it is none."""
        return self._outer.node_of(tensor)

    def flush(self) -> None:
        """Bring everything said so far into the file."""
        self._outer.flush()

    def __fspath__(self) -> str:
        """The trace of the whole program, with everything said so far in it."""
        return os.fspath(self._outer)

    def close(self) -> None:
        """The recording of the program goes on."""

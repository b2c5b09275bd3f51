"""Frames of call stacks in every view: which belong to the program, not to a library, and how a place is written."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gviz.source.call_stack import Frame
from gviz.trace.graph_state import NodeInfo
from gviz.values.plain_text import clipped, file_line, file_name
from gviz.values.value_text import CUT


def at_text(frames: tuple[Frame, ...]) -> str:
    """Return the place in the source, for use after "made": `` at demo.py:4``."""
    at = own_frame(frames)
    return f" at {file_line(at.path, at.line)}" if at is not None else ""


_LIBRARIES = re.compile(r"[/\\](?:site|dist)-packages[/\\]|[/\\]lib(?:64)?[/\\]python3[\d.]*[/\\]", re.IGNORECASE)
"""Where Python keeps code that is not the program's own: installed packages and the standard library."""


def is_of_library(path: str) -> bool:
    """Return whether a file belongs to an installed package or the standard library."""
    return bool(_LIBRARIES.search(path))


def own_frames(frames: Sequence[Frame]) -> list[Frame]:
    """Return the frames of the program itself, not of installed packages or the standard library."""
    return [frame for frame in frames if not _LIBRARIES.search(frame.path)]


def own_frame(frames: Sequence[Frame]) -> Frame | None:
    """Return the innermost frame of the program itself, not of an installed package; or else the innermost of all."""
    return next((frame for frame in frames if not _LIBRARIES.search(frame.path)), frames[0] if frames else None)


def frame_text(frame: Frame, width: int = 60) -> str:
    """Return a frame in one line: ``demo.py:4 in train``. A long file name is clipped at its beginning."""
    function = "" if frame.function == "<module>" else f" in {clipped(frame.function, 60)}"
    name, line = file_name(frame.path), f":{frame.line}"
    room = max(width - len(line), 8)
    short_name = name if len(name) <= room else CUT + name[1 - room :]
    return f"{short_name}{line}{function}"


def innermost(info: NodeInfo) -> Frame | None:
    """Return the line of the program that made a node, if it is known."""
    return own_frame(info.frames)

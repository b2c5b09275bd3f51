"""Shows a program only the frames it would have under plain ``python``.

Frames by which a recording listens in the middle of the program are left out of tracebacks and stacks.
"""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Iterator
from functools import wraps
from types import FrameType, TracebackType

from gviz.source.call_stack import of_listening


def show_stacks() -> None:
    """Make `traceback` and `inspect` show only the program's own frames from now on."""
    walk, outer = traceback.walk_stack, inspect.getouterframes

    @wraps(walk)
    def walk_stack(f: FrameType | None) -> Iterator[tuple[FrameType, int]]:
        # Without a frame, it finds its caller by counting frames, and this function would be one more.
        return walk(f) if f is None else iter([(frame, frame.f_lineno) for frame in _of_the_program(f)])

    @wraps(outer)
    def getouterframes(frame: FrameType, context: int = 1) -> list[inspect.FrameInfo]:
        own = set(map(id, _of_the_program(frame)))
        return [info for info in outer(frame, context) if id(info.frame) in own]

    traceback.walk_stack, inspect.getouterframes = walk_stack, getouterframes


def _of_the_program(frame: FrameType | None) -> list[FrameType]:
    """Return the frames, innermost first, that belong to the program or to what it uses."""
    frames: list[FrameType] = []
    while frame is not None:
        frames.append(frame)
        frame = frame.f_back
    ours = of_listening([frame.f_code for frame in reversed(frames)])
    return [frame for up, frame in enumerate(frames, 1) if len(frames) - up not in ours]


def leave_out_listening(entry: TracebackType | None) -> None:
    """Remove gviz's listening frames from a traceback, which begins with one of the program's."""
    entries = []
    while entry is not None:
        entries.append(entry)
        entry = entry.tb_next
    ours = of_listening([entry.tb_frame.f_code for entry in entries])
    left = None
    for place, entry in reversed([*enumerate(entries)]):
        if place not in ours:
            entry.tb_next = left
            left = entry

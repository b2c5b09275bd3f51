"""What a program is shown of its frames: those that it would have under ``python``, where nobody listens.

Where tracebacks and stacks are made of them, those by which a recording listens in the middle of its work are left out.
"""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Iterator
from functools import wraps
from types import FrameType, TracebackType

from gviz.source.site import of_listening


def show_stacks() -> None:
    """From now on `traceback` and `inspect` see stacks of the program alone."""
    walk, outer = traceback.walk_stack, inspect.getouterframes

    @wraps(walk)
    def walk_stack(f: FrameType | None) -> Iterator[tuple[FrameType, int]]:
        # Without a frame it finds its caller by counting frames, and one more would be between them.
        return walk(f) if f is None else iter([(frame, frame.f_lineno) for frame in _of_the_program(f)])

    @wraps(outer)
    def getouterframes(frame: FrameType, context: int = 1) -> list[inspect.FrameInfo]:
        own = set(map(id, _of_the_program(frame)))
        return [info for info in outer(frame, context) if id(info.frame) in own]

    traceback.walk_stack, inspect.getouterframes = walk_stack, getouterframes


def _of_the_program(frame: FrameType | None) -> list[FrameType]:
    """The frames from here outwards that are the program's own, or of what it uses, innermost first."""
    frames: list[FrameType] = []
    while frame is not None:
        frames.append(frame)
        frame = frame.f_back
    ours = of_listening([frame.f_code for frame in reversed(frames)])
    return [frame for up, frame in enumerate(frames, 1) if len(frames) - up not in ours]


def leave_out_listening(entry: TracebackType | None) -> None:
    """Take the frames by which gviz listens out of a traceback; it begins with one of the program's."""
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

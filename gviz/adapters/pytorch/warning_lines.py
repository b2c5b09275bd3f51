"""Attributes warnings of PyTorch's own code to the line of the program that they concern.

Warnings of its Python code count frames outwards, so they must skip the frames that gviz adds. Warnings of its C++ code
are attributed to the innermost Python frame, which is gviz's while it observes. So a warning shown for gviz's line is
issued again for the program's line, under the program's filters and its registry of warnings already shown.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import ExitStack
from functools import wraps
from pathlib import Path
from types import FrameType
from typing import Any

from gviz.adapters.pytorch.private_api import replace
from gviz.source.call_stack import of_listening

_HERE = str(Path(__file__).parent)
_MODULE = re.escape(__package__ or "")


def put_in(leaving: ExitStack) -> None:
    """Skip gviz's frames in stack levels, and reissue warnings that would be shown for a line of this package."""
    before, warn = warnings.showwarning, warnings.warn

    @wraps(warn)
    def counted(message: Any, category: Any = None, stacklevel: int = 1, *more: Any, **options: Any) -> None:
        warn(message, category, 1 + _up(sys._getframe(1), stacklevel), *more, **options)

    vars(counted)["_torchdynamo_disable"] = True  # as opaque to Dynamo as the C function that it replaces

    def show(message: Warning | str, category: type[Warning], filename: str, *where: Any, **more: Any) -> None:
        caller = _caller() if filename.startswith(_HERE) else None
        if caller is None:
            before(message, category, filename, *where, **more)
            return
        known = caller.f_globals.setdefault("__warningregistry__", {})
        name = caller.f_globals.get("__name__")
        warnings.warn_explicit(message, category, caller.f_code.co_filename, caller.f_lineno, name, known)

    warnings.filterwarnings("always", module=_MODULE)
    ours = warnings.filters[0]
    replace(warnings, "showwarning", show, leaving)
    replace(warnings, "warn", counted, leaving)

    def put_back() -> None:
        if ours in warnings.filters:
            warnings.filters.remove(ours)  # type: ignore[attr-defined]  # a list, although its type is different

    leaving.callback(put_back)


def _up(frame: FrameType, level: int) -> int:
    """Return the stack level from this frame that corresponds to `level` without gviz's frames."""
    own = list(_own_frames(frame))
    return own[level - 1][0] if 0 < level <= len(own) else level


def _caller() -> FrameType | None:
    """Return the innermost frame that belongs neither to gviz nor to Python's warnings module."""
    own = (frame for _, frame in _own_frames(sys._getframe(2)))
    return next((frame for frame in own if frame.f_code.co_filename != warnings.__file__), None)


def _own_frames(innermost: FrameType) -> Iterator[tuple[int, FrameType]]:
    """Return the frames from here outwards without those that gviz added, each with its level counted from 1."""
    frames: list[FrameType] = []
    frame: FrameType | None = innermost
    while frame is not None:
        frames.append(frame)
        frame = frame.f_back
    ours = of_listening([frame.f_code for frame in reversed(frames)])
    return ((up, frame) for up, frame in enumerate(frames, 1) if len(frames) - up not in ours)

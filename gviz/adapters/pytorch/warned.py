"""Warnings of PyTorch's own code, at the line of the program that they are about.

They are attributed to the innermost Python frame, which is gviz's while it listens. So what is shown for gviz's line is
warned again for the program's, under the program's filters and its count of what was shown before.
"""

from __future__ import annotations

import re
import sys
import warnings
from contextlib import ExitStack
from pathlib import Path
from types import FrameType
from typing import Any

from gviz.adapters.pytorch.regions import replace

_HERE = str(Path(__file__).parent)
_MODULE = re.escape(__package__ or "")


def put_in(leaving: ExitStack) -> None:
    """Hand on what would be shown for a line of this package to the frame that called it."""
    before = warnings.showwarning

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

    def put_back() -> None:
        if ours in warnings.filters:
            warnings.filters.remove(ours)  # type: ignore[attr-defined]  # a list, whatever its type says

    leaving.callback(put_back)


def _caller() -> FrameType | None:
    """The innermost frame that is not of this package, nor of Python's machinery for warnings."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename.startswith((_HERE, warnings.__file__)):
        frame = frame.f_back
    return frame

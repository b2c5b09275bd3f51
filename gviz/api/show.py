"""`gviz.show`: the debugger from within a program, on a trace or on the graph behind a tensor."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from gviz.api.moments import moment_of
from gviz.trace import load
from gviz.trace.timeline import Timeline
from gviz.tui import terminal
from gviz.tui.opening import open_debugger


def show(trace: str | os.PathLike[str] | Timeline | Any, *, at: int | str | None = None) -> None:
    """Open the debugger on a trace, at event or moment `at`, else where its program failed, else at its first event.

    A tensor stands for the graph behind it, of which only the leaves have values. Without a terminal it goes line by
    line.
    """
    if isinstance(trace, Timeline):
        timeline, title = trace, "gviz"
    elif isinstance(trace, str | os.PathLike):
        timeline, title = load(trace), Path(trace).name
    else:
        from gviz.api.make_dot import behind

        timeline, title = behind(trace), "graph"
        at = len(timeline) if at is None else at  # where it has all its nodes
    open_debugger(timeline, title, at=None if at is None else moment_of(timeline, at), plain=terminal.asks_for_lines())

"""Opens the debugger on a trace: full screen, or line by line where there is no terminal for it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from gviz.cli import terminal
from gviz.cli.settings import Settings

if TYPE_CHECKING:
    from gviz.trace.timeline import Timeline


def debug(trace: Path, settings: Settings, *, title: str, at: str | None = None) -> None:
    """Open the debugger on a trace, at the moment `at`, else at the program's failure, else at the first event."""
    from gviz.trace.reader import open_trace
    from gviz.trace.timeline import Timeline

    with open_trace(trace) as log:
        timeline = Timeline(log)
        start = moment(timeline, at) if at else _opening(timeline)
        if terminal.why_plain(settings):
            _line_by_line(timeline, start)
        else:
            _full_screen(timeline, start, settings, title=title)


def walk(trace: Path) -> None:
    """Go from node to node to the end, line by line, asking for nothing."""
    from gviz.trace.reader import open_trace
    from gviz.trace.timeline import Timeline
    from gviz.tui import plain

    with open_trace(trace) as log:
        timeline = Timeline(log)
        plain.debug(timeline, _steps(timeline), sys.stdin, sys.stdout)


def moment(timeline: Timeline, text: str) -> int:
    """The event number of a moment as people write it: ``12``, ``nan``, ``error``, ``bwd``, ``end``, a node's name."""
    from gviz.tui.cursor import Cursor

    return Cursor(timeline, 0).event_at(text)


def _opening(timeline: Timeline) -> int:
    return timeline.failures[-1] if timeline.failures else min(1, len(timeline))


def _steps(timeline: Timeline) -> Iterator[str]:
    from gviz.trace.navigation import next_node

    position, following = 0, next_node(timeline, 0)
    while following != position:
        yield "next"
        position, following = following, next_node(timeline, following)


def _line_by_line(timeline: Timeline, start: int) -> None:
    from gviz.tui import plain

    plain.debug(timeline, None, sys.stdin, sys.stdout, at=start)


def _full_screen(timeline: Timeline, start: int, settings: Settings, *, title: str) -> None:
    from gviz import tui

    terminal.forget_empty_no_color()
    tui.debug(timeline, title=title, at=start, ascii=terminal.needs_ascii(settings), theme=terminal.theme(settings))

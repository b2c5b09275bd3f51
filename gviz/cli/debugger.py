"""Opens the debugger on the trace in a file."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from gviz.cli.options import GlobalOptions
from gviz.system.gc_pause import uncollected
from gviz.tui import terminal
from gviz.tui.session_options import SessionOptions
from gviz.tui.terminal import unechoed

if TYPE_CHECKING:
    from gviz.trace.timeline import Timeline


def debug(
    trace: Path,
    settings: GlobalOptions,
    options: SessionOptions,
    *,
    at: str | None = None,
    commands: Iterable[str] | None = None,
) -> int:
    """Open the debugger on a trace, at the moment that `at` says if anything; the rest is as for `open_debugger`."""
    with unechoed(plain=bool(terminal.why_plain(asked=settings.plain))):
        with uncollected(lasting=True):
            from gviz.api.moment_argument import moment_of
            from gviz.trace.file.reader import open_trace
            from gviz.trace.timeline import Timeline
            from gviz.tui import open_debugger

        with open_trace(trace) as log:
            timeline = Timeline(log)
            if at:
                options = replace(options, at=moment_of(timeline, at))
            return open_debugger(
                timeline, options, plain=settings.plain, ascii=settings.ascii, theme=settings.theme, commands=commands
            )


def walk(trace: Path) -> None:
    """Go through a lesson from node to node to the end, line by line, asking for nothing."""
    from gviz.trace.file.reader import open_trace
    from gviz.trace.timeline import Timeline
    from gviz.tui import line_mode

    with open_trace(trace) as log:
        timeline = Timeline(log)
        line_mode.debug(timeline, _steps(timeline), sys.stdin, sys.stdout, SessionOptions(at=0, lesson=True))


def _steps(timeline: Timeline) -> Iterator[str]:
    from gviz.trace.navigation import next_node

    position, following = 0, next_node(timeline, 0)
    while following != position:
        yield "next"
        position, following = following, next_node(timeline, following)

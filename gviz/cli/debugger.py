"""Opens the debugger on the trace in a file."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gviz.cli.settings import GlobalOptions
from gviz.garbage import uncollected
from gviz.tui import terminal
from gviz.tui.echo import unechoed

if TYPE_CHECKING:
    from gviz.trace.timeline import Timeline
    from gviz.tui.title import Title


def debug(
    trace: Path,
    settings: GlobalOptions,
    *,
    title: Title,
    at: str | None = None,
    lesson: bool = False,
    opening: Sequence[str] = (),
    commands: Iterable[str] | None = None,
    waited_for: bool = False,
) -> int:
    """Open the debugger on a trace, at the moment `at`, else at the program's failure, else at the first event.

    The rest is as for `open_debugger`.
    """
    with unechoed(plain=bool(terminal.why_plain(asked=settings.plain))):
        with uncollected(lasting=True):
            from gviz.api.moments import moment_of
            from gviz.trace.file.reader import open_trace
            from gviz.trace.timeline import Timeline
            from gviz.tui.opening import open_debugger

        with open_trace(trace) as log:
            timeline = Timeline(log)
            start = moment_of(timeline, at) if at else None
            return open_debugger(
                timeline, title, at=start, plain=settings.plain, ascii=settings.ascii, theme=settings.theme,
                lesson=lesson, opening=opening, commands=commands, waited_for=waited_for,
            )  # fmt: skip


def walk(trace: Path) -> None:
    """Go through a lesson from node to node to the end, line by line, asking for nothing."""
    from gviz.trace.file.reader import open_trace
    from gviz.trace.timeline import Timeline
    from gviz.tui import plain

    with open_trace(trace) as log:
        timeline = Timeline(log)
        plain.debug(timeline, _steps(timeline), sys.stdin, sys.stdout, at=0, lesson=True)


def _steps(timeline: Timeline) -> Iterator[str]:
    from gviz.trace.navigation import next_node

    position, following = 0, next_node(timeline, 0)
    while following != position:
        yield "next"
        position, following = following, next_node(timeline, following)

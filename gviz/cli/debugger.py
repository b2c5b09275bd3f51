"""Opens the debugger on a trace: full screen, or line by line where there is no terminal for it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gviz.cli import terminal
from gviz.cli.settings import Settings

if TYPE_CHECKING:
    from gviz.trace.timeline import Timeline


def debug(
    trace: Path,
    settings: Settings,
    *,
    title: str,
    at: str | None = None,
    lesson: bool = False,
    opening: Sequence[str] = (),
    commands: Iterable[str] | None = None,
) -> int:
    """Open the debugger on a trace, at the moment `at`, else at the program's failure, else at the first event.

    A `lesson` begins with its own text. The commands of `opening` are carried out before anybody types. Line by line,
    `commands` are carried out instead of what is typed; the exit code is 2 if one of them, or of what a pipe gives, was
    refused.
    """
    from gviz.trace.reader import open_trace
    from gviz.trace.timeline import Timeline
    from gviz.words.moments import event_at

    with open_trace(trace) as log:
        timeline = Timeline(log)
        start = event_at(timeline, at) if at else None
        return _debug(timeline, settings, title, start, lesson=lesson, opening=opening, commands=commands)


def show(trace: str | os.PathLike[str] | Timeline | Any, *, at: int | None) -> None:
    """`gviz.show`: the debugger from within a program, on a trace or on the graph behind a tensor."""
    from gviz.trace import load
    from gviz.trace.timeline import Timeline

    settings = Settings.from_environment()
    if isinstance(trace, str | os.PathLike):
        _debug(load(trace), settings, Path(trace).name, at)
    elif isinstance(trace, Timeline):
        _debug(trace, settings, "gviz", at)
    else:
        from gviz.digraph import behind

        timeline = behind(trace)
        _debug(timeline, settings, "graph", len(timeline) if at is None else at)


def walk(trace: Path) -> None:
    """Go through a lesson from node to node to the end, line by line, asking for nothing."""
    from gviz.trace.reader import open_trace
    from gviz.trace.timeline import Timeline
    from gviz.tui import plain

    with open_trace(trace) as log:
        timeline = Timeline(log)
        plain.debug(timeline, _steps(timeline), sys.stdin, sys.stdout, at=0, lesson=True)


def _debug(
    timeline: Timeline,
    settings: Settings,
    title: str,
    at: int | None,
    *,
    lesson: bool = False,
    opening: Sequence[str] = (),
    commands: Iterable[str] | None = None,
) -> int:
    from gviz import tui
    from gviz.tui import plain

    if terminal.why_plain(settings):
        talk = plain.debug(
            timeline, commands, sys.stdin, sys.stdout, at=at, lesson=lesson, opening=opening, title=title
        )
        return 2 if talk.refused and not sys.stdin.isatty() else 0
    else:
        ascii = terminal.needs_ascii(settings)
        theme = settings.theme
        tui.debug(timeline, title=title, at=at, ascii=ascii, theme=theme, lesson=lesson, opening=opening)
    return 0


def _steps(timeline: Timeline) -> Iterator[str]:
    from gviz.trace.navigation import next_node

    position, following = 0, next_node(timeline, 0)
    while following != position:
        yield "next"
        position, following = following, next_node(timeline, following)

"""Opens the debugger: full screen, or line by line where there is no terminal for it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from gviz import tui
from gviz.tui import terminal

if TYPE_CHECKING:
    from gviz.trace.timeline import Timeline
    from gviz.tui.title import Title


def open_debugger(
    timeline: Timeline,
    title: Title,
    *,
    at: int | None = None,
    plain: bool = False,
    ascii: bool = False,
    theme: str | None = None,
    lesson: bool = False,
    opening: Sequence[str] = (),
    commands: Iterable[str] | None = None,
) -> int:
    """Open the debugger on a timeline, at event `at`, else at the program's failure, else at the first event.

    A `lesson` begins with its own text. The commands of `opening` are carried out before anybody types. Line by line,
    `commands` are carried out instead of what is typed; the exit code is 2 if one of them, or of what a pipe gives, was
    refused.
    """
    if not terminal.why_plain(asked=plain):
        narrow = terminal.needs_ascii(asked=ascii)
        tui.debug(timeline, title=title, at=at, ascii=narrow, theme=theme, lesson=lesson, opening=opening)
        return 0
    from gviz.tui.plain import debug

    talk = debug(timeline, commands, sys.stdin, sys.stdout, at=at, lesson=lesson, opening=opening, title=title)
    return 2 if talk.refused and not sys.stdin.isatty() else 0

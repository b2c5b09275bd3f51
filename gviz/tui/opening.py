"""Opens the debugger: full screen, or line by line where there is no terminal for it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from gviz import tui
from gviz.tui import terminal
from gviz.tui.leaving import EXIT_CODES

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
    waited_for: bool = False,
) -> int:
    """Open the debugger on a timeline, at event `at`, else at the program's failure, else at the first event.

    A `lesson` begins with its own text. The commands of `opening` are carried out before anybody types. Line by line,
    `commands` are carried out instead of what is typed; the exit code is 2 if one of them, or of what a pipe gives, was
    refused. A program that has `waited_for` the debugger learns from the exit code what is to become of it.
    """
    if not terminal.why_plain(asked=plain):
        narrow = terminal.needs_ascii(asked=ascii)
        left = tui.debug(
            timeline, title=title, at=at, ascii=narrow, theme=theme, lesson=lesson, opening=opening,
            waited_for=waited_for,
        )  # fmt: skip
        return EXIT_CODES[left]
    from gviz.tui.plain import debug, leaving

    talk = debug(
        timeline, commands, sys.stdin, sys.stdout, at=at, lesson=lesson, opening=opening, title=title,
        waited_for=waited_for,
    )  # fmt: skip
    if waited_for:
        return EXIT_CODES[leaving(talk, sys.stdin, sys.stdout)]
    return 2 if talk.refused and not sys.stdin.isatty() else 0

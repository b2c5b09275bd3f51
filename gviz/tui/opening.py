"""Opens the debugger: full screen, or line by line where there is no terminal for it."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from gviz import tui
from gviz.tui import terminal
from gviz.tui.leaving import EXIT_CODES

if TYPE_CHECKING:
    from gviz.trace.timeline import Timeline
    from gviz.tui.beginning import Beginning


def open_debugger(
    timeline: Timeline,
    beginning: Beginning,
    *,
    plain: bool = False,
    ascii: bool = False,
    theme: str | None = None,
    commands: Iterable[str] | None = None,
) -> int:
    """Open the debugger on a timeline and give the exit code.

    Line by line, `commands` are carried out instead of what is typed; the exit code is 2 if one of them, or of what a
    pipe gives, was refused. A program that waits learns from the exit code what is to become of it.
    """
    if not terminal.why_plain(asked=plain):
        left = tui.debug(timeline, beginning, ascii=terminal.needs_ascii(asked=ascii), theme=theme)
        return EXIT_CODES[left]
    from gviz.tui.plain import debug, leaving

    talk = debug(timeline, commands, sys.stdin, sys.stdout, beginning)
    if beginning.waited_for:
        return EXIT_CODES[leaving(talk, sys.stdin, sys.stdout)]
    return 2 if talk.refused and not terminal.is_terminal(sys.stdin) else 0

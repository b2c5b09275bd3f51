"""``gviz tutor``: a guided lesson that waits for the right key."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from gviz.cli import lessons
from gviz.cli.options import GlobalOptions, display_options
from gviz.cli.program_run import Program, record_program
from gviz.tui.session_options import Title


@click.command("tutor")
@display_options
@click.pass_obj
def command(settings: GlobalOptions) -> None:
    """Learn the debugger in three minutes.

    Each page shows which key to press and waits for it. The program is the first lesson.
    """
    lesson = lessons.find(None)
    recorded = record_program(Program((str(lesson.path),), engine="builtin"))
    _teach(recorded.trace, Title(lesson.path.name), settings)


def _teach(trace: Path, title: Title, settings: GlobalOptions) -> None:
    from gviz import tui
    from gviz.trace.file.reader import open_trace
    from gviz.trace.timeline import Timeline
    from gviz.tui import line_mode, terminal

    with open_trace(trace) as log:
        timeline = Timeline(log)
        if terminal.why_plain(plain=settings.plain):
            line_mode.teach(timeline, sys.stdin, sys.stdout)
        else:
            tui.teach(timeline, title=title, ascii=terminal.needs_ascii(ascii=settings.ascii), theme=settings.theme)

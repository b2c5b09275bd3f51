"""``gviz demo``: step through a lesson."""

from __future__ import annotations

import sys
from itertools import chain
from pathlib import Path

import click

from gviz.cli import debugger, lessons, streams
from gviz.cli.options import GlobalOptions, display_options
from gviz.cli.picture_files import write_picture
from gviz.cli.program_run import Program, record_program
from gviz.program.recording_request import Engine
from gviz.tui import terminal
from gviz.tui.session_options import SessionOptions, Title


@click.command("demo")
@click.argument("name", required=False)
@click.option("--list", "list_all", is_flag=True, help="List the lessons, easiest first.")
@display_options
@click.pass_obj
def command(settings: GlobalOptions, name: str | None, list_all: bool) -> int:
    """Open the debugger on a lesson.

    Without NAME it opens the first lesson. Without a terminal it reads commands from standard input; if there are
    none, it steps through the lesson and writes its picture.
    """
    if list_all:
        _list()
        return 0
    lesson = lessons.find(name)
    engine: Engine = "torch" if lesson.needs_pytorch else "builtin"
    recorded = record_program(Program((str(lesson.path),), engine=engine))
    piped = terminal.why_plain(plain=settings.plain) and not settings.plain and not sys.stdin.isatty()
    first = sys.stdin.readline() if piped else ""
    if piped and not first:
        _walk(recorded.trace)
    else:
        commands = chain([first], sys.stdin) if piped else None
        options = SessionOptions(Title(lesson.path.name), lesson=True)
        return debugger.debug(recorded.trace, settings, options, commands=commands)
    return recorded.exit_code


def _list() -> None:
    every = lessons.lessons()
    width = max((len(lesson.name) for lesson in every), default=0)
    for lesson in every:
        if lesson is next((one for one in every if one.needs_pytorch), None):
            click.echo("\nfor users of PyTorch (pip install 'gviz[torch]'):")
        click.echo(f"{lesson.number}  {lesson.name:<{width}}  {lesson.title()}")


def _walk(trace: Path) -> None:
    streams.show("gviz: no commands on standard input: stepping through the lesson line by line")
    debugger.walk(trace)
    picture = trace.with_suffix(".svg")
    write_picture(trace, picture, force=True)
    streams.show(f"wrote {picture}")

"""``gviz demo``: step through a lesson."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from gviz.cli import debugger, lessons, terminal
from gviz.cli.picture import write_picture
from gviz.cli.session import Program, record_program
from gviz.cli.settings import Settings, display_options


@click.command("demo")
@click.argument("name", required=False)
@click.option("--list", "list_all", is_flag=True, help="List the lessons, easiest first.")
@display_options
@click.pass_obj
def command(settings: Settings, name: str | None, list_all: bool) -> int:
    """Open the debugger on a lesson: the first one, or the one called NAME.

    Without a terminal it walks through the lesson in plain lines and writes its picture.
    """
    if list_all:
        _list()
        return 0
    lesson = lessons.find(name)
    recorded = record_program(Program((str(lesson.path),), engine="builtin"))
    why_plain = terminal.why_plain(settings)
    if why_plain and not settings.plain and not sys.stdin.isatty():
        _walk(recorded.trace, why_plain)
    else:
        debugger.debug(recorded.trace, settings, title=lesson.path.name)
    return recorded.exit_code


def _list() -> None:
    every = lessons.lessons()
    width = max((len(lesson.name) for lesson in every), default=0)
    for lesson in every:
        click.echo(f"{lesson.number}  {lesson.name:<{width}}  {lesson.title()}")


def _walk(trace: Path, why_plain: str) -> None:
    click.echo(f"gviz: {why_plain}: walking through the lesson line by line", err=True)
    debugger.walk(trace)
    picture = trace.with_suffix(".svg")
    write_picture(trace, picture, force=True)
    click.echo(f"wrote {picture}", err=True)

"""``gviz info``: what a bug report needs."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from gviz.cli import lessons
from gviz.cli.options import GlobalOptions
from gviz.errors import GvizError
from gviz.trace.file import paths
from gviz.tui import terminal
from gviz.values.plain_text import shown
from gviz.version import versions


@click.command("info")
@click.option("--format", type=click.Choice(["text", "json"]), default="text", help="Output format.")
@click.argument("trace", required=False, metavar="")
@click.pass_obj
def command(settings: GlobalOptions, format: str, trace: str | None) -> None:
    """Show versions, paths and what the terminal can do."""
    from gviz.cli import json_form

    if trace is not None:
        hint = f"gviz show {shown(trace)} prints what a trace contains"
        raise GvizError("info is about gviz itself", hint=hint, exit_code=2)
    facts = _facts(settings)
    click.echo(json_form.text(**facts) if format == "json" else _text(facts))


def _facts(settings: GlobalOptions) -> dict[str, dict[str, Any]]:
    return {
        "versions": versions(),
        "paths": _paths(),
        "terminal": _terminal(settings),
        "pictures": _pictures(),
    }


def _paths() -> dict[str, str]:
    from gviz import __file__ as package
    from gviz.system.crash import reports

    return {
        "gviz": os.path.dirname(package),
        "python": sys.executable,
        "lessons": str(lessons.folder()),
        "traces": str(paths.traces()),
        "reports": str(reports()),
    }


def _terminal(settings: GlobalOptions) -> dict[str, Any]:
    import locale
    import shutil

    why_plain = terminal.why_plain(plain=settings.plain)
    columns, rows = shutil.get_terminal_size()
    return {
        "size": f"{columns}x{rows}",
        "TERM": os.environ.get("TERM", ""),
        "COLORTERM": os.environ.get("COLORTERM", ""),
        "NO_COLOR": os.environ.get("NO_COLOR", ""),
        "encoding": locale.getencoding(),
        "debugger": f"line by line ({why_plain})" if why_plain else "full screen",
        "characters": "ASCII" if terminal.needs_ascii(ascii=settings.ascii) else "Unicode",
    }


def _pictures() -> dict[str, Any]:
    from gviz.render.file_formats import EXPORTERS

    return {"formats": " ".join(exporter.name for exporter in EXPORTERS), "fonts": _fonts()}


def _fonts() -> str:
    from gviz.render.graphviz.process import has_font

    try:
        return "found" if has_font() else "none: svg and dot are complete, png and pdf come without text"
    except GvizError as error:
        return f"unknown: {error}"


def _text(facts: dict[str, dict[str, Any]]) -> str:
    lines = []
    for head, entries in facts.items():
        lines += [head, *(f"  {name:<12} {shown(str(value))}".rstrip() for name, value in entries.items())]
    return "\n".join(lines)

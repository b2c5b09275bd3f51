"""``gviz explain``: why a value, a gradient, or none; why a program failed."""

from __future__ import annotations

from pathlib import Path

import click

from gviz.cli import answers
from gviz.cli.moment import at_option


@click.command("explain")
@click.argument("trace", type=click.Path(path_type=Path))
@click.argument("place", metavar="[PLACE[.grad|.value]]", required=False)
@at_option("The moment asked about")
@click.option("--all", "whole", is_flag=True, help="Print every line of a long answer.")
@click.option("--format", "kind", type=click.Choice(["text", "json"]), default="text", help="How to print it.")
def command(trace: Path, place: str | None, at: str | None, whole: bool, kind: str) -> None:
    """Say why a node has the value or gradient it has, or none: the facts, the lines, the fix.

    PLACE is a node as #4, a name, an operation or demo.py:4, of its nodes the last one made; `error` asks why the
    program failed, `nan` where the first nan (else inf) came from, `alive` which graphs are alive. Without PLACE: why
    it failed, or what else is wrong.
    """
    from gviz.trace.file.reader import open_trace
    from gviz.trace.timeline import Timeline

    with open_trace(trace) as log:
        answers.say(answers.answer(Timeline(log), place, at), kind, whole=whole)

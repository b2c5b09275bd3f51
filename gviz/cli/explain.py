"""``gviz explain``: why a value, a gradient, or none."""

from __future__ import annotations

from pathlib import Path

import click

from gviz.errors import GvizError


@click.command("explain")
@click.argument("trace", type=click.Path(path_type=Path))
@click.argument("place", metavar="PLACE[.grad|.value]")
@click.option("--at", metavar="MOMENT", help="An event number, start, end (unless given), nan, error, fwd or bwd.")
@click.option("--format", "kind", type=click.Choice(["text", "json"]), default="text", help="How to print it.")
def command(trace: Path, place: str, at: str | None, kind: str) -> None:
    """Say why a node has the value or gradient it has, or none: the facts, the lines, the fix.

    PLACE is a node as #4, a name, an operation or demo.py:4, of its nodes the last one made.
    """
    from gviz.cli import json_form
    from gviz.explain.finding import lines
    from gviz.trace.reader import open_trace
    from gviz.trace.timeline import Timeline
    from gviz.tui.cursor import Cursor
    from gviz.tui.looking import explanation

    with open_trace(trace) as log:
        timeline = Timeline(log)
        if not len(timeline.nodes):
            raise GvizError("this recording holds no nodes", exit_code=2)
        cursor = Cursor(timeline, 0)
        cursor.position = cursor.event_at(at) if at else len(timeline)
        found = explanation(cursor, place)
        if kind == "json":
            click.echo(json_form.text(finding=found))
            return
        for depth, text, event in lines(found):
            click.echo(f"{'  ' * depth}{text}{f'  [event {event}]' if event else ''}")

"""``gviz show``: what is in a trace, or in that of a script, as text or JSON."""

from __future__ import annotations

import click

from gviz.cli import shell, word_order
from gviz.cli.moment import at_option
from gviz.cli.pages import PAGES
from gviz.cli.program import Program, engine_option
from gviz.cli.quietly import trace_of
from gviz.cli.script_arguments import OptionsBehind
from gviz.errors import GvizError
from gviz.program.order import Engine


@click.command("show", cls=OptionsBehind)
@click.argument("source", metavar="TRACE|SCRIPT")
@click.argument("page", type=word_order.Page(PAGES), default="stats", required=False, metavar=f"[{'|'.join(PAGES)}]")
@click.argument("place", required=False, metavar="[NODE]")
@at_option("For tape and node, the moment")
@click.option("--format", "kind", type=click.Choice(["text", "json"]), default="text", help="How to print it.")
@engine_option
def command(
    source: str, arguments: tuple[str, ...], page: str, place: str | None, at: str | None, kind: str, engine: Engine
) -> None:
    """Print what is in a trace, or in that of a script, which is run for it and not kept.

    stats: how much of what; passes: the iterations, their passes and losses; tape: every node at one moment (the end);
    events: everything that happened, in order; node NODE: one node (#4 or its name) at one moment.
    """
    if (page == "node") != (place is not None):
        raise GvizError("node, and only node, needs a NODE", hint=f"gviz show {shell.word(source)} node 4", exit_code=2)
    from gviz.api.moments import moment_of
    from gviz.cli import json_form
    from gviz.trace.file.reader import open_trace
    from gviz.trace.timeline import Timeline
    from gviz.words.names import NamedNodes
    from gviz.words.nodes import node_at

    with trace_of(Program((source, *arguments), engine=engine)) as trace, open_trace(trace) as log:
        timeline = Timeline(log)
        n = moment_of(timeline, at) if at else len(timeline)
        node = node_at(NamedNodes(timeline), place or "", n)
        data, text = PAGES[page]
        if kind == "json":
            click.echo(json_form.text(**{page: data(timeline, n, node)}))
        else:
            for line in text(timeline, n, node):
                click.echo(line)

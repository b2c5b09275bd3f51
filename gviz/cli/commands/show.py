"""``gviz show``: what is in a trace, or in that of a script, as text or JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gviz.cli import recordings, shell, word_order
from gviz.cli.moment import at_option
from gviz.cli.pages import PAGES
from gviz.cli.program import Program, engine_option
from gviz.cli.quietly import trace_of
from gviz.cli.script_arguments import OptionsBehind
from gviz.errors import GvizError
from gviz.program.order import Engine

if TYPE_CHECKING:
    from gviz.trace.timeline import Timeline


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
    """Print what is in a trace, or in that of a script, which is run for it and not kept; of a folder, rank by rank.

    stats: how much of what; passes: the iterations, their passes and losses; tape: every node at one moment (the end);
    events: everything that happened, in order; node NODE: one node (#4 or its name) at one moment.
    """
    if (page == "node") != (place is not None):
        raise GvizError("node, and only node, needs a NODE", hint=f"gviz show {shell.word(source)} node 4", exit_code=2)
    data, text = PAGES[page]
    with trace_of(Program((source, *arguments), engine=engine)) as trace, recordings.opened(trace) as given:
        recordings.say(
            given,
            kind,
            lambda timeline: text(timeline, *_meant(timeline, at, place)),
            lambda timeline: {page: data(timeline, *_meant(timeline, at, place))},
        )


def _meant(timeline: Timeline, at: str | None, place: str | None) -> tuple[int, int]:
    """The moment and the node (0: none) that are asked for."""
    from gviz.api.moments import moment_of
    from gviz.query.names import NamedNodes
    from gviz.query.nodes import node_at

    n = moment_of(timeline, at) if at else len(timeline)
    return n, node_at(NamedNodes(timeline), place or "", n)

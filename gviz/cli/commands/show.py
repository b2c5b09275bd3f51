"""``gviz show``: prints the contents of a trace, page by page: `gviz.cli.recording_pages`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gviz.cli import argument_order, recording_input, shell_quoting
from gviz.cli.argument_order import OptionsAfterScript
from gviz.cli.options import at_option
from gviz.cli.program_run import Program, engine_option
from gviz.cli.recording_input import trace_of
from gviz.cli.recording_pages import PAGES
from gviz.errors import GvizError
from gviz.program.recording_request import Engine

if TYPE_CHECKING:
    from gviz.trace.timeline import Timeline


@click.command("show", cls=OptionsAfterScript)
@click.argument("source", metavar="TRACE|SCRIPT")
@click.argument(
    "page", type=argument_order.Page(PAGES), default="stats", required=False, metavar=f"[{'|'.join(PAGES)}]"
)
@click.argument("place", required=False, metavar="[NODE]")
@at_option("The moment that summary, training, tape, node and memory show")
@click.option("--format", type=click.Choice(["text", "json"]), default="text", help="Output format.")
@engine_option
def command(
    source: str, arguments: tuple[str, ...], page: str, place: str | None, at: str | None, format: str, engine: Engine
) -> None:
    """Print what a trace contains.

    A script is run first, and its trace is not kept. A folder with the traces of ranks is printed rank by rank.

    stats counts events, nodes and bytes. summary lists what one iteration does line by line, what its losses are made
    from, and where gradients stop. passes lists the iterations with their passes and losses. training draws the
    loss and the gradients of each module over all passes. tape lists every node at one moment. events lists every event
    in order. node NODE prints one node (#4 or its name). memory shows what the graph of an iteration keeps for
    backward, and its peak. time shows the time of each module call in a recording of gviz monitor.
    """
    if (page == "node") != (place is not None):
        raise GvizError(
            "the page node needs a NODE, and no other page takes one",
            hint=f"gviz show {shell_quoting.word(source)} node 4",
            exit_code=2,
        )
    data, text = PAGES[page]
    with trace_of(Program((source, *arguments), engine=engine)) as trace, recording_input.opened(trace) as inputs:
        recording_input.print_answers(
            inputs,
            format,
            lambda timeline: text(timeline, *_meant(timeline, at, place)),
            lambda timeline: {page: data(timeline, *_meant(timeline, at, place))},
        )


def _meant(timeline: Timeline, at: str | None, place: str | None) -> tuple[int, int]:
    """Return the requested moment and node (0: none)."""
    from gviz.api.moment_argument import moment_of
    from gviz.query.nodes import NamedNodes, node_at

    n = moment_of(timeline, at) if at else len(timeline)
    return n, node_at(NamedNodes(timeline), place or "", n)

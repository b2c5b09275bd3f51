"""``gviz show``: what is in a trace, as text or JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gviz.errors import GvizError

if TYPE_CHECKING:
    from gviz.trace.timeline import Timeline

PAGES = ("stats", "tape", "events", "node")
_WIDTH = 120


@click.command("show")
@click.argument("trace", type=click.Path(path_type=Path))
@click.argument("page", type=click.Choice(PAGES), default="stats", required=False, metavar="[stats|tape|events|node]")
@click.argument("place", required=False, metavar="[NODE]")
@click.option("--at", metavar="MOMENT", help="For tape and node: an event number, start, end, nan, error, fwd or bwd.")
@click.option("--format", "kind", type=click.Choice(["text", "json"]), default="text", help="How to print it.")
def command(trace: Path, page: str, place: str | None, at: str | None, kind: str) -> None:
    """Print what is in a trace.

    stats: how much of what; tape: every node at one moment (the end); events: everything that happened, in order;
    node NODE: one node (#4 or its name) at one moment.
    """
    from gviz.cli.debugger import moment
    from gviz.trace.reader import open_trace
    from gviz.trace.timeline import Timeline

    if (page == "node") != (place is not None):
        raise GvizError("show node needs a node, and only show node", hint=f"gviz show {trace} node 4", exit_code=2)
    with open_trace(trace) as log:
        timeline = Timeline(log)
        n = moment(timeline, at) if at else len(timeline)
        if kind == "json":
            from gviz.cli import json_form

            click.echo(json_form.text(**{page: _DATA[page](timeline, n, place or "")}))
        else:
            for line in _TEXT[page](timeline, n, place or ""):
                click.echo(line)


def _stats(timeline: Timeline, n: int, place: str) -> dict[str, Any]:
    kinds = Counter(type(timeline.event(seq)).__name__ for seq in range(1, len(timeline) + 1))
    return {
        "events": len(timeline),
        "nodes": len(timeline.nodes),
        "iterations": len(timeline.iterations),
        "backward passes": sum(phase.kind == "backward" for phase in timeline.phases),
        "failures": list(timeline.failures),
        "first nan or inf": timeline.first_bad() or None,
        "kinds": dict(kinds.most_common()),
    }


def _tape(timeline: Timeline, n: int, place: str) -> list[dict[str, Any]]:
    moment = timeline.at(n)
    return [_row(timeline, node, moment.state(node)) for node in timeline.nodes]


def _row(timeline: Timeline, node: int, state: Any) -> dict[str, Any]:
    info = timeline.info(node)
    return {
        "node": node,
        "born": info.born,
        "name": info.name,
        "op": info.op.name,
        "kind": info.created.kind,
        "inputs": info.created.inputs,
        "outputs": [] if state is None else [{"value": out.value, "grad": out.grad} for out in state.outputs],
    }


def _events(timeline: Timeline, n: int, place: str) -> list[dict[str, Any]]:
    return [{"seq": seq, "is": timeline.event(seq)} for seq in range(1, len(timeline) + 1)]


def _node(timeline: Timeline, n: int, place: str) -> dict[str, Any]:
    node = _found(timeline, place)
    return {"info": timeline.info(node), "state": timeline.at(n).state(node), "events": list(timeline.events_of(node))}


def _found(timeline: Timeline, place: str) -> int:
    from gviz.tui.cursor import Cursor

    return Cursor(timeline, 0).node_at(f"#{place}" if place.isdecimal() else place)


def _stats_text(timeline: Timeline, n: int, place: str) -> Iterator[str]:
    stats = _stats(timeline, n, place)
    kinds = stats.pop("kinds")
    for name, value in stats.items():
        yield f"{name:<18} {_plain(value)}"
    yield ""
    for name, count in kinds.items():
        yield f"{name:<18} {count:,}"


def _plain(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(f"event {seq:,}" for seq in value) or "none"
    return "none" if value is None else f"{value:,}"


def _tape_text(timeline: Timeline, n: int, place: str) -> Iterator[str]:
    from gviz.tui.drawing import tape
    from gviz.tui.glyphs import UNICODE
    from gviz.tui.lines import plain

    columns = tape.columns_for(_WIDTH, max(timeline.nodes, default=0))
    yield plain(tape.heading(columns)).rstrip()
    for node in timeline.nodes:
        yield plain(tape.row(timeline, timeline.at(n), node, columns, UNICODE)).rstrip()


def _events_text(timeline: Timeline, n: int, place: str) -> Iterator[str]:
    from gviz.explain.happening import sentence

    return (sentence(timeline, seq) for seq in range(1, len(timeline) + 1))


_DATA: dict[str, Callable[[Timeline, int, str], Any]] = {
    "stats": _stats,
    "tape": _tape,
    "events": _events,
    "node": _node,
}
_TEXT: dict[str, Callable[[Timeline, int, str], Iterator[str]]] = {
    "stats": _stats_text,
    "tape": _tape_text,
    "events": _events_text,
}

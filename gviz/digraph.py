"""`gviz.make_dot`: a graph to be changed, shown in a notebook or written, as other tools hand theirs out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import msgspec

from gviz.emit import Channel, aside
from gviz.engine import Tensor, announce
from gviz.engine.node import AccumulateGrad, Node
from gviz.errors import GvizError
from gviz.events import Event, Marked, Named, NodeCreated
from gviz.render.dot import digraph
from gviz.render.exporters import last_moment, moment_scene
from gviz.render.graph import Graph
from gviz.render.scene import Options
from gviz.trace.log import MemoryLog
from gviz.trace.timeline import Timeline

Params = Mapping[str, Tensor] | Iterable[tuple[str, Tensor]]


def make_dot(
    of: Timeline | Tensor,
    params: Params | None = None,
    *,
    at: int | None = None,
    options: Options | None = None,
) -> Graph:
    """The graph of a recording at event `at` (else before the program took it down), or the graph behind a tensor.

    Of a tensor's graph only the leaves have values; `params` gives them names, as ``model.named_parameters()`` does.
    """
    if isinstance(of, Timeline):
        return digraph(moment_scene(of, last_moment(of) if at is None else at, options or Options()))
    if not isinstance(of, Tensor):
        raise GvizError(
            f"gviz cannot draw a {type(of).__module__}.{type(of).__qualname__}",
            hint="give it a tensor of gviz.engine, or what gviz.load answers",
            exit_code=2,
        )
    timeline = late(of, params or ())
    drawn = moment_scene(timeline, len(timeline), options or Options())
    return digraph(replace(drawn, caption=""))


def late(tensor: Tensor, params: Params) -> Timeline:
    """The graph behind a tensor that nobody recorded, as a recording that ends at a moment when nothing happens."""
    events: list[Event] = []

    def listen(event: Event) -> None:
        # Where a node is announced now is not where it was made.
        events.append(msgspec.structs.replace(event, stack=0) if isinstance(event, NodeCreated) else event)

    named: Any = params.items() if isinstance(params, Mapping) else params
    with _left_as_it_was(tensor), aside(Channel(listen)) as channel:
        announce.seen(channel, tensor)
        for name, parameter in named:
            if parameter._seen is not None and parameter._seen.channel is channel:
                channel.say(Named(parameter._seen.node, name))
        channel.say(Marked(""))
    return Timeline(MemoryLog(events))


@contextmanager
def _left_as_it_was(tensor: Tensor) -> Iterator[None]:
    """Give the graph behind a tensor back the announcements it had: it may be being recorded."""
    nodes, tensors = _behind(tensor)
    marks = [(node, node.seen) for node in nodes]
    places = [(t, t._seen, t._storage if t._seen is not None else None) for t in tensors]
    try:
        yield
    finally:
        for node, mark in marks:
            node.seen = mark
        for t, mark, storage in places:
            t._seen = mark
            if storage is not None:
                t._storage = storage


def _behind(tensor: Tensor) -> tuple[list[Node], list[Tensor]]:
    """The operations of the graph behind a tensor, and the tensors known there: itself, leaves, bases, gradients."""
    nodes: dict[Node, None] = {}
    tensors: dict[Tensor, None] = {}
    waiting: list[Node | Tensor | None] = [tensor]
    while waiting:
        found = waiting.pop()
        if isinstance(found, Tensor) and found not in tensors:
            tensors[found] = None
            waiting += [found._base, found._grad, found._grad_fn]
        elif isinstance(found, AccumulateGrad):
            waiting.append(found.variable)
        elif isinstance(found, Node) and found not in nodes:
            nodes[found] = None
            waiting += [edge[0] for edge in found.next_edges if edge is not None]
    return list(nodes), list(tensors)

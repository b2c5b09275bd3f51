"""`gviz.make_dot`: a graph to be changed, shown in a notebook or written, as other tools hand theirs out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import msgspec

from gviz.emit import Channel, aside
from gviz.engine import Tensor, announce
from gviz.engine.jit import StaticGraph, TracedFunction, TracedModule, events_of
from gviz.engine.node import AccumulateGrad, Node
from gviz.errors import GvizError
from gviz.events import Event, Marked, Named, NodeCreated
from gviz.render.dot import digraph
from gviz.render.exporters import last_moment, moment_scene
from gviz.render.graph import Graph
from gviz.render.scene import Options
from gviz.trace.log import MemoryLog
from gviz.trace.timeline import Timeline

Drawable = StaticGraph | TracedFunction | TracedModule
Params = Mapping[str, Tensor] | Iterable[tuple[str, Tensor]]


def make_dot(
    var: Timeline | Drawable | Tensor | tuple[Tensor, ...],
    params: Params | None = None,
    show_attrs: bool = False,
    show_saved: bool = False,
    max_attr_chars: int = 50,
    *,
    at: int | None = None,
    options: Options | None = None,
) -> Graph:
    """The graph of a recording at event `at` (else before the program took it down), the graph behind a tensor, or a
    static graph: what ``jit.trace`` gives, or its ``graph``.

    Takes what ``torchviz.make_dot`` takes: `params` gives leaves their names, as ``model.named_parameters()`` does,
    `show_attrs` says all that is known of every node, `show_saved` draws the tensors kept for backward. Of a tensor's
    graph only the leaves have values.
    """
    asked = options or Options(density="full" if show_attrs else "short", saved=show_saved)
    if isinstance(var, Timeline):
        return digraph(moment_scene(var, last_moment(var) if at is None else at, asked))
    timeline = behind(var, params or ())
    drawn = moment_scene(timeline, len(timeline), asked)
    return digraph(replace(drawn, caption=""))  # at its end nothing happens


def behind(var: Any, params: Params = ()) -> Timeline:
    """The graph behind a tensor, several, or a traced function, as a recording; GvizError for anything else."""
    if isinstance(var, Drawable):
        return Timeline(MemoryLog(events_of(var if isinstance(var, StaticGraph) else var.graph)))
    tensors = var if isinstance(var, tuple) else (var,)
    for tensor in tensors:
        if not isinstance(tensor, Tensor):
            raise GvizError(
                f"gviz cannot draw a {type(tensor).__module__}.{type(tensor).__qualname__}",
                hint="give it a tensor of gviz.engine, a traced function, or what gviz.load answers",
                exit_code=2,
            )
    return late(tensors, params)


def late(tensors: Sequence[Tensor], params: Params) -> Timeline:
    """The graph behind tensors that nobody recorded, as a recording that ends at a moment when nothing happens."""
    events: list[Event] = []

    def listen(event: Event) -> None:
        # Where a node is announced now is not where it was made.
        events.append(msgspec.structs.replace(event, stack=0) if isinstance(event, NodeCreated) else event)

    named: Any = params.items() if isinstance(params, Mapping) else params
    channel = Channel(listen)
    with _left_as_it_was(tensors), aside(channel):
        for tensor in tensors:
            announce.seen(channel, tensor)
        for name, parameter in named:
            if parameter._seen is not None and parameter._seen.channel is channel:
                channel.say(Named(parameter._seen.node, name))
        channel.say(Marked(""))
    return Timeline(MemoryLog(events))


@contextmanager
def _left_as_it_was(roots: Sequence[Tensor]) -> Iterator[None]:
    """Give the graph behind tensors back the announcements it had: it may be being recorded."""
    nodes, tensors = _behind(roots)
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


def _behind(roots: Sequence[Tensor]) -> tuple[list[Node], list[Tensor]]:
    """The operations of the graph behind tensors, and the tensors known there: themselves, leaves, bases, gradients."""
    nodes: dict[Node, None] = {}
    tensors: dict[Tensor, None] = {}
    waiting: list[Node | Tensor | None] = [*roots]
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

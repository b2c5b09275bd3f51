"""The autograd graph that tensors already have, as the events of a recording, so that gviz can draw it.

A traced function is drawn from its static graph (`gviz.engine.jit.static_graph_events`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from gviz.emit import Channel, detour
from gviz.engine import instrumentation
from gviz.engine.jit import StaticGraph, TracedFunction, TracedModule, events_of
from gviz.engine.node import Node
from gviz.engine.tensor import AccumulateGrad, Tensor
from gviz.errors import GvizError
from gviz.events import Event, Marked, Named, NodeCreated

Drawable = StaticGraph | TracedFunction | TracedModule
Params = Mapping[str, Tensor] | Iterable[tuple[str, Tensor]]


def events_of_graph(thing: Any, params: Params = ()) -> list[Event]:
    """The events for the graph of a tensor, several tensors, or a traced function. Raises GvizError for anything else.

    `params` names leaves of the graph. The last event is a mark.
    """
    if isinstance(thing, Drawable):
        return events_of(thing if isinstance(thing, StaticGraph) else thing.graph)
    tensors = thing if isinstance(thing, tuple) else (thing,)
    if not tensors or not all(isinstance(tensor, Tensor) for tensor in tensors):
        kinds = [type(one) for one in tensors or (thing,)]
        raise GvizError(
            f"gviz cannot draw {' and '.join(dict.fromkeys(f'a {k.__module__}.{k.__qualname__}' for k in kinds))}",
            hint="it draws a trace (its path, gviz.load(path), a recording), a tensor of PyTorch or gviz.engine, "
            "or what gviz's jit.trace gives",
            exit_code=2,
        )
    return _announced(tensors, params)


def _announced(tensors: Sequence[Tensor], params: Params) -> list[Event]:
    """Return the events that announce the graph of `tensors`."""
    events: list[Event] = []

    def listen(event: Event) -> None:
        # The call stack is that of the announcement, not of the program.
        events.append(msgspec.structs.replace(event, stack=0) if isinstance(event, NodeCreated) else event)

    named: Any = params.items() if isinstance(params, Mapping) else params
    channel = Channel(listen)
    with _left_as_it_was(tensors), detour(channel):
        for tensor in tensors:
            instrumentation.seen(channel, tensor)
        for name, parameter in named:
            if parameter._seen is not None and parameter._seen.channel is channel:
                channel.emit(Named(parameter._seen.node, name))
        channel.emit(Marked(""))
    return events


@contextmanager
def _left_as_it_was(roots: Sequence[Tensor]) -> Iterator[None]:
    """Restore the announcements of the graph's nodes and tensors afterwards: a recording may be in progress."""
    nodes, tensors = _reachable(roots)
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


def _reachable(roots: Sequence[Tensor]) -> tuple[list[Node], list[Tensor]]:
    """Return the operations in the graph of `roots`, and the tensors reachable there: roots, leaves, bases,
    gradients.
    """
    nodes: dict[Node, None] = {}
    tensors: dict[Tensor, None] = {}
    waiting: list[Node | Tensor | None] = [*roots]
    while waiting:
        item = waiting.pop()
        if isinstance(item, Tensor) and item not in tensors:
            tensors[item] = None
            waiting += [item._base, item._grad, item._grad_fn]
        elif isinstance(item, AccumulateGrad):
            waiting.append(item.variable)
        elif isinstance(item, Node) and item not in nodes:
            nodes[item] = None
            waiting += [edge[0] for edge in item.next_edges if edge is not None]
    return list(nodes), list(tensors)

"""Turns the graph of tensors that were not recorded into the events of a recording."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import msgspec
import torch

from gviz.adapters.pytorch import operation_catalog, private_api
from gviz.adapters.pytorch.autograd_graph import edge_of
from gviz.adapters.pytorch.node_identity import Hooks, Mark, Marks
from gviz.adapters.pytorch.recording_state import Session
from gviz.emit import Channel, detour
from gviz.events import Event, GradSet, Marked, Named, NodeCreated, OpSeen, SavedFreed

Params = Mapping[str, torch.Tensor] | Iterable[tuple[str, torch.Tensor]]


class ExternalMarks(Marks):
    """Marks without metadata or hooks in the graph, because a recording of it may be in progress."""

    def __init__(self, channel: Channel) -> None:
        super().__init__(channel)
        self.nodes: dict[Any, Mark] = {}

    def of_node(self, node: Any) -> Mark | None:
        """Return the mark of a graph node, or None if it was not announced."""
        return self.nodes.get(node)

    def put(self, node: Any, mark: Mark, hooks: Hooks) -> None:
        """Map a graph node to a node of the trace."""
        self.nodes[node] = mark


def is_tensor(thing: object) -> bool:
    """Return whether `thing` is a PyTorch tensor."""
    return isinstance(thing, torch.Tensor)


def events_of_graph(tensors: Iterable[torch.Tensor], params: Params = ()) -> list[Event]:
    """Return the events for the existing graph of `tensors`, with values for these, the leaves and their ``.grad``.

    Other nodes have shapes only. Saved tensors that a backward pass released are marked as released. `params` names
    tensors of the graph. The last event is a mark.
    """
    events: list[Event] = []
    session = Session(Channel(partial(_keep, events)))
    session.marks = marks = ExternalMarks(session.channel)
    session.edge_of = partial(edge_of, session)
    named: Any = params.items() if isinstance(params, Mapping) else params
    with detour(session.channel), private_api.without_overrides():
        try:
            for tensor in tensors:
                edge_of(session, tensor)
            for node, mark in marks.nodes.items():
                if private_api.is_released(node, operation_catalog.kept_by(node).saved):
                    session.channel.emit(SavedFreed(mark.node))
            for name, tensor in named:
                named_mark = marks.of(tensor)
                if named_mark is not None:
                    session.channel.emit(Named(named_mark.node, name))
            session.channel.emit(Marked(""))
        finally:
            marks.let_go()  # PyTorch does not swap tensors that have weak references
            del session.edge_of
    return events


def _keep(events: list[Event], event: Event) -> None:
    """Keep events about the graph, without call stacks: those are of the announcement, not of the program."""
    if isinstance(event, NodeCreated):
        events.append(msgspec.structs.replace(event, stack=0))
    elif isinstance(event, OpSeen | Named | GradSet | SavedFreed | Marked):
        events.append(event)

"""The graph behind tensors that nobody recorded, as the events of a recording that nobody made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import msgspec
import torch

from gviz.adapters.pytorch import operations, private_api
from gviz.adapters.pytorch.autograd_graph import edge_of
from gviz.adapters.pytorch.node_identity import Hooks, Mark, Marks
from gviz.adapters.pytorch.session import Session
from gviz.emit import Channel, aside
from gviz.events import Event, GradSet, Marked, Named, NodeCreated, OpSeen, SavedFreed

Params = Mapping[str, torch.Tensor] | Iterable[tuple[str, torch.Tensor]]


class MarksBeside(Marks):
    """Marks that leave no trace in the graph, which may be being recorded: no metadata, no hooks."""

    def __init__(self, channel: Channel) -> None:
        super().__init__(channel)
        self.nodes: dict[Any, Mark] = {}

    def of_node(self, node: Any) -> Mark | None:
        """The mark of a graph node, if it was announced."""
        return self.nodes.get(node)

    def put(self, node: Any, mark: Mark, hooks: Hooks) -> None:
        """From now on this graph node is that node of the trace."""
        self.nodes[node] = mark


def is_tensor(thing: object) -> bool:
    """Whether a thing is one of PyTorch's tensors."""
    return isinstance(thing, torch.Tensor)


def events_behind(tensors: Iterable[torch.Tensor], params: Params = ()) -> list[Event]:
    """The graph behind tensors as it stands: their own values, those of leaves and their ``.grad``, else shapes.

    What backward passes have released is said to be. `params` gives tensors of it their names. It ends at a moment when
    nothing happens.
    """
    events: list[Event] = []
    session = Session(Channel(partial(_keep, events)))
    session.marks = marks = MarksBeside(session.channel)
    session.edge_of = partial(edge_of, session)
    named: Any = params.items() if isinstance(params, Mapping) else params
    with aside(session.channel), private_api.without_overrides():
        try:
            for tensor in tensors:
                edge_of(session, tensor)
            for node, mark in marks.nodes.items():
                if private_api.is_released(node, operations.kept_by(node).saved):
                    session.channel.say(SavedFreed(mark.node))
            for name, tensor in named:
                found = marks.of(tensor)
                if found is not None:
                    session.channel.say(Named(found.node, name))
            session.channel.say(Marked(""))
        finally:
            marks.let_go()  # PyTorch swaps no tensors that anybody refers to weakly
            del session.edge_of
    return events


def _keep(events: list[Event], event: Event) -> None:
    """Keep what is said of the graph; where and how it is announced now is not where and how it was made."""
    if isinstance(event, NodeCreated):
        events.append(msgspec.structs.replace(event, stack=0))
    elif isinstance(event, OpSeen | Named | GradSet | SavedFreed | Marked):
        events.append(event)

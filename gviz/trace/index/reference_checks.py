"""Checks what events of an untrusted file refer to, and is the only way to read them: all code above can trust them.

An event from here refers only to existing nodes, outputs and inputs, each created once and before the event.
`gviz.trace.codec.decode` rejects what a single event contradicts by itself. Events are checked when they are read, not
earlier: a trace with a million events opens at once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from gviz import events as e
from gviz.events import COUNTS
from gviz.trace.event_log import EventLog, birth, damaged
from gviz.trace.index.search_index import Index

_UNKNOWN = (COUNTS, 0)
_KEPT = 1 << 16


class References:
    """Reads events of a log and checks that the nodes, outputs and inputs they name exist. Raises GvizError if not."""

    def __init__(self, log: EventLog, index: Index) -> None:
        self._log = log
        self._index = index
        self._sound: set[int] = set()
        self._births: dict[int, tuple[int, int]] = {}

    def event(self, seq: int) -> e.Event:
        """Return event number `seq`."""
        event = self._log.event(seq)
        if seq not in self._sound:
            self._check(seq, event)
            if len(self._sound) >= _KEPT:
                self._sound.clear()
                self._births.clear()
            self._sound.add(seq)
        return event

    def select(self, start: int, stop: int, kinds: Collection[int]) -> Iterator[tuple[int, e.Event]]:
        """Yield the events ``start <= seq < stop`` of these kinds, in order."""
        for seq, event in self._log.select(start, stop, kinds):
            if seq not in self._sound:
                self._check(seq, event)
            yield seq, event

    def _check(self, seq: int, event: e.Event) -> None:
        if isinstance(event, e.NodeCreated):
            if not self._is_alone(event.node):
                raise damaged(f"event {seq} makes node {event.node}, which another event makes too")
            self._births[event.node] = seq, len(event.outputs)
        before = seq - isinstance(event, e.NodeCreated)  # a node's inputs are older than it, so following them ends
        for node, output_nr in e.references(event):
            if node and self._outputs(node, before) <= output_nr:
                raise damaged(f"event {seq} speaks of output {output_nr} of node {node}, which has fewer")
        match event:
            case e.GradFlowed(source=source, slot=slot) if source and self._inputs(source, seq) <= slot:
                raise damaged(f"event {seq} speaks of input {slot} of node {source}, which has fewer")

    def _outputs(self, node: int, seq: int) -> int:
        """Return the number of outputs of a node."""
        born, outputs = self._births.get(node, _UNKNOWN)
        if born > seq:
            born = self._birth(node, seq)
            outputs = len(birth(self._log, born, node).outputs)
            if self._is_alone(node):
                self._births[node] = born, outputs
        return outputs

    def _inputs(self, node: int, seq: int) -> int:
        """Return the number of inputs of a node, without reading the event that created it."""
        born = self._birth(node, seq)
        if self._is_alone(node):
            return len(self._index.lists["edges_from"].of_key(node))
        low, high = self._index.tables.edges.seq.searchsorted((born, born + 1))
        return int(high - low)

    def _is_alone(self, node: int) -> bool:
        """Return whether the node number is unique, which it may not be in a damaged trace."""
        return len(self._index.lists["created"].of_key(node)) == 1

    def _birth(self, node: int, seq: int) -> int:
        born = self._index.lists["created"].last(node, seq)
        if not born:
            raise damaged(f"event {seq} speaks of node {node}, which was not made before")
        return born

"""Snapshot: the shortest list of events that, replayed, gives the state at one moment of a log."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator
from itertools import count, pairwise
from operator import itemgetter
from typing import Any, TypeVar

import msgspec

from gviz import events as e
from gviz.events import Event, Output
from gviz.trace.tensor_storage import value_after
from gviz.values.value import Value

Ordered = tuple[int, Event]
"""An event and its position in the order of recording."""

T = TypeVar("T")


class Snapshot:
    """Processes the events of a log and keeps those that still matter, without what was freed or replaced.

    `said_again` is never longer than the log so far. Its size depends on what is alive, not on the length of the run.
    The snapshot is exact: a living node is created from what its inputs held at that time. A leaf that was written to
    starts with the value that the first such node needs, or with its current value if there is none.
    """

    def __init__(self) -> None:
        self._orders = count(1)
        self._nodes: dict[int, dict[Hashable, Ordered]] = {}
        self._written: defaultdict[int, list[Ordered]] = defaultdict(list)
        self._scopes: dict[int, list[Ordered]] = {}
        self._open: dict[int, None] = {}

    def process(self, event: Event) -> None:
        """Process the next event, one of `MATTERING`."""
        entry = next(self._orders), event
        for cell, sets in e.EFFECTS[event.__class__]:
            if cell in e.LASTING:
                for key, content in sets(event):
                    self._set(cell, key, content, entry)

    def _set(self, cell: e.Cell, key: Any, content: Any, entry: Ordered) -> None:
        """Keep an event that sets a cell instead of the one before. Creations, writes, changes of `requires_grad` and
        module calls are kept until `_forget`: what is computed later may depend on any of them.
        """
        match cell:
            case "node":
                self._nodes[key] = {_BIRTH: entry}
            case "freed":
                self._nodes.pop(key, None)
            case "memory":
                self._written[key].append(entry)
            case "call":
                self._scopes[key] = [entry]
                self._open[key] = None
            case "call_end":
                if key in self._scopes:
                    self._scopes[key].append(entry)
                    self._open.pop(key, None)
            case "requires_grad":
                self._note(key, (cell, entry[0]), entry)
            case "grad":  # the pass that gave it is dropped
                if not isinstance(entry[1], e.GradSet):
                    entry = entry[0], e.GradSet(key[0], key[1], "assigned", content)
                self._note(key[0], (cell, key), entry)
            case _:
                self._note(key[0] if isinstance(key, tuple) else key, (cell, key), entry)

    def said_again(self) -> list[Event]:
        """Return the events that produce the current state, in the order of recording."""
        self._forget()
        ordered = [entry for entries in self._nodes.values() for entry in entries.values()]
        ordered += [entry for writes in self._written.values() for entry in writes]
        ordered += [entry for entries in self._scopes.values() for entry in entries]
        return [self._without_the_dead(event) for _, event in sorted(ordered, key=_order)]

    def _note(self, node: int, key: Hashable, entry: Ordered) -> None:
        if node in self._nodes:
            self._nodes[node][key] = entry

    def _forget(self) -> None:
        """Drop what no living node needs: memory, module calls, and earlier changes of `requires_grad`."""
        births = [_birth(entries) for entries in self._nodes.values()]
        self._forget_writes()
        wanted = {scope for birth in births for scope in self._calls_around(birth.scope)}
        wanted.update(scope for opened in self._open for scope in self._calls_around(opened))
        self._scopes = {scope: history for scope, history in self._scopes.items() if scope in wanted}
        self._forget_switches()

    def _calls_around(self, scope: int) -> Iterator[int]:
        while scope in self._scopes:
            yield scope
            entered = self._scopes[scope][0][1]
            parent = entered.parent if isinstance(entered, e.ScopeEntered) else 0
            scope = parent if parent < scope else 0

    def _forget_writes(self) -> None:
        """Keep only the last write to each memory, and those that a living node found there when it was created.

        The initial value of a leaf does not count: its first kept write replaces it.
        """
        uses = self._uses()
        self._written = defaultdict(list, {
            storage: _needed(writes, uses[storage], _order) for storage, writes in self._written.items()
            if storage in uses
        })  # fmt: skip
        for entries in self._nodes.values():
            order, created = entries[_BIRTH][0], _birth(entries)
            storage = _filled(created)
            writes = self._written.get(storage)
            if writes and not any(order < use < writes[0][0] for use in uses[storage]):
                entries[_BIRTH] = order, _created_with(created, writes.pop(0)[1])

    def _uses(self) -> dict[int, list[int]]:
        """By memory: when the living nodes were created that use it or that have an input in it."""
        uses: defaultdict[int, set[int]] = defaultdict(set)
        for entries in self._nodes.values():
            order, created = entries[_BIRTH][0], _birth(entries)
            outputs = [*created.outputs, *filter(None, map(self._output, created.inputs))]
            for storage in {output.storage for output in outputs} - {0}:
                uses[storage].add(order)
        return {storage: sorted(orders) for storage, orders in uses.items()}

    def _output(self, edge: e.Edge) -> Output | None:
        node, nr = edge
        outputs = _birth(self._nodes[node]).outputs if node in self._nodes else ()
        return outputs[nr] if nr < len(outputs) else None

    def _forget_switches(self) -> None:
        """Keep only a leaf's last `requires_grad` change, and those in effect when a living node used it as input."""
        switched: dict[int, list[tuple[Any, ...]]] = {
            node: keys
            for node, entries in self._nodes.items()
            if len(keys := [key for key in entries if isinstance(key, tuple) and key[0] == "requires_grad"]) > 1
        }
        if not switched:
            return
        used: defaultdict[int, list[int]] = defaultdict(list)
        for entries in self._nodes.values():
            order, _ = entries[_BIRTH]
            for node, _ in _birth(entries).inputs:
                if node in switched:
                    used[node].append(order)
        for node, keys in switched.items():
            needed = _needed(keys, sorted(used[node]), itemgetter(1))
            for switch in set(keys).difference(needed):
                del self._nodes[node][switch]

    def _without_the_dead(self, event: Event) -> Event:
        """Return the event with references to freed nodes cleared."""
        match event:
            case e.NodeCreated(inputs=inputs, outputs=outputs, during=during):
                if all(node in self._nodes for node, _ in e.references(event) if node):
                    return event
                return msgspec.structs.replace(
                    event,
                    inputs=tuple(edge if edge[0] in self._nodes else (0, 0) for edge in inputs),
                    outputs=tuple(map(self._without_dead_base, outputs)),
                    during=(during[0], during[1] if during[1] in self._nodes else 0),
                )
            case e.StorageWritten(node=node) if node not in self._nodes:
                return msgspec.structs.replace(event, node=0)
            case e.DataSet(node=node, writer=writer) if writer not in self._nodes:
                return msgspec.structs.replace(event, writer=node)
        return event

    def _without_dead_base(self, output: Output) -> Output:
        return output if output.view_of in self._nodes else msgspec.structs.replace(output, view_of=0)


_BIRTH = e.NodeCreated
MATTERING: frozenset[type[Event]] = frozenset(e.changing(*e.LASTING))
"""The events that affect the current state."""


def _birth(entries: dict[Hashable, Ordered]) -> e.NodeCreated:
    birth = entries[_BIRTH][1]
    assert isinstance(birth, e.NodeCreated)
    return birth


def _needed(changes: list[T], uses: list[int], order: Callable[[T], int]) -> list[T]:
    """Return the last change, and each change that one of the `uses` follows before the next change."""
    needed = [
        one for one, after in pairwise(changes) if bisect_left(uses, order(one)) != bisect_left(uses, order(after))
    ]
    return needed + changes[-1:]


def _filled(created: e.NodeCreated) -> int:
    """Return the memory that only this leaf uses, contiguously; 0 for any other node."""
    output = created.outputs[0] if created.kind != "op" and len(created.outputs) == 1 else None
    plain = output is not None and output.value is not None and output.strides is None and not output.view_of
    return output.storage if output is not None and plain else 0


def _created_with(created: e.NodeCreated, written: Event) -> e.NodeCreated:
    """Return the event of a leaf as if it had been created with a value that was written to it later."""
    left: e.Written = e.left(written, "memory")
    output = created.outputs[0]
    value = value_after(output, left.value, _not_looked_for)
    output = msgspec.structs.replace(output, value=value, version=left.version)
    return msgspec.structs.replace(created, outputs=(output,))


def _not_looked_for(value: Value) -> None:
    """Do nothing: a leaf that fills its memory has exactly the written elements, so no array has to be read."""


def _order(entry: Ordered) -> int:
    return entry[0]

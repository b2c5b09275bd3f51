"""Snapshot: the shortest list of events that, replayed, gives the state at one moment of a log.

Bridge: the same for a stretch in the middle of a log, whose beginning and end stay.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping
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

    `as_events` is never longer than the log so far. Its size depends on what is alive, not on the length of the run.
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

    def as_events(self) -> list[Event]:
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
        needed = {scope for birth in births for scope in self._calls_around(birth.scope)}
        needed.update(scope for opened in self._open for scope in self._calls_around(opened))
        self._scopes = {scope: history for scope, history in self._scopes.items() if scope in needed}
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
            if storage in uses or not self._is_new(storage)
        })  # fmt: skip
        for entries in self._nodes.values():
            order, created = entries[_BIRTH][0], _birth(entries)
            storage = _filled(created)
            writes = self._written.get(storage)
            if writes and self._is_new(storage) and not any(order < use < writes[0][0] for use in uses[storage]):
                entries[_BIRTH] = order, _created_with(created, writes.pop(0)[1])

    def _is_new(self, storage: int) -> bool:
        """Return whether only nodes of this log can use a memory."""
        return True

    def _is_there(self, node: int) -> bool:
        """Return whether an event may refer to a node."""
        return node in self._nodes

    def _uses(self) -> defaultdict[int, list[int]]:
        """By memory: when the living nodes were created that use it or that have an input in it."""
        uses: defaultdict[int, set[int]] = defaultdict(set)
        for entries in self._nodes.values():
            order, created = entries[_BIRTH][0], _birth(entries)
            outputs = [*created.outputs, *filter(None, map(self._output, created.inputs))]
            for storage in {output.storage for output in outputs} - {0}:
                uses[storage].add(order)
        return defaultdict(list, {storage: sorted(orders) for storage, orders in uses.items()})

    def _output(self, edge: e.Edge) -> Output | None:
        node, nr = edge
        outputs = _birth(self._nodes[node]).outputs if node in self._nodes else ()
        return outputs[nr] if nr < len(outputs) else None

    def _forget_switches(self) -> None:
        """Keep only a leaf's last `requires_grad` change, and those in effect when a living node used it as input."""
        changed = self._changed()
        switched: dict[int, list[tuple[Any, ...]]] = {
            node: keys
            for node, entries in changed.items()
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
                del changed[node][switch]

    def _changed(self) -> Mapping[int, dict[Hashable, Ordered]]:
        """The nodes whose changes are kept, with these."""
        return self._nodes

    def _without_the_dead(self, event: Event) -> Event:
        """Return the event with references to freed nodes cleared."""
        match event:
            case e.NodeCreated(inputs=inputs, outputs=outputs, during=during):
                if all(self._is_there(node) for node, _ in e.references(event) if node):
                    return event
                return msgspec.structs.replace(
                    event,
                    inputs=tuple(edge if self._is_there(edge[0]) else (0, 0) for edge in inputs),
                    outputs=tuple(map(self._without_dead_base, outputs)),
                    during=(during[0], during[1] if self._is_there(during[1]) else 0),
                )
            case e.StorageWritten(node=node) if not self._is_there(node):
                return msgspec.structs.replace(event, node=0)
            case e.DataSet(node=node, writer=writer) if not self._is_there(writer):
                return msgspec.structs.replace(event, writer=node)
        return event

    def _without_dead_base(self, output: Output) -> Output:
        return output if self._is_there(output.view_of) else msgspec.structs.replace(output, view_of=0)


class Bridge(Snapshot):
    """Processes the events of a stretch of a log, and keeps those that matter to the events after it.

    `as_events` replaces the stretch: after it, everything is as after the stretch. It repeats what happened to older
    nodes, too, which a snapshot does not know: their last values and gradients, and that they were freed. Memory with a
    number up to `known` is older than the stretch.

    Example: a training iteration leaves one write and one ``.grad`` per weight, and the batch and the loss that
    variables still hold.
    """

    def __init__(self, known: int) -> None:
        super().__init__()
        self._known = known
        self._born: set[int] = set()
        self._older: dict[int, dict[Hashable, Ordered]] = {}
        self._ended: list[Ordered] = []
        """The ends of module calls that began before the stretch."""

    def _set(self, cell: e.Cell, key: Any, content: Any, entry: Ordered) -> None:
        match cell:
            case "node":
                self._born.add(key)
                self._older.pop(key, None)
            case "freed" if key not in self._born:
                self._older[key] = {cell: entry}
                return
            case "call_end" if key not in self._scopes:
                self._ended.append(entry)
                return
        super()._set(cell, key, content, entry)

    def as_events(self) -> list[Event]:
        """Return the events that lead from the state before the stretch to the state after it."""
        self._forget()
        changed = {**self._nodes, **self._older}
        ordered = [entry for entries in changed.values() for entry in entries.values()]
        ordered += [entry for kept in (self._written, self._scopes) for entries in kept.values() for entry in entries]
        return [self._without_the_dead(event) for _, event in sorted([*ordered, *self._ended], key=_order)]

    def _note(self, node: int, key: Hashable, entry: Ordered) -> None:
        if node in self._born:
            super()._note(node, key, entry)
        elif "freed" not in self._older.setdefault(node, {}):
            self._older[node][key] = entry

    def _is_new(self, storage: int) -> bool:
        return storage > self._known

    def _is_there(self, node: int) -> bool:
        return node not in self._born or node in self._nodes

    def _uses(self) -> defaultdict[int, list[int]]:
        """By memory: when the living nodes were created that use it. One with an older input may use any older
        memory.
        """
        uses = super()._uses()
        outside = {
            entries[_BIRTH][0] for entries in self._nodes.values()
            if any(node and node not in self._born for node, _ in _birth(entries).inputs)
        }  # fmt: skip
        for storage in self._written:
            if outside and not self._is_new(storage):
                uses[storage] = sorted(outside.union(uses[storage]))
        return uses

    def _changed(self) -> Mapping[int, dict[Hashable, Ordered]]:
        return {**self._nodes, **self._older}


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
    left: e.WrittenMemory = e.left(written, "memory")
    output = created.outputs[0]
    value = value_after(output, left.value, _not_looked_for)
    output = msgspec.structs.replace(output, value=value, version=left.version)
    return msgspec.structs.replace(created, outputs=(output,))


def _not_looked_for(value: Value) -> None:
    """Do nothing: a leaf that fills its memory has exactly the written elements, so no array has to be read."""


def _order(entry: Ordered) -> int:
    return entry[0]

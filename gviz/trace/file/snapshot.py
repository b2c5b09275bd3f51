"""What is still there at one moment of a log: the events that, said again, make the state it goes on from."""

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
from gviz.trace.storage import value_after
from gviz.values.value import Value

Ordered = tuple[int, Event]
"""An event and its place in the order in which such events were said."""

T = TypeVar("T")


class Snapshot:
    """Goes through the events of a log and keeps those that still matter: what was freed and what was replaced do not.

    `said_again` is never longer than what has happened, and its size depends on what is alive, not on how long it ran.
    Each thing it says is as true as it was: a living node is made of what its inputs held then, and a leaf that was
    written to since it was made begins with what the first of these needs, or else with what it holds now.
    """

    def __init__(self) -> None:
        self._orders = count(1)
        self._nodes: dict[int, dict[Hashable, Ordered]] = {}
        self._written: defaultdict[int, list[Ordered]] = defaultdict(list)
        self._scopes: dict[int, list[Ordered]] = {}
        self._open: dict[int, None] = {}

    def happen(self, event: Event) -> None:
        """Take in the next event, one of `MATTERING`."""
        said = next(self._orders), event
        match event:
            case e.NodeCreated(node=node):
                self._nodes[node] = {_BIRTH: said}
            case e.NodeFreed(node=node):
                self._nodes.pop(node, None)
            case e.StorageWritten(storage=storage):
                self._written[storage].append(said)
            case e.GradSet():
                self._set_grad(said[0], event)
            case e.GradAccumulated(node=node) | e.GradRetained(node=node):
                nr = getattr(event, "output_nr", 0)
                self._set_grad(said[0], e.GradSet(node, nr, "assigned", e.grad_left(event)))
            case e.DataSet(node=node, output_nr=nr):
                self._note(node, (e.DataSet, nr), said)
            case e.RequiresGradSet(node=node):
                self._note(node, (e.RequiresGradSet, said[0]), said)
            case e.Returned(node=node, output_nr=nr):
                self._note(node, (e.Returned, nr), said)
            case e.Named(node=node) | e.SavedFreed(node=node):
                self._note(node, event.__class__, said)
            case e.ScopeEntered(scope=scope):
                self._scopes[scope] = [said]
                self._open[scope] = None
            case e.ScopeLeft(scope=scope) if scope in self._scopes:
                self._scopes[scope].append(said)
                self._open.pop(scope, None)

    def said_again(self) -> list[Event]:
        """The events that make what is there now, in the order in which they were said first."""
        self._forget()
        kept = [said for entries in self._nodes.values() for said in entries.values()]
        kept += [said for writes in self._written.values() for said in writes]
        kept += [said for entries in self._scopes.values() for said in entries]
        return [self._without_the_dead(event) for _, event in sorted(kept, key=_order)]

    def _set_grad(self, order: int, event: e.GradSet) -> None:
        self._note(event.node, (e.GradSet, event.output_nr), (order, event))

    def _note(self, node: int, key: Hashable, said: Ordered) -> None:
        if node in self._nodes:
            self._nodes[node][key] = said

    def _forget(self) -> None:
        """Let go of what no living node needs: its memory, its module call, how it was switched in between."""
        births = [_birth(entries) for entries in self._nodes.values()]
        self._forget_writes()
        wanted = {scope for birth in births for scope in self._calls_around(birth.scope)}
        wanted.update(scope for opened in self._open for scope in self._calls_around(opened))
        self._scopes = {scope: said for scope, said in self._scopes.items() if scope in wanted}
        self._forget_switches()

    def _calls_around(self, scope: int) -> Iterator[int]:
        while scope in self._scopes:
            yield scope
            entered = self._scopes[scope][0][1]
            parent = entered.parent if isinstance(entered, e.ScopeEntered) else 0
            scope = parent if parent < scope else 0

    def _forget_writes(self) -> None:
        """Keep of what was written to some memory only the last, and what a living node found there when it was made.

        What a leaf was made with is not among that: its first write takes its place.
        """
        uses = self._uses()
        self._written = defaultdict(list, {
            storage: _needed(writes, uses[storage], _order) for storage, writes in self._written.items()
            if storage in uses
        })  # fmt: skip
        for entries in self._nodes.values():
            order, made = entries[_BIRTH][0], _birth(entries)
            storage = _filled(made)
            writes = self._written.get(storage)
            if writes and not any(order < use < writes[0][0] for use in uses[storage]):
                entries[_BIRTH] = order, _made_with(made, writes.pop(0)[1])

    def _uses(self) -> dict[int, list[int]]:
        """By memory: when living nodes were made that live in it or were made from what does."""
        uses: defaultdict[int, set[int]] = defaultdict(set)
        for entries in self._nodes.values():
            order, made = entries[_BIRTH][0], _birth(entries)
            outputs = [*made.outputs, *filter(None, map(self._output, made.inputs))]
            for storage in {output.storage for output in outputs} - {0}:
                uses[storage].add(order)
        return {storage: sorted(orders) for storage, orders in uses.items()}

    def _output(self, edge: e.Edge) -> Output | None:
        node, nr = edge
        outputs = _birth(self._nodes[node]).outputs if node in self._nodes else ()
        return outputs[nr] if nr < len(outputs) else None

    def _forget_switches(self) -> None:
        """Keep of a leaf's switches only the last, and those during which a living node took it as an input."""
        switched: dict[int, list[tuple[Any, ...]]] = {
            node: keys
            for node, entries in self._nodes.items()
            if len(keys := [key for key in entries if isinstance(key, tuple) and key[0] is e.RequiresGradSet]) > 1
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
        """The event, with nothing in the place of nodes that are gone."""
        match event:
            case e.NodeCreated(inputs=inputs, outputs=outputs, during=during):
                if all(node in self._nodes for node in _references(event)):
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
MATTERING: frozenset[type[Event]] = frozenset((
    *e.changing("life", "value", "requires_grad", "grad", "saved"), e.Named, e.Returned,
    e.ScopeEntered, e.ScopeLeft,
))  # fmt: skip
"""The events on which what is there depends."""


def _birth(entries: dict[Hashable, Ordered]) -> e.NodeCreated:
    birth = entries[_BIRTH][1]
    assert isinstance(birth, e.NodeCreated)
    return birth


def _needed(changes: list[T], uses: list[int], order: Callable[[T], int]) -> list[T]:
    """Of changes in their order the last, and those that one of the `uses` came after before the next change."""
    kept = [one for one, after in pairwise(changes) if bisect_left(uses, order(one)) != bisect_left(uses, order(after))]
    return kept + changes[-1:]


def _filled(made: e.NodeCreated) -> int:
    """The memory that a leaf alone fills, in the order of its elements; 0 for any other node."""
    output = made.outputs[0] if made.kind != "op" and len(made.outputs) == 1 else None
    plain = output is not None and output.value is not None and output.strides is None and not output.view_of
    return output.storage if output is not None and plain else 0


def _made_with(made: e.NodeCreated, written: Event) -> e.NodeCreated:
    """A leaf, as if it had been made with what was written to it."""
    assert isinstance(written, e.StorageWritten)
    output = made.outputs[0]
    value = value_after(output, written.value, _not_looked_for)
    output = msgspec.structs.replace(output, value=value, version=written.version)
    return msgspec.structs.replace(made, outputs=(output,))


def _not_looked_for(value: Value) -> None:
    """A leaf that fills its memory has what was written there, element by element: no array needs to be read."""


def _references(made: e.NodeCreated) -> Iterator[int]:
    """The nodes that a node names, 0 left out."""
    yield from filter(None, (node for node, _ in made.inputs))
    yield from filter(None, (output.view_of for output in made.outputs))
    yield from filter(None, made.during[1:])


def _order(said: Ordered) -> int:
    return said[0]

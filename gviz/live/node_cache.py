"""Facts of nodes, kept in the debugged process to find out early which of them a breakpoint may match."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

from gviz import events as e
from gviz.query_syntax.module_owner import is_of_module
from gviz.query_syntax.place import Place, Possible
from gviz.trace.graph_state import UNKNOWN_OP
from gviz.trace.naming.assignments import Assignments
from gviz.trace.stack_tree import Stacks
from gviz.values.value import Value


class Origin(NamedTuple):
    """What nodes of one operation at one place have in common: all that a breakpoint can check on a new node."""

    op: int
    stack: int
    scope: int
    in_pass: bool


class CachedNode(NamedTuple):
    """The value of a node's first output when it was created, its memory, and whether it fills that memory
    contiguously.
    """

    value: Value | None
    storage: int
    plain: bool


class NodeCache:
    """Grows with the program: definitions, and a few bytes per node. `keep_values` also keeps their values."""

    def __init__(self) -> None:
        self.ops: dict[int, e.OpSeen] = {}
        self.stacks = Stacks()
        self.scopes: dict[int, str] = {}
        self.parents: dict[int, int] = {}
        self.parameters: set[int] = set()
        self.names: dict[int, tuple[str, ...]] = {}
        self.gradients: set[int] = set()
        self.parts: set[int] = set()
        """Nodes whose outputs are parts of a call's return value."""
        self.kinds: list[Origin] = [Origin(0, 0, 0, False)]
        self.kind_of = array("I", [0])
        self.storage_of = array("I", [0])
        self.more_storages: dict[int, tuple[int, ...]] = {}
        self.late = array("I")
        """Nodes that were named or recorded after others with larger numbers."""
        self.keep_values = False
        self.values: dict[int, CachedNode] = {}
        self.written: dict[int, Value] = {}
        """The last value written to each storage, while a value of one of its nodes is kept."""
        self.set_data: dict[int, Value] = {}
        """The values of tensors that were given other data, by node."""
        self._lying_in: Counter[int] = Counter()
        self._numbers: dict[Origin, int] = {}
        self._sources: dict[str, str | None] = {}
        self._assignments = Assignments(self.stacks, self._sources)

    def learn(self, event: e.Event) -> None:
        """Process an event, one of `LEARNED_FROM`."""
        for take, sets in _LEARN[event.__class__]:
            for key, content in sets(event):
                take(self, key, content)

    def possible(self, kind: Origin, node: int = 0) -> Possible:
        """Return the possible names of a node of this kind, with its operation, module and stack."""
        names = self.names.get(node) or self._assignments.possible(kind.stack)
        op = self.ops.get(kind.op, UNKNOWN_OP)
        return Possible(node, names, op, self.scopes.get(kind.scope, ""), self.stacks.get(kind.stack, ()))

    def is_of_module(self, kind: Origin, place: Place) -> bool:
        """Return whether a place refers to a module that creates nodes of this kind."""
        path, frames = self.scopes.get(kind.scope, ""), self.stacks.get(kind.stack, ())
        return is_of_module(place, path, frames, self._sources.get)

    def call(self, kind: Origin, place: Place) -> int:
        """Return the outermost matching module call around nodes of this kind; 0 if there is none."""
        around, outermost = kind.scope, 0
        while around:
            outermost = around if self.is_of_module(kind._replace(scope=around), place) else outermost
            around = self.parents.get(around, 0)
        return outermost

    def possible_names(self, node: int) -> tuple[str, ...]:
        """Return every name that a node may have; empty if unknown."""
        number = self.number_of(node)
        if node in self.names or node in self.gradients or node in self.parts or not number:
            return ()
        return *self.possible(self.kinds[number]).names, ""  # it has one of these names, or none

    def number_of(self, node: int) -> int:
        """Return the index of a node's kind in `kinds`, 0 for a node that was never recorded."""
        return self.kind_of[node] if 0 <= node < len(self.kind_of) else 0

    def outermost(self, node: int, paths: Collection[str]) -> int:
        """Return the outermost module call with one of these paths that created a node.

        It is 0 if there is none, or if a backward pass created the node."""
        kind, outermost = self.kinds[self.number_of(node)], 0
        scope = 0 if kind.in_pass else kind.scope
        while scope:
            outermost = scope if self.scopes.get(scope) in paths else outermost
            scope = self.parents.get(scope, 0)
        return outermost

    def storages(self, node: int) -> tuple[int, ...]:
        """Return the storages of a node's outputs."""
        known = node < len(self.storage_of)
        return self.more_storages.get(node) or ((self.storage_of[node],) if known else ())

    def value(self, node: int) -> Value | None:
        """Return the current value of a node's first output. Raises KeyError if it is not known here."""
        if node in self.set_data:
            return self.set_data[node]
        value, storage, plain = self.values[node]
        written = self.written.get(storage)
        if written is None or value is None:
            return value
        if not plain or written.size != value.size:
            raise KeyError(node)
        return Value(value.dtype, value.shape, written.data, written.stats)

    def is_rewritten(self, node: int) -> bool:
        """Return whether the value of a node has changed since it was created; its memory may be older than
        the node.
        """
        remembered = self.values.get(node)
        return remembered is not None and (remembered.storage in self.written or node in self.set_data)

    def _create(self, node: int, event: e.NodeCreated) -> None:
        key = Origin(event.op, event.stack, event.scope, bool(event.during[0]))
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.kinds)
            self.kinds.append(key)
        outputs = event.outputs
        while len(self.kind_of) < node:  # threads do not number in order
            self.kind_of.append(0)
            self.storage_of.append(0)
        storage = outputs[0].storage if outputs else 0
        if len(self.kind_of) == node:
            self.kind_of.append(number)
            self.storage_of.append(storage)
        else:
            self.kind_of[node] = number
            self.storage_of[node] = storage
            self.late.append(node)
        if outputs:
            if len(outputs) > 1:
                self.more_storages[node] = tuple({output.storage for output in outputs})
            if self.keep_values:
                first = outputs[0]
                self.values[node] = CachedNode(first.value, first.storage, first.strides is None and not first.offset)
                self._lying_in[first.storage] += 1
        if event.kind == "parameter":
            self.parameters.add(node)
        if event.attrs and any(name == "grad_of" for name, _ in event.attrs):
            self.gradients.add(node)

    def _write(self, storage: int, written: e.WrittenMemory) -> None:
        if storage in self._lying_in:
            self.written[storage] = written.value

    def _set_data(self, output: e.Edge, written: e.WrittenMemory) -> None:
        node, output_nr = output
        if not output_nr and node in self.values:
            self.set_data[node] = written.value

    def _free(self, node: int, _: object) -> None:
        freed = self.values.pop(node, None)
        self.set_data.pop(node, None)
        if freed is None:
            return
        self._lying_in[freed.storage] -= 1
        if not self._lying_in[freed.storage]:
            del self._lying_in[freed.storage]
            self.written.pop(freed.storage, None)

    def _name(self, node: int, names: tuple[str, ...]) -> None:
        self.names[node] = names
        self.late.append(node)

    def _add_part(self, output: e.Edge, _: object) -> None:
        self.parts.add(output[0])
        self.late.append(output[0])

    def _enter(self, scope: int, call: tuple[str, int]) -> None:
        self.scopes[scope], self.parents[scope] = call

    def _add_op(self, number: int, op: e.OpSeen) -> None:
        self.ops[number] = op

    def _add_stack(self, _: int, stack: e.StackSeen) -> None:
        self.stacks.add(stack)

    def _add_source(self, path: str, text: str | None) -> None:
        self._sources[path] = text


_CELLS: dict[e.Cell, Callable[[NodeCache, Any, Any], None]] = {
    "node": NodeCache._create,
    "memory": NodeCache._write,
    "data": NodeCache._set_data,
    "freed": NodeCache._free,
    "name": NodeCache._name,
    "part": NodeCache._add_part,
    "call": NodeCache._enter,
    "op": NodeCache._add_op,
    "stack": NodeCache._add_stack,
    "source": NodeCache._add_source,
}
"""The cells that are kept, and the methods that take what an event leaves there (see `gviz.events.event_effects`)."""

LEARNED_FROM = frozenset(e.changing(*_CELLS))

_LEARN = {
    kind: tuple((_CELLS[cell], sets) for cell, sets in e.EFFECTS[kind] if cell in _CELLS) for kind in LEARNED_FROM
}

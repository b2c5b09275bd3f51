"""The nodes of a recording: how they were created, from what, and their names."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, cached_property
from typing import overload
from weakref import proxy

import numpy as np

from gviz import events as e
from gviz.source.call_stack import Frame
from gviz.trace.codec import KIND_NUMBERS
from gviz.trace.event_contexts import Contexts
from gviz.trace.event_log import EventLog, birth, damaged, expect
from gviz.trace.graph_state import UNKNOWN_OP, Iteration, Origins
from gviz.trace.index.event_columns import distinct, picked
from gviz.trace.index.reference_checks import References
from gviz.trace.index.search_index import Index, nodes_of_keys
from gviz.trace.naming.assignments import Assignments
from gviz.trace.naming.calls import Calls
from gviz.trace.naming.node_names import Names
from gviz.values.value import Array

LEAF = "tensor"
"""The operation name of a tensor that no operation created."""

_KEPT_ITERATIONS = 8
"""The number of iterations whose nodes are cached: panels ask repeatedly for the visible one."""

OF_NO_STATEMENT = (
    e.BackwardStarted, e.OptimizerStarted, e.OptimizerStepped, e.GradSet, e.Marked, e.Printed, e.Failed,
)  # fmt: skip
"""Events that never happen within a statement that creates nodes: they show that the previous statement has ended."""


class Nodes(Sequence[int]):
    """The numbers of all nodes in order of creation, and what never changes about these nodes.

    Covers the log up to its `index`; a longer log needs a new object. `growing` means that the program still runs, so
    that the nodes of its last statement may still get names.
    """

    def __init__(
        self,
        log: EventLog,
        index: Index,
        events: References,
        contexts: Contexts,
        *,
        growing: bool = False,
    ) -> None:
        self._log = log
        self._index = index
        self._events = events
        self._contexts = contexts
        self._growing = growing
        self._of_iterations: dict[tuple[int, int], tuple[int, ...]] = {}

    @overload
    def __getitem__(self, place: int) -> int: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[int]: ...
    def __getitem__(self, place: int | slice) -> int | Sequence[int]:
        numbers: int | list[int] = self._numbers[place].tolist()
        return numbers

    def __len__(self) -> int:
        return len(self._births)

    def __iter__(self) -> Iterator[int]:
        return iter(self._numbers.tolist())

    def __contains__(self, node: object) -> bool:
        return isinstance(node, int) and self.born(node) > 0

    def place_of(self, node: int) -> int:
        """Return the index of a node in order of creation, from 0; -1 if it does not exist. Threads number
        differently.
        """
        created = self._index.lists["created"].whole()
        low, high = created.places(node)
        return bisect_left(self._births.data, created.seqs.item(low)) if low < high else -1

    def born(self, node: int) -> int:
        """Return the event that created a node, 0 if there is none."""
        return self._index.lists["created"].last(node, self._index.count)

    def created(self, node: int) -> e.NodeCreated:
        """Return how a node was created. Raises GvizError if the log does not have it."""
        born = self.born(node)
        if not born:
            raise damaged(f"there is no node {node}")
        return birth(self._events, born, node)

    def all_created(self, nodes: Sequence[int]) -> Iterator[tuple[int, e.NodeCreated]]:
        """Yield how nodes were created, without unknown nodes; much cheaper than one by one."""
        run = self._index.lists["created"].whole()
        known = nodes if len(run.keys) else ()
        at = np.minimum(run.keys.searchsorted(known), len(run.keys) - 1)
        is_match = run.keys[at] == known
        births = run.seqs[run.starts[at[is_match]]].tolist()
        self._log.prefetch(births)
        for node, born in zip(np.asarray(known)[is_match].tolist(), births, strict=True):
            yield node, birth(self._events, born, node)

    @cached_property
    def origins(self) -> Origins:
        """How all nodes were created, as far as the index knows: much cheaper than reading the events."""
        table = self._index.tables.origins
        if not np.array_equal(table.seq, self._births):  # a damaged log: a node was created twice
            table = picked(table, table.seq.searchsorted(self._births))
        _, *columns = table
        return Origins(*columns)

    @cached_property
    def with_several_outputs(self) -> tuple[Array, Array]:
        """The places of the nodes with more than one output, in order, and the number of outputs of each."""
        seqs, outputs = self._index.tables.several
        births = self._births
        places = births.searchsorted(seqs)
        known = births[np.minimum(places, len(births) - 1)] == seqs if len(births) else places < 0
        return places[known], outputs[known]

    @cached_property
    def inputs_by_node(self) -> Mapping[int, Sequence[int]]:
        """By node: its inputs, as often as it uses them. Nodes without known inputs are left out.

        For questions that follow long paths; the first call processes all nodes.
        """
        return _grouped(self._index.tables.edges.source.tolist(), self._index.tables.edges.target.tolist())

    @cached_property
    def users_by_node(self) -> Mapping[int, Sequence[int]]:
        """By node: the nodes that use it as an input, as often as they use it."""
        return _grouped(self._index.tables.edges.target.tolist(), self._index.tables.edges.source.tolist())

    def users(self, node: int, n: int = e.COUNTS) -> tuple[int, ...]:
        """Return the nodes created up to event `n` that use an output of this one, in order of creation."""
        rows = self._index.lists["edges_to"].of_key(node).astype(np.int64) - 1
        edges = self._index.tables.edges
        rows = rows[: edges.seq[rows].searchsorted(n, "right")]
        return tuple(dict.fromkeys(edges.source[rows].tolist()))

    def of(self, iteration: Iteration) -> tuple[int, ...]:
        """Return the nodes of an iteration, and older ones that it uses or sends gradients to, in order of creation."""
        key = iteration.start, iteration.end
        if key not in self._of_iterations:
            if len(self._of_iterations) >= _KEPT_ITERATIONS:
                self._of_iterations.clear()
            self._of_iterations[key] = self._nodes_between(iteration.start, iteration.end)
        return self._of_iterations[key]

    def _nodes_between(self, start: int, end: int) -> tuple[int, ...]:
        edges = self._index.tables.edges
        low, high = edges.seq.searchsorted((start, end + 1))
        lists = self._index.lists
        used = [lists[name].keys_between(start, end + 1) for name in ("created", "progress")]
        reached = nodes_of_keys(lists["arrived"].keys_between(start, end + 1))
        nodes = distinct(np.concatenate((edges.target[low:high], reached, *used)))
        created = self._index.lists["created"].whole()
        rows = created.keys.searchsorted(nodes)
        known = rows < len(created.keys)
        nodes, rows = nodes[known], rows[known]
        births = created.seqs[created.starts[rows]]
        there = (created.keys[rows] == nodes) & (births <= end)
        return tuple(nodes[there][np.argsort(births[there], kind="stable")].tolist())

    def freed(self, n: int) -> frozenset[int]:
        """Return the nodes that were freed by moment `n`."""
        return frozenset(self._index.lists["freed"].keys_between(1, n + 1).tolist())

    def with_saved(self, n: int) -> tuple[Sequence[int], int]:
        """Return the nodes created by moment `n` that still hold their saved tensors, and how many no longer do.

        What is computed while autograd is off counts among the first.
        """
        saving = [number for number, op in self._log.ops.items() if op.saved]
        created = np.asarray(self[: int(self._births.searchsorted(n, "right"))], np.int64)
        nodes = created[np.isin(self.origins.op[: len(created)], saving)]
        freed = np.isin(nodes, self._index.lists["saved_freed"].keys_between(1, n + 1))
        return nodes[~freed].tolist(), int(np.count_nonzero(freed))

    def name(self, node: int) -> str:
        """Return the name of a node, or ""."""
        return self._names.of(node)

    def all_names(self, node: int) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
        """Return the name of a node, the names of its outputs, and its other names.

        Other names are further paths of a parameter, and variables of callers.
        """
        name, outputs, also = self._names.all_of(node)
        named = self._index.lists["named"].last(node, self._index.count)
        return name, outputs, expect(self._log, named, e.Named).also if named else also

    @cached_property
    def parts(self) -> frozenset[int]:
        """The nodes whose outputs are parts of a call's return value, which determine their names."""
        return frozenset(self._index.lists["returned"].whole().keys.tolist())

    def explicit_name(self, node: int) -> str:
        """Return the name that the program itself gave a node, or ""."""
        named = self._index.lists["named"].last(node, self._index.count)
        return expect(self._log, named, e.Named).name if named else ""

    def returned(self, node: int) -> Mapping[int, e.KeyPath]:
        """Return the paths of the outputs that are parts of a call's return value, by output number."""
        if node not in self.parts:
            return {}
        events = [expect(self._log, seq, e.Returned) for seq in self._index.lists["returned"].of_key(node).tolist()]
        creation_stack = self.created(node).stack
        return {event.output_nr: event.path for event in events if event.path and event.stack == creation_stack}

    def op_name(self, number: int) -> str:
        """Return the name of an operation by its number."""
        return self._log.ops.get(number, UNKNOWN_OP).name

    def possible_names(self, stack: int) -> tuple[str, ...]:
        """Return the possible names of a node created at a stack, if it is not one of `named` or `parts`."""
        return self._assignments.possible(stack)

    def assigned_at(self, stack: int) -> Frame | None:
        """Return the frame whose statement names what is created at a stack; None if it is not assigned."""
        assignment = self._assignments.of(stack)
        stacks = self._log.stacks
        return stacks.frame(stacks.place(stack, assignment.depth)) if assignment is not None else None

    @cached_property
    def named(self) -> frozenset[int]:
        """The nodes that the program itself has named."""
        return frozenset(self._index.lists["named"].whole().keys.tolist())

    @property
    def last_naming(self) -> int:
        """The last event that named a node, 0 if there is none. Names can come later than their nodes."""
        kinds = self._index.lists["kind"]
        return max(kinds.last(KIND_NUMBERS[kind], self._index.count) for kind in (e.Named, e.Returned))

    @cached_property
    def open_from(self) -> int:
        """The event from which on nodes may still get names, as their statement may not have ended; 0: none."""
        births = self._index.lists["created"].whole().seqs
        if not (self._growing or self._log.cut_off) or not len(births):
            return 0
        last, end, kinds = int(births.max()), self._index.count, self._index.lists["kind"]
        if self._has_left_its_module or any(kinds.last(KIND_NUMBERS[kind], end) > last for kind in OF_NO_STATEMENT):
            return 0
        origins = self._index.tables.origins
        others = np.flatnonzero(origins.stack != origins.stack[-1])
        return int(origins.seq[others[-1] + 1 if len(others) else 0])

    @property
    def _has_left_its_module(self) -> bool:
        """Whether the last node was created in a module call that has ended, with all its inner calls."""
        last = int(self._births.max())
        return bool(expect(self._events, last, e.NodeCreated).scope) and not self._contexts.at(self._index.count)[2]

    @cached_property
    def _order(self) -> Array:
        """The positions of the nodes, in order of creation, among the keys of the index (sorted by number)."""
        run = self._index.lists["created"].whole()
        return np.argsort(run.seqs[run.starts[:-1]], kind="stable")

    @cached_property
    def _numbers(self) -> Array:
        return self._index.lists["created"].whole().keys[self._order]

    @cached_property
    def _births(self) -> Array:
        """The events that created the nodes."""
        run = self._index.lists["created"].whole()
        return run.seqs[run.starts[:-1][self._order]]

    @cached_property
    def _names(self) -> Names:
        of_these: Nodes = proxy(self)  # a weak reference: what this keeps must not keep it alive
        calls = Calls(
            self.origins,
            self._log.stacks,
            self._makers,
            leaf=cache(lambda op: of_these.op_name(op) == LEAF),
            module_call=cache(self._contexts.call),
            goes_on=bool(self.open_from),
        )
        goes_on, may_grow = bool(self.open_from), self._growing or self._log.cut_off
        in_calls = may_grow and len(self) > 0 and not self._has_left_its_module
        return Names(of_these, self._assignments, calls, goes_on=goes_on, in_calls=in_calls)

    @property
    def _makers(self) -> Array:
        """The thread that created each node, in the same order as `origins`."""
        times, threads = self._index.tables.threads
        births = self._births
        return threads[times.searchsorted(births, "right") - 1] if len(times) else np.zeros(len(births), np.int64)

    @cached_property
    def _assignments(self) -> Assignments:
        return Assignments(self._log.stacks, self._log.sources)


def _grouped(keys: list[int], entries: list[int]) -> Mapping[int, Sequence[int]]:
    groups: defaultdict[int, list[int]] = defaultdict(list)
    for key, entry in zip(keys, entries, strict=True):
        groups[key].append(entry)
    return dict(groups)

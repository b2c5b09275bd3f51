"""Finds the state of one node at one moment by search in the change lists."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from operator import eq
from typing import Any, overload

import numpy as np

from gviz import events as e
from gviz.events import Output
from gviz.trace.codec import KIND_NUMBERS
from gviz.trace.event_log import EventLog, birth, damaged, expect
from gviz.trace.graph_state import Contribution, NodeState, OutputState, Step
from gviz.trace.index.backward_reach import FailedPasses, Reach, seed_sum, standing, swept
from gviz.trace.index.change_lists import EMPTY
from gviz.trace.index.reference_checks import References
from gviz.trace.index.search_index import Index, output_key
from gviz.trace.tensor_storage import value_after
from gviz.trace.weak_cache import weak_method
from gviz.values.value import Array, Value

Stamp = tuple[int, int, tuple[int, ...], int, tuple[int, ...]]
"""What a node's state depends on: the node, its number of events so far, the running passes that cover it, the number
of failed passes, and the last writes to its memory. Equal stamps mean equal states.
"""

_KEPT_STATES = 1 << 15

_FEW = 8
"""Up to this many nodes are looked up one by one: a search for many nodes at once has a fixed cost."""


class NodeStates:
    """Returns the state of nodes at any moment. Caches recent states, within bounds."""

    def __init__(self, log: EventLog, index: Index, events: References) -> None:
        self._log = log
        self._index = index
        self._events = events
        self._kept: dict[Stamp, NodeState] = {}
        self._births: dict[int, tuple[int, tuple[int, ...]]] = {}
        self.reach = lru_cache(maxsize=64)(weak_method(self._reach))
        self._abandoned = FailedPasses(log, index, self.reach)
        self.is_alone = lru_cache(maxsize=64)(weak_method(self._is_alone))

    def many(self, nodes: Sequence[int], n: int, running: tuple[int, ...]) -> list[NodeState | None]:
        """Return the state of nodes after event `n` while the passes `running` (innermost first) run.

        The state is None for nodes that are not created yet. If nothing changed since the last request, it is a
        dictionary lookup.
        """
        own = self._index.lists["node"]
        if len(nodes) <= _FEW:
            ranks = [own.count(node, n) for node in nodes]
        else:
            ranks = own.counts(np.asarray(nodes, np.int64), n).tolist()
        self._look_up_births(nodes)
        if len(self._kept) + len(nodes) > _KEPT_STATES:
            self._kept.clear()
        covering = self._covering(nodes, running)
        failures = int(self._index.tables.failed_passes.seq.searchsorted(n, "right"))
        births, kept, written = self._births, self._kept, self._index.lists["written"]
        states: list[NodeState | None] = []
        for node, rank in zip(nodes, ranks, strict=True):
            born, storages = births[node]
            if not rank or not 0 < born <= n:
                states.append(None)
                continue
            covers = covering.get(node, ())
            writes = tuple([written.last(storage, n) for storage in storages]) if storages else ()
            state = kept.get(stamp := (node, rank, covers, failures, writes))
            if state is None:
                state = kept[stamp] = self._state_after(node, born, n, covers[0] if covers else 0)
            states.append(state)
        return states

    def memory_value(self, output_nr: int, born: int, n: int) -> Value | None:
        """Return what the memory of an output holds after event `n`; the node was created by event `born`.

        An `output_nr` beyond the last output refers to the last one.
        """
        created = expect(self._events, born, e.NodeCreated)
        nr = min(output_nr, len(created.outputs) - 1)
        return self._output_memory(created.node, nr, created.outputs[nr], born, n)[0] if created.outputs else None

    def grow(self) -> None:
        """Call this when the log has grown: discards which memory has been written to."""
        self._births.clear()

    def _covering(self, nodes: Sequence[int], running: tuple[int, ...]) -> dict[int, tuple[int, ...]]:
        """Return the running passes that cover each node, innermost first. Nodes without any are left out."""
        covering: dict[int, tuple[int, ...]] = {}
        for pass_nr in running:
            for node in self.reach(pass_nr).nodes.intersection(nodes):
                covering[node] = (*covering.get(node, ()), pass_nr)
        return covering

    def _look_up_births(self, nodes: Sequence[int]) -> None:
        """Cache when nodes were created, and those of their storages that were written to later."""
        created, written = self._index.lists["created"], self._index.lists["written"]
        count = self._index.count
        births = {node: created.last(node, count) for node in nodes if node not in self._births}
        if not births:
            return
        self._log.prefetch(filter(None, births.values()))
        for node, born in births.items():
            outputs = birth(self._events, born, node).outputs if born else ()
            storages = {output.storage for output in outputs} - {0}
            self._births[node] = born, tuple([storage for storage in storages if written.last(storage, count)])

    def _state_after(self, node: int, born: int, n: int, covering: int) -> NodeState:
        """Return the node after event `n`. `covering` is the innermost running pass that covers it, 0 if none does."""
        created = birth(self._events, born, node)
        lists = self._index.lists
        switched = lists["requires"].last(node, n)
        requires_grad = self._left(switched, "requires_grad") if switched else created.requires_grad
        op = self._log.ops.get(created.op)
        saves = created.kind == "op" and not created.untracked and op is not None and bool(op.saved)
        saved_freed = lists["saved_freed"].last(node, n)
        progress = self._progress(node, len(created.outputs), n, covering)
        outputs = tuple(self._output(node, nr, out, born, n, progress) for nr, out in enumerate(created.outputs))
        failed = self._has_failed(progress.pass_nr, progress.start, n)
        return NodeState(
            node=node,
            requires_grad=requires_grad,
            saved=("freed" if saved_freed else "held") if saves else "nothing",
            saved_freed=saved_freed,
            freed=lists["freed"].last(node, n),
            pass_nr=progress.pass_nr,
            step=standing(progress.step, progress.pass_nr, leaf=created.kind != "op", failed=failed, outputs=outputs),
            outputs=outputs,
        )

    def _output(self, node: int, nr: int, output: Output, born: int, n: int, progress: Progress) -> OutputState:
        grad_seq = self._index.lists["grad"].last(output_key(node, nr), n)
        value, written, version, written_by = self._output_memory(node, nr, output, born, n)
        parts, incoming = self._arrived(progress, node, nr, n)
        return OutputState(
            value=value,
            value_seq=written,
            version=version,
            written_by=written_by,
            incoming=incoming,
            parts=parts,
            expected=max(len(parts), progress.expected((node, nr))),
            grad=self._left(grad_seq, "grad") if grad_seq else None,
            grad_seq=grad_seq,
        )

    def _output_memory(
        self, node: int, nr: int, output: Output, born: int, n: int
    ) -> tuple[Value | None, int, int, int]:
        """Return ``(value, event, version, writer)``: what an output holds after `n` and which event and node
        wrote it.
        """
        data_set = self._index.lists["data"].last(output_key(node, nr), n)
        if data_set > born:
            value, version, writer = self._left(data_set, "data")
            return value, data_set, version, writer
        written = self._index.lists["written"].last(output.storage, n) if output.storage else 0
        if written <= born:
            return output.value, born, output.version, 0
        value, version, writer = self._left(written, "memory")
        return value_after(output, value, self._log.array), written, version, writer

    def _left(self, seq: int, cell: e.Cell) -> Any:
        """Return what event `seq` leaves in a cell, which it sets according to the index."""
        event = self._events.event(seq)
        if e.effect(event.__class__, cell) is None:
            raise damaged(f"event {seq} is {type(event).__name__}, its index says that it sets {cell}")
        return e.left(event, cell)

    def _progress(self, node: int, outputs: int, n: int, covering: int) -> Progress:
        """Return what the relevant pass has done at the node.

        That is the pass that covers it, or otherwise the latest that reached it or failed before reaching it.
        """
        if not covering:
            arrived = self._index.lists["arrived"]
            arrivals = [arrived.last(output_key(node, nr), n) for nr in range(outputs)]
            latest = max(self._index.lists["progress"].last(node, n), *arrivals, self._abandoned.before(node, n))
            covering = pass_of(self._events.event(latest)) if latest else 0
        start = self._index.lists["pass_started"].last(covering, n) if covering else 0
        progress = Progress(covering, self.reach, start)
        if covering:
            for seq in self._index.lists["progress"].between(node, start, n + 1):
                progress.process(seq, node, self._events.event(seq), self._log)
        return progress

    def _has_failed(self, pass_nr: int, start: int, n: int) -> bool:
        """Return whether the pass that began at event `start` has ended with an error by moment `n`."""
        if not len(self._index.tables.failed_passes.seq):
            return False
        finished = self._index.lists["pass_finished"].last(pass_nr, n)
        return finished > start and bool(self._left(finished, "pass_end"))

    def _arrived(self, progress: Progress, node: int, nr: int, n: int) -> tuple[Arrivals, Value | None]:
        """Return the contributions that have arrived at an output in a pass, and its incoming gradient.

        The gradient is their sum, or what a hook replaced it by.
        """
        seqs = EMPTY
        if progress.pass_nr:
            seqs = self._index.lists["arrived"].stretch(output_key(node, nr), progress.start, n + 1)
            if len(seqs) and not self.is_alone(progress.start, n):
                self._log.prefetch(seqs.tolist())
                own = [pass_of(self._events.event(seq)) == progress.pass_nr for seq in seqs.tolist()]
                seqs = seqs[np.array(own)]
        arrivals = Arrivals((node, nr), progress.seeds.get(nr, ()), seqs, self._events)
        seq, replacing = progress.incoming.get(nr, (0, None))
        return arrivals, arrivals.total() if len(seqs) and seqs[-1] > seq else replacing

    def _is_alone(self, start: int, n: int) -> bool:
        """Return whether all contributions from event `start`, which begins a pass, to event `n` belong to
        that pass.
        """
        times, passes = self._index.tables.context.seq, self._index.tables.context.innermost
        before = int(times.searchsorted(start)) - 1
        strays = self._index.tables.strays.seq
        if (before >= 0 and passes[before]) or strays.searchsorted(start) < strays.searchsorted(n, "right"):
            return False
        return not self._index.lists["kind"].between(KIND_NUMBERS[e.BackwardStarted], start + 1, n + 1)

    def _reach(self, pass_nr: int) -> Reach:
        start = self._index.lists["pass_started"].last(pass_nr, self._index.count)
        if not start:
            return Reach((), tuple)
        return swept(self._index, start, expect(self._events, start, e.BackwardStarted))


class Arrivals(Sequence[Contribution]):
    """The contributions that have arrived at one output, read from the log on access."""

    __slots__ = ("_edge", "_events", "_seeds", "_seqs")

    def __init__(self, edge: e.Edge, seeds: Sequence[Contribution], seqs: Array, events: References) -> None:
        self._edge = edge
        self._seeds = seeds
        self._seqs = seqs
        self._events = events

    def __len__(self) -> int:
        return len(self._seeds) + len(self._seqs)

    @overload
    def __getitem__(self, index: int) -> Contribution: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Contribution, ...]: ...
    def __getitem__(self, index: int | slice) -> Contribution | tuple[Contribution, ...]:
        places = range(len(self))[index]
        return self._at(places) if isinstance(places, int) else tuple(map(self._at, places))

    def __iter__(self) -> Iterator[Contribution]:
        return map(self._at, range(len(self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and len(other) == len(self) and all(map(eq, self, other))

    __hash__ = None  # type: ignore[assignment]  # equal to a tuple, but not meant as a key

    def total(self) -> Value:
        """Return the sum after the last `GradFlowed`; there must be one."""
        total: Value = e.left(self._flow(int(self._seqs[-1])), "arrived")
        return total

    def _at(self, place: int) -> Contribution:
        if place < len(self._seeds):
            return self._seeds[place]
        seq = int(self._seqs[place - len(self._seeds)])
        flow = self._flow(seq)
        return Contribution(flow.source, flow.slot, flow.part, seq)

    def _flow(self, seq: int) -> e.GradFlowed:
        flow = expect(self._events, seq, e.GradFlowed)
        if (flow.node, flow.output_nr) != self._edge:
            raise damaged(f"event {seq} is not about output {self._edge[1]} of node {self._edge[0]}, as its index says")
        return flow


class Progress:
    """What one pass, begun by event `start`, has done at one node so far, except for the contributions.

    `incoming` maps an output to the last seed or hook result there, and its event. `reach_of` computes what a pass
    covers. It is slow and is not called for a pass that has finished with the node.
    """

    __slots__ = ("_reach_of", "complete", "incoming", "pass_nr", "seeds", "start", "step")

    def __init__(self, pass_nr: int, reach_of: Callable[[int], Reach], start: int) -> None:
        self.pass_nr = pass_nr
        self._reach_of = reach_of
        self.start = start
        self.seeds: dict[int, list[Contribution]] = {}
        self.incoming: dict[int, tuple[int, Value | None]] = {}
        self.step: Step = "pending"
        self.complete = False

    def expected(self, output: e.Edge) -> int:
        """Return how many contributions the output gets before the node can run; 0 once it has run."""
        return 0 if self.complete else self._reach_of(self.pass_nr).expected.get(output, 0)

    def process(self, seq: int, node: int, event: e.Event, log: EventLog) -> None:
        """Process one event at the node. Events of other passes are ignored."""
        if pass_of(event) != self.pass_nr:
            return
        for cell, sets in e.EFFECTS[event.__class__]:
            match cell:
                case "seed":
                    for (root, nr), (slot, seed) in sets(event):
                        if root == node:
                            self.seeds.setdefault(nr, []).append(Contribution(0, slot, seed, seq))
                    for nr, seeds in self.seeds.items():
                        self.incoming[nr] = seq, seed_sum([seed.value for seed in seeds], log.array)
                case "replaced":
                    self.incoming.update({nr: (seq, gradient) for (_, nr), gradient in sets(event)})
                case "step":
                    self.step, self.complete = e.left(event, cell), True


def pass_of(event: e.Event) -> int:
    """Return the pass of an event, 0 for none."""
    return int(getattr(event, "pass_nr", 0))

"""A whole recording: the events that questions about all of it need, read once and only on demand."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from functools import cached_property
from heapq import merge
from math import isfinite
from operator import attrgetter, itemgetter
from typing import TypeVar, cast

from gviz import events as e
from gviz.explain.operation_sets import SAME_NUMBERS
from gviz.explain.source_frames import own_frame
from gviz.source.call_stack import Frame
from gviz.trace.event_log import E
from gviz.trace.timeline import Timeline
from gviz.values.value import Stats, Value


@dataclass(frozen=True, slots=True)
class NodeRecord:
    """A node as it was made, by event `seq`; `op` is the name of its operation."""

    seq: int
    op: str
    created: e.NodeCreated

    @property
    def node(self) -> int:
        """Return its number."""
        return self.created.node

    @property
    def value(self) -> Value | None:
        """Return the value of its first output when it was made."""
        return self.created.first_value

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape of its first output, or that of a scalar if it is unknown."""
        return self.value.shape if self.value is not None else ()

    @property
    def stats(self) -> Stats | None:
        """Return the statistics of its first output when it was made, if they are known."""
        return self.value.statistics() if self.value is not None else None

    @property
    def number(self) -> float | None:
        """Return the finite number that its first output consists of; None if it is not one known number."""
        stats = self.stats if self.value is not None and self.value.size == 1 else None
        return stats.mean if stats is not None and isfinite(stats.mean) else None


_READ: tuple[type[e.Event], ...] = (
    e.NodeCreated, e.BackwardStarted, e.BackwardFinished, e.GradAccumulated, e.GradSet, e.GradRetained, e.GradCaptured,
    e.OptimizerStepped, e.StorageWritten, e.DataSet, e.ScopeEntered,
)  # fmt: skip
"""The events that are read together: reading each class by itself would read the file as many times."""

STRETCH = 16_384
"""Events that are read at a time."""

_Events = list[tuple[int, e.Event]]
A = TypeVar("A")


class Survey:
    """All nodes and passes of a timeline, read cooperatively in advance or else by the first answer."""

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self.end = len(timeline)
        self._read_to = 0
        self._selected: dict[type[e.Event], _Events] = {kind: [] for kind in _READ}
        self._nodes: dict[int, NodeRecord] = {}
        self._names: dict[int, str] = {}
        self._results: dict[object, object] = {}

    def reading(self) -> Iterator[int]:
        """Read what all answers need; yield how many events were read."""
        while self._read_to < self.end:
            start, self._read_to = self._read_to + 1, min(self._read_to + STRETCH, self.end)
            for seq, event in self.timeline.select(_READ, start, self._read_to + 1):
                self._selected[type(event)].append((seq, event))
                if isinstance(event, e.NodeCreated):
                    self._nodes[event.node] = NodeRecord(seq, self._name(event.op), event)
            yield self._read_to

    def _read(self) -> None:
        for _ in self.reading():
            pass

    def _name(self, op: int) -> str:
        if op not in self._names:
            self._names[op] = self.timeline.op(op).base_name
        return self._names[op]

    def select(self, *kinds: type[E]) -> Iterator[tuple[int, E]]:
        """Yield the events of these classes, which must be in `_READ`, in order."""
        self._read()
        selected = merge(*(self._selected[kind] for kind in kinds), key=itemgetter(0))
        return cast("Iterator[tuple[int, E]]", selected)

    def once(self, reading: Callable[[Survey], Generator[None, None, A]]) -> Generator[None, None, A]:
        """Return the result of a reading that several kinds of findings need: only the first of them runs it."""
        if reading not in self._results:
            self._results[reading] = yield from reading(self)
        return cast("A", self._results[reading])

    @property
    def nodes(self) -> dict[int, NodeRecord]:
        """Return every node, in order of creation."""
        if self._read_to < self.end:
            self._read()
        return self._nodes

    @cached_property
    def by_op(self) -> dict[str, list[NodeRecord]]:
        """Return the nodes of each operation, by its name."""
        by_op: defaultdict[str, list[NodeRecord]] = defaultdict(list)
        for record in self.nodes.values():
            if record.created.kind == "op":
                by_op[record.op].append(record)
        return by_op

    @cached_property
    def accumulated(self) -> list[tuple[int, e.GradAccumulated]]:
        """Return the additions to the ``.grad`` of leaves."""
        return list(self.select(e.GradAccumulated))

    @cached_property
    def passes(self) -> list[tuple[int, e.BackwardStarted]]:
        """Return the backward passes that began."""
        return list(self.select(e.BackwardStarted))

    @cached_property
    def roots(self) -> frozenset[int]:
        """Return the tensors from which the backward passes began."""
        return frozenset(node for _, event in self.passes for node, _ in event.roots)

    @cached_property
    def optimized(self) -> frozenset[int]:
        """Return the parameters of optimizers."""
        steps = self.select(e.OptimizerStepped)
        return frozenset(node for _, step in steps for node in (*step.parameters, *step.skipped))

    @cached_property
    def skipped(self) -> frozenset[int]:
        """Return the parameters of optimizers for which no step has ever found a gradient."""
        updated = {node for _, step in self.select(e.OptimizerStepped) for node in step.parameters}
        return self.optimized - updated

    @cached_property
    def scopes(self) -> dict[int, e.ScopeEntered]:
        """Return the module calls by number."""
        return {event.scope: event for _, event in self.select(e.ScopeEntered)}

    def outermost(self, scope: int) -> int:
        """Return the outermost module call around a module call."""
        while (parent := self.scopes[scope].parent) in self.scopes:
            scope = parent
        return scope

    def alive(self, n: int) -> Iterator[NodeRecord]:
        """Yield the nodes that are still referenced at moment `n`."""
        freed = self.timeline.nodes.freed(n)
        return (record for record in self.nodes.values() if record.seq <= n and record.node not in freed)

    def ops(self, *names: str) -> Iterator[NodeRecord]:
        """Yield the nodes of some operations, in order of creation."""
        return merge(*[self.by_op.get(name, ()) for name in names], key=attrgetter("seq"))

    def sources(self, record: NodeRecord) -> Iterator[NodeRecord]:
        """Yield the known inputs of a node."""
        return (self.nodes[node] for node, _ in record.created.inputs if node in self.nodes)

    def history(self, *nodes: int) -> Iterator[int]:
        """Yield nodes and the tracked ones from which they were computed, nearest first."""
        seen, waiting = set(nodes), deque(node for node in nodes if node in self.nodes)
        while waiting:
            node = waiting.popleft()
            yield node
            new = [source.node for source in self.sources(self.nodes[node]) if source.created.requires_grad]
            waiting.extend(source for source in dict.fromkeys(new) if source not in seen)
            seen.update(new)

    def is_square(self, record: NodeRecord) -> bool:
        """Return whether a node is a power, or the product of a tensor with itself."""
        inputs = record.created.inputs
        return record.op in ("pow", "square") or (record.op == "mul" and len(inputs) == 2 and inputs[0] == inputs[1])

    def unwrapped(self, record: NodeRecord) -> NodeRecord:
        """Return the original node of a view, a reshaping or a copy; or else the node itself."""
        while record.op in SAME_NUMBERS and record.created.inputs and record.created.inputs[0][0] in self.nodes:
            record = self.nodes[record.created.inputs[0][0]]
        return record

    def loss_frames(self) -> list[Frame]:
        """Return a frame in each source file from which the losses were computed."""
        roots = (self.nodes[node] for _, event in self.passes for node, _ in event.roots if node in self.nodes)
        return [*{at.path: at for root in roots for at in self.timeline.stack(root.created.stack)}.values()]

    def at(self, record: NodeRecord) -> Frame | None:
        """Return the line that made a node."""
        return own_frame(self.timeline.stack(record.created.stack))


def dimensions_named(value: object, count: int) -> set[int]:
    """Return the dimensions that an attribute names, counted from 0."""
    values = value if isinstance(value, list | tuple) else [value]
    return {number % count for number in values if isinstance(number, int) and count}

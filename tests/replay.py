"""What every event means, in one place: the state of all nodes after the first `n` events, by going through them.

`Timeline` gives the same answers by search, and is tested against this. Read this to learn what an event does; use
the timeline to ask.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain, compress

from gviz import events as e
from gviz.events import Edge, Output
from gviz.trace.event_log import EventLog
from gviz.trace.graph_state import Contribution, NodeState, OutputState, Saved, Step
from gviz.trace.index.backward_reach import Reach, seed_sum, standing
from gviz.trace.index.search_index import Carriers
from gviz.trace.tensor_storage import value_after
from gviz.values.value import Value

_EdgesOf = Callable[[int], Collection[Edge]]
"""Returns the outputs that a node's backward rule sends gradients to, one entry per input that can have a gradient."""


@dataclass
class _Place:
    """One output while replaying; it `has_left` the memory that it was made in when it was given other data."""

    output: Output
    value: Value | None
    value_seq: int
    version: int
    written_by: int = 0
    has_left: bool = False
    grad: Value | None = None
    grad_seq: int = 0


@dataclass
class _Progress:
    """How far one pass has come at one node."""

    parts: dict[int, list[Contribution]] = field(default_factory=dict)
    totals: dict[int, Value] = field(default_factory=dict)
    step: Step = "pending"

    def arrive(self, output_nr: int, part: Contribution, total: Value | None) -> None:
        self.parts.setdefault(output_nr, []).append(part)
        self.totals[output_nr] = part.value if total is None else total

    def replace(self, output_nr: int, total: Value | None) -> None:
        if total is not None:
            self.totals[output_nr] = total


@dataclass
class _Node:
    """One node while replaying. `edges` are where its rule sends gradients; `reached` the passes that got here."""

    created: e.NodeCreated
    requires_grad: bool
    saved: Saved
    edges: tuple[Edge, ...]
    places: list[_Place]
    saved_freed: int = 0
    freed: int = 0
    reached: list[int] = field(default_factory=list)
    progress: dict[int, _Progress] = field(default_factory=dict)

    def in_pass(self, pass_nr: int) -> _Progress:
        """The progress of a pass that has just done something here."""
        self.reached = [*(nr for nr in self.reached if nr != pass_nr), pass_nr]
        return self.progress.setdefault(pass_nr, _Progress())


class Replay:
    """The world of a trace while its events are gone through."""

    def __init__(self, log: EventLog) -> None:
        self.log = log
        self.nodes: dict[int, _Node] = {}
        self.passes: dict[int, Reach] = {}
        self.running: list[int] = []
        self.failed: set[int] = set()
        self.carriers = Carriers()

    def apply(self, seq: int, event: e.Event) -> None:
        """Let one event happen."""
        match event:
            case e.NodeCreated():
                self._create(seq, event)
            case e.StorageWritten():
                self._write(seq, event)
            case e.DataSet(node=node) if node in self.nodes:
                self._set_data(seq, event)
            case e.RequiresGradSet(node=node, requires_grad=requires_grad) if node in self.nodes:
                self.nodes[node].requires_grad = requires_grad
                self.carriers.see_requires(node, requires_grad=requires_grad)
            case e.BackwardStarted():
                self._start(seq, event)
            case e.BackwardFinished(pass_nr=pass_nr) if pass_nr in self.running:
                self._finish(pass_nr, event.error)
            case e.GradFlowed(pass_nr=pass_nr, node=node) if node in self.nodes:
                part = Contribution(event.source, event.slot, event.part, seq)
                self.nodes[node].in_pass(pass_nr).arrive(event.output_nr, part, event.total)
            case e.HookRan(pass_nr=pass_nr, node=node) if node in self.nodes:
                replaces = event.when in ("tensor", "pre")
                self.nodes[node].in_pass(pass_nr).replace(event.output_nr, event.value if replaces else None)
            case e.StepStarted(pass_nr=pass_nr, node=node) if node in self.nodes:
                self.nodes[node].in_pass(pass_nr).step = "running"
            case e.StepFinished(pass_nr=pass_nr, node=node) if node in self.nodes:
                self.nodes[node].in_pass(pass_nr).step = "done"
            case e.GradCaptured(pass_nr=pass_nr, node=node) if node in self.nodes:
                self.nodes[node].in_pass(pass_nr).step = "done"
            case e.GradAccumulated(pass_nr=pass_nr, node=node) if node in self.nodes:
                self.nodes[node].in_pass(pass_nr).step = "done"
                self._set_grad(seq, node, 0, event.part if event.value is None else event.value)
            case e.GradRetained(node=node, output_nr=output_nr, value=value):
                self._set_grad(seq, node, output_nr, value)
            case e.GradSet(node=node, output_nr=output_nr, value=value):
                self._set_grad(seq, node, output_nr, value)
            case e.SavedFreed(node=node) if node in self.nodes:
                self.nodes[node].saved_freed = seq
            case e.NodeFreed(node=node) if node in self.nodes:
                self.nodes[node].freed = seq

    def state(self, node: int) -> NodeState:
        """One node as it is now."""
        it = self.nodes[node]
        pass_nr = self._pass_of(node)
        progress = it.progress.get(pass_nr, _Progress())
        saved: Saved = "freed" if it.saved == "held" and it.saved_freed else it.saved
        outputs = tuple(self._output(node, nr, pass_nr, progress) for nr in range(len(it.places)))
        leaf, failed = it.created.kind != "op", pass_nr in self.failed
        step = standing(progress.step, pass_nr, leaf=leaf, failed=failed, outputs=outputs)
        return NodeState(node, it.requires_grad, saved, it.saved_freed, it.freed, pass_nr, step, outputs)

    def _create(self, seq: int, event: e.NodeCreated) -> None:
        op = self.log.ops.get(event.op)
        tracked = event.kind == "op" and not event.untracked
        saved: Saved = "held" if tracked and op is not None and op.saved else "nothing"
        edges = tuple(compress(event.inputs, self.carriers.see_node(event)))
        places = [_Place(output, output.value, seq, output.version) for output in event.outputs]
        self.nodes[event.node] = _Node(event, event.requires_grad, saved, edges, places)

    def _write(self, seq: int, event: e.StorageWritten) -> None:
        for node in self.nodes.values():
            for place in node.places:
                if place.output.storage == event.storage != 0 and not place.has_left:
                    place.value = value_after(place.output, event.value, self.log.array)
                    place.value_seq, place.version, place.written_by = seq, event.version, event.node

    def _set_data(self, seq: int, event: e.DataSet) -> None:
        places = self.nodes[event.node].places
        if event.output_nr < len(places):
            place = places[event.output_nr]
            place.value, place.value_seq, place.has_left = event.value, seq, True
            place.version, place.written_by = event.version, event.writer

    def _start(self, seq: int, event: e.BackwardStarted) -> None:
        self.running.append(event.pass_nr)
        self.passes[event.pass_nr] = _reach(event.roots, event.inputs, lambda node: self._edges(node))
        for slot, (root, seed) in enumerate(zip(event.roots, event.seeds, strict=False)):
            node, output_nr = root
            if node in self.nodes:
                part = Contribution(0, slot, seed, seq)
                seeds = [other for edge, other in zip(event.roots, event.seeds, strict=False) if edge == root]
                total = seed_sum(seeds, self.log.array)
                self.nodes[node].in_pass(event.pass_nr).arrive(output_nr, part, total)

    def _finish(self, pass_nr: int, error: str) -> None:
        self.running.remove(pass_nr)
        if error:
            self.failed.add(pass_nr)
            for node in self.passes[pass_nr].nodes & self.nodes.keys():
                self.nodes[node].in_pass(pass_nr)

    def _edges(self, node: int) -> tuple[Edge, ...]:
        return self.nodes[node].edges if node in self.nodes else ()

    def _set_grad(self, seq: int, node: int, output_nr: int, value: Value | None) -> None:
        if node in self.nodes and output_nr < len(self.nodes[node].places):
            place = self.nodes[node].places[output_nr]
            place.grad, place.grad_seq = value, seq

    def _pass_of(self, node: int) -> int:
        """The innermost running pass that covers the node, else the latest that reached it, or failed on the way."""
        it = self.nodes[node]
        for pass_nr in reversed(self.running):
            if node in self.passes[pass_nr].nodes:
                return pass_nr
        return it.reached[-1] if it.reached else 0

    def _output(self, node: int, nr: int, pass_nr: int, progress: _Progress) -> OutputState:
        place = self.nodes[node].places[nr]
        parts = tuple(progress.parts.get(nr, ()))
        expected = len(parts)
        if pass_nr in self.passes and progress.step not in ("running", "done", "failed"):
            expected = max(expected, self.passes[pass_nr].expected.get((node, nr), 0))
        return OutputState(
            value=place.value,
            value_seq=place.value_seq,
            version=place.version,
            written_by=place.written_by,
            incoming=progress.totals.get(nr),
            parts=parts,
            expected=expected,
            grad=place.grad,
            grad_seq=place.grad_seq,
        )


def replay(log: EventLog, n: int) -> dict[int, NodeState]:
    """The state of every node born so far, after event `n` (0: before anything)."""
    world = Replay(log)
    for seq in range(1, n + 1):
        world.apply(seq, log.event(seq))
    return {node: world.state(node) for node in world.nodes}


def _reach(roots: Iterable[Edge], inputs: Iterable[Edge], edges_of: _EdgesOf) -> Reach:
    """Return what a pass from `roots` covers: everything reachable or, with `inputs`, only the paths that lead
    there.
    """
    roots, targets = tuple(roots), {node for node, _ in inputs}
    edges = _walk(roots, edges_of)
    reached = _leading_to(targets, edges) if targets else edges.keys()
    everything = chain(roots, chain.from_iterable(edges[node] for node in reached))
    arriving = [edge for edge in everything if edge[0] in reached]
    return Reach({node for node, _ in arriving}, lambda: arriving)


def _walk(roots: Iterable[Edge], edges_of: _EdgesOf) -> dict[int, Collection[Edge]]:
    edges: dict[int, Collection[Edge]] = {}
    todo = [node for node, _ in roots]
    while todo:
        node = todo.pop()
        if node not in edges:
            edges[node] = outgoing = edges_of(node)
            todo.extend(target for target, _ in outgoing if target not in edges)
    return edges


def _leading_to(targets: set[int], edges: Mapping[int, Collection[Edge]]) -> set[int]:
    sources = defaultdict(list)
    for node, outgoing in edges.items():
        for target, _ in outgoing:
            sources[target].append(node)
    leading: set[int] = set()
    todo = [node for node in targets if node in edges]
    while todo:
        node = todo.pop()
        if node not in leading:
            leading.add(node)
            todo.extend(sources[node])
    return leading

"""Which nodes a backward pass will reach, computed from the graph when the pass starts, and its seed gradients."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain

from gviz.events import Edge, NodeCreated
from gviz.trace.graph_state import OutputState, Step
from gviz.trace.tensor_storage import FindArray
from gviz.values.value import Value, capture

EdgesOf = Callable[[int], Collection[Edge]]
"""Returns the outputs that a node's backward rule sends gradients to, one entry per input that can have a gradient."""


class Reach:
    """The part of the graph that one pass covers: its `nodes`. `arriving` yields each output once per contribution,
    seeds included.
    """

    def __init__(self, nodes: Iterable[int], arriving: Callable[[], Iterable[Edge]]) -> None:
        self.nodes = frozenset(nodes)
        self._arriving = arriving

    @cached_property
    def expected(self) -> Mapping[Edge, int]:
        """The number of contributions that will arrive at each output, counted on first use."""
        return Counter(self._arriving())


def reach(roots: Iterable[Edge], inputs: Iterable[Edge], edges_of: EdgesOf) -> Reach:
    """Return what a pass from `roots` covers: everything reachable or, with `inputs`, only the paths that lead
    there.
    """
    roots, targets = tuple(roots), {node for node, _ in inputs}
    edges = _walk(roots, edges_of)
    reached = _leading_to(targets, edges) if targets else edges.keys()
    arriving = [e for e in chain(roots, chain.from_iterable(edges[node] for node in reached)) if e[0] in reached]
    return Reach({node for node, _ in arriving}, lambda: arriving)


def _walk(roots: Iterable[Edge], edges_of: EdgesOf) -> dict[int, Collection[Edge]]:
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


class Carriers:
    """Tracks which outputs can have a gradient, and therefore which edges carry one, as nodes are created and leaves
    change `requires_grad`.
    """

    __slots__ = ("_plain", "_requiring")

    def __init__(self) -> None:
        self._requiring: set[int] = set()
        self._plain: set[Edge] = set()  # outputs of these nodes whose dtype cannot have a gradient

    def see_node(self, created: NodeCreated) -> list[bool]:
        """Add a new node. Returns for each input whether the node's backward rule sends a gradient to it."""
        # no_grad made a view of a leaf: it requires a gradient but never gets one
        if created.requires_grad and not created.untracked:
            self._requiring.add(created.node)
        if created.requires_grad or created.kind != "op":
            values = enumerate(output.value for output in created.outputs)
            self._plain.update((created.node, nr) for nr, value in values if value and not _has_gradients(value.dtype))
        if created.kind != "op" or created.untracked:
            return [False] * len(created.inputs)
        return [edge[0] in self._requiring and edge not in self._plain for edge in created.inputs]

    def see_requires(self, node: int, *, requires_grad: bool) -> None:
        """Record that a leaf requires a gradient from now on, or no longer does."""
        (self._requiring.add if requires_grad else self._requiring.discard)(node)


def standing(step: Step, pass_nr: int, *, leaf: bool, failed: bool, outputs: Sequence[OutputState]) -> Step:
    """Return the state of a node in a pass whose `step` is known. A leaf is running once all contributions have
    arrived.

    If an error ended the pass, a running node has failed, and a node that received nothing is not part of the pass.
    """
    if pass_nr == 0:
        return "none"
    if step != "pending":
        return "failed" if failed and step == "running" else step
    if not any(out.parts for out in outputs):
        return "none" if failed else "pending"
    complete = all(len(out.parts) >= out.expected for out in outputs)
    return "running" if leaf and complete and not failed else "waiting"


def _has_gradients(dtype: str) -> bool:
    return dtype.startswith(("float", "bfloat", "complex"))


def seed_sum(seeds: Sequence[Value], find_array: FindArray) -> Value | None:
    """Return the gradient with which a pass starts at one root: the sum if the root was given several times."""
    if len(seeds) < 2:
        return seeds[0] if seeds else None
    arrays = [array for array in map(find_array, seeds) if array is not None and array.shape == seeds[0].shape]
    if len(arrays) < len(seeds) or seeds[0].dtype == "bfloat16":
        return Value(seeds[0].dtype, seeds[0].shape)
    return capture(sum(arrays[1:], arrays[0]))

"""Which nodes a backward pass will reach, known from the graph before it has reached them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import chain

from gviz.events import BackwardStarted, Edge, HookRan
from gviz.trace.storage import FindArray
from gviz.values import Value, capture

EdgesOf = Callable[[int], Collection[Edge]]
"""The outputs into which a node's rule sends gradients, one entry per input that can have one."""


class Reach:
    """The part of the graph one pass covers; `expected` counts what will arrive at each output, seeds included."""

    __slots__ = ("expected", "nodes")

    def __init__(self, expected: Mapping[Edge, int]) -> None:
        self.expected = expected
        self.nodes = frozenset(node for node, _ in expected)


def reach(roots: Iterable[Edge], inputs: Iterable[Edge], edges_of: EdgesOf) -> Reach:
    """What a pass from `roots` covers: all it can reach or, given `inputs`, only the ways that lead to them."""
    roots, wanted = tuple(roots), {node for node, _ in inputs}
    edges = _walk(roots, edges_of)
    kept = _leading_to(wanted, edges) if wanted else edges.keys()
    expected: dict[Edge, int] = {}
    for edge in chain(roots, chain.from_iterable(edges[node] for node in kept)):
        if edge[0] in kept:
            expected[edge] = expected.get(edge, 0) + 1
    return Reach(expected)


def _walk(roots: Iterable[Edge], edges_of: EdgesOf) -> dict[int, Collection[Edge]]:
    edges: dict[int, Collection[Edge]] = {}
    todo = [node for node, _ in roots]
    while todo:
        node = todo.pop()
        if node not in edges:
            edges[node] = found = edges_of(node)
            todo.extend(target for target, _ in found if target not in edges)
    return edges


def _leading_to(wanted: set[int], edges: Mapping[int, Collection[Edge]]) -> set[int]:
    sources = defaultdict(list)
    for node, targets in edges.items():
        for target, _ in targets:
            sources[target].append(node)
    kept: set[int] = set()
    todo = [node for node in wanted if node in edges]
    while todo:
        node = todo.pop()
        if node not in kept:
            kept.add(node)
            todo.extend(sources[node])
    return kept


def carries_gradient(dtype: str | None) -> bool:
    """Whether an output of this dtype can have a gradient (None: its dtype was never known)."""
    return dtype is None or dtype.startswith(("float", "bfloat", "complex"))


def replacement(ran: HookRan) -> Value | None:
    """What a hook puts in the place of the gradient that has arrived, or None; later hooks see other gradients."""
    return ran.value if ran.when in ("tensor", "pre") else None


def seed_of(started: BackwardStarted, root: Edge, find_array: FindArray) -> Value | None:
    """The gradient with which a pass begins at one root: the sum, if the root was given several times."""
    seeds = [seed for edge, seed in zip(started.roots, started.seeds, strict=False) if edge == root]
    if len(seeds) < 2:
        return seeds[0] if seeds else None
    arrays = [array for array in map(find_array, seeds) if array is not None and array.shape == seeds[0].shape]
    if len(arrays) < len(seeds) or seeds[0].dtype == "bfloat16":
        return Value(seeds[0].dtype, seeds[0].shape)
    return capture(sum(arrays[1:], arrays[0]))

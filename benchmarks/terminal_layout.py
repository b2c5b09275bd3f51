"""How long the terminal layout takes. ``python -m benchmarks.terminal_layout`` shows more graphs than the table."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from benchmarks.table import Row, duration
from benchmarks.timing import least
from gviz.render.layout import Box, Edge, layout

Graph = tuple[int, list[Edge]]


def chain(nodes: int) -> Graph:
    """One operation after the other."""
    return nodes, [Edge(node, node + 1) for node in range(nodes - 1)]


def residual(nodes: int) -> Graph:
    """Blocks of two products with a parameter each, and an addition of what came in."""
    edges: list[Edge] = []
    hidden, count = 0, 1
    while count < nodes:
        weight, product, relu, other, second, total = range(count, count + 6)
        edges += [Edge(hidden, product, 0), Edge(weight, product, 1), Edge(product, relu), Edge(relu, second, 0)]
        edges += [Edge(other, second, 1), Edge(second, total, 0), Edge(hidden, total, 1)]
        hidden, count = total, count + 6
    return count, edges


def recurrent(nodes: int, *, shared: bool) -> Graph:
    """h = tanh(W h + U x + b), with one box for all uses of a parameter or one for each."""
    edges: list[Edge] = []
    hidden, count = 3, 4
    while count < nodes:
        start = count if not shared else 0
        weight, more, bias = range(start, start + 3)
        first = count if shared else count + 3
        data, product, inner, total, moved, new = range(first, first + 6)
        edges += [Edge(weight, product, 0), Edge(hidden, product, 1), Edge(more, inner, 0), Edge(data, inner, 1)]
        edges += [Edge(product, total, 0), Edge(inner, total, 1), Edge(total, moved, 0), Edge(bias, moved, 1)]
        edges.append(Edge(moved, new))
        hidden, count = new, new + 1
    return count, edges


def scattered(nodes: int) -> Graph:
    """Every node takes one or two of the thirty before it."""
    chance = random.Random(1)
    edges = [
        Edge(chance.randrange(max(0, node - 30), node), node, slot)
        for node in range(1, nodes)
        for slot in range(chance.randint(1, 2))
    ]
    return nodes, edges


GRAPHS: dict[str, Callable[[], Graph]] = {
    "residual net, 1,000": lambda: residual(1_000),
    "residual net, 10,000": lambda: residual(10_000),
    "recurrent, 1,000": lambda: recurrent(1_000, shared=False),
    "recurrent, 10,000": lambda: recurrent(10_000, shared=False),
    "recurrent shared, 1,000": lambda: recurrent(1_000, shared=True),
    "random, 1,000": lambda: scattered(1_000),
    "chain, 100,000": lambda: chain(100_000),
}


GOALS = {"residual net, 1,000": "50 ms", "residual net, 10,000": "600 ms", "recurrent, 10,000": "600 ms"}
"""What stands in the table."""


def rows() -> Iterator[Row]:
    """Of the graphs that have a goal."""
    for name, goal in GOALS.items():
        count, edges = GRAPHS[name]()
        boxes = boxes_of(count, edges)
        yield Row(
            f"terminal layout, {name} nodes", duration(least(lambda b=boxes, e=edges: layout(b, e), turns=4)), goal=goal
        )


def boxes_of(count: int, edges: list[Edge]) -> list[Box]:
    """Boxes as large as those on the screen."""
    fed = {edge.target for edge in edges}
    return [Box(node, 24 if node in fed else 18, 4) for node in range(count)]


def main() -> None:
    """Print one row per graph."""
    print(f"{'graph':26}{'nodes':>9}{'edges':>9}{'CPU ms':>9}{'columns':>9}{'rows':>9}")
    for name, make in GRAPHS.items():
        count, edges = make()
        boxes = boxes_of(count, edges)
        best = least(lambda b=boxes, e=edges: layout(b, e), turns=1 if count > 50_000 else 4)
        result = layout(boxes, edges)
        print(f"{name:26}{count:9,}{len(edges):9,}{best * 1000:9.0f}{result.width:9,}{result.height:9,}")


if __name__ == "__main__":
    main()

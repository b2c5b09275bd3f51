"""The layer of every box: below all its inputs, with leaves just above their consumer."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop

Adjacency = list[list[int]]
"""For each box, the boxes that its edges connect it with, on one side: one entry per edge."""


def topological(inputs: Adjacency, outputs: Adjacency) -> list[int]:
    """Return all boxes, inputs before users. A cycle, which no program makes, is entered at its lowest number."""
    missing = [len(sources) for sources in inputs]
    order = [box for box, count in enumerate(missing) if count == 0]
    visited = bytearray(len(inputs))
    late = list(range(len(inputs))) if len(order) < len(inputs) else []
    heapify(late)
    position = 0
    while len(order) < len(inputs) or position < len(order):
        if position == len(order):
            _enter_cycle(late, missing, visited, order)
            continue
        box = order[position]
        position += 1
        visited[box] = 1
        for user in outputs[box]:
            missing[user] -= 1
            if missing[user] == 0:
                order.append(user)
    return order


def _enter_cycle(late: list[int], missing: list[int], visited: bytearray, order: list[int]) -> None:
    box = heappop(late)
    if not visited[box]:
        missing[box] = 0
        order.append(box)


def layers(order: Sequence[int], inputs: Adjacency, outputs: Adjacency) -> list[int]:
    """Return the layer of every box, from 0 at the top, by longest paths; then leaves move down to their users."""
    layer = [0] * len(inputs)
    for box in order:
        below = layer[box] + 1
        for user in outputs[box]:
            if layer[user] < below:
                layer[user] = below
    _lower_leaves(order, inputs, outputs, layer)
    top = min(layer, default=0)
    return [value - top for value in layer]


def _lower_leaves(order: Sequence[int], inputs: Adjacency, outputs: Adjacency, layer: list[int]) -> None:
    """Move leaves, and nodes computed only from leaves, down to just above the first user."""
    for box in order:
        if not inputs[box]:
            _lower(box, outputs, layer)
    for box in reversed(order):
        if inputs[box] and all(not inputs[source] for source in inputs[box]):
            _lower(box, outputs, layer)
            for leaf in inputs[box]:
                _lower(leaf, outputs, layer)


def _lower(box: int, outputs: Adjacency, layer: list[int]) -> None:
    if outputs[box]:
        layer[box] = min([layer[user] for user in outputs[box]]) - 1


def spine(layer: Sequence[int], inputs: Adjacency) -> list[int]:
    """Return the longest chain of operations, from the lowest box upwards. It gets one column of its own."""
    if not layer:
        return []
    box = max(range(len(layer)), key=layer.__getitem__)
    chain = [box]
    while True:
        ops = [source for source in inputs[box] if inputs[source]] or inputs[box]
        if not ops:
            return chain
        box = max(ops, key=layer.__getitem__)
        chain.append(box)

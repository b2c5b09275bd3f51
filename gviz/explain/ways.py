"""The ways between nodes: what a node was made from, and what was made from it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from gviz.trace.timeline import Timeline


def ancestors(timeline: Timeline, *nodes: int) -> Iterator[int]:
    """What nodes were made from, tracked or not, nearest first."""
    seen, waiting = set(nodes), deque(node for node in nodes if node)
    while waiting:
        for source in timeline.made_from.get(waiting.popleft(), ()):
            if source and source not in seen:
                seen.add(source)
                waiting.append(source)
                yield source


def descendants(timeline: Timeline, node: int, n: int) -> Iterator[int]:
    """What was made from a node by moment `n`, tracked or not, nearest first."""
    seen, waiting = {node}, deque([node])
    while waiting:
        for user in timeline.made_into.get(waiting.popleft(), ()):
            if user not in seen and timeline.born(user) <= n:
                seen.add(user)
                waiting.append(user)
                yield user

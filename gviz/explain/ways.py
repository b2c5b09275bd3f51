"""The ways between nodes: what a node was made from."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from gviz.trace.timeline import Timeline


def ancestors(timeline: Timeline, *nodes: int) -> Iterator[int]:
    """What nodes were made from, tracked or not, nearest first."""
    seen, waiting = set(nodes), deque(node for node in nodes if node)
    while waiting:
        for source in timeline.nodes.made_from.get(waiting.popleft(), ()):
            if source and source not in seen:
                seen.add(source)
                waiting.append(source)
                yield source

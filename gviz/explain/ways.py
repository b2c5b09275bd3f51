"""The ways between nodes: what a node was made from."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator

from gviz.trace.timeline import Timeline


def ancestors(timeline: Timeline, *nodes: int, up_to: Collection[int] = ()) -> Iterator[int]:
    """What nodes were made from, tracked or not, nearest first; nothing that leads only through those in `up_to`."""
    seen, waiting = set(nodes), deque(node for node in nodes if node)
    while waiting:
        for source in timeline.nodes.made_from.get(waiting.popleft(), ()):
            if source and source not in seen:
                seen.add(source)
                if source not in up_to:
                    waiting.append(source)
                yield source

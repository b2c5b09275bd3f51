"""The levels of a graph: how many lines lead to each box."""

from __future__ import annotations

from gviz.render.boxes.edge_content import Edge
from gviz.render.scene import Scene


def data_lines(scene: Scene) -> list[Edge]:
    """Return the lines along which data flows from box to box."""
    return [edge for edge in scene.edges if edge.kind != "gradient" and edge.slot >= 0]


def box_levels(scene: Scene) -> dict[str, int]:
    """Return the level of each box: the most lines that lead to it."""
    level = dict.fromkeys((box.key for box in scene.boxes), 0)
    lines = data_lines(scene)
    for _ in level:
        longer = {edge.target: level[edge.source] + 1 for edge in lines if level[edge.target] <= level[edge.source]}
        if not longer or max(longer.values()) > len(level):
            break
        level |= longer
    inner = {edge.target for edge in lines}
    for key in level.keys() - inner:
        level[key] = max(min((level[edge.target] for edge in lines if edge.source == key), default=1) - 1, 0)
    return level

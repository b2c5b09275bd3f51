"""Columns of a chain: a graph that is a plain sequence of boxes is folded into several columns, as on a slide."""

from __future__ import annotations

from gviz.render.scene import Scene


def columns(scene: Scene) -> dict[str, int]:
    """Return the column of each box of a chain that is folded into columns; empty for any other scene.

    Each column has the same number of levels. A box without inputs is one level before its first user.
    """
    if scene.columns < 2:
        return {}
    level = box_levels(scene)
    height = -(-(max(level.values(), default=0) + 1) // scene.columns)
    return {key: at // height for key, at in level.items()}


def column_tops(scene: Scene) -> list[str]:
    """Return the topmost box with inputs of each column of a folded chain, from left to right."""
    level, tops = box_levels(scene), dict[int, str]()
    column = columns(scene)
    inner = {edge.target for edge in scene.edges if edge.kind != "gradient" and edge.slot >= 0}
    for key in sorted(column.keys() & inner, key=lambda key: level[key]):
        tops.setdefault(column[key], key)
    return [tops[number] for number in sorted(tops)]


def is_chain(scene: Scene) -> bool:
    """Return whether each box leads to one box on the next level. Boxes without inputs may lead anywhere."""
    level, lines = box_levels(scene), [edge for edge in scene.edges if edge.kind != "gradient" and edge.slot >= 0]
    inner = {edge.target for edge in lines}
    steps = {(edge.source, edge.target) for edge in lines if edge.source in inner}
    return len(steps) == len({level[source] for source, _ in steps})  # a line over a level is a second one from a level


def box_levels(scene: Scene) -> dict[str, int]:
    """Return the level of each box: the most lines that lead to it."""
    level = dict.fromkeys((box.key for box in scene.boxes), 0)
    lines = [edge for edge in scene.edges if edge.kind != "gradient" and edge.slot >= 0]
    for _ in level:
        longer = {edge.target: level[edge.source] + 1 for edge in lines if level[edge.target] <= level[edge.source]}
        if not longer or max(longer.values()) > len(level):
            break
        level |= longer
    inner = {edge.target for edge in lines}
    for key in level.keys() - inner:
        level[key] = max(min((level[edge.target] for edge in lines if edge.source == key), default=1) - 1, 0)
    return level

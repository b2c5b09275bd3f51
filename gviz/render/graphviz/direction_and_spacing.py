"""The direction of a diagram, its distances, and the lanes of its lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from gviz.render.boxes.box_content import Box
from gviz.render.boxes.box_size import Outline
from gviz.render.boxes.edge_content import Edge
from gviz.render.boxes.edges import CONTRACTED
from gviz.render.graphviz.box_label import CHARACTER
from gviz.render.graphviz.column_division import box_levels
from gviz.render.scene import Scene
from gviz.render.theme import Direction

GAP = 60
"""Points between two levels."""
WIDE = 1600
"""Points. A wider graph flows from top to bottom, because its text would be too small from left to right."""

EASY_NODES = 150
"""With more nodes, Graphviz searches less for the best order: seconds instead of minutes, hardly worse."""

BLANK = "  "
"""An invisible label that reserves room."""


def flow(boxes: Sequence[Box | Outline], levels: int, *directions: Direction) -> Literal["LR", "TB"]:
    """Return the first direction that is requested, or else left to right unless that is too wide."""
    for direction in directions:
        if direction != "auto":
            return direction
    usual = sum(box.width for box in boxes) / max(len(boxes), 1) * CHARACTER
    return "LR" if levels * (usual + GAP) <= WIDE else "TB"


def spacing(scene: Scene) -> dict[str, str]:
    """Return the distances between boxes and levels, and the limit of Graphviz's search for their order."""
    easy = {"nslimit": "1", "nslimit1": "1", "mclimit": "0.1"} if len(scene.boxes) > EASY_NODES else {}
    if scene.compact:
        return {"nodesep": "0.2", "ranksep": "0.3", **easy}
    return {"nodesep": "0.3", "ranksep": "0.55", **easy}


def ends(edge: Edge) -> tuple[str, str]:
    """Return maker and user. A gradient is laid out in the direction of the data, so that it is next to the data."""
    return (edge.target, edge.source) if edge.kind == "gradient" else (edge.source, edge.target)


def repeated(scene: Scene) -> frozenset[int]:
    """Return the numbers of unlabelled data lines whose ends already have another data line and gradients.

    Graphviz gives a line with a label its own lane. A line without a label goes straight, across the others.
    """
    gradients = {ends(edge) for edge in scene.edges if edge.kind == "gradient"}
    seen: set[tuple[str, str]] = set()
    repeats = set()
    for number, edge in enumerate(scene.edges):
        if edge.kind == "forward" and not edge.label and ends(edge) in gradients:
            if ends(edge) in seen:
                repeats.add(number)
            seen.add(ends(edge))
    return frozenset(repeats)


def is_direct(edge: Edge) -> bool:
    """Return whether a line without a label would show what its edge is: a use of the tensor as it is."""
    return not (edge.is_write or edge.label.startswith(CONTRACTED))


def skipping(scene: Scene) -> frozenset[int]:
    """Return the numbers of lines of data over several levels that have gradients next to them.

    Graphviz lays parallel lines out as one line with room at both sides, and moves them apart when it draws them: the
    outer ones over the corners of the boxes that they pass, or out of their frame. A line with its own lane stays where
    it was laid out.
    """
    level = box_levels(scene)
    gradients = {ends(edge) for edge in scene.edges if edge.kind == "gradient"}
    return frozenset(
        number
        for number, edge in enumerate(scene.edges)
        if edge.kind != "gradient" and ends(edge) in gradients and level[edge.target] - level[edge.source] > 1
    )

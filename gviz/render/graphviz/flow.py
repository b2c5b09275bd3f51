"""Which way a graph and each of its lines flows, and how far apart: like the screen or slide it is on, and readable."""

from __future__ import annotations

from typing import Literal

from gviz.render.graphviz.labels import CHARACTER
from gviz.render.scene import Edge, Scene
from gviz.render.theme import Direction

OPS = ("op", "root", "module")
"""The roles of boxes that compute."""

GAP = 60
"""Points between two levels that stand side by side."""
WIDE = 1600
"""Points; a graph that is wider from left to right flows from top to bottom, or its text were too small to read."""

LABELLED_EDGES = 60
"""More lines than this carry no labels: they would hide the graph."""
EASY_NODES = 150
"""Above this, Graphviz is told to search less for the best order: seconds instead of minutes, hardly worse."""

STRAIGHT = "8"
"""The weight of lines between operations, so that a long chain is drawn straight and the leaves beside it."""

BLANK = "  "
"""A label that nobody sees, but room is left for it."""


def flow(scene: Scene, *asked: Direction) -> Literal["LR", "TB"]:
    """The first direction that is asked for, else left to right as long as that is not too wide."""
    for direction in asked:
        if direction != "auto":
            return direction
    usual = sum(box.width for box in scene.boxes) / max(len(scene.boxes), 1) * CHARACTER
    return "LR" if scene.levels * (usual + GAP) <= WIDE else "TB"


def spacing(scene: Scene) -> dict[str, str]:
    """How far apart boxes and levels are, and how long Graphviz may search for their order."""
    easy = {"nslimit": "1", "nslimit1": "1", "mclimit": "0.1"} if len(scene.boxes) > EASY_NODES else {}
    return {"nodesep": "0.3", "ranksep": "0.55", **easy}


def spine(scene: Scene) -> frozenset[int]:
    """The numbers of the lines to draw straight: of those into an operation the one at the end of the longest way.

    Everything else stands beside the chain, which would drift away from more than one straight line.
    """
    computing = {box.key for box in scene.boxes if box.role in OPS}
    into: dict[str, list[tuple[int, str]]] = {}
    for number, edge in enumerate(scene.edges):
        if edge.kind in ("forward", "view") and edge.slot >= 0 and edge.source in computing:
            into.setdefault(edge.target, []).append((number, edge.source))
    depths: dict[str, int] = {}
    straight = set()
    for box in scene.boxes:
        if lines := into.get(box.key):
            number, source = max(lines, key=lambda line: depths.get(line[1], 0))
            depths[box.key] = depths.get(source, 0) + 1
            straight.add(number)
    return frozenset(straight)


def ends(edge: Edge) -> tuple[str, str]:
    """From maker to user. A gradient runs backwards in the same direction, so that it is laid beside the data."""
    return (edge.target, edge.source) if edge.kind == "gradient" else (edge.source, edge.target)


def repeated(scene: Scene) -> frozenset[int]:
    """The numbers of lines of data, without a label, that have both ends in common with one before and with gradients.

    Graphviz gives a line with a label a lane of its own, and one without the straight way, across the others.
    """
    gradients = {ends(edge) for edge in scene.edges if edge.kind == "gradient"}
    seen: set[tuple[str, str]] = set()
    again = set()
    for number, edge in enumerate(scene.edges):
        if edge.kind == "forward" and not edge.label and ends(edge) in gradients:
            if ends(edge) in seen:
                again.add(number)
            seen.add(ends(edge))
    return frozenset(again)

"""Which way a graph flows, so that it is shaped like the screen or slide that it is shown on."""

from __future__ import annotations

from typing import Literal

from gviz.render.graphviz.labels import CHARACTER
from gviz.render.scene import Scene
from gviz.render.theme import Direction

GAP = 60
"""Points between two levels that stand side by side."""
WIDE = 1600
"""Points; a graph that is wider from left to right flows from top to bottom, or its text were too small to read."""


def flow(scene: Scene, *asked: Direction) -> Literal["LR", "TB"]:
    """The first direction that is asked for, else left to right as long as that is not too wide."""
    for direction in asked:
        if direction != "auto":
            return direction
    usual = sum(box.width for box in scene.boxes) / max(len(scene.boxes), 1) * CHARACTER
    return "LR" if scene.levels * (usual + GAP) <= WIDE else "TB"

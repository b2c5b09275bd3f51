"""The frames of modules in a diagram: inner ones that would stretch the picture are left out."""

from __future__ import annotations

import json
from dataclasses import replace

from gviz.render.graphviz.column_layout import folded_graph
from gviz.render.graphviz.coordinates import Placing
from gviz.render.graphviz.digraph import Digraph
from gviz.render.graphviz.dot import Manner, digraph
from gviz.render.graphviz.process import draw_all
from gviz.render.picture_request import ExportOptions
from gviz.render.scene import Scene, framed

FEW_FRAMES, STRETCHED = 4, 1.75
"""A picture with at least this many frames whose size grows by more than this factor keeps only its outer frames."""


def framed_graph(scene: Scene, options: ExportOptions, prefix: str = "gviz") -> Digraph:
    """Return a scene as a graph for a picture. One in columns has all its positions, and no frames."""
    if scene.columns > 1:
        return folded_graph(scene, manner_of(options, prefix), options.timeout)
    return digraph(settled(scene, options, prefix), manner_of(options, prefix))


def manner_of(options: ExportOptions, prefix: str, placing: Placing | None = None) -> Manner:
    """Return how a picture with these options is written. A simple layout places only one box for each node."""
    theme = options.colours
    if placing is not None and placing.simple:
        theme = replace(theme, form=replace(theme.form, card="box"))
    return Manner(theme, prefix, options.direction, placing)


def settled(scene: Scene, options: ExportOptions, prefix: str) -> Scene:
    """Return the scene without those inner frames that stretch it: a loop through a frame becomes a staircase."""
    if len({key for box in scene.boxes for key, _ in box.enclosing_modules}) < FEW_FRAMES:
        return scene

    def area(*depths: int) -> list[float]:
        graphs = [digraph(framed(scene, depth), manner_of(options, prefix)).source for depth in depths]
        return [*map(_area, draw_all(graphs, "json", timeout=options.timeout))]

    whole = deepest = max(len(box.enclosing_modules) for box in scene.boxes)
    bare, wide = area(0, deepest)
    while deepest and wide > STRETCHED * bare:
        deepest -= 1
        wide = area(deepest)[0] if deepest else bare
    if deepest == whole:
        return scene
    remark = f"{scene.remark}. {FEWER_FRAMES}" if scene.remark else FEWER_FRAMES
    return framed(replace(scene, remark=remark), deepest)


FEWER_FRAMES = "Some modules have no frame: it would stretch the picture"


def _area(laid_out: bytes) -> float:
    _, _, width, height = map(float, json.loads(laid_out)["bb"].split(","))
    return width * height

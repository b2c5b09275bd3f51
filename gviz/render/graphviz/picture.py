"""A scene drawn by Graphviz or, past what Graphviz can lay out in time, at the coordinates of our own layout."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from gviz.render.graphviz.digraph import Digraph
from gviz.render.graphviz.dot import Manner, digraph
from gviz.render.graphviz.placement import Placing, placing
from gviz.render.graphviz.process import Picture, TooSlowError, draw, draw_all
from gviz.render.request import ExportOptions, require_readable
from gviz.render.scene import Scene

Laid = TypeVar("Laid")

DPI = 96
"""Pixels of an inch."""
LAYOUT_BOXES = 1500
"""Up to here Graphviz is asked to lay out."""
FEW_FRAMES, STRETCHED = 4, 1.75
"""From so many frames on, a picture that is so many times as large with them as without has only outer ones."""


def sized(graph: Digraph, picture: Picture, scale: float | None) -> Digraph:
    """The graph with pixels for so many times its size, if the picture is made of pixels."""
    if scale and picture == "png":
        graph.attr(dpi=f"{DPI * scale:.2f}")
    return graph


def manner_of(options: ExportOptions, prefix: str, placing: Placing | None = None) -> Manner:
    """How a picture is written that is asked for so; our own layout places one box for each node."""
    theme = options.colours
    if placing is not None and placing.simple:
        theme = replace(theme, form=replace(theme.form, card="box"))
    return Manner(theme, prefix, options.direction, placing)


def settled(scene: Scene, options: ExportOptions, prefix: str) -> Scene:
    """The scene, without those inner frames of its modules that stretch it: a loop through one becomes a staircase."""
    if len({key for box in scene.boxes for key, _ in box.within}) < FEW_FRAMES:
        return scene

    def area(*depths: int) -> list[float]:
        graphs = [digraph(_framed(scene, depth), manner_of(options, prefix)).source for depth in depths]
        return [*map(_area, draw_all(graphs, "json", timeout=options.timeout))]

    deepest = max(len(box.within) for box in scene.boxes)
    bare, framed = area(0, deepest)
    while deepest and framed > STRETCHED * bare:
        deepest -= 1
        framed = area(deepest)[0] if deepest else bare
    return _framed(scene, deepest)


def _framed(scene: Scene, depth: int) -> Scene:
    """The scene with so many frames at most around a box, the outermost."""
    return replace(scene, boxes=tuple(replace(box, within=box.within[:depth]) for box in scene.boxes))


def _area(laid_out: bytes) -> float:
    _, _, width, height = map(float, json.loads(laid_out)["bb"].split(","))
    return width * height


def drawn(scene: Scene, options: ExportOptions, picture: Picture, *, prefix: str = "gviz") -> bytes:
    """The scene as a picture; past the budget of Graphviz with a simpler layout, and a note that says so."""
    count = len(scene.boxes)
    require_readable(count)

    def laid_out() -> bytes:
        fitting = settled(scene, options, prefix)
        graph = sized(digraph(fitting, manner_of(options, prefix)), picture, options.scale)
        return draw(graph.source, picture, timeout=options.timeout)

    return laid_out_or_simple(count, options, laid_out, lambda: _simple(scene, options, picture, prefix))


def laid_out_or_simple(
    count: int, options: ExportOptions, laid_out: Callable[[], Laid], simple: Callable[[], Laid]
) -> Laid:
    """So many boxes laid out by Graphviz or, past its budget of boxes or seconds, simpler, and a note that says why."""
    why = f"{count:,} boxes"
    if count <= LAYOUT_BOXES:
        try:
            return laid_out()
        except TooSlowError:
            why = f"Graphviz needed more than {options.timeout:g} s"
    options.note(f"{why}: drawn with a simple layout")
    return simple()


def _simple(scene: Scene, options: ExportOptions, picture: Picture, prefix: str) -> bytes:
    graph = sized(digraph(scene, manner_of(options, prefix, placing(scene))), picture, options.scale)
    return draw(graph.source, picture, program="nop2", timeout=3 * options.timeout)

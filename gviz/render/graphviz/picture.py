"""A scene drawn by Graphviz or, past what Graphviz can lay out in time, at the coordinates of our own layout."""

from __future__ import annotations

from dataclasses import replace

from gviz.errors import GvizError
from gviz.render.graphviz.dot import digraph
from gviz.render.graphviz.drawing import Picture, TooSlowError, draw
from gviz.render.graphviz.graph import Digraph
from gviz.render.graphviz.placing import placing
from gviz.render.request import ExportOptions
from gviz.render.scene import Scene

DPI = 96
"""Pixels of an inch."""
LAYOUT_BOXES = 1500
"""Up to here Graphviz is asked to lay out."""
PICTURE_BOXES = 30_000
"""Beyond this nobody can read a picture, and most viewers cannot open it."""


def sized(graph: Digraph, picture: Picture, scale: float | None) -> Digraph:
    """The graph with pixels for so many times its size, if the picture is made of pixels."""
    if scale and picture == "png":
        graph.attr(dpi=f"{DPI * scale:.2f}")
    return graph


def drawn(scene: Scene, options: ExportOptions, picture: Picture, *, prefix: str = "gviz") -> bytes:
    """The scene as a picture; past the budget of Graphviz with a simpler layout, and a note that says so."""
    count = len(scene.boxes)
    if count > PICTURE_BOXES:
        raise GvizError(
            f"a picture of {count:,} boxes cannot be read",
            hint="export to .txt or .dot, or a moment with a smaller graph",
        )
    if count > LAYOUT_BOXES:
        options.note(f"{count:,} boxes: drawn with a simple layout")
        return _simple(scene, options, picture, prefix)
    try:
        graph = sized(digraph(scene, options.colours, prefix, direction=options.direction), picture, options.scale)
        return draw(graph.source, picture, timeout=options.timeout)
    except TooSlowError:
        options.note(f"Graphviz needed more than {options.timeout:g} s: drawn with a simple layout")
        return _simple(scene, options, picture, prefix)


def _simple(scene: Scene, options: ExportOptions, picture: Picture, prefix: str) -> bytes:
    theme = options.colours
    boxes = replace(theme, form=replace(theme.form, card="box"))  # the layout places one box for each node
    graph = sized(digraph(scene, boxes, prefix, placing(scene)), picture, options.scale)
    return draw(graph.source, picture, program="nop2", timeout=3 * options.timeout)

"""A scene drawn by Graphviz or, if Graphviz would take too long, with the coordinates of gviz's own layout."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from gviz.render.figure import FIGURES, TEXT, Figure
from gviz.render.graphviz.digraph import Digraph
from gviz.render.graphviz.dot import Manner, digraph
from gviz.render.graphviz.placement import INCH, Placing, placing
from gviz.render.graphviz.process import Picture, TooSlowError, draw, draw_all
from gviz.render.request import ExportOptions, require_readable
from gviz.render.scene import Scene, framed

Laid = TypeVar("Laid")

DPI = 96
"""Pixels per inch."""
LAYOUT_BOXES = 1500
"""The most boxes that Graphviz lays out."""
FEW_FRAMES, STRETCHED = 4, 1.75
"""A picture with at least this many frames whose size grows by more than this factor keeps only its outer frames."""


def sized(graph: Digraph, picture: Picture, scale: float | None) -> Digraph:
    """Return the graph with the resolution for this scale, if the picture consists of pixels."""
    if scale and picture == "png":
        graph.attr(dpi=f"{DPI * scale:.2f}")
    return graph


FIGURE_DPI, FIGURE_PAD = 300, 2
"""Pixels of an inch in a figure; points around its graph."""


def in_figure(graph: Digraph, figure: Figure, picture: Picture, options: ExportOptions) -> Digraph:
    """Return the graph with the size of its figure. Adds a note if its text is too small."""
    graph.attr(pad=f"{FIGURE_PAD / INCH:.3f}", margin="0")
    laid_out = draw(graph.source, "json", timeout=options.timeout)
    _, _, wide, high = map(float, json.loads(laid_out)["bb"].split(","))
    size = wide + 2 * FIGURE_PAD, high + 2 * FIGURE_PAD
    if (text := figure.scale(*size) * TEXT) < figure.least - 0.05:
        options.note(f"the text of the figure is {text:.1f} pt high, less than {figure.least:g} pt")
    graph.attr(viewport=figure.viewport(*size))
    if picture == "png":
        graph.attr(dpi=str(FIGURE_DPI))
    return graph


def manner_of(options: ExportOptions, prefix: str, placing: Placing | None = None) -> Manner:
    """Return how a picture with these options is written. A simple layout places only one box for each node."""
    theme = options.colours
    if placing is not None and placing.simple:
        theme = replace(theme, form=replace(theme.form, card="box"))
    return Manner(theme, prefix, options.direction, placing)


def settled(scene: Scene, options: ExportOptions, prefix: str) -> Scene:
    """Return the scene without those inner frames that stretch it: a loop through a frame becomes a staircase."""
    if len({key for box in scene.boxes for key, _ in box.within}) < FEW_FRAMES:
        return scene

    def area(*depths: int) -> list[float]:
        graphs = [digraph(framed(scene, depth), manner_of(options, prefix)).source for depth in depths]
        return [*map(_area, draw_all(graphs, "json", timeout=options.timeout))]

    whole = deepest = max(len(box.within) for box in scene.boxes)
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


def drawn(scene: Scene, options: ExportOptions, picture: Picture, *, prefix: str = "gviz") -> bytes:
    """Return the scene as a picture. If Graphviz would take too long, its layout is simpler, and a note says so."""
    count = len(scene.boxes)
    require_readable(count)

    def laid_out() -> bytes:
        fitting = settled(scene, options, prefix)
        graph = digraph(fitting, manner_of(options, prefix))
        if options.figure:
            graph = in_figure(graph, FIGURES[options.figure], picture, options)
        else:
            graph = sized(graph, picture, options.scale)
        return draw(graph.source, picture, timeout=options.timeout)

    return laid_out_or_simple(count, options, laid_out, lambda: _simple(scene, options, picture, prefix))


def laid_out_or_simple(
    count: int, options: ExportOptions, laid_out: Callable[[], Laid], simple: Callable[[], Laid]
) -> Laid:
    """Return Graphviz's layout or, beyond its limit of boxes or seconds, the simple one, with a note why."""
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

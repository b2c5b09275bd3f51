"""A scene drawn by Graphviz or, if Graphviz would take too long, with the coordinates of gviz's own layout."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from gviz.render.figure import FIGURES
from gviz.render.graphviz.coordinates import placing
from gviz.render.graphviz.digraph import Digraph
from gviz.render.graphviz.dot import digraph
from gviz.render.graphviz.figure_size import FIGURE_DPI, TooSmallError, in_figure
from gviz.render.graphviz.module_frames import framed_graph, manner_of
from gviz.render.graphviz.process import Picture, TooSlowError, draw
from gviz.render.picture_request import ExportOptions, require_readable
from gviz.render.scene import Scene

Laid = TypeVar("Laid")

DPI = 96
"""Pixels per inch."""
LAYOUT_BOXES = 1500
"""The most boxes that Graphviz lays out."""


def resolution(options: ExportOptions) -> float:
    """Return the pixels per inch of a picture that consists of pixels."""
    return FIGURE_DPI if options.figure else DPI * (options.scale or 1)


def sized(graph: Digraph, picture: Picture, scale: float | None) -> Digraph:
    """Return the graph with the resolution for this scale, if the picture consists of pixels."""
    if scale and picture == "png":
        graph.attr(dpi=f"{DPI * scale:.2f}")
    return graph


def drawn(scene: Scene, options: ExportOptions, picture: Picture, *, prefix: str = "gviz") -> bytes:
    """Return the scene as a picture. If Graphviz would take too long, its layout is simpler, and a note says so."""
    count = len(scene.boxes)
    require_readable(count)

    def laid_out() -> bytes:
        graph = framed_graph(scene, options, prefix)
        if options.figure:
            try:
                graph = in_figure(graph, FIGURES[options.figure], picture, options, turns=scene.columns < 2)
            except TooSmallError:
                graph = framed_graph(replace(scene, key=()), options, prefix)
                graph = in_figure(graph, FIGURES[options.figure], picture, options, turns=scene.columns < 2)
        else:
            graph = sized(graph, picture, options.scale)
        return draw(graph.source, picture, program=graph.program, timeout=options.timeout)

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

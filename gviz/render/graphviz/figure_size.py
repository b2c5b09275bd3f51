"""The size of a figure for a paper or a slide, and whether its text can be read at that size."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, NamedTuple

from gviz.errors import GvizError
from gviz.render.figure import FIGURES, LEAST_TEXT, TEXT, Figure, figures_for
from gviz.render.graphviz.coordinates import INCH
from gviz.render.graphviz.digraph import Digraph
from gviz.render.graphviz.module_frames import framed_graph
from gviz.render.graphviz.process import Picture, draw
from gviz.render.option_words import option
from gviz.render.picture_request import ExportOptions
from gviz.render.scene import Scene

FIGURE_DPI, FIGURE_PAD = 300, 2
"""Pixels of an inch in a figure; points around its graph."""


def in_figure(
    graph: Digraph, figure: Figure, picture: Picture, options: ExportOptions, *, turns: bool = True
) -> Digraph:
    """Return the graph with the size of its figure, in the other direction if that makes small text larger.

    Columns never turn: they would become rows, with the first at the bottom. Adds a note if the text is small.

    Raises `GvizError` if it is too small to be read, and names what makes it larger.
    """
    graph, size, _ = _fit(graph, figure, options, turns=turns)
    check_text(figure, size, options)
    graph.attr(pad=f"{FIGURE_PAD / INCH:.3f}", margin="0", viewport=figure.viewport(*size))
    if picture == "png":
        graph.attr(dpi=str(FIGURE_DPI))
    return graph


class Fit(NamedTuple):
    """A graph, its size as a figure before it is scaled, in points, and the height of its text after that."""

    graph: Digraph
    size: tuple[float, float]
    text: float


def fit(scene: Scene, options: ExportOptions) -> Fit:
    """Return a scene as `in_figure` draws it, without its key, whose few small words decide nothing.

    Columns with tangled lines between them cannot be read: the height of their text is 0.
    """
    graph = framed_graph(replace(scene, key=()), options)
    if graph.tangled:
        return Fit(graph, (0.0, 0.0), 0.0)
    return _fit(graph, FIGURES[options.figure or "one-column"], options, turns=scene.columns < 2)


def _fit(graph: Digraph, figure: Figure, options: ExportOptions, *, turns: bool) -> Fit:
    """Return the graph or, if its text is small, the same one in the direction in which its text is larger."""

    def fits(graph: Digraph) -> Fit:
        size = figure_size(graph, options)
        return Fit(graph, size, figure.scale(*size) * TEXT)

    found = fits(graph)
    if not turns or found.text >= figure.least - 0.05 or options.direction != "auto":
        return found
    turned = graph.copy()
    turned.graph_attr["rankdir"] = "TB" if graph.graph_attr["rankdir"] == "LR" else "LR"
    return max(found, fits(turned), key=lambda each: each.text)


def check_text(figure: Figure, size: tuple[float, float], options: ExportOptions) -> None:
    """Add a note if the text of a figure is small. Raises `GvizError` if it is too small to be read.

    `size` is that of the figure before it is scaled.
    """
    text = figure.scale(*size) * TEXT
    if text < LEAST_TEXT:
        raise _unreadable(text, size, options)
    if text < figure.least - 0.05:
        options.note(f"the text of the figure is {text:.1f} pt high, less than {figure.least:g} pt")


def with_margins(wide: float, high: float) -> tuple[float, float]:
    """Return the size of a figure whose graph has this size, in points, before it is scaled."""
    return wide + 2 * FIGURE_PAD, high + 2 * (FIGURE_PAD + TAB)


def figure_of_size(
    graph: Digraph, figure: Figure, picture: Picture, size: tuple[float, float], pixels: int = 0
) -> Digraph:
    """Return a graph of known size, in points, as a figure, of at most this number of `pixels` (0: any)."""
    whole = with_margins(*size)
    graph.attr(pad=f"{FIGURE_PAD / INCH:.3f}", margin="0", viewport=figure.viewport(*whole))
    if picture == "png":
        scale = figure.scale(*whole)
        longest = max(figure.width, figure.height if figure.fills else whole[1] * scale) / INCH
        graph.attr(dpi=f"{min(FIGURE_DPI, pixels / longest) if pixels else FIGURE_DPI:.2f}")
    return graph


class TooSmallError(GvizError):
    """The text of a figure would be too small to be read."""


def figure_size(graph: Digraph, options: ExportOptions) -> tuple[float, float]:
    """Return the width and height of a figure in points, before it is scaled."""
    laid_out = json.loads(draw(graph.source, "json", program=graph.program, timeout=options.timeout))
    _, _, wide, high = map(float, laid_out["bb"].split(","))
    return wide + 2 * FIGURE_PAD, high + 2 * (FIGURE_PAD + _tab_above(laid_out, high))


TAB = 4
"""Points of the tab of a module's box, which Graphviz draws above the room of the box."""


def _tab_above(laid_out: dict[str, Any], top: float) -> float:
    """Return the points by which the tabs of boxes are above a graph that ends at `top`."""
    tabs = (box for box in laid_out.get("objects", ()) if box.get("shape") == "tab")
    tops = (float(box["pos"].split(",")[1]) + float(box["height"]) * INCH / 2 + TAB for box in tabs)
    return max(0.0, *(each - top for each in tops), 0.0)


def _unreadable(text: float, size: tuple[float, float], options: ExportOptions) -> TooSmallError:
    """Return the error for a figure with tiny text, with the kinds of figures that fit, and less to draw."""
    part, kinds = options.part, figures_for(*size)
    named = {
        "level": part.level != "auto",
        "depth": part.depth is not None,
        "expand": bool(part.expand),
        "direction": options.direction != "auto",
        "labels": options.keeps_labels and options.drawing.density != "min",
    }
    option_names = [name for name, is_used in named.items() if is_used]
    remedies = [f"as {' or '.join(kinds)} it can be read"] if kinds else []
    if option_names:
        remedies.append(
            f"without the option{'s' * (len(option_names) > 1)} {' and '.join(option_names)} gviz draws what fits"
        )
    else:  # gviz has tried less text, and fewer boxes
        remedies.append(f"{option('only')} and {option('node')} draw a part of it")
    return TooSmallError(
        f"the text of this figure would be {text:.1f} pt high, less than {LEAST_TEXT:g} pt",
        hint="; ".join(remedies),
        exit_code=2,
    )

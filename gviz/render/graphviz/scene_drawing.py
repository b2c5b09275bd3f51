"""A scene drawn by Graphviz or, if Graphviz would take too long, with the coordinates of gviz's own layout."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from gviz.errors import GvizError
from gviz.render.boxes.graph_options import Density
from gviz.render.figure import FIGURES, LEAST_TEXT, TEXT, Figure, figures_for
from gviz.render.graphviz.digraph import Digraph
from gviz.render.graphviz.dot import Manner, digraph
from gviz.render.graphviz.placement import INCH, Placing, is_chain, placing
from gviz.render.graphviz.process import Picture, TooSlowError, draw, draw_all
from gviz.render.picture_request import ExportOptions, requested_scene, require_readable
from gviz.render.scene import Scene, framed
from gviz.trace.timeline import Timeline

Laid = TypeVar("Laid")

DPI = 96
"""Pixels per inch."""
LAYOUT_BOXES = 1500
"""The most boxes that Graphviz lays out."""
FEW_FRAMES, STRETCHED = 4, 1.75
"""A picture with at least this many frames whose size grows by more than this factor keeps only its outer frames."""


def resolution(options: ExportOptions) -> float:
    """Return the pixels per inch of a picture that consists of pixels."""
    return FIGURE_DPI if options.figure else DPI * (options.scale or 1)


def sized(graph: Digraph, picture: Picture, scale: float | None) -> Digraph:
    """Return the graph with the resolution for this scale, if the picture consists of pixels."""
    if scale and picture == "png":
        graph.attr(dpi=f"{DPI * scale:.2f}")
    return graph


FIGURE_DPI, FIGURE_PAD = 300, 2
"""Pixels of an inch in a figure; points around its graph."""


def in_figure(
    graph: Digraph, figure: Figure, picture: Picture, options: ExportOptions, *, turns: bool = True
) -> Digraph:
    """Return the graph with the size of its figure, in the other direction if that makes small text larger.

    Columns never turn: they would become rows, with the first at the bottom. Adds a note if the text is small.

    Raises `GvizError` if it is too small to be read, and names what makes it larger.
    """
    graph.attr(pad=f"{FIGURE_PAD / INCH:.3f}", margin="0")
    size = _figure_size(graph, options)
    text = figure.scale(*size) * TEXT
    if turns and text < figure.least - 0.05 and options.direction == "auto":
        turned = graph.copy()
        turned.graph_attr["rankdir"] = "TB" if graph.graph_attr["rankdir"] == "LR" else "LR"
        other = _figure_size(turned, options)
        if figure.scale(*other) * TEXT > text:
            graph, size, text = turned, other, figure.scale(*other) * TEXT
    check_text(figure, size, options)
    graph.attr(viewport=figure.viewport(*size))
    if picture == "png":
        graph.attr(dpi=str(FIGURE_DPI))
    return graph


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


def picture_scene(timeline: Timeline, n: int, options: ExportOptions) -> Scene:
    """Return the scene of moment `n` for a picture.

    A figure has less text in its boxes if it could not be read, unless the user requested the text, or an overlay
    needs the room. Boxes with only names have their gradients next to them if that makes no text smaller.
    """
    notes: list[str] = []
    found = _chosen_scene(timeline, n, replace(options, note=notes.append))
    may_add = options.figure is not None and not options.keeps_labels and options.drawing.density == "short"
    if may_add and len(found.boxes) <= MOST_FOLDED and all(box.height == 1 for box in found.boxes):
        more = replace(options, drawing=replace(options.drawing, norms=True), note=_ignore)
        detailed = _chosen_scene(timeline, n, more)
        if _is_as_large(detailed, found, options):
            found, notes = detailed, [note.replace(NAMES_ONLY, NAMES_AND_GRADIENTS) for note in notes]
    for note in notes:
        options.note(note)
    return found


NAMES_ONLY, NAMES_AND_GRADIENTS = "boxes show names only", "boxes show names and gradients"


def _is_as_large(detailed: Scene, plain: Scene, options: ExportOptions) -> bool:
    """Return whether a scene with gradients has the boxes of the `plain` one, and no smaller text."""
    same = [box.key for box in detailed.boxes] == [box.key for box in plain.boxes]
    if not same or detailed.columns != plain.columns or not any(box.rows for box in detailed.boxes):
        return False
    larger, smaller = (_text_height(replace(scene, key=()), options) for scene in (plain, detailed))
    return smaller >= larger - 0.05


def _text_height(scene: Scene, options: ExportOptions) -> float:
    """Return the height of the text of a figure, in the direction in which `in_figure` draws it."""
    figure = FIGURES[options.figure or "one-column"]
    try:
        text = figure.scale(*_figure_size(_fitting(scene, options), options)) * TEXT
        if scene.columns < 2 and text < figure.least - 0.05 and options.direction == "auto":
            ways = [figure.scale(*_figure_size(_turned(scene, options, way), options)) * TEXT for way in ("TB", "LR")]
            text = max(ways)
    except TooSlowError:
        return 0.0
    return text


def _chosen_scene(timeline: Timeline, n: int, options: ExportOptions) -> Scene:
    """Return the scene of moment `n` with as much text as can be read."""
    scene = requested_scene(timeline, n, options, as_picture=True, fits=True)
    if options.figure is None or len(scene.boxes) > MOST_FOLDED:
        return scene
    if _can_be_read(scene, options):
        return _on_slide(scene, options)
    may_shorten = not options.keeps_labels and options.drawing.overlay is None and options.drawing.density == "short"
    for density, what in _LESS_TEXT.items() if may_shorten else ():
        less = replace(options, drawing=replace(options.drawing, density=density, compact=True), note=_ignore)
        folded = requested_scene(timeline, n, less, as_picture=True, fits=True)
        if _can_be_read(folded, options):
            options.note(f"{what}: {_TOO_SMALL}")
            return _on_slide(folded, options)
        if density == "brief" and (columns := _in_readable_columns(folded, less)) is not None:
            options.note(f"{what}; folded into {columns.columns} columns, without frames: {_TOO_SMALL}")
            return columns
    collapsed = None if is_chain(scene) else _with_less_detail(timeline, n, options, may_shorten=may_shorten)
    return _in_columns(scene, options) if collapsed is None else _on_slide(collapsed, options)


def _with_less_detail(timeline: Timeline, n: int, options: ExportOptions, *, may_shorten: bool) -> Scene | None:
    """Return a scene with more modules collapsed, so that its text can be read; None if the user chose the detail.

    A graph that is no chain would have lines between its columns.
    """
    part = options.part
    if part.level != "auto" or part.depth is not None or part.expand or part.node or part.only:
        return None
    for typed, change in _LESS_DETAIL.items():
        for density in ("short", *_LESS_TEXT) if may_shorten else (options.drawing.density,):
            drawing = replace(options.drawing, density=density, compact=density != "short")
            less = replace(options, part=replace(part, **change), drawing=drawing, note=_ignore)
            folded = requested_scene(timeline, n, less, as_picture=True, fits=True)
            if _can_be_read(folded, less):
                options.note(f"modules collapsed, as with {typed}: {_TOO_SMALL}")
                return folded
    return None


def _on_slide(scene: Scene, options: ExportOptions) -> Scene:
    """Return a scene whose text would be small on a slide in columns, if it is a chain; any other one as it is.

    Other graphs would have lines between the columns, which are harder to read than small text.
    """
    figure, quiet = FIGURES[options.figure or "one-column"], replace(options, note=_ignore)
    if not figure.fills or not is_chain(scene):
        return scene
    graph = replace(scene, key=())  # its few small words decide nothing
    texts = [figure.scale(*_figure_size(_turned(graph, options, way), options)) * TEXT for way in ("TB", "LR")]
    if max(texts) >= figure.least - 0.05:
        return scene
    folded = _in_columns(scene, quiet)
    text = figure.scale(*_figure_size(_fitting(folded, options), options)) * TEXT
    if folded.columns < 2 or text < min(figure.least, LARGER * max(texts)):
        return scene
    options.note(f"folded into {folded.columns} columns, without frames: in one column the text would be small")
    return folded


def _in_readable_columns(scene: Scene, options: ExportOptions) -> Scene | None:
    """Return a chain in columns whose text is not much too small on a slide; None for anything else."""
    figure = FIGURES[options.figure or "one-column"]
    if not figure.fills or not is_chain(scene):
        return None
    folded = _in_columns(scene, options)
    text = figure.scale(*_figure_size(_fitting(folded, options), options)) * TEXT
    return folded if folded.columns > 1 and text >= SMALLER * figure.least else None


SMALLER = 0.75
"""The part of the least height of text at which numbers in boxes are preferred to larger names."""
LARGER = 1.35
"""The least gain in the height of text for which a slide is folded."""


def _turned(scene: Scene, options: ExportOptions, way: str) -> Digraph:
    graph = _fitting(scene, options)
    if options.direction == "auto":
        graph.graph_attr["rankdir"] = way
    return graph


def _in_columns(scene: Scene, options: ExportOptions) -> Scene:
    """Return a long chain in the number of columns that makes its text large enough, or else largest.

    The scene is returned as it is if its text would be too small in any number of columns.
    """
    figure, bare = FIGURES[options.figure or "one-column"], replace(framed(scene, 0), flow="TB", compact=True)
    texts: dict[int, float] = {}
    for columns in range(2, MOST_COLUMNS + 1) if options.direction == "auto" else ():
        try:
            size = _figure_size(_fitting(replace(bare, columns=columns), options), options)
        except TooSlowError:
            break
        texts[columns] = figure.scale(*size) * TEXT
        if texts[columns] >= figure.least:
            break
    most = max(texts.values(), default=0)
    best = next((columns for columns, text in texts.items() if text >= most / MORE_COLUMNS), 1)
    if texts.get(best, 0) < LEAST_TEXT:
        return scene
    options.note(f"folded into {best} columns, without frames: in one column the text would be too small")
    return replace(bare, columns=best)


MORE_COLUMNS = 1.05
"""The least gain in the height of text for more columns, between which there are more lines."""
MOST_COLUMNS = 8
"""The most columns into which a figure of a long chain is folded."""


MOST_FOLDED = 300
"""The most boxes of a figure that is tried with less text: a larger one cannot be read anyway."""
_TOO_SMALL = f"the text of the figure would be less than {LEAST_TEXT:g} pt high"
_LESS_DETAIL: dict[str, dict[str, Any]] = {"--level modules": {"level": "modules"}, "--depth 1": {"depth": 1}}
_LESS_TEXT: dict[Density, str] = {"brief": "each box shows one line", "min": "boxes show names only"}


def _can_be_read(scene: Scene, options: ExportOptions) -> bool:
    graph = replace(scene, key=())
    try:
        in_figure(
            _fitting(graph, options),
            FIGURES[options.figure or "one-column"],
            "svg",
            replace(options, note=_ignore),
            turns=scene.columns < 2,
        )
    except TooSmallError:
        return False
    except TooSlowError:  # drawing it will say so
        return True
    return True


def _ignore(_: str) -> None:
    """Ignore a note."""


def _fitting(scene: Scene, options: ExportOptions, prefix: str = "gviz") -> Digraph:
    return digraph(settled(scene, options, prefix), manner_of(options, prefix))


class TooSmallError(GvizError):
    """The text of a figure would be too small to be read."""


def _figure_size(graph: Digraph, options: ExportOptions) -> tuple[float, float]:
    """Return the width and height of a figure in points, before it is scaled."""
    laid_out = json.loads(draw(graph.source, "json", timeout=options.timeout))
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
        remedies.append("--only and --node (in Python: only=, node=) draw a part of it")
    return TooSmallError(
        f"the text of this figure would be {text:.1f} pt high, less than {LEAST_TEXT:g} pt",
        hint="; ".join(remedies),
        exit_code=2,
    )


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


def drawn(scene: Scene, options: ExportOptions, picture: Picture, *, prefix: str = "gviz") -> bytes:
    """Return the scene as a picture. If Graphviz would take too long, its layout is simpler, and a note says so."""
    count = len(scene.boxes)
    require_readable(count)

    def laid_out() -> bytes:
        graph = _fitting(scene, options, prefix)
        if options.figure:
            try:
                graph = in_figure(graph, FIGURES[options.figure], picture, options, turns=scene.columns < 2)
            except TooSmallError:
                graph = _fitting(replace(scene, key=()), options, prefix)
                graph = in_figure(graph, FIGURES[options.figure], picture, options, turns=scene.columns < 2)
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

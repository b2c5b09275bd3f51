"""Whether a graph is folded into columns, and into how many, so that its text is larger or it fills a slide."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from gviz.render.boxes.graph_options import Density, Options
from gviz.render.detail_that_fits import Text
from gviz.render.figure import FIGURES, LEAST_TEXT, TEXT
from gviz.render.graphviz.column_division import division, is_chain
from gviz.render.graphviz.figure_size import fit
from gviz.render.graphviz.process import TooSlowError
from gviz.render.picture_notes import folded_into
from gviz.render.picture_request import ExportOptions, drawing, ignore_note, scene_of
from gviz.render.scene import Scene, framed
from gviz.trace.timeline import Timeline


def in_larger_columns(scene: Scene, options: ExportOptions) -> Scene:
    """Return a chain in columns if its text would be small on a slide; any other scene as it is.

    `in_full_width` folds other graphs, which have more lines between their columns.
    """
    figure, quiet = FIGURES[options.figure or "one-column"], replace(options, note=ignore_note)
    if not figure.fills or not is_chain(scene):
        return scene
    try:
        text = fit(scene, options).text
    except TooSlowError:
        return scene
    if text >= figure.least - 0.05:
        return scene
    folded = in_columns(scene, quiet)
    if folded.columns < 2 or fit(folded, options).text < min(figure.least, LARGER * text):
        return scene
    options.note(folded_into(folded.columns, "in one column the text would be small"))
    return folded


def in_readable_columns(scene: Scene, options: ExportOptions) -> Scene | None:
    """Return a chain in columns whose text is not much too small on a slide; None for anything else."""
    figure = FIGURES[options.figure or "one-column"]
    if not figure.fills or not is_chain(scene):
        return None
    folded = in_columns(scene, options)
    return folded if folded.columns > 1 and fit(folded, options).text >= SMALLER * figure.least else None


SMALLER = 0.75
"""The part of the least height of text at which numbers in boxes are preferred to larger names."""
LARGER = 1.35
"""The least gain in the height of text for which a slide is folded."""


def in_columns(scene: Scene, options: ExportOptions) -> Scene:
    """Return a chain in the number of columns that makes its text large enough, or else largest.

    The scene is returned as it is if its text would be too small in any number of columns.
    """
    figure, bare = FIGURES[options.figure or "one-column"], replace(framed(scene, 0), flow="TB", compact=True)
    texts: dict[int, float] = {}
    for columns in range(2, MOST_COLUMNS + 1) if options.direction == "auto" else ():
        folded = replace(bare, columns=columns)
        if division(folded).count < columns:  # as with fewer columns
            continue
        try:
            texts[columns] = fit(folded, options).text
        except TooSlowError:
            break
        if texts[columns] >= figure.least:
            break
    most = max(texts.values(), default=0)
    best = next((columns for columns, text in texts.items() if text >= most / MORE_COLUMNS), 1)
    if texts.get(best, 0) < LEAST_TEXT:
        return scene
    options.note(folded_into(best, "in one column the text would be too small"))
    return replace(bare, columns=best)


MORE_COLUMNS = 1.05
"""The least gain in the height of text for more columns, between which there are more lines."""
MOST_COLUMNS = 8
"""The most columns into which a figure of a chain is folded."""


NARROW = 0.7
"""A graph that covers less of the width of a slide is folded into columns, if they show more or have larger text."""
WIDE_COLUMNS = 2, 3
"""The numbers of columns that are tried."""
COLUMN_TEXTS: tuple[Text, ...] = Text("short"), Text("brief"), Text("brief", stacks=True)
"""The text in the boxes of columns."""


class FullWidth(NamedTuple):
    """A scene in columns, with the remark about its graph, and the text in its boxes."""

    scene: Scene
    remark: str
    density: Density


def in_full_width(timeline: Timeline, n: int, options: ExportOptions, found: Scene) -> FullWidth | None:
    """Return columns that use the width of a slide; None if they are no better than the scene that is found.

    One that is narrow, or whose text is small, is folded into columns. Its boxes, and those that fit into two columns,
    are tried with more text. Columns are chosen if their text is large enough, or larger, and they show no less. A
    chain whose boxes show more than names is folded by `in_larger_columns`.
    """
    figure = FIGURES[options.figure or "one-column"]
    if not figure.fills or found.columns > 1 or options.direction != "auto":
        return None
    if is_chain(found) and any(box.height > 1 for box in found.boxes):
        return None
    better = None
    try:
        _, size, text = fit(found, options)
        if size[0] * text / TEXT >= NARROW * figure.width and text >= SMALLER * figure.least:
            return None
        best = _worth(found, text, options)
        for words, density in _texts_in_columns(timeline, n, options):
            scene = scene_of(timeline, n, words, options)
            for folded in filter(None, (_in_wide_columns(scene, columns) for columns in WIDE_COLUMNS)):
                worth = _worth(folded, fit(folded, options).text, options)
                if worth > best:
                    best, better = worth, FullWidth(folded, words.remark, density)
    except TooSlowError:
        return better
    return better


HIGH = 0.6
"""A figure across two columns whose height is above this part of its width is tried from left to right, and folded."""
LESS_HIGH = 0.75
"""The part of its height at which another form of a figure is preferred, in spite of its frames and its direction."""
BRIEF_COST, FOLDED_COST = 1.2, 1.3
"""How much higher a figure may be if its boxes have their usual text, and if it is not folded."""
FEWEST_SAID = 0.3
"""The least part of the text of a figure that a less high one shows."""


class LowFigure(NamedTuple):
    """A scene that is less high than another one, with the remark about its graph, and the text in its boxes."""

    scene: Scene
    remark: str
    density: Density


def in_less_height(timeline: Timeline, n: int, options: ExportOptions, found: Scene) -> LowFigure | None:
    """Return what takes less of a page than a narrow strip of boxes; None if nothing does, or for other figures.

    It is from left to right, or in columns. Its text is large enough, and its boxes show numbers if those of the strip
    do.
    """
    figure = FIGURES[options.figure or "one-column"]
    if figure.fills or figure.width < WIDE_FIGURE or found.columns > 1 or options.direction != "auto":
        return None

    def height(scene: Scene) -> float | None:
        """Return the height of a scene in the figure; None if its text is small."""
        _, size, text = fit(scene, options)
        return size[1] * text / TEXT if text >= figure.least - 0.05 else None

    best = None
    try:
        usual = height(found)
        if usual is None or usual < HIGH * figure.width:
            return None
        least = LESS_HIGH * usual
        said, numbers = _said(found), sum(bool(box.rows) for box in found.boxes)
        for low in _low_figures(timeline, n, options):
            scene = low.scene
            has_numbers = sum(bool(box.rows) for box in scene.boxes) >= min(numbers, len(scene.boxes))
            if len(scene.boxes) < len(found.boxes) or not has_numbers or _said(scene) < FEWEST_SAID * said:
                continue
            high = height(scene)
            if high is None:
                continue
            cost = high * (BRIEF_COST if low.density != options.drawing.density else 1.0)
            cost *= FOLDED_COST if scene.columns > 1 else 1.0
            if cost < least:
                least, best = cost, low
    except TooSlowError:
        return best
    return best


WIDE_FIGURE = 400
"""The least width of a figure, in points, that has room for more than one column of boxes."""


def _low_figures(timeline: Timeline, n: int, options: ExportOptions) -> Iterator[LowFigure]:
    """Yield a graph from left to right, and in columns, with as much text as may fit."""
    level = replace(options, direction="LR", note=ignore_note)
    words = drawing(timeline, n, level, as_picture=True, fits=True)
    yield LowFigure(replace(scene_of(timeline, n, words, options), flow="LR"), words.remark, words.density)
    for words, density in _texts_in_columns(timeline, n, options):
        scene = scene_of(timeline, n, words, options)
        for folded in filter(None, (_in_wide_columns(scene, columns) for columns in WIDE_COLUMNS)):
            yield LowFigure(folded, words.remark, density)


def _texts_in_columns(timeline: Timeline, n: int, options: ExportOptions) -> Iterator[tuple[Options, Density]]:
    """Yield the graphs and texts that may be folded into columns. Without frames, titles name their models."""
    quiet = replace(options, note=ignore_note)
    graphs = [drawing(timeline, n, replace(quiet, columns=columns), as_picture=True, fits=True) for columns in (1, 2)]
    if graphs[0].graph_filter == graphs[1].graph_filter:
        graphs = graphs[:1]
    own = options.drawing.density
    keeps = options.keeps_labels or options.drawing.overlay is not None or own != "short"
    for words in graphs:
        for text in (Text(own),) if keeps else COLUMN_TEXTS:
            drawn = replace(words, density=text.density, stacks=text.stacks, lists_elements=False, frames=0)
            yield drawn, text.density


def _in_wide_columns(scene: Scene, columns: int) -> Scene | None:
    """Return a graph folded into this number of columns, without frames; None if it cannot be divided so."""
    bare = replace(framed(scene, 0), flow="TB", compact=True, columns=columns)
    return bare if division(bare).count == columns else None


def _worth(scene: Scene, text: float, options: ExportOptions) -> tuple[float, int]:
    """Return what a scene with text of this height is worth on a slide: text that can be read, then what it says."""
    least = SMALLER * FIGURES[options.figure or "one-column"].least
    return round(min(text, least), 1), _said(scene)


def _said(scene: Scene) -> int:
    """Return the characters in all boxes."""
    return sum(len(box.title) + sum(row.characters for row in box.rows) for box in scene.boxes)

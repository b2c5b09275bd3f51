"""The number of columns into which a long chain is folded in a figure, so that its text is large enough."""

from __future__ import annotations

from dataclasses import replace

from gviz.render.figure import FIGURES, LEAST_TEXT
from gviz.render.graphviz import chain_columns
from gviz.render.graphviz.chain_columns import is_chain
from gviz.render.graphviz.figure_size import fit
from gviz.render.graphviz.process import TooSlowError
from gviz.render.picture_request import ExportOptions, ignore_note
from gviz.render.scene import Scene, framed


def on_slide(scene: Scene, options: ExportOptions) -> Scene:
    """Return a scene whose text would be small on a slide in columns, if it is a chain; any other one as it is.

    Other graphs would have lines between the columns, which are harder to read than small text.
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
    options.note(f"folded into {folded.columns} columns, without frames: in one column the text would be small")
    return folded


def in_readable_columns(scene: Scene, options: ExportOptions) -> Scene | None:
    """Return a chain in columns whose text is not much too small on a slide; None for anything else."""
    figure = FIGURES[options.figure or "one-column"]
    if not figure.fills or not is_chain(scene):
        return None
    folded = in_columns(scene, options)
    return folded if folded.columns > 1 and fit(folded, options).text >= SMALLER * figure.least else None


def in_wide_columns(scene: Scene, columns: int, options: ExportOptions) -> Scene | None:
    """Return a graph folded into this number of columns, without frames; None if it cannot be divided so."""
    bare = replace(framed(scene, 0), flow="TB", compact=True, columns=columns)
    return bare if len({*chain_columns.columns(bare).values()}) == columns else None


SMALLER = 0.75
"""The part of the least height of text at which numbers in boxes are preferred to larger names."""
LARGER = 1.35
"""The least gain in the height of text for which a slide is folded."""


def in_columns(scene: Scene, options: ExportOptions) -> Scene:
    """Return a long chain in the number of columns that makes its text large enough, or else largest.

    The scene is returned as it is if its text would be too small in any number of columns.
    """
    figure, bare = FIGURES[options.figure or "one-column"], replace(framed(scene, 0), flow="TB", compact=True)
    texts: dict[int, float] = {}
    for columns in range(2, MOST_COLUMNS + 1) if options.direction == "auto" else ():
        folded = replace(bare, columns=columns)
        if len({*chain_columns.columns(folded).values()}) < columns:  # as with fewer columns
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
    options.note(f"folded into {best} columns, without frames: in one column the text would be too small")
    return replace(bare, columns=best)


MORE_COLUMNS = 1.05
"""The least gain in the height of text for more columns, between which there are more lines."""
MOST_COLUMNS = 8
"""The most columns into which a figure of a long chain is folded."""

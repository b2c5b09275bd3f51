"""The detail of a figure: less text and fewer boxes, until its text can be read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gviz.render.boxes.box_content import Box
from gviz.render.boxes.gradient_bars import starts_bars
from gviz.render.figure import LEAST_TEXT
from gviz.render.graphviz.column_choice import (
    in_columns,
    in_full_width,
    in_larger_columns,
    in_less_height,
    in_readable_columns,
)
from gviz.render.graphviz.column_division import is_chain
from gviz.render.graphviz.figure_size import fit
from gviz.render.graphviz.process import TooSlowError
from gviz.render.option_words import option
from gviz.render.picture_notes import LESS_TEXT, folded_into, with_gradients, without_less
from gviz.render.picture_request import ExportOptions, ignore_note, requested_scene
from gviz.render.scene import Scene
from gviz.trace.timeline import Timeline


def picture_scene(timeline: Timeline, n: int, options: ExportOptions) -> Scene:
    """Return the scene of moment `n` for a picture.

    A figure has less text in its boxes if it could not be read, unless the user requested the text, or an overlay
    needs the room. Boxes with only names have their gradients next to them if that makes no text smaller.
    """
    notes: list[str] = []
    found = _chosen_scene(timeline, n, replace(options, note=notes.append))
    may_add = options.figure is not None and not options.keeps_labels and options.drawing.density == "short"
    if may_add and len(found.boxes) <= MOST_FOLDED and all(map(_is_name, found.boxes)):
        more = replace(options, drawing=replace(options.drawing, norms=True), note=ignore_note)
        detailed = _chosen_scene(timeline, n, more)
        if _is_as_large(detailed, found, options):
            found, notes = detailed, [with_gradients(note) for note in notes]
    if options.figure is not None and len(found.boxes) <= MOST_FOLDED:
        wide = in_full_width(timeline, n, options, found)
        if wide is not None:
            found = wide.scene
            notes = [*without_less(wide.remark, wide.density), folded_into(found.columns, "it fills the width")]
        low = in_less_height(timeline, n, options, found)
        if low is not None:
            found, why = low.scene, "it takes less of the page"
            if found.columns > 1:
                notes = [*without_less(low.remark, low.density), folded_into(found.columns, why)]
            else:
                notes = [*([low.remark] if low.remark else []), f"from left to right: {why}"]
    for note in notes:
        options.note(note)
    return found


def _is_name(box: Box) -> bool:
    """Return whether a box has only a name, or a name and the bars of equal parts."""
    return box.height == 1 or (box.height == 2 and len(box.rows) == 1 and starts_bars(box.rows[0].text))


def _is_as_large(detailed: Scene, plain: Scene, options: ExportOptions) -> bool:
    """Return whether a scene with gradients has the boxes of the `plain` one, and no smaller text."""
    same = [box.key for box in detailed.boxes] == [box.key for box in plain.boxes]
    if not same or detailed.columns != plain.columns or not any(box.rows for box in detailed.boxes):
        return False
    try:
        return fit(detailed, options).text >= fit(plain, options).text - 0.05
    except TooSlowError:
        return False


def _chosen_scene(timeline: Timeline, n: int, options: ExportOptions) -> Scene:
    """Return the scene of moment `n` with as much text as can be read."""
    scene = requested_scene(timeline, n, options, as_picture=True, fits=True)
    if options.figure is None or len(scene.boxes) > MOST_FOLDED:
        return scene
    if _can_be_read(scene, options):
        return in_larger_columns(scene, options)
    may_shorten = not options.keeps_labels and options.drawing.overlay is None and options.drawing.density == "short"
    for density, what in LESS_TEXT.items() if may_shorten else ():
        less = replace(
            options, drawing=replace(options.drawing, density=density, bars=True, compact=True), note=ignore_note
        )
        folded = requested_scene(timeline, n, less, as_picture=True, fits=True)
        if _can_be_read(folded, options):
            options.note(f"{what}: {_TOO_SMALL}")
            return in_larger_columns(folded, options)
        if density == "brief" and (columns := in_readable_columns(folded, less)) is not None:
            options.note(f"{what}; {folded_into(columns.columns, _TOO_SMALL)}")
            return columns
    collapsed = None if is_chain(scene) else _with_less_detail(timeline, n, options, may_shorten=may_shorten)
    return in_columns(scene, options) if collapsed is None else in_larger_columns(collapsed, options)


def _with_less_detail(timeline: Timeline, n: int, options: ExportOptions, *, may_shorten: bool) -> Scene | None:
    """Return a scene with more modules collapsed, so that its text can be read; None if the user chose the detail.

    A graph that is no chain would have lines between its columns.
    """
    part = options.part
    if part.level != "auto" or part.depth is not None or part.expand or part.node or part.only:
        return None
    for change in _LESS_DETAIL:
        for density in ("short", *LESS_TEXT) if may_shorten else (options.drawing.density,):
            drawing = replace(options.drawing, density=density, bars=may_shorten, compact=density != "short")
            less = replace(options, part=replace(part, **change), drawing=drawing, note=ignore_note)
            folded = requested_scene(timeline, n, less, as_picture=True, fits=True)
            if _can_be_read(folded, less):
                options.note(f"modules collapsed, as with {option(*next(iter(change.items())))}: {_TOO_SMALL}")
                return folded
    return None


MOST_FOLDED = 300
"""The most boxes of a figure that is tried with less text: a larger one cannot be read anyway."""
_TOO_SMALL = f"the text of the figure would be less than {LEAST_TEXT:g} pt high"
_LESS_DETAIL: tuple[dict[str, Any], ...] = {"level": "modules"}, {"depth": 1}


def _can_be_read(scene: Scene, options: ExportOptions) -> bool:
    try:
        return fit(scene, options).text >= LEAST_TEXT
    except TooSlowError:  # drawing it will say so
        return True

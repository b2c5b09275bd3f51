"""Many moments as pictures in one layout, with room for all the texts that the boxes will have.

A pass has many moments that change nothing in a picture: in one of few boxes, most events happen inside of a box. Such
a moment has no picture of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby, zip_longest
from typing import Any

from rich.cells import cell_len

from gviz import events as e
from gviz.errors import GvizError
from gviz.render.boxes.box_content import Box
from gviz.render.boxes.box_row import Row
from gviz.render.boxes.drawn_nodes import shown_ends
from gviz.render.boxes.edge_content import Edge
from gviz.render.boxes.node_states import State
from gviz.render.figure import FIGURES, as_figures
from gviz.render.graphviz.box_label import CHARACTER
from gviz.render.graphviz.coordinates import INCH, Placing, placing
from gviz.render.graphviz.digraph import Digraph
from gviz.render.graphviz.dot import digraph
from gviz.render.graphviz.figure_size import check_text, figure_of_size, with_margins
from gviz.render.graphviz.module_frames import manner_of, settled
from gviz.render.graphviz.process import Picture, draw, draw_all
from gviz.render.graphviz.scene_drawing import DPI, laid_out_or_simple, sized
from gviz.render.graphviz.svg_output import scaled
from gviz.render.legend import legend, together
from gviz.render.picture_request import ExportOptions, check_moment, drawing, moment_structure
from gviz.render.scene import Scene, scene
from gviz.trace.timeline import Timeline

MOST_MOMENTS = 150
"""The most pictures of a series; a pass with more events is shown node by node."""

SECONDS, LAST = 0.8, 3.0
"""Seconds for each picture of a moving picture, and for the last one."""
MOST_SECONDS = MOST_MOMENTS * SECONDS
"""The most seconds of a moving picture: one of more moments is faster."""


def seconds(count: int) -> float:
    """Return how long each of this many pictures is seen, in whole hundredths of a second, as in a GIF."""
    return max(round(min(SECONDS, MOST_SECONDS / count), 2), 0.02)


CHANGING = (
    e.NodeCreated, e.StorageWritten, e.DataSet, e.BackwardStarted, e.StepStarted, e.GradFlowed, e.GradAccumulated,
    e.GradSet, e.BackwardFinished, e.Failed,
)  # fmt: skip
"""The events that change a picture."""


def pass_moments(timeline: Timeline, n: int) -> tuple[int, ...]:
    """Return the moments up to `n` in its iteration that change the picture, or if they are many, one per node."""
    start, end = timeline.iteration_at(n).start, n
    moments = tuple(seq for seq in range(max(start, 1), end + 1) if isinstance(timeline.event(seq), CHANGING))
    if len(moments) <= MOST_MOMENTS:
        return moments
    whole = tuple(shown_ends(timeline, start, end))
    if len(whole) > MOST_MOMENTS:
        raise GvizError(
            f"{len(whole):,} moments are too many for one moving picture",
            hint=f"choose at most {MOST_MOMENTS} with the option moments: FIRST..LAST, or one pass (backward)",
            exit_code=2,
        )
    return whole


def scenes(timeline: Timeline, moments: Sequence[int], options: ExportOptions) -> list[Scene]:
    """Return the same graph at every moment that changes the picture: the graph of the last moment's iteration."""
    check_moment(timeline, moments[-1])
    words = drawing(timeline, moments[-1], options, as_picture=True, fits=True)
    shape = moment_structure(timeline, moments[-1], words)
    seen = []
    for number, n in enumerate(moments):
        options.progress(number / (2 * len(moments)))  # drawing is the other half of the work
        seen.append(scene(shape, timeline, timeline.at(n), tooltips=False))
    if options.figure:
        seen = as_figures(seen, options.colours.form.card)
        seen = seen if options.legend else [replace(one, key=()) for one in seen]
    has_caption = options.colours.form.caption
    same = groupby(seen, lambda one: one if has_caption else replace(one, caption="", code=""))
    seen = [[*equal][-1] for _, equal in same]
    longest = [
        max((len(row.text) for box in versions for row in box.rows), default=0)
        for versions in zip(*(one.boxes for one in seen), strict=True)
    ]
    return [
        replace(one, boxes=tuple(replace(box, longest=most) for box, most in zip(one.boxes, longest, strict=True)))
        for one in seen
    ]


def pictures(
    seen: Sequence[Scene], options: ExportOptions, picture: Picture, prefix: str = "gviz", pixels: int = 0
) -> list[bytes]:
    """Return the scenes as pictures of one size, with fixed places of boxes, at most `pixels` wide and high."""
    place = _placing(seen, options, prefix)
    drawn = (digraph(one, manner_of(options, prefix, place)) for one in seen)
    return draw_all(
        (_sized(graph, picture, options, place, pixels).source for graph in drawn),
        picture,
        program="nop2",
        timeout=options.timeout + len(seen),
    )


def _sized(graph: Digraph, picture: Picture, options: ExportOptions, place: Placing, pixels: int) -> Digraph:
    """Return the graph with its size. Figures of a series have the size of a single one."""
    if options.figure is None or not place.wide:
        return sized(graph, picture, options.scale or _fitting(place, pixels))
    return figure_of_size(graph, FIGURES[options.figure], picture, (place.wide, place.high), pixels)


def _fitting(place: Placing, pixels: int) -> float:
    """Return the scale of a picture with at most this many pixels; 0 if there is no limit."""
    return min(1.0, pixels * INCH / place.points / DPI) if pixels and place.points else 0.0


def _placing(seen: Sequence[Scene], options: ExportOptions, prefix: str) -> Placing:
    """Return the places of boxes and lines in all scenes."""
    widest = _widest(seen)
    signs = together(sign for one in seen for sign in legend(one, options.colours.form.card))
    joint = max(cell_len("    ".join([one.title, one.caption, one.code])) for one in seen)
    room = max(max(cell_len(f"{one.title}   {one.caption}"), cell_len(one.code)) for one in seen)
    places = laid_out_or_simple(
        len(widest.boxes),
        options,
        lambda: _laid_out(settled(widest, options, prefix), options, prefix),
        lambda: placing(widest),
    )
    one_line = joint * CHARACTER <= places.wide
    if options.figure and places.wide:
        check_text(FIGURES[options.figure], with_margins(places.wide, places.high), options)
    return replace(places, legend=signs, room=joint if one_line else room, one_line=one_line)


def _laid_out(widest: Scene, options: ExportOptions, prefix: str) -> Placing:
    source = digraph(widest, manner_of(options, prefix)).source
    graph = json.loads(draw(source, "json", timeout=options.timeout))
    objects = graph.get("objects", [])
    boxes = {box["name"]: _box(box) for box in objects if "pos" in box}
    frames = {frame["name"]: {"bb": frame["bb"], "lp": frame["lp"]} for frame in objects if "bb" in frame}
    lines = {line["id"].removeprefix(f"{prefix}-"): _line(line) for line in graph.get("edges", [])}
    _, _, wide, high = map(float, graph["bb"].split(","))
    return Placing(boxes, lines, frames, points=max(wide, high), wide=wide, high=high)


def _box(box: dict[str, Any]) -> dict[str, str]:
    return {"pos": box["pos"], "width": box["width"], "height": box["height"], "fixedsize": "true"}


def _line(line: dict[str, Any]) -> dict[str, str]:
    return {name: line[name] for name in ("pos", "lp") if name in line}


def _widest(seen: Sequence[Scene]) -> Scene:
    """Return a scene in which every box and every line has the longest text that it ever has."""
    boxes = tuple(_widest_box(versions) for versions in zip(*(one.boxes for one in seen), strict=True))
    edges = tuple(_widest_edge(versions) for versions in zip(*(one.edges for one in seen), strict=True))
    return replace(seen[-1], boxes=boxes, edges=edges)


def _widest_box(versions: Sequence[Box]) -> Box:
    rows = tuple(_longest(rows) for rows in zip_longest(*(box.rows for box in versions)))
    failed = any("error" in box.states for box in versions)  # an error has eight corners, which need more room
    states: tuple[State, ...] = ("current", "error") if failed else ("current",)
    return replace(versions[-1], rows=rows, status=max((box.status for box in versions), key=len), states=states)


def _longest(rows: Sequence[Row | None]) -> Row:
    return max(filter(None, rows), key=lambda row: (row.lines, len(row.text), row.style == "sum"))


def _widest_edge(versions: Sequence[Edge]) -> Edge:
    return max(versions, key=lambda edge: (len(edge.grid), len(edge.text)))


def frames(timeline: Timeline, moments: Sequence[int], options: ExportOptions, picture: Picture) -> Iterator[bytes]:
    """Yield one picture for each moment that changes it, for a numbered series of files."""
    for one in pictures(scenes(timeline, moments, options), options, picture):
        scales = picture == "svg" and not options.figure
        yield scaled(one.decode("utf-8"), options.scale or 1.0).encode("utf-8") if scales else one

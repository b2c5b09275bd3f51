"""The places of a page's boxes and lines: computed once per iteration, so that no step moves anything."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.cells import cell_len

from gviz.render.boxes.box_content import Box
from gviz.render.boxes.edge_content import Edge
from gviz.render.graphviz.box_label import CHARACTER, ROW
from gviz.render.graphviz.coordinates import INCH, placing
from gviz.render.graphviz.direction_and_spacing import BLANK, ends, flow, is_direct, repeated, skipping, spacing
from gviz.render.graphviz.parallel_lines import LANE
from gviz.render.graphviz.process import TooSlowError, draw, draw_all
from gviz.render.graphviz.scene_drawing import LAYOUT_BOXES, laid_out_or_simple
from gviz.render.graphviz.spine import spine
from gviz.render.graphviz.spline import Spline
from gviz.render.picture_request import ExportOptions
from gviz.render.scene import Scene
from gviz.render.theme import Direction

SIDE, TOP = 18, 10
LETTER, LINE = 6, 13
"""Points of a character in the label of a line: its width and its height."""

FRAME_TITLE = 'labelloc=t labeljust=l label=<<table border="0"><tr><td width="60" height="9"></td></tr></table>>'
"""A label that reserves room for the title of a module in Graphviz's layout."""

Knot = tuple[int, int]

Words = Mapping[int, Sequence[str]]
"""The largest label of a line at any moment, by the line's number in the scene."""


@dataclass(frozen=True, slots=True)
class Spot:
    """The rectangle of a box, in points from the upper left corner of the drawing."""

    x: int
    y: int
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Route:
    """A line as an SVG path from maker to user (empty: it has none of its own), and the centre of its label."""

    path: str = ""
    label: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Geometry:
    """All places, in the order of the scene, and the size of the drawing.

    `frames` are keys, titles and rectangles of the expanded modules, the outermost first.
    """

    width: int
    height: int
    spots: tuple[Spot, ...]
    routes: tuple[Route, ...]
    frames: tuple[tuple[str, str, Spot], ...] = ()


def geometry(scene: Scene, words: Words, options: ExportOptions) -> Geometry:
    """Lay a scene out with Graphviz, or beyond its limits with gviz's own layout, in which gradients have no lines."""

    def laid_out() -> Geometry:
        dot = _dot(scene, words, options.direction)
        return _read(json.loads(draw(dot, "json", timeout=options.timeout)), scene, words)

    return laid_out_or_simple(len(scene.boxes), options, laid_out, lambda: _simple(scene))


def geometries(scenes: Sequence[Scene], words: Sequence[Words], options: ExportOptions) -> list[Geometry]:
    """Lay several scenes out, if possible in one process of Graphviz."""
    dots = [_dot(scene, labels, options.direction) for scene, labels in zip(scenes, words, strict=True)]
    if max(len(scene.boxes) for scene in scenes) <= LAYOUT_BOXES:
        try:
            drawn = draw_all(dots, "json", timeout=options.timeout)
            return [
                _read(json.loads(one), scene, labels) for one, scene, labels in zip(drawn, scenes, words, strict=True)
            ]
        except TooSlowError:  # each of them has this time
            pass
    return [geometry(scene, labels, options) for scene, labels in zip(scenes, words, strict=True)]


def _dot(scene: Scene, words: Words, direction: Direction) -> str:
    """Return the boxes as empty rectangles. The DOT text contains no text from the program."""
    labelled = scene.labels_lines
    straight, duplicates = spine(scene), repeated(scene) if labelled else frozenset()
    lanes = dict.fromkeys(duplicates, f' label="{BLANK}"')
    if not labelled:
        lanes = dict.fromkeys(skipping(scene), f" label={LANE}")
    spaced = " ".join(f"{name}={value}" for name, value in (spacing(scene) | straight.graph).items())
    lines = [
        f"digraph {{ rankdir={flow(scene.boxes, scene.levels, direction, scene.flow)} {spaced}",
        'node [shape=box fixedsize=true label=""]',
    ]
    lines += [_dot_box(box, straight.box(box.key)) for box in scene.boxes]
    lines += _dot_frames(scene.boxes)
    for number, edge in enumerate(scene.edges):
        word = _word(number, edge, words, labelled=labelled)
        lines.append(_dot_line(number, edge, word, weight=straight.weight(number), lane=lanes.get(number, "")))
    return "\n".join([*lines, "}"])


def _word(number: int, edge: Edge, words: Words, *, labelled: bool) -> Sequence[str]:
    """Return the label of a line; none where there is no room for labels, unless the line would mislead without one."""
    return words.get(number, ()) if labelled or not is_direct(edge) else ()


def _dot_box(box: Box, aligned: Mapping[str, str]) -> str:
    width, height = _size(box)
    group = "".join(f" {name}={value}" for name, value in aligned.items())
    return f'"{box.key}" [width={width / INCH:.3f} height={height / INCH:.3f}{group}]'


def _dot_frames(boxes: Sequence[Box], depth: int = 0) -> Iterator[str]:
    """Yield the expanded modules as clusters, which reserve room for their titles."""
    inner: dict[str, list[Box]] = {}
    for box in boxes:
        if len(box.enclosing_modules) > depth:
            inner.setdefault(box.enclosing_modules[depth][0], []).append(box)
    for key, inside in inner.items():
        yield f'subgraph "cluster_{key}" {{ margin=10 {FRAME_TITLE}'
        yield from (f'"{box.key}"' for box in inside if len(box.enclosing_modules) == depth + 1)
        yield from _dot_frames(inside, depth + 1)
        yield "}"


def _dot_line(number: int, edge: Edge, word: Sequence[str], *, weight: str, lane: str) -> str:
    tail, head = ends(edge)
    more = f" weight={weight}" if weight != "1" else ""
    if edge.kind == "gradient" or edge.is_write:
        more += " dir=back"
    elif edge.kind == "view" and edge.slot < 0:
        more += " constraint=false"
    if any(word):
        width = max(map(cell_len, word)) * LETTER + LETTER
        cell = f'<td fixedsize="true" width="{width}" height="{len(word) * LINE}"></td>'
        more += f' label=<<table border="0" cellborder="0" cellspacing="0"><tr>{cell}</tr></table>>'
    else:
        more += lane
    return f'"{tail}" -> "{head}" [id="{number}"{more}]'


def _size(box: Box) -> tuple[int, int]:
    return box.width * CHARACTER + SIDE, box.height * ROW + TOP


def _read(drawing: dict[str, Any], scene: Scene, words: Words) -> Geometry:
    """Read the positions from Graphviz's JSON, whose y axis points upwards."""
    _, _, right, top = map(float, drawing["bb"].split(","))
    centres = {each["name"]: _point(each["pos"], top) for each in drawing["objects"] if "pos" in each}
    edges = {int(each["id"]): each for each in drawing.get("edges", ())}
    spots = [_spot(centres[box.key], _size(box)) for box in scene.boxes]
    frames = tuple(_frames(drawing["objects"], scene, top))
    labelled = scene.labels_lines
    routes = [
        _route(edges[number], top, has_label=any(_word(number, edge, words, labelled=labelled)))
        for number, edge in enumerate(scene.edges)
    ]
    return Geometry(round(right), round(top), tuple(spots), tuple(routes), frames)


def _frames(objects: Iterable[dict[str, Any]], scene: Scene, top: float) -> Iterator[tuple[str, str, Spot]]:
    """Yield the frames at Graphviz's positions."""
    corners = {each["name"]: [float(x) for x in each["bb"].split(",")] for each in objects if "bb" in each}
    for key, title in dict(each for box in scene.boxes for each in box.enclosing_modules).items():
        left, low, right, high = corners[f"cluster_{key}"]
        yield key, title, Spot(round(left), round(top - high), round(right - left), round(high - low))


def _spot(centre: tuple[float, float], size: tuple[int, int]) -> Spot:
    (x, y), (width, height) = centre, size
    return Spot(round(x - width / 2), round(y - height / 2), width, height)


def _route(edge: dict[str, Any], top: float, *, has_label: bool) -> Route:
    """Return a line at Graphviz's position. A label without text is no place for one: it may be behind a box."""
    label = _point(edge["lp"], top) if has_label and "lp" in edge else None
    return Route(_path(edge["pos"], top), None if label is None else (round(label[0]), round(label[1])))


def _path(pos: str, top: float) -> str:
    """Return a Graphviz spline (``e,x,y`` or ``s,x,y`` for the tip of an arrow, then knots) as an SVG path.

    All knots except the first are relative, which is shorter.
    """
    spline = Spline.of(pos)
    knots = [_knot(spot, top) for spot in spline.knots]
    start = knots[0] if spline.start is None else _knot(spline.start, top)
    lead = [f"l{_from(start, knots[0])}"] if spline.start else []
    curve = [_from(knots[at - (at - 1) % 3 - 1], knots[at]) for at in range(1, len(knots))]
    tail = [f"l{_from(knots[-1], _knot(spline.end, top))}"] if spline.end else []
    return "".join([f"M{start[0]} {start[1]}", *lead, "c", " ".join(curve), *tail])


def _from(one: Knot, other: Knot) -> str:
    return f"{other[0] - one[0]} {other[1] - one[1]}"


def _knot(spot: tuple[float, float], top: float) -> Knot:
    return round(spot[0]), round(top - spot[1])


def _point(text: str, top: float) -> tuple[float, float]:
    x, y = map(float, text.rstrip("!").split(","))
    return x, top - y


def _simple(scene: Scene) -> Geometry:
    """Return gviz's own layout, which also uses Graphviz's notation."""
    places = placing(scene)
    boxes = [places.boxes[box.key] for box in scene.boxes]
    spots = [_spot(_point(box["pos"], 0), (_points(box["width"]), _points(box["height"]))) for box in boxes]
    lines = [places.lines.get(f"e{number}") for number in range(len(scene.edges))]
    routes = tuple(Route(_path(line["pos"], 0)) if line else Route() for line in lines)
    right = max((spot.x + spot.width for spot in spots), default=0)
    bottom = max((spot.y + spot.height for spot in spots), default=0)
    return Geometry(right, bottom, tuple(spots), routes)


def _points(inches: str) -> int:
    return round(float(inches) * INCH)

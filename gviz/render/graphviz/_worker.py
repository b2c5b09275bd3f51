"""A separate program that draws graphs.

It reads DOT texts from standard input, with a NUL between them. It writes the pictures to standard output, each after a
line with its number of bytes. Graphviz's messages go to standard error.

It is started by path, so it finds the rest of gviz by its own place: another copy may be installed. Graphviz cannot be
interrupted, so its caller needs a process to kill.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pygraphviz import AGraph

sys.path.insert(0, str(Path(__file__).parents[3]))  # after pygraphviz, which no file there may hide

from gviz.render.graphviz.frame_titles import Title, title_places
from gviz.render.graphviz.parallel_lines import LANE, MOST_LINES, Area, Line, moved_lines, trace
from gviz.render.graphviz.spline import Spline, Spot, place

INCH = 72
SECOND_BORDER = 4
"""Points by which Graphviz draws the second border of a box outside of its first one."""
TITLE_WIDTH = "titlewidth"
"""The attribute of a frame that has the width of its title."""


def main(program: str, picture: str) -> None:
    """Draw with a layout program of Graphviz (``dot``, or ``nop2`` if the boxes have positions) in a format."""
    for text in sys.stdin.buffer.read().split(b"\0"):
        graph, is_placed = AGraph(string=text.decode("utf-8")), False
        if program == "dot" and _may_be_improved(graph):
            graph, is_placed = _improved(graph, text.decode("utf-8"))
        drawn = graph.draw(format=picture, prog="nop2" if is_placed else program)
        sys.stdout.buffer.write(b"%d\n" % len(drawn) + drawn)


def _may_be_improved(graph: Any) -> bool:
    """Return whether a graph has frames with titles, or lines between the same two boxes, and can be read at all."""
    pairs = [tuple(line) for line in graph.edges_iter()]
    return len(pairs) <= MOST_LINES and (len({*pairs}) < len(pairs) or any(_frames(graph)))


def _improved(graph: Any, text: str) -> tuple[Any, bool]:
    """Return a graph with lines between the same two boxes apart, and titles of frames next to lines.

    It has all positions if anything has moved.
    """
    has_moved, narrow = _improve(graph)
    if narrow:
        graph = AGraph(string=text)
        for frame in _frames(graph):
            if wider := narrow.get(frame.name):
                cell = f'<td width="{wider:.0f}" align="left">{frame.graph_attr["label"]}</td>'
                table = 'border="0" cellborder="0" cellspacing="0" cellpadding="0"'
                frame.graph_attr["label"] = f"<<table {table}><tr>{cell}</tr></table>>"
        widened = str(graph)
        has_moved, _ = _improve(graph)
        text = widened
    return (graph, True) if has_moved else (AGraph(string=text), False)


def _improve(graph: Any) -> tuple[bool, dict[str, float]]:
    """Lay a graph out, and move lines between the same two boxes apart, and titles of frames next to lines.

    Return whether anything has moved, and the width that each frame needs that is too narrow for its title.
    """
    graph.layout("dot")
    edges = [*graph.edges_iter()]
    lines = [_line(edge) for edge in edges]
    moved = moved_lines(dict(_boxes(graph)), lines)
    for number, (spline, label) in moved.items():
        edges[number].attr["pos"] = str(spline)
        if label is not None:
            edges[number].attr["lp"] = place(label)
    frames = [*_frames(graph)]
    titles = [*map(_title, frames)]
    traces = [trace(moved[at].spline if at in moved else line.spline) for at, line in enumerate(lines)]
    places = title_places(titles, traces)
    has_moved = bool(moved)
    for frame, title, (start, _) in zip(frames, titles, places, strict=True):
        if start != title.start:
            x, y = _spot(frame.graph_attr["lp"])
            frame.graph_attr["lp"] = place((x + start - title.start, y))
            has_moved = True
    for box in graph.nodes_iter() if has_moved else ():
        if box.attr["peripheries"] == "2":  # Graphviz writes its size with the second border, and reads it without
            for side in ("width", "height"):
                box.attr[side] = f"{float(box.attr[side]) - 2 * SECOND_BORDER / INCH:.5g}"
    return has_moved, {frame.name: one.wider for frame, one in zip(frames, places, strict=True) if one.wider}


def _frames(graph: Any) -> Iterator[Any]:
    """Yield the frames that have a title, the outer ones first."""
    for inner in graph.subgraphs():
        if inner.graph_attr.get(TITLE_WIDTH):
            yield inner
        yield from _frames(inner)


def _title(frame: Any) -> Title:
    left, _, right, _ = map(float, frame.graph_attr["bb"].split(","))
    x, y = _spot(frame.graph_attr["lp"])
    return Title(left, right, x - float(frame.graph_attr["lwidth"]) * INCH / 2, y, float(frame.graph_attr[TITLE_WIDTH]))


def _boxes(graph: Any) -> Iterator[tuple[str, Area]]:
    for box in graph.nodes_iter():
        x, y = _spot(box.attr["pos"])
        wide, high = float(box.attr["width"]) * INCH / 2, float(box.attr["height"]) * INCH / 2
        yield str(box), Area(x - wide, y - high, x + wide, y + high, box.attr["shape"] == "ellipse")


def _line(line: Any) -> Line:
    tail, head = map(str, line[:2])
    label = _spot(line.attr["lp"]) if line.attr["lp"] else None
    has_text = bool((line.attr["label"] or "").strip()) and f"<{line.attr['label']}>" != LANE
    return Line(tail, head, Spline.of(line.attr["pos"]), label, has_text, line.attr["dir"] == "back")


def _spot(text: str) -> Spot:
    x, y = text.rstrip("!").split(",")
    return float(x), float(y)


if __name__ == "__main__":
    main(*sys.argv[1:])

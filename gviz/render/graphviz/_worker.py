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

from gviz.render.graphviz.parallel_lines import Area, Line, moved_lines
from gviz.render.graphviz.spline import Spline, Spot, place

INCH = 72
SECOND_BORDER = 4
"""Points by which Graphviz draws the second border of a box outside of its first one."""


def main(program: str, picture: str) -> None:
    """Draw with a layout program of Graphviz (``dot``, or ``nop2`` if the boxes have positions) in a format."""
    for text in sys.stdin.buffer.read().split(b"\0"):
        graph = AGraph(string=text.decode("utf-8"))
        is_placed = program == "dot" and _has_parallel_lines(graph) and _separate_lines(graph)
        if program == "dot" and not is_placed:
            graph = AGraph(string=text.decode("utf-8"))
        drawn = graph.draw(format=picture, prog="nop2" if is_placed else program)
        sys.stdout.buffer.write(b"%d\n" % len(drawn) + drawn)


def _has_parallel_lines(graph: Any) -> bool:
    pairs = [tuple(line) for line in graph.edges_iter()]
    return len({*pairs}) < len(pairs)


def _separate_lines(graph: Any) -> bool:
    """Lay a graph out, and move lines between the same two boxes apart. Return whether there are any."""
    graph.layout("dot")
    lines = [*graph.edges_iter()]
    moved = moved_lines(dict(_boxes(graph)), [_line(line) for line in lines])
    for number, (spline, label) in moved.items():
        lines[number].attr["pos"] = str(spline)
        if label is not None:
            lines[number].attr["lp"] = place(label)
    if moved:
        for box in graph.nodes_iter():
            if box.attr["peripheries"] == "2":  # Graphviz writes its size with the second border, and reads it without
                for side in ("width", "height"):
                    box.attr[side] = f"{float(box.attr[side]) - 2 * SECOND_BORDER / INCH:.5g}"
    return bool(moved)


def _boxes(graph: Any) -> Iterator[tuple[str, Area]]:
    for box in graph.nodes_iter():
        x, y = _spot(box.attr["pos"])
        wide, high = float(box.attr["width"]) * INCH / 2, float(box.attr["height"]) * INCH / 2
        yield str(box), Area(x - wide, y - high, x + wide, y + high, box.attr["shape"] == "ellipse")


def _line(line: Any) -> Line:
    tail, head = map(str, line[:2])
    label = _spot(line.attr["lp"]) if line.attr["lp"] else None
    return Line(tail, head, Spline.of(line.attr["pos"]), label, bool(label), line.attr["dir"] == "back")


def _spot(text: str) -> Spot:
    x, y = text.rstrip("!").split(",")
    return float(x), float(y)


if __name__ == "__main__":
    main(*sys.argv[1:])

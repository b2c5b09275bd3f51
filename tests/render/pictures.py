"""Pictures read back: what a drawing says, in a form that can be compared with the scene it was drawn from."""

import json
from xml.etree import ElementTree

from pygraphviz import AGraph

SVG = "{http://www.w3.org/2000/svg}"


def read(dot):
    """What Graphviz understood: the attributes of every box by key, and of every line, parallel ones each."""
    graph = json.loads(AGraph(string=dot).draw(format="json0", prog="dot"))
    boxes = graph.get("objects", [])
    lines = [(boxes[line["tail"]]["name"], boxes[line["head"]]["name"], line) for line in graph.get("edges", [])]
    return {box["name"]: box for box in boxes}, lines


def boxes_and_lines(dot):
    """The keys of all boxes and, sorted, the lines in the direction of their arrows."""
    boxes, lines = read(dot)
    return set(boxes), sorted((head, tail) if line.get("dir") == "back" else (tail, head) for tail, head, line in lines)


def groups(svg, kind):
    """The groups of an SVG that are a ``node`` or an ``edge``, by id."""
    root = ElementTree.fromstring(svg.encode("utf-8"))
    return {group.get("id"): group for group in root.iter(f"{SVG}g") if kind in (group.get("class") or "").split()}


def words(group):
    """Every text drawn in a group."""
    return ["".join(text.itertext()).replace("\u00a0", " ").strip() for text in group.iter(f"{SVG}text")]

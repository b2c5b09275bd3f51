"""A scene as DOT, the language of Graphviz: the same text everywhere, so it is what golden files keep."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from gviz.plain_text import shown
from gviz.render.graph import Graph
from gviz.render.labels import SMALL, box_label, coloured, table
from gviz.render.placing import Placing
from gviz.render.scene import Box, Edge, Scene
from gviz.render.theme import LIGHT, Theme

FONT = "Helvetica,Arial,sans-serif"
WIDE_LEVELS = 12
"""Graphs with more levels than this flow from top to bottom, as there is no screen so wide."""
LABELLED_EDGES = 40
"""More lines than this carry no labels: they would hide the graph. The words stay in the tooltips."""
EASY_NODES = 150
"""Above this, Graphviz is told to search less for the best order: seconds instead of minutes, hardly worse."""

STRAIGHT = "8"
"""The weight of lines between operations, so that a long chain is drawn straight and the leaves beside it."""

PAINTED = ("error", "nan", "current", "freed", "inplace")
"""The states that change the colour of a box, the most important first."""


def dot(scene: Scene, theme: Theme = LIGHT, prefix: str = "gviz") -> str:
    """The DOT text of a scene."""
    return str(digraph(scene, theme, prefix).source)


def digraph(scene: Scene, theme: Theme = LIGHT, prefix: str = "gviz", placing: Placing | None = None) -> Graph:
    """The scene as a graph of the ``graphviz`` package; every id in it starts with `prefix`.

    With a `placing`, gradients have no lines of their own, and lines no labels.
    """
    graph = Graph(
        graph_attr=_graph_attributes(scene, theme, prefix),
        node_attr={"fontname": FONT, "fontsize": "11", "margin": "0.09,0.06", "height": "0", "width": "0"},
        edge_attr={"fontname": FONT, "fontsize": str(SMALL), "arrowsize": "0.7"},
    )
    for box in scene.boxes:
        place = placing.boxes[box.key] if placing else {}
        graph.node(box.key, box_label(box, theme), **_box_attributes(box, theme, prefix), **place)
    _add_lines(graph, scene, theme, prefix, placing)
    return graph


def _add_lines(graph: Graph, scene: Scene, theme: Theme, prefix: str, placing: Placing | None) -> None:
    labelled = placing is None and len(scene.edges) <= LABELLED_EDGES
    ops = {box.key for box in scene.boxes if box.role in ("op", "root")}
    for number, edge in enumerate(scene.edges):
        way = placing.lines.get((edge.source, edge.target, edge.slot)) if placing else {}
        if way is None:
            continue
        weight = STRAIGHT if {edge.source, edge.target} <= ops else "1"
        attributes = _edge_attributes(edge, theme) | {"id": f"{prefix}-e{number}", "weight": weight} | way
        graph.edge(*_ends(edge), _edge_label(edge, theme) if labelled else "", **attributes)


def _graph_attributes(scene: Scene, theme: Theme, prefix: str) -> dict[str, str]:
    attributes = {
        "id": prefix,
        "bgcolor": theme.canvas,
        "rankdir": "LR" if scene.levels <= WIDE_LEVELS else "TB",
        "fontname": FONT,
        "fontsize": "10",
        "labelloc": "b",
        "labeljust": "l",
        "label": table([f'<td align="left">{line}</td>' for line in _below(scene, theme)]),
        "nodesep": "0.3",
        "ranksep": "0.55",
        "pad": "0.2",
    }
    if len(scene.boxes) > EASY_NODES:
        attributes |= {"nslimit": "1", "nslimit1": "1", "mclimit": "0.1"}
    return attributes


def _below(scene: Scene, theme: Theme) -> Iterator[str]:
    """The lines below the picture: what it is, and how to read it."""
    yield f"<b>{coloured(scene.title, theme.texts['title'])}</b>  {coloured(scene.caption, theme.texts['muted'])}"
    yield coloured(", ".join(legend(scene)), theme.texts["muted"], SMALL)


def legend(scene: Scene) -> Iterator[str]:
    """What the shapes and lines in this picture mean; only those that are there."""
    roles = {box.role for box in scene.boxes}
    states = {state for box in scene.boxes for state in box.states}
    painted = {_painted(box) for box in scene.boxes}
    kinds = {edge.kind for edge in scene.edges if edge.kind != "gradient" or "flowed" in edge.states}
    held = {state for edge in scene.edges for state in edge.states if edge.kind != "gradient"}
    for here, text in (
        ("leaf" in roles, "round: leaf"),
        ("parameter" in roles, "round and bold: parameter"),
        ("constant" in roles, "round and grey: constant"),
        ("chip" in roles, "thin and round: one use of a shared leaf"),
        ("op" in roles or "root" in roles, "square: operation"),
        ("root" in roles, "double: result"),
        ("pending" in states, "dashed: not run yet"),
        ("freed" in painted, "dashed and empty: freed"),
        ("inplace" in painted, "purple: writes in place"),
        ("view" in kinds, "dotted line: shares memory"),
        ("cut" in held, "hollow arrow: no gradient flows back"),
        ("gradient" in kinds, "blue arrow: gradient, against the data"),
    ):
        if here:
            yield text


def _box_attributes(box: Box, theme: Theme, prefix: str) -> dict[str, str]:
    painted = _painted(box)
    paint = theme.paints["error" if painted == "nan" else painted]
    return {
        "id": f"{prefix}-{box.key}",
        "class": " ".join([f"role-{box.role}", *(f"state-{state}" for state in box.states)]),
        "shape": "octagon" if "error" in box.states else "box",
        "style": ",".join(_box_style(box)),
        "fillcolor": paint.fill,
        "color": paint.border,
        "penwidth": _pen(box),
        "peripheries": "2" if box.role == "root" else "1",
        "tooltip": _tooltip(box.tooltip),
    } | ({"margin": "0"} if "error" in box.states else {})


def _painted(box: Box) -> str:
    """The state, or else the role, that gives a box its colour."""
    return next((state for state in PAINTED if state in box.states), box.role)


def _box_style(box: Box) -> Iterator[str]:
    yield "filled"
    if box.role not in ("op", "root") and "error" not in box.states:
        yield "rounded"
    if {"pending", "freed"} & set(box.states):
        yield "dashed"
    elif "view" in box.states:
        yield "dotted"


def _pen(box: Box) -> str:
    if {"current", "error"} & set(box.states):
        return "3"
    if box.role == "chip":
        return "0.75"
    return "2" if box.role == "parameter" or {"nan", "inplace"} & set(box.states) else "1"


def _ends(edge: Edge) -> tuple[str, str]:
    """From maker to user. A gradient runs backwards in the same direction, so that it is laid beside the data."""
    return (edge.target, edge.source) if edge.kind == "gradient" else (edge.source, edge.target)


def _edge_label(edge: Edge, theme: Theme) -> str:
    if edge.kind == "gradient":
        return table([f'<td width="40">{coloured(edge.label, theme.texts["grad"], SMALL)}</td>'])
    return table([f"<td>{coloured(edge.label, theme.texts['muted'], SMALL)}</td>"]) if edge.label else ""


def _edge_attributes(edge: Edge, theme: Theme) -> dict[str, str]:
    attributes: dict[str, str] = {"class": " ".join([f"edge-{edge.kind}", *(f"edge-{s}" for s in edge.states)])}
    attributes["tooltip"] = _tooltip(edge.label or " ")
    if edge.kind == "gradient":
        pending = {"style": "invis"} if "flowed" not in edge.states else {}
        pen = "3" if "now" in edge.states else "2"
        return attributes | {"color": theme.texts["grad"], "penwidth": pen, "dir": "back"} | pending
    attributes["color"] = theme.edge
    if edge.kind == "view":
        attributes |= {"style": "dotted", "penwidth": "1.5"}
    elif "pending" in edge.states:
        attributes["style"] = "dashed"
    if "cut" in edge.states:
        attributes["arrowhead"] = "onormal"
    if edge.slot < 0:
        attributes |= {"arrowhead": "none", "constraint": "false"}
    return attributes


def _tooltip(text: str) -> str:
    """Text for a tooltip, each line harmless; a backslash as an entity, because Graphviz interprets it twice."""
    lines = (escape(shown(line), quote=False).replace("\\", "&#92;") for line in text.split("\n"))
    return "\\n".join(lines)

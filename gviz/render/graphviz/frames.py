"""Open modules as frames around their boxes, one within another: clusters in the words of Graphviz."""

from __future__ import annotations

from gviz.render.graphviz.cards import SPLIT
from gviz.render.graphviz.graph import Digraph
from gviz.render.graphviz.labels import SMALL, coloured
from gviz.render.graphviz.manner import Manner
from gviz.render.scene import Box, Scene


def add_frames(graph: Digraph, scene: Scene, manner: Manner) -> None:
    """Put the boxes, which the graph has already, into the frames of the modules around them, if there are any."""
    if manner.placing is None or manner.placing.frames:
        _fill(graph, list(scene.boxes), 0, manner)


def _fill(graph: Digraph, boxes: list[Box], depth: int, manner: Manner) -> None:
    inner: dict[tuple[str, str], list[Box]] = {}
    for box in boxes:
        if len(box.within) > depth:
            inner.setdefault(box.within[depth], []).append(box)
        elif depth:
            graph.node(box.key)
            if manner.theme.form.card != "box" and box.op:
                graph.node(f"{box.key}{SPLIT}")
    for (key, title), held in inner.items():
        with graph.subgraph(name=f"cluster_{key}", graph_attr=_attributes(key, title, manner)) as frame:
            _fill(frame, held, depth + 1, manner)


def _attributes(key: str, title: str, manner: Manner) -> dict[str, str]:
    theme, placing = manner.theme, manner.placing
    place = placing.frames.get(f"cluster_{key}", {}) if placing else {}
    return {
        "id": f"{manner.prefix}-{key}",
        "class": "module",
        "label": f"<{coloured(title, theme.texts['muted'], SMALL)}>",
        "labelloc": "t",
        "labeljust": "l",
        "style": "rounded",
        "color": theme.edge,
        "penwidth": "0.75",
        "margin": "10",
        **place,
    }

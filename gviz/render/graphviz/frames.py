"""Open modules as frames around their boxes, one within another: clusters in the words of Graphviz."""

from __future__ import annotations

from gviz.render.graphviz.cards import SPLIT
from gviz.render.graphviz.graph import Digraph
from gviz.render.graphviz.labels import SMALL, coloured
from gviz.render.graphviz.placing import Placing
from gviz.render.scene import Box, Scene
from gviz.render.theme import Theme


def add_frames(graph: Digraph, scene: Scene, theme: Theme, prefix: str, placing: Placing | None) -> None:
    """Put the boxes, which the graph has already, into the frames of the modules around them, if there are any."""
    if placing is None or placing.frames:
        _fill(graph, list(scene.boxes), 0, (theme, prefix, placing))


def _fill(graph: Digraph, boxes: list[Box], depth: int, how: tuple[Theme, str, Placing | None]) -> None:
    inner: dict[tuple[str, str], list[Box]] = {}
    for box in boxes:
        if len(box.within) > depth:
            inner.setdefault(box.within[depth], []).append(box)
        elif depth:
            graph.node(box.key)
            if how[0].form.card != "box" and box.op:
                graph.node(f"{box.key}{SPLIT}")
    for (key, title), held in inner.items():
        with graph.subgraph(name=f"cluster_{key}", graph_attr=_attributes(key, title, *how)) as frame:
            _fill(frame, held, depth + 1, how)


def _attributes(key: str, title: str, theme: Theme, prefix: str, placing: Placing | None) -> dict[str, str]:
    place = placing.frames.get(f"cluster_{key}", {}) if placing else {}
    return {
        "id": f"{prefix}-{key}",
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

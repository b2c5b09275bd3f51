"""A scene drawn by Graphviz or, past what Graphviz can lay out in time, at the coordinates of our own layout."""

from __future__ import annotations

from dataclasses import dataclass

from gviz.errors import GvizError
from gviz.render import layout as own
from gviz.render.dot import digraph
from gviz.render.drawing import Picture, TooSlowError, draw
from gviz.render.scene import Scene
from gviz.render.theme import Theme

LAYOUT_BOXES = 1500
"""Up to here Graphviz is asked to lay out."""
PICTURE_BOXES = 10_000
"""Beyond this nobody can read a picture, and most viewers cannot open it."""

CELL = (7, 17)
"""Points per column and row of a layout in characters."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """A finished picture, and what its reader should know about how it was made (mostly nothing)."""

    data: bytes
    note: str = ""


def drawn(scene: Scene, theme: Theme, picture: Picture, *, prefix: str = "gviz", timeout: float = 20.0) -> Drawn:
    """The scene as a picture; past the budget of Graphviz with a simpler layout, and a note that says so."""
    count = len(scene.boxes)
    if count > PICTURE_BOXES:
        raise GvizError(
            f"a picture of {count:,} boxes cannot be read",
            hint="export to .txt or .dot, or a moment with a smaller graph",
        )
    if count > LAYOUT_BOXES:
        return Drawn(_simple(scene, theme, picture, prefix, timeout), f"{count:,} boxes: drawn with a simple layout")
    try:
        return Drawn(draw(digraph(scene, theme, prefix).source, picture, timeout=timeout))
    except TooSlowError:
        note = f"Graphviz needed more than {timeout:g} s: drawn with a simple layout"
        return Drawn(_simple(scene, theme, picture, prefix, timeout), note)


def _simple(scene: Scene, theme: Theme, picture: Picture, prefix: str, timeout: float) -> bytes:
    source = digraph(scene, theme, prefix, positions(scene)).source
    return draw(source, picture, program="nop2", timeout=3 * timeout)


def positions(scene: Scene) -> dict[str, str]:
    """The centre of every box in points, as DOT writes it, by our own layout from top to bottom."""
    boxes = [own.Box(box.key, box.width + 4, box.height + 1, box.role) for box in scene.boxes]
    edges = [own.Edge(edge.source, edge.target, edge.slot) for edge in scene.edges if edge.kind == "forward"]
    places = own.layout(boxes, edges).places
    x, y = CELL
    return {
        box.key: f"{(place.x + place.width / 2) * x:g},{-(place.y + place.height / 2) * y:g}"
        for box in scene.boxes
        for place in [places[box.key]]
    }

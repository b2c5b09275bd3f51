"""A scene drawn by Graphviz or, past what Graphviz can lay out in time, at the coordinates of our own layout."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gviz.errors import GvizError
from gviz.render.dot import digraph
from gviz.render.drawing import Picture, TooSlowError, draw
from gviz.render.placing import placing
from gviz.render.scene import Scene
from gviz.render.theme import Theme

LAYOUT_BOXES = 1500
"""Up to here Graphviz is asked to lay out."""
PICTURE_BOXES = 10_000
"""Beyond this nobody can read a picture, and most viewers cannot open it."""


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
    scene = replace(scene, edges=tuple(edge for edge in scene.edges if edge.kind != "gradient"))
    source = digraph(scene, theme, prefix, placing(scene)).source
    return draw(source, picture, program="nop2", timeout=3 * timeout)

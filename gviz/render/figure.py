"""Figures for papers and slides: their widths, the height of their text, and what they leave out.

A figure shows only the graph: no legend, caption, cursor, ``[+]``, or numbers of nodes. It names only the states that
matter in a paper (nan, failed, no gradient, cut). What the program makes later is left out; in a series of moments its
place stays empty. One line below the graph explains ``L`` and ``g`` if they occur. A figure has exactly the requested
width. The graph is laid out at its usual size and then scaled, so `most` and `least` are the heights of text in the
finished figure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from gviz.errors import refuse_unknown
from gviz.render.boxes.box_content import Box
from gviz.render.boxes.edge_content import Edge
from gviz.render.boxes.node_states import SHOWN
from gviz.render.legend import key
from gviz.render.scene import Scene
from gviz.render.theme import Card

FigureName = Literal["one-column", "two-columns", "16:9"]
FIGURE_NAMES: tuple[FigureName, ...] = get_args(FigureName)

TEXT = 11
"""The height of text before it is scaled, in points."""
SMALL_TEXT = 9
"""The height of the smallest text before it is scaled, in points."""


@dataclass(frozen=True, slots=True)
class Figure:
    """The size of a figure in points: its width, the greatest height, and the heights of text.

    A figure that `fills` its place has exactly this height, too.
    """

    width: float
    height: float
    least: float
    most: float
    fills: bool = False

    @property
    def page(self) -> tuple[float, float]:
        """Return the largest graph, at its usual size, whose text is not too small in the figure."""
        return self.width * TEXT / self.least, self.height * TEXT / self.least

    def scale(self, width: float, height: float) -> float:
        """Return the scale of a graph of this size: as large as fits, with text of at most the greatest height."""
        return min(self.width / width, self.height / height, self.most / TEXT)

    def viewport(self, width: float, height: float) -> str:
        """Return Graphviz's ``viewport`` of a graph of this size."""
        scale = self.scale(width, height)
        return f"{self.width:g},{self.height if self.fills else height * scale:.2f},{scale:.4f}"


FIGURES: Mapping[FigureName, Figure] = {
    "one-column": Figure(241, 600, 7, 9),
    "two-columns": Figure(496, 600, 7, 9),
    "16:9": Figure(960, 540, 12, 20, fills=True),
}
"""One column is 85 mm wide, two are 175 mm, as in most journals; a slide is 13.3 x 7.5 inches."""


def page_within(figure: FigureName) -> tuple[float, float] | None:
    """Return the page of the widest other figure that is no wider and no higher; None if there is none."""
    wide, high = FIGURES[figure].page
    pages = [one.page for name, one in FIGURES.items() if name != figure]
    return max((page for page in pages if page[0] <= wide and page[1] <= high), default=None)


LEAST_TEXT = 5.0
"""The height of text, in points, below which a figure is refused: in print it could not be read."""


def figure_named(figure: FigureName | bool) -> FigureName | None:
    """Return the kind of a figure; True is ``one-column``, False none. Raises `GvizError` for an unknown one."""
    name: FigureName | None = "one-column" if figure is True else figure or None
    if name is not None:
        refuse_unknown("figure", name, FIGURE_NAMES)
    return name


def figures_for(width: float, height: float) -> tuple[FigureName, ...]:
    """Return the kinds of figures in which the text of a graph of this size can be read."""
    return tuple(name for name, figure in FIGURES.items() if figure.scale(width, height) * TEXT >= LEAST_TEXT)


KEPT = {"error", "nan", "inf", "missing", "cut"}
"""The states that a figure names."""
PAINTED = KEPT | {"inplace", "view", "untracked", "backward"}
"""The states that a figure draws."""


def as_figure(scene: Scene, card: Card = "box", *, whole: bool = False) -> Scene:
    """Return the scene without everything that is only for the debugger, and without what is not made yet.

    Unless it must be `whole`, it leaves out untracked computation that is not connected to the gradients. As it has no
    legend, it gets a key of its letters.
    """
    scene = scene if whole else _without(scene, unconnected(scene))
    there = [box for box in scene.boxes if "pending" not in box.states] or scene.boxes
    keys = {box.key for box in there}
    edges = [edge for edge in scene.edges if edge.source in keys and edge.target in keys]
    present = replace(scene, boxes=tuple(there), edges=tuple(edge for edge in edges if not _is_future(edge)))
    return _plain(present, tuple(key(present, card)))


def as_figures(scenes: Sequence[Scene], card: Card = "box") -> list[Scene]:
    """Return the scenes of a series as figures of equal size, in which a box appears when it is made."""
    apart = unconnected(scenes[-1]) if scenes else frozenset()
    scenes = [_without(scene, apart) for scene in scenes]
    letters = tuple(dict.fromkeys(sign for scene in scenes for sign in key(scene, card)))
    return [_plain(replace(scene, hides_pending=True), letters) for scene in scenes]


SIDE_ROLES = {"constant", "op", "chip"}
"""The roles of boxes in computation that no gradient flows through, such as printed norms."""


def unconnected(scene: Scene) -> frozenset[str]:
    """Return the boxes of untracked computation that is not connected to any gradient; none without gradients."""
    gradients = {key for edge in scene.edges if edge.kind == "gradient" for key in (edge.source, edge.target)}
    neighbours: dict[str, list[str]] = {box.key: [] for box in scene.boxes}
    for edge in scene.edges:
        neighbours[edge.source].append(edge.target)
        neighbours[edge.target].append(edge.source)
    important = {box.key for box in scene.boxes if box.role not in SIDE_ROLES or KEPT & {*box.states}}
    reached = gradients | important
    waiting = [*reached]
    while waiting:
        more = {*neighbours[waiting.pop()]} - reached
        reached |= more
        waiting += more
    return frozenset(neighbours.keys() - reached) if gradients else frozenset()


def _without(scene: Scene, keys: frozenset[str]) -> Scene:
    if not keys:
        return scene
    edges = tuple(edge for edge in scene.edges if not {edge.source, edge.target} & keys)
    return replace(scene, boxes=tuple(box for box in scene.boxes if box.key not in keys), edges=edges)


def _is_future(edge: Edge) -> bool:
    """Return whether no data has gone along a line yet. The lines of gradients keep their room."""
    return edge.kind != "gradient" and "pending" in edge.states


def _plain(scene: Scene, letters: tuple[str, ...]) -> Scene:
    return replace(
        scene,
        boxes=tuple(map(_box, scene.boxes)),
        edges=tuple(map(_edge, scene.edges)),
        caption="",
        code="",
        remark="",
        key=letters,
    )


def _box(box: Box) -> Box:
    states = tuple(state for state in box.states if state in PAINTED or state == "pending")
    words = {shown.word.split()[0] for shown in SHOWN if shown.state in KEPT}
    status = box.status if {*box.status.split()[:1]} & words else ""
    return replace(box, states=states, status=status, tooltip="")


def _edge(edge: Edge) -> Edge:
    return replace(edge, states=tuple(state for state in edge.states if state != "now"))

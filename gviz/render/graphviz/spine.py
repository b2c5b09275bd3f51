"""The straight lines of a diagram, and the residual stream as one column."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from gviz.render.boxes.box_content import Box
from gviz.render.scene import Scene

OPS = ("op", "root", "module")
"""The roles of boxes that compute."""

STRAIGHT = "8"
"""The weight of lines between operations. It makes long chains straight and moves leaves to the side."""

FEWEST_RESIDUALS = 2
"""The fewest residual connections of a stream. A graph with only one needs no column."""
MOST_SEARCHED = 400
"""The most boxes of a picture in which residual connections are searched."""


@dataclass(frozen=True, slots=True)
class Spine:
    """The straight lines of a graph by their numbers, and the boxes of its residual stream."""

    lines: frozenset[int]
    stream: frozenset[str]

    def weight(self, number: int) -> str:
        """Return the weight of a line."""
        return STRAIGHT if number in self.lines else "1"

    def box(self, key: str) -> dict[str, str]:
        """Return the attributes of a box. Graphviz draws the lines within a group straight."""
        return {"group": "stream"} if key in self.stream else {}

    @property
    def graph(self) -> dict[str, str]:
        """Return the attributes of the graph. The usual ranks would put a branch in a frame above its origin."""
        return {"newrank": "true"} if self.stream else {}


def spine(scene: Scene) -> Spine:
    """Return the straight lines: for each operation, its input at the end of the longest chain.

    All other boxes are at the side of the chain, which would not stay straight with several straight lines into a box.
    A residual connection is straight instead of the chain that it skips. So the residual stream of a ResNet or a
    transformer is one column, and what is added to it is at the side:

        x = add
        |  `-- norm -- mlp
        |  .-----------'
        x = add
    """
    computing = {box.key for box in scene.boxes if box.role in OPS}
    into: dict[str, list[tuple[int, str]]] = {}
    for number, edge in enumerate(scene.edges):
        if edge.kind in ("forward", "view") and edge.slot >= 0 and edge.source in computing:
            into.setdefault(edge.target, []).append((number, edge.source))
    depths: dict[str, int] = {}
    straight: set[int] = set()
    for box in scene.boxes:
        if lines := into.get(box.key):
            number, source = max(lines, key=lambda line: depths.get(line[1], 0))
            depths[box.key] = depths.get(source, 0) + 1
            straight.add(number)
    stream: set[str] = set()
    residuals = [*residual_lines(scene, into)]
    for number, sides in residuals if len(residuals) >= FEWEST_RESIDUALS else ():
        straight.difference_update(sides)
        straight.add(number)
        stream |= {scene.edges[number].source, scene.edges[number].target}
    return Spine(frozenset(straight), frozenset(stream))


def residual_lines(
    scene: Scene, into: Mapping[str, Sequence[tuple[int, str]]]
) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield the line of each residual connection, with the lines that leave the stream there and come back to it.

    At a residual connection, a sum adds a box to what was computed from the same box.
    """
    if len(scene.boxes) > MOST_SEARCHED:
        return
    places = {box.key: 1 << at for at, box in enumerate(scene.boxes)}
    origins = dict(places)
    for box in scene.boxes:
        for _, source in into.get(box.key, ()):
            origins[box.key] |= origins[source]
    for box in scene.boxes:
        lines = into.get(box.key, ())
        if not is_sum(box) or len(lines) != 2:
            continue
        for (number, kept), (back, added) in (lines, lines[::-1]):
            if kept == added or not origins[added] & places[kept]:
                continue
            branch = [one.key for one in scene.boxes if origins[added] & places[one.key] and one.key != kept]
            leaving = (line for inner in branch for line, source in into.get(inner, ()) if source == kept)
            yield number, (back, *leaving)


def is_sum(box: Box) -> bool:
    """Return whether a box adds two tensors: ``x = add #4``, ``add``, ``add_ #7``."""
    word = box.title.rpartition("= ")[2].partition(" ")[0]
    return word.lower() in ("add", "add_", "iadd")

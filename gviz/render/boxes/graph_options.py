"""What of a graph is drawn, and how much each box says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from gviz.render.boxes.fold import ALL, Filter
from gviz.render.boxes.tensors import grid_shape
from gviz.values.value_text import SOME

Density = Literal["min", "brief", "short", "full"]
"""The name alone; also state, value and gradient, in one line or in a row each; also dtype, saved tensors, local
derivatives and the source line."""

Content = Literal["all", "program", "followed"]
"""Every node; without what an optimizer computes to step, where parameters just change their values; only what autograd
follows, what goes into that, and where it was cut."""

Tensors = Literal["line", "grid", "heat", "histogram"]
"""A tensor in one line; a small one as a grid of numbers; with a thumbnail of its values below the line."""

Level = Literal["auto", "modules", "calls", "nodes"]
"""What has a box: every child module of a model; every call that the program made; every node; or as many as fit."""

Titles = Literal["both", "name", "backward"]
"""What stands above a box: name and operation; the name alone; the operation as PyTorch calls its backward node."""

DENSITIES: tuple[Density, ...] = ("min", "short", "full")
"""Those of pictures; a line for all of a box is for the panels of a terminal."""
TENSORS: tuple[Tensors, ...] = get_args(Tensors)
LEVELS: tuple[Level, ...] = get_args(Level)


@dataclass(frozen=True, slots=True)
class Options:
    """What of an iteration is drawn. A leaf used more than once is split into one chip per use in graphs above
    `split_above` nodes: one box with many lines is what makes large pictures unreadable, and slow. The tensors
    kept for backward are boxes of their own only with `saved`. `wanted` closes modules or asks for a part, `also` is a
    node that is drawn whatever the `content`; with `clusters` each open module has a frame around it. `decimals` writes
    every scalar with so many digits after the point. Without a `tensors` form, those with some elements are grids, in
    full labels larger ones too. `flow` is where data flows if nobody asks, a `compact` picture has little room between
    boxes, and `remark` says what was collapsed. `marks` paints what has no gradient after a pass, and where the graph
    is cut.
    """

    split_above: int = 12
    content: Content = "program"
    also: int = 0
    density: Density = "short"
    tensors: Tensors | None = None
    saved: bool = False
    wanted: Filter = ALL
    clusters: bool = False
    decimals: int | None = None
    titles: Titles = "both"
    attr_chars: int = 0
    flow: Literal["auto", "LR", "TB"] = "auto"
    compact: bool = False
    marks: bool = False
    remark: str = ""

    @property
    def form(self) -> Tensors:
        """How tensors are shown."""
        return self.tensors or "grid"

    def grid(self, shape: tuple[int, ...]) -> tuple[int, int] | None:
        """Rows and columns of the numbers that are shown of a tensor; None if a line tells of it."""
        found = grid_shape(shape) if self.form == "grid" else None
        asked = self.tensors is not None or self.density == "full"
        return found if found and (asked or found[0] * found[1] <= SOME) else None

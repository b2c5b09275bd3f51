"""Options of the graph that is drawn, and of the text in each box."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from gviz.explain.display_names import MAX_TITLE
from gviz.explain.module_costs import CostKind
from gviz.render.boxes.folding import ALL, Filter
from gviz.render.boxes.tensor_pictures import grid_shape
from gviz.values.value_text import SOME

Density = Literal["min", "brief", "short", "full"]
"""The text in a box.

- min: only the name.
- brief, short: also state, value and gradient, in one line or in a row each.
- full: also dtype, saved tensors, local derivatives and the source line.
"""

Content = Literal["all", "program", "followed"]
"""The nodes that are drawn.

- all: every node.
- program: without the arithmetic of optimizer steps; parameters only change their values there.
- followed: only the nodes that autograd tracks, their inputs, and the places where the graph is cut.
"""

Tensors = Literal["line", "grid", "heat", "histogram"]
"""The form of a tensor.

- line: one line.
- grid: a small tensor as a grid of numbers.
- heat, histogram: a thumbnail of the values below the line.
"""

Level = Literal["auto", "modules", "calls", "nodes"]
"""The boxes.

- auto: as many as fit.
- modules: one for every child module of a model.
- calls: one for every function call of the program.
- nodes: one for every node.
"""

Titles = Literal["both", "name", "backward"]
"""The title of a box: name and operation, only the name, or PyTorch's name of the backward node."""

DENSITIES: tuple[Density, ...] = ("min", "short", "full")
"""The densities of pictures. The density "brief" is for panels of the terminal."""
TENSORS: tuple[Tensors, ...] = get_args(Tensors)
LEVELS: tuple[Level, ...] = get_args(Level)


ALL_FRAMES = 1000
"""More than the depth of any nested modules."""


@dataclass(frozen=True, slots=True)
class Options:
    """What is drawn of an iteration, and how.

    * `split_above`: in graphs with more nodes, a leaf that is used more than once is split into one chip per use. One
      box with many lines makes large pictures slow and unreadable.
    * `graph_filter` collapses modules or selects a part; `also` is a node that is drawn whatever the `content`.
    * `tensors`: the form of tensors. If None, tensors with a few elements are grids, in full labels also larger ones.
    * `saved`: tensors that are saved for backward have boxes of their own.
    * `clusters`: each expanded module has a frame around it; of frames within one another only the outer `frames`.
    * `decimals`: the digits after the decimal point of every scalar.
    * `flow`: the direction of the data, unless the user chooses one.
    * `compact`: the picture has little room between boxes.
    * `stacks`: a brief box has the gradient below the value, without labels, and so is narrow.
    * `lists_elements`: a brief box has room for each element of a small tensor and of its gradient.
    * `bars`: where boxes have only names, one of equal parts has the bars of their gradients below its name.
    * `norms`: a box with only a name has its gradient next to it, at the end of the line.
    * `marks`: leaves without a gradient after a pass, and places where the graph is cut, are painted.
    * `remark`: says what was collapsed.
    * `unrecorded`: an operation without known values is its name and its state.
    * `overlay`: each box shows what it costs, in a row of its own: memory that is saved for backward, or time.
    * `passes`: operations that a backward pass computed for itself are drawn.
    * `readings`: operations that only read gradients after the passes, such as norms that are printed, are drawn.
    * `before_pass`: it is a figure of a moment before any pass of its iteration, and has no place for gradients.
    * `longest_name`: the most characters of a name in a title, unless two names would be equal then.
    * `numbered`: titles contain the numbers of nodes, and ``[+]`` for a collapsed module.
    """

    split_above: int = 12
    content: Content = "program"
    also: int = 0
    density: Density = "short"
    tensors: Tensors | None = None
    saved: bool = False
    graph_filter: Filter = ALL
    clusters: bool = False
    frames: int = ALL_FRAMES
    decimals: int | None = None
    titles: Titles = "both"
    attr_chars: int = 0
    flow: Literal["auto", "LR", "TB"] = "auto"
    compact: bool = False
    lists_elements: bool = False
    stacks: bool = False
    bars: bool = False
    norms: bool = False
    marks: bool = False
    remark: str = ""
    numbered: bool = True
    unrecorded: bool = False
    overlay: CostKind | None = None
    passes: bool = True
    readings: bool = True
    before_pass: bool = False
    longest_name: int = MAX_TITLE

    @property
    def adds_gradients(self) -> bool:
        """Return whether boxes have only names, with gradients next to them."""
        return self.norms and self.density == "min"

    @property
    def form(self) -> Tensors:
        """Return the form of tensors."""
        return self.tensors or "grid"

    def grid(self, shape: tuple[int, ...]) -> tuple[int, int] | None:
        """Return the rows and columns of the grid of a tensor; None if the tensor is shown in one line."""
        size = grid_shape(shape) if self.form == "grid" else None
        any_size = self.tensors is not None or self.density == "full"
        return size if size and (any_size or size[0] * size[1] <= SOME) else None

"""The note below a picture, in one line: what is collapsed, what its boxes leave out, and the options that show more.

    400 nodes in 25 boxes: modules collapsed; layers.1–3 ×3 is one box (of 4 equal parts). More: --level calls

A note has three sorts of words. `CollapsedParts` reports what is collapsed, and names an option only if it shows more
than this picture and was not used already. `LESS_TEXT` and the words below it report that boxes have less text, or
modules no frames, because they would not fit. `folded_into` reports the columns of a figure. A figure names no options:
with more, its text would be small or refused.

The files that choose these things write their notes with these words: `gviz.render.detail_that_fits`,
`gviz.render.graphviz.figure_detail` and `gviz.render.graphviz.column_choice`. What is written to standard error only is
next to the choice that it reports.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gviz.render.boxes.collapse_choice import GraphView, GraphViews
from gviz.render.boxes.graph_options import Density, Level
from gviz.render.option_words import option
from gviz.trace.graph_state import OPTIMIZER

DATA_COLLAPSED = "operations on data collapsed"
MORE, OR = ". More: ", " or "
"""Separates what a picture hides from the options that show more; separates the options: a comma would be copied."""


def summary(view: GraphView, nodes: int, less: str = "") -> str:
    """Return ``400 nodes in 25 boxes: modules collapsed; layers.1–3 ×3 is one box (of 4 equal parts)``.

    `less` is what else is left out. Constants have boxes, too, so that there may be no fewer boxes than nodes.
    """
    parts = ["modules collapsed"] if view.graph_filter.closed - {OPTIMIZER} else []
    parts += dict.fromkeys(view.repeats)
    parts = parts or (["one box for each call in the program"] if view.graph_filter.calls else [])
    counted = f"{nodes:,} nodes in {view.boxes:,} boxes: " if view.boxes < nodes else ""
    return f"{counted}{'; '.join([*parts, *([less] if less else [])])}"


def expand_option(name: str) -> str:
    """Return the option that expands something with this name, to paste."""
    return option("expand", name)


@dataclass(frozen=True, slots=True)
class CollapsedParts:
    """What the views of a graph collapse. It has `nodes` nodes; the user requested the level and the depth.

    The note `suggests` options unless the picture is a figure.
    """

    views: GraphViews
    nodes: int
    level: Level
    depth: int | None
    suggests: bool = True

    def note(self, view: GraphView, less: str = "") -> str:
        """Return the note for a view; empty if each box is a single node. `less` is what else it leaves out."""
        data = DATA_COLLAPSED if view.data else ""
        if not (view.is_partial or less or data):
            return ""
        if not (view.is_partial or data):
            return f"{less}{MORE}{option('labels', 'short')}" if self.suggests else less
        what = summary(view, self.nodes, "; ".join(filter(None, (data, less))))
        more = OR.join(self._options(view)) if self.suggests else ""
        return f"{what}{MORE}{more}" if more else what

    def _options(self, view: GraphView) -> Iterator[str]:
        """Yield unused options that would show more than a view. A requested depth still applies at any level."""
        by_depth = view.hides_modules and self.depth is not None and bool(view.graph_filter.closed)
        if view.hint:
            yield expand_option(view.hint)
        if view.data:
            yield expand_option(view.data[0])
        if by_depth:
            yield from self._depth(view)
        if self.level != "calls" and (view.repeats or (view.graph_filter.closed and not by_depth)):
            yield option("level", "calls")
        if view.hides_calls or not by_depth:
            yield option("level", "nodes")

    def _depth(self, view: GraphView) -> Iterator[str]:
        """Yield the option for the smallest depth that shows more boxes than a view, if there is one."""
        for depth in range((self.depth or 0) + 1, self.views.deepest + 1):
            if self.views.below(view, depth).boxes > view.boxes:
                yield option("depth", depth)
                return


# ----------------------------------------------------------------------------------------------------------------------
# Boxes with less text, modules without frames, and columns.

NAMES_ONLY, NAMES_AND_GRADIENTS = "boxes show names only", "boxes show names and gradients"
LESS_TEXT: Mapping[Density, str] = {"brief": "each box shows one line", "min": NAMES_ONLY}
NORMS, NUMBERS = "boxes show the norms of gradients", "boxes show numbers without labels"
NO_FRAMES = "No frames around modules: they would not fit"
OUTER_FRAMES = "Inner modules have no frames: they would not fit"


def folded_into(columns: int, why: str) -> str:
    """Return the note about a figure in columns."""
    return f"folded into {columns} columns, without frames: {why}"


def with_gradients(note: str) -> str:
    """Return a note for boxes with names only, whose gradients are now next to the names."""
    return note.replace(NAMES_ONLY, NAMES_AND_GRADIENTS)


def without_less(remark: str, density: Density) -> list[str]:
    """Return a remark about a graph, as a list, with the text that its boxes show in columns."""
    for less in (NAMES_ONLY, NAMES_AND_GRADIENTS, *LESS_TEXT.values()):
        remark = remark.replace(f"; {less}", "").replace(less, "")
    remark = remark.partition(". ")[0]  # about frames
    less = LESS_TEXT[density] if density == "brief" else ""
    return ["; ".join(filter(None, (remark, less)))] if remark or less else []

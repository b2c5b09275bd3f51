"""The drawings of a recording's graphs, made on demand: of an iteration, or of a part of it."""

from __future__ import annotations

from dataclasses import dataclass

from gviz.render.boxes.drawn_nodes import PART, Parts
from gviz.render.boxes.folding import Filter
from gviz.render.boxes.graph_options import Density, Options
from gviz.render.boxes.graph_structure import Form, form, structure
from gviz.render.cells.viewport import Moments
from gviz.render.layout import DEFAULT_WIDTH
from gviz.trace.graph_state import Iteration
from gviz.trace.timeline import Timeline
from gviz.tui.glyphs import Glyphs
from gviz.tui.graph_view import Folds

KEPT = 4

DATA_COLLAPSED = "data collapsed"
"""What the title of the graph says if operations on data are in boxes."""


@dataclass(frozen=True, slots=True)
class DrawingKey:
    """The key of a drawing: iteration, part, filter, amount of text in the boxes, and columns.

    With `compared`, boxes have room for the numbers of a what-if next to the recorded ones, where the columns allow it.
    """

    iteration: int
    part: int
    graph_filter: Filter
    density: Density
    max_width: int
    compared: bool = False


class Drawings:
    """Makes drawings and caches the last few."""

    def __init__(self, timeline: Timeline, folds: Folds, glyphs: Glyphs) -> None:
        self._timeline = timeline
        self._folds = folds
        self._glyphs = glyphs
        self._kept: dict[DrawingKey, Moments] = {}
        self._parts: dict[tuple[int, Filter], Parts] = {}
        self._forms: dict[int, Form] = {}
        self._length = len(timeline)

    def shown(
        self,
        n: int,
        node: int,
        density: Density = "short",
        max_width: int = DEFAULT_WIDTH,
        *,
        compared: bool = False,
    ) -> DrawingKey:
        """Return the key of the drawing of a moment that contains a node (without a node, of the first part)."""
        if len(self._timeline) != self._length:
            self._grow()
        iteration = self._timeline.iteration_at(n)
        graph_filter = self._folds.graph_filter(iteration)
        part = self._of(iteration, graph_filter).holding(node) if node else 0
        return DrawingKey(iteration.index, part, graph_filter, density, max_width, compared)

    def _grow(self) -> None:
        """Forget the drawings of iterations that have other boxes or lines now, because the recording has grown."""
        self._length, iterations = len(self._timeline), self._timeline.iterations
        stale = {
            at
            for at, known in self._forms.items()
            if at >= len(iterations) or form(self._timeline, iterations[at]) != known
        }
        self._forms = {at: known for at, known in self._forms.items() if at not in stale}
        self._parts = {key: parts for key, parts in self._parts.items() if key[0] not in stale}
        self._kept = {shown: kept for shown, kept in self._kept.items() if shown.iteration not in stale}

    def parts(self, shown: DrawingKey) -> Parts:
        """Return all boxes of the iteration, divided into parts."""
        return self._of(self._timeline.iterations[shown.iteration], shown.graph_filter)

    def get(self, shown: DrawingKey) -> Moments:
        """Return the drawing with a key."""
        drawing = self._kept.get(shown)
        if drawing is None:
            if len(self._kept) >= KEPT:
                self._kept.pop(next(iter(self._kept)))
            parts = self.parts(shown)
            nodes = parts.part(shown.part) if len(parts) > 1 else None
            iteration = self._timeline.iterations[shown.iteration]
            options = Options(graph_filter=shown.graph_filter, content="all", tensors="line", density=shown.density)
            shape = structure(self._timeline, iteration, options, part=nodes)
            drawing = self._kept[shown] = Moments(
                self._timeline,
                shape,
                self._glyphs.text,
                ascii=self._glyphs.ascii,
                max_width=shown.max_width,
                compared=shown.compared,
            )
        return drawing

    def title(self, shown: DrawingKey) -> str:
        """Return what a drawing shows, if that is not the whole graph.

        What an automatic view has collapsed is the text of `collapsed_text`.
        """
        parts, limit = len(self.parts(shown)), self._folds.shown_part()
        groups = [place.group for place in self.get(shown).shape.places if place.group is not None]
        closed = sum(group.preparation is None for group in groups)
        is_leveled = shown.graph_filter.calls
        is_automatic = is_leveled and bool(self.collapsed_text(shown))
        words = [
            self._folds.level if is_leveled and not is_automatic else "",
            f"part {shown.part + 1} of {parts}" if parts > 1 else "",
            limit,
            DATA_COLLAPSED if closed < len(groups) and not is_automatic else "",
            f"{closed} collapsed call{'' if closed == 1 else 's'}" if closed and not is_leveled else "",
        ]
        return ", ".join(filter(None, words))

    def collapsed_text(self, shown: DrawingKey) -> tuple[str, ...]:
        """Return what an automatic view has collapsed in a drawing, in many words and in few."""
        return self._folds.collapsed_text(self._timeline.iterations[shown.iteration])

    def _of(self, iteration: Iteration, graph_filter: Filter) -> Parts:
        key = iteration.index, graph_filter
        if key not in self._parts:
            self._parts[key] = Parts(self._boxes(iteration))
            self._forms[iteration.index] = form(self._timeline, iteration)
        return self._parts[key]

    def _boxes(self, iteration: Iteration) -> tuple[int, ...]:
        """Return a node for each box, in order of creation; all nodes of a graph that stays too large."""
        if not self._folds.hides(iteration):
            return self._timeline.nodes.of(iteration)
        folded = self._folds.folded(iteration)
        boxes = tuple(sorted((*folded.shown, *(group.inner[-1] for group in folded.groups))))
        return boxes if len(boxes) <= PART else self._timeline.nodes.of(iteration)

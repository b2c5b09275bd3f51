"""The arguments of `gviz.export`, one object per concern: look, part of the graph, moments, manner of writing.

They hold the values a program has passed and return them checked. Raises GvizError for invalid ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from gviz import argument_checks
from gviz.api.moment_argument import moment_of
from gviz.errors import GvizError, refuse_unknown
from gviz.explain.module_costs import COST_KINDS, CostKind
from gviz.query.moments import begin_of
from gviz.query.nodes import NamedNodes, node_at
from gviz.query_syntax import place as places
from gviz.query_syntax.moment import is_stretch
from gviz.render.boxes.drawn_nodes import shown_nodes
from gviz.render.boxes.folding import fitting_calls, graph_of
from gviz.render.boxes.graph_options import DENSITIES, LEVELS, TENSORS, Density, Level, Options, Tensors
from gviz.render.figure import FigureName, figure_named
from gviz.render.picture_request import ExportOptions, Part
from gviz.render.theme import Direction
from gviz.trace.graph_state import NodeInfo
from gviz.trace.timeline import Timeline

Shade = Literal["auto", "light", "dark"]


@dataclass(frozen=True, slots=True)
class Look:
    """How a picture looks: style and colours, texts in boxes, direction of data, size, legend."""

    style: str
    theme: Shade
    labels: Density | None
    tensors: Tensors | None
    saved: bool
    direction: Direction
    scale: float | None
    legend: bool
    figure: FigureName | bool = False
    overlay: CostKind | None = None

    def options(self) -> ExportOptions:
        """Return all of it in the form an exporter expects."""
        refuse_unknown("direction", self.direction, get_args(Direction))
        if self.labels is not None:
            refuse_unknown("labels", self.labels, DENSITIES)
        if self.tensors is not None:
            refuse_unknown("tensors", self.tensors, TENSORS)
        if self.overlay is not None:
            refuse_unknown("overlay", self.overlay, COST_KINDS)
        figure = figure_named(self.figure)
        density = self.labels or "short"
        drawing = Options(density=density, tensors=self.tensors, saved=self.saved, clusters=True, marks=True)
        return ExportOptions(
            theme=self.theme,
            style=argument_checks.text("style", self.style),
            direction=self.direction,
            scale=None if self.scale is None else argument_checks.above_0("scale", self.scale, "2 is twice as large"),
            legend=argument_checks.flag("legend", self.legend),
            figure=figure,
            drawing=replace(drawing, overlay=self.overlay),
            keeps_labels=self.labels is not None,
        )


@dataclass(frozen=True, slots=True)
class Region:
    """Which part of a graph: modules that are closed, what is around a node, modules alone, at which level."""

    modules: str | Sequence[str]
    depth: int | None
    node: str | int
    ancestors: bool
    radius: int
    only: str | Sequence[str]
    level: Level = "auto"
    expand: str | Sequence[str] = ()

    def part(self) -> Part:
        """Return everything except the node, which has no number yet."""
        closed, shown = argument_checks.texts("modules", self.modules), argument_checks.texts("only", self.only)
        deepest = None if self.depth is None else argument_checks.whole("depth", self.depth)
        refuse_unknown("level", self.level, LEVELS)
        opened = argument_checks.texts("expand", self.expand)
        radius = argument_checks.whole("radius", self.radius)
        return Part(closed, deepest, 0, self.ancestors, radius, shown, self.level, opened)

    def place(self) -> str:
        """Return the node as text; empty if none was given."""
        return argument_checks.place("node", self.node)


@dataclass(frozen=True, slots=True)
class MomentOptions:
    """The moment, and the range of moments."""

    at: int | str | None
    moments: str


@dataclass(frozen=True, slots=True)
class Manner:
    """Whether files are overwritten, the seconds Graphviz may take, and the callbacks for compromises and progress."""

    force: bool
    timeout: float
    note: Callable[[str], None] | None
    progress: Callable[[float], object] | None

    def checked(self, options: ExportOptions) -> ExportOptions:
        """Return the options with everything here that concerns an exporter."""
        return replace(
            options,
            timeout=argument_checks.at_least_0("timeout", self.timeout),
            note=self.note or options.note,
            progress=self.progress or options.progress,
        )


def part_around(timeline: Timeline, n: int, part: Part, node: str) -> Part:
    """Return the part around a node. If the text matches no node but a module, returns everything in that module."""
    around = part.ancestors or part.radius
    if not node and around:
        raise GvizError("ancestors and radius need a node", exit_code=2)
    if not node:
        return part
    infos = _in_picture(timeline, n)
    named = around or any(info.name == node for info in infos)
    if not named and fitting_calls(graph_of(timeline, infos), [node], matches_parent=True):
        return replace(part, only=(*part.only, node))
    return replace(part, node=_node_of(timeline, node, n), radius=part.radius or int(not part.ancestors))


def span(timeline: Timeline, text: str, note: Callable[[str], None]) -> tuple[int, ...]:
    """Parse ``FIRST..LAST``, or a pass or iteration, into its moments; empty for an empty text."""
    if not text:
        return ()
    first, dots, last = text.partition("..")
    if not dots and is_stretch(text):
        last = text
    elif not dots:
        raise GvizError(
            f"{text!r} is no range of moments", hint="write FIRST..LAST, as in 12..40, or backward", exit_code=2
        )
    end = moment_of(timeline, last or "end", note)
    start = begin_of(timeline, first, end) if is_stretch(first) else moment_of(timeline, first or "start", note)
    if start > end:
        raise GvizError(f"event {start} comes after event {end}", hint="write FIRST..LAST, as in 12..40", exit_code=2)
    return tuple(range(start, end + 1))


def _node_of(timeline: Timeline, place: str | int, n: int) -> int:
    """Return the node that a place refers to in the graph of a moment; of several, the last one."""
    # raises an error with a hint if nothing matches
    node = node_at(NamedNodes(timeline), str(place), n, timeline.at(n).actor)
    infos = _in_picture(timeline, n)
    if any(info.node == node for info in infos):
        return node
    parsed = places.place(str(place))
    return next((info.node for info in reversed(infos) if parsed.fits(info)), node)


def _in_picture(timeline: Timeline, n: int) -> Sequence[NodeInfo]:
    """Return the nodes in the picture of a moment, in order of creation."""
    return [*shown_nodes(timeline, timeline.iteration_at(n), content="program")[0].values()]

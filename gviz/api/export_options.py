"""What is asked of `gviz.export`, one object for each concern: how it looks, which part, which moments, in what manner.

They hold what a program has given, and answer it checked: GvizError for what makes no sense.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from gviz import argument_checks
from gviz.api.moment_argument import moment_of
from gviz.errors import GvizError, refuse_unknown
from gviz.query.moment_lookup import begin_of, is_stretch
from gviz.query.name_lookup import NamedNodes
from gviz.query.node_lookup import node_at
from gviz.render.boxes.fold import fitting_calls, graph_of
from gviz.render.boxes.graph_options import DENSITIES, TENSORS, Density, Options, Tensors
from gviz.render.boxes.selection import shown_nodes
from gviz.render.request import ExportOptions, Part
from gviz.render.theme import Direction
from gviz.trace.graph_state import NodeInfo
from gviz.trace.timeline import Timeline
from gviz.where import place as places

Shade = Literal["auto", "light", "dark"]


@dataclass(frozen=True, slots=True)
class Look:
    """How a picture looks: its style and colours, what boxes say, where the data flows, how large, with a legend."""

    style: str
    theme: Shade
    labels: Density
    tensors: Tensors | None
    saved: bool
    direction: Direction
    scale: float | None
    legend: bool

    def options(self) -> ExportOptions:
        """All of it, as an exporter takes it."""
        refuse_unknown("direction", self.direction, get_args(Direction))
        refuse_unknown("labels", self.labels, DENSITIES)
        if self.tensors is not None:
            refuse_unknown("tensors", self.tensors, TENSORS)
        return ExportOptions(
            theme=self.theme,
            style=argument_checks.text("style", self.style),
            direction=self.direction,
            scale=None if self.scale is None else argument_checks.above_0("scale", self.scale, "2 is twice as large"),
            legend=argument_checks.flag("legend", self.legend),
            drawing=Options(density=self.labels, tensors=self.tensors, saved=self.saved, clusters=True),
        )


@dataclass(frozen=True, slots=True)
class Region:
    """Which part of a graph: modules that are closed, what is around a node, modules alone."""

    modules: str | Sequence[str]
    depth: int | None
    node: str | int
    ancestors: bool
    radius: int
    only: str | Sequence[str]

    def part(self) -> Part:
        """All of it but the node, which has no number yet."""
        closed, shown = argument_checks.texts("modules", self.modules), argument_checks.texts("only", self.only)
        deepest = None if self.depth is None else argument_checks.whole("depth", self.depth)
        return Part(closed, deepest, 0, self.ancestors, argument_checks.whole("radius", self.radius), shown)

    def place(self) -> str:
        """The node in words; empty for none."""
        return argument_checks.place("node", self.node)


@dataclass(frozen=True, slots=True)
class When:
    """Which moment, and which stretch of them."""

    at: int | str | None
    moments: str


@dataclass(frozen=True, slots=True)
class Manner:
    """Whether files are written over, the seconds that Graphviz has, and who hears of compromises and progress."""

    force: bool
    timeout: float
    note: Callable[[str], None] | None
    progress: Callable[[float], object] | None

    def checked(self, options: ExportOptions) -> ExportOptions:
        """The options with all of this that concerns an exporter."""
        return replace(
            options,
            timeout=argument_checks.at_least_0("timeout", self.timeout),
            note=self.note or options.note,
            progress=self.progress or options.progress,
        )


def part_around(timeline: Timeline, n: int, part: Part, node: str) -> Part:
    """The part around a node; what names no node but a module means all that is in the module."""
    around = part.ancestors or part.radius
    if not node and around:
        raise GvizError("ancestors and radius need a node", exit_code=2)
    if not node:
        return part
    infos = _in_picture(timeline, n)
    named = around or any(info.name == node for info in infos)
    if not named and fitting_calls(graph_of(timeline, infos), [node], within=True):
        return replace(part, only=(*part.only, node))
    return replace(part, node=_node_of(timeline, node, n), radius=part.radius or int(not part.ancestors))


def span(timeline: Timeline, text: str) -> tuple[int, ...]:
    """The moments of ``FIRST..LAST``, or of one pass or iteration, from where it begins; none for an empty text."""
    if not text:
        return ()
    first, dots, last = text.partition("..")
    if not dots and is_stretch(text):
        last = text
    elif not dots:
        raise GvizError(
            f"{text!r} is no range of moments", hint="write FIRST..LAST, as in 12..40, or backward", exit_code=2
        )
    end = moment_of(timeline, last or "end")
    start = begin_of(timeline, first, end) if is_stretch(first) else moment_of(timeline, first or "start")
    if start > end:
        raise GvizError(f"event {start} comes after event {end}", hint="write FIRST..LAST, as in 12..40", exit_code=2)
    return tuple(range(start, end + 1))


def _node_of(timeline: Timeline, place: str | int, n: int) -> int:
    """The node that a place means in the graph of a moment; of several the last."""
    node = node_at(NamedNodes(timeline), str(place), n, timeline.at(n).actor)  # says what there is if nothing fits
    infos = _in_picture(timeline, n)
    if any(info.node == node for info in infos):
        return node
    wanted = places.place(str(place))
    return next((info.node for info in reversed(infos) if wanted.fits(info)), node)


def _in_picture(timeline: Timeline, n: int) -> Sequence[NodeInfo]:
    """The nodes in the picture of a moment, in order of creation."""
    return [*shown_nodes(timeline, timeline.iteration_at(n), content="program")[0].values()]

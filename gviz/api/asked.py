"""What is asked of `gviz.export`, one object for each concern: how it looks, which part, which moments, in what manner.

They hold what a program has given, and answer it checked: GvizError for what makes no sense.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from gviz import argument_checks
from gviz.errors import refuse_unknown
from gviz.render.boxes.options import DENSITIES, TENSORS, Density, Options, Tensors
from gviz.render.request import ExportOptions, Part
from gviz.render.theme import Direction

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

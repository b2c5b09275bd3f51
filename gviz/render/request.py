"""What is asked of an exporter: which moment of which graph, in which style, within which time."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field

from gviz import events as e
from gviz.errors import GvizError
from gviz.render.options import Options
from gviz.render.scene import Scene, scene
from gviz.render.structure import Structure, structure
from gviz.render.styles import PictureStyle, style_named
from gviz.render.theme import Direction, Theme
from gviz.trace.timeline import Timeline


def _print_note(note: str) -> None:
    print(f"gviz: note: {note}", file=sys.stderr)


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """How a picture is made: its theme, style and direction, the seconds Graphviz has, what is drawn, which moments a
    moving picture shows (none: all of the pass), and who hears of compromises."""

    theme: str = "auto"
    timeout: float = 20.0
    drawing: Options = field(default_factory=Options)
    note: Callable[[str], None] = _print_note
    style: str = "gviz"
    direction: Direction = "auto"
    moments: tuple[int, ...] = ()

    @property
    def look(self) -> PictureStyle:
        """The style by its name."""
        return style_named(self.style)

    @property
    def colours(self) -> Theme:
        """The theme that everything is drawn in."""
        return self.look.theme(self.theme)

    @property
    def words(self) -> Options:
        """What is drawn, as the style says it."""
        return self.look.options(self.drawing)


def moment_scene(timeline: Timeline, n: int, options: Options) -> Scene:
    """The scene of moment `n`: the whole graph of the iteration it falls into."""
    return scene(moment_structure(timeline, n, options), timeline, timeline.at(n), tooltips=True)


def moment_structure(timeline: Timeline, n: int, options: Options) -> Structure:
    """The boxes and lines of the iteration that moment `n` falls into; raises `GvizError` where there is none."""
    if not 0 <= n <= len(timeline):
        raise GvizError(f"there is no event {n}", hint=f"events are numbered 1 to {len(timeline)}", exit_code=2)
    if not timeline.nodes:
        raise GvizError("this trace holds no graph", why="the program made no tensors", exit_code=2)
    return structure(timeline, timeline.iteration_at(n), options)


def last_moment(timeline: Timeline) -> int:
    """The moment worth a picture if none is asked for: the end, before the program took its graph down."""
    n = len(timeline)
    while n > 1 and isinstance(timeline.event(n), e.NodeFreed | e.Printed | e.ScopeLeft):
        n -= 1
    return n

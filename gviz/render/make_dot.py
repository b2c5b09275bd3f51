"""The graph of a recording, to be changed, shown in a notebook or written, as other tools hand theirs out."""

from __future__ import annotations

from gviz.render.dot import digraph
from gviz.render.exporters import last_moment, moment_scene
from gviz.render.graph import Graph
from gviz.render.scene import Options
from gviz.trace.timeline import Timeline


def make_dot(timeline: Timeline, n: int | None = None, options: Options | None = None) -> Graph:
    """The graph at moment `n`, else at the last one before the program took its graph down."""
    return digraph(moment_scene(timeline, last_moment(timeline) if n is None else n, options or Options()))

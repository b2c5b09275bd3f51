"""A moment as the text of a DOT file."""

from __future__ import annotations

from gviz.render.graphviz.dot import Manner, dot
from gviz.render.picture_request import ExportOptions, requested_scene
from gviz.trace.timeline import Timeline


def render(timeline: Timeline, n: int, options: ExportOptions) -> str:
    """Return moment `n` as DOT."""
    drawn = requested_scene(timeline, n, options, fits=True)
    return dot(drawn, Manner(options.colours, direction=options.direction))

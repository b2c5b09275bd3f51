"""PNG and PDF, as Graphviz paints them."""

from __future__ import annotations

from gviz.render.graphviz.process import Picture, has_font
from gviz.render.graphviz.scene_drawing import drawn, picture_scene
from gviz.render.request import ExportOptions
from gviz.trace.timeline import Timeline


def png(timeline: Timeline, n: int, options: ExportOptions) -> bytes:
    """Return moment `n` as PNG."""
    return _painted(timeline, n, options, "png")


def pdf(timeline: Timeline, n: int, options: ExportOptions) -> bytes:
    """Return moment `n` as PDF."""
    return _painted(timeline, n, options, "pdf")


def _painted(timeline: Timeline, n: int, options: ExportOptions, picture: Picture) -> bytes:
    done = drawn(picture_scene(timeline, n, options), options, picture)
    if not has_font():
        options.note(f"this machine has no font, so the {picture} has no text; an svg is complete")
    return done

"""A part of a trace as one HTML file: step through it in any browser, without a network."""

from __future__ import annotations

from gviz.errors import GvizError
from gviz.render.page.contents import contents
from gviz.render.page.document import document
from gviz.render.request import ExportOptions
from gviz.trace.timeline import Timeline


def render(timeline: Timeline, n: int, options: ExportOptions) -> str:
    """The page that opens at moment `n`."""
    if not 0 <= n <= len(timeline):
        raise GvizError(f"there is no event {n}", hint=f"events are numbered 1 to {len(timeline)}", exit_code=2)
    if not timeline.nodes:
        raise GvizError("this trace holds no graph", why="the program made no tensors", exit_code=2)
    held = contents(timeline, n, options)
    for note in held["notes"]:
        options.note(note)
    return document(held, options.theme)

"""A part of a trace as one HTML file, which any browser can step through without a network."""

from __future__ import annotations

from gviz.render.page.html_document import document
from gviz.render.page.page_data import contents
from gviz.render.picture_request import ExportOptions, check_moment
from gviz.system.gc_pause import uncollected
from gviz.trace.timeline import Timeline


def render(timeline: Timeline, n: int, options: ExportOptions) -> str:
    """Return the page that opens at moment `n`."""
    check_moment(timeline, n)
    with uncollected():
        data = contents(timeline, n, options)
        text = document(data, options.theme)
    opened = [note for graph in data["graphs"] if graph["low"] <= n <= graph["high"] for note in graph["notes"]]
    for note in (*data["notes"], *opened):
        options.note(note)
    return text

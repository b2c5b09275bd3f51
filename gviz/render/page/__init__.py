"""A part of a trace as one HTML file: step through it in any browser, without a network."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from gviz.render.page.contents import contents
from gviz.render.page.document import document
from gviz.render.request import ExportOptions, check_moment
from gviz.trace.timeline import Timeline


def render(timeline: Timeline, n: int, options: ExportOptions) -> str:
    """The page that opens at moment `n`."""
    check_moment(timeline, n)
    with _uncollected():
        held = contents(timeline, n, options)
        text = document(held, options.theme)
    for note in held["notes"]:
        options.note(note)
    return text


@contextmanager
def _uncollected() -> Iterator[None]:
    """A page of 100,000 steps is millions of small tuples and no cycle: looking for some takes a third of the time."""
    collected = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collected:
            gc.enable()

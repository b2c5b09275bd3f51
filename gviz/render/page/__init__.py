"""A part of a trace as one HTML file: step through it in any browser, without a network."""

from __future__ import annotations

from gviz.render.page.contents import contents
from gviz.render.page.document import document
from gviz.render.scene import Options
from gviz.trace.timeline import Timeline


def page(
    timeline: Timeline, n: int, *, theme: str = "auto", options: Options | None = None, timeout: float = 20.0
) -> tuple[str, list[str]]:
    """The page that opens at moment `n`, and what its reader should know about how it was made (mostly nothing)."""
    held, notes = contents(timeline, n, options or Options(), timeout=timeout)
    return document(held, theme), notes

"""The terminal debugger, and the same core line by line (`gviz.tui.plain`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gviz.trace.timeline import Timeline


def debug(
    timeline: Timeline,
    *,
    title: str,
    at: int | None = None,
    ascii: bool = False,
    theme: str | None = None,
    lesson: bool = False,
    opening: Sequence[str] = (),
) -> None:
    """Open the terminal debugger over a timeline; see `gviz.tui.app.debug`."""
    from gviz.tui.app import debug as open_debugger  # textual takes 0.19 s to import

    open_debugger(timeline, title=title, at=at, ascii=ascii, theme=theme, lesson=lesson, opening=opening)

"""The call stack of a node, one row a frame."""

from __future__ import annotations

from gviz.explain.names import frame_text
from gviz.site import Frame
from gviz.tui.glyphs import Glyphs
from gviz.tui.lines import Line, line


def frame_rows(frames: tuple[Frame, ...], node: int, depth: int, glyphs: Glyphs, width: int) -> list[tuple[Line, int]]:
    """A row for each frame, innermost first, and its depth (-1: no frame); the one that is looked at is marked."""
    if not frames:
        said = "where it was made is not known" if node else "no node is selected"
        return [(line((said, "muted")), -1)]
    here = min(depth, len(frames) - 1)
    return [
        (line((glyphs.now if at == here else " ", "now"), (f" {at}  ", "muted"), frame_text(frame, width - 6)), at)
        for at, frame in enumerate(frames)
    ]

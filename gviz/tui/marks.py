"""Breakpoints and nodes by lines of the source: what its gutter marks, and what a click on a line means."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import PurePath

from gviz.trace.timeline import Timeline
from gviz.tui.breakpoint import Breakpoint, Listed
from gviz.tui.breakpoints import Breakpoints

SEARCHED = 20_000
"""So many nodes are looked through for the lines of a breakpoint that is no line itself."""


def marked_lines(breakpoints: Breakpoints, path: str) -> dict[int, list[Listed]]:
    """The lines of a file that breakpoints mean: the line itself, or the lines that made their nodes."""
    found: dict[int, list[Listed]] = {}
    for one in breakpoints.own:
        for line in _lines(breakpoints.timeline, one, path) if one.enabled else ():
            found.setdefault(line, []).append(one)
    for call in breakpoints.calls:
        if call.enabled and call.site.path == path:
            found.setdefault(call.site.line, []).append(call)
    return found


def _lines(timeline: Timeline, one: Breakpoint, path: str) -> set[int]:
    place = one.stop.at.place
    if place is None:
        return set()
    if place.kind == "line":
        return {place.number} if place.word in ("", path, PurePath(path).name) else set()
    nodes = [place.number] if place.kind == "node" else timeline.nodes
    meant = (timeline.info(node) for node in islice(nodes, SEARCHED) if one.hits.means(node))
    return {info.frames[0].line for info in meant if info.frames and info.frames[0].path == path}


def nodes_of_line(timeline: Timeline, n: int, path: str, line: int) -> Iterator[int]:
    """The nodes that a line made in the iteration of moment `n`, in order of creation."""
    for node in timeline.nodes.of(timeline.iteration_at(n)):
        if any(frame.path == path and frame.line <= line <= frame.end_line for frame in timeline.info(node).frames):
            yield node

"""Which part of a graph, and which moments, the words of an export mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gviz.api.moments import moment_of
from gviz.errors import GvizError
from gviz.query.moments import begin_of, is_stretch
from gviz.query.names import NamedNodes
from gviz.query.nodes import node_at
from gviz.render.boxes.fold import fitting_calls, graph_of
from gviz.render.boxes.selection import shown_nodes
from gviz.render.request import Part
from gviz.trace.state import NodeInfo
from gviz.trace.timeline import Timeline
from gviz.where import place as places


def part_around(timeline: Timeline, n: int, part: Part, node: str) -> Part:
    """The part around a node; what names no node but a module means all that is in the module."""
    around = part.ancestors or part.radius
    if not node and around:
        raise GvizError("ancestors and radius need a node", exit_code=2)
    if not node:
        return part
    infos = _in_picture(timeline, n)
    named = around or any(info.name == node for info in infos)
    if not named and fitting_calls(graph_of(timeline, infos), [node], within=True):
        return replace(part, only=(*part.only, node))
    return replace(part, node=_node_of(timeline, node, n), radius=part.radius or int(not part.ancestors))


def span(timeline: Timeline, text: str) -> tuple[int, ...]:
    """The moments of ``FIRST..LAST``, or of one pass or iteration, from where it begins; none for an empty text."""
    if not text:
        return ()
    first, dots, last = text.partition("..")
    if not dots and is_stretch(text):
        last = text
    elif not dots:
        raise GvizError(
            f"{text!r} is no range of moments", hint="write FIRST..LAST, as in 12..40, or backward", exit_code=2
        )
    end = moment_of(timeline, last or "end")
    start = begin_of(timeline, first, end) if is_stretch(first) else moment_of(timeline, first or "start")
    if start > end:
        raise GvizError(f"event {start} comes after event {end}", hint="write FIRST..LAST, as in 12..40", exit_code=2)
    return tuple(range(start, end + 1))


def _node_of(timeline: Timeline, place: str | int, n: int) -> int:
    """The node that a place means in the graph of a moment; of several the last."""
    node = node_at(NamedNodes(timeline), str(place), n, timeline.at(n).actor)  # says what there is if nothing fits
    infos = _in_picture(timeline, n)
    if any(info.node == node for info in infos):
        return node
    wanted = places.place(str(place))
    return next((info.node for info in reversed(infos) if wanted.fits(info)), node)


def _in_picture(timeline: Timeline, n: int) -> Sequence[NodeInfo]:
    """The nodes in the picture of a moment, in order of creation."""
    return [*shown_nodes(timeline, timeline.iteration_at(n), content="program")[0].values()]

"""What stands over a line: which output it leads on, the shape of what flows, and where a shape is widened."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from gviz.explain.outgoing import Shape, broadcast_shape
from gviz.numbers import shape_text
from gviz.trace.state import NodeInfo
from gviz.trace.timeline import Timeline


def line_label(timeline: Timeline, infos: Mapping[int, NodeInfo], node: int, output_nr: int, user: NodeInfo) -> str:
    """The label of a line from an output of `node` to its user; empty for the only output, a scalar."""
    outputs = infos[node].created.outputs
    shape = _shape(timeline, infos, node, output_nr, user)
    words = [f"out {output_nr}"] if len(outputs) > 1 else []
    if shape:
        words.append(shape_text(shape) + _broadcast(timeline, infos, user, shape))
    return " ".join(words)


def _shape(
    timeline: Timeline, infos: Mapping[int, NodeInfo], node: int, output_nr: int, user: NodeInfo
) -> Shape | None:
    """The shape in which a node uses an output: a leaf may have got another since it was made."""
    value = infos[node].created.outputs[output_nr].value if node in infos else None
    value = timeline.given(node, output_nr, user.born) or value
    return value.shape if value is not None else None


def _broadcast(timeline: Timeline, infos: Mapping[int, NodeInfo], user: NodeInfo, shape: Shape) -> str:
    """``→(8,3)`` where elementwise arithmetic widens an input, because backward sums there."""
    shapes = (_shape(timeline, infos, node, output_nr, user) for node, output_nr in user.created.inputs)
    common = broadcast_shape(user, shapes)
    return f"→{shape_text(common)}" if common is not None and prod(common) > prod(shape) else ""

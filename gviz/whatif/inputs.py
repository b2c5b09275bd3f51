"""The numbers that went into a recorded node, as an operation that is run again takes them."""

from __future__ import annotations

import numpy as np

from gviz.errors import GvizError, NotStored
from gviz.trace.state import NodeInfo
from gviz.trace.timeline import Timeline
from gviz.values import Array, Value


def inputs_of(timeline: Timeline, info: NodeInfo) -> list[Array]:
    """What each input held when the node was made, fractions in float64. GvizError for what was not stored."""
    return [_input(timeline, info, *edge) for edge in info.created.inputs]


def _input(timeline: Timeline, info: NodeInfo, node: int, output_nr: int) -> Array:
    value = timeline.held(node, output_nr, info.born - 1) if node else None
    if value is None:
        raise GvizError(f"an input of #{info.node} is not known", exit_code=2)
    return stored(timeline, node, "value", value)


def stored(timeline: Timeline, node: int, what: str, value: Value) -> Array:
    """The elements of a value of a node, fractions in float64. GvizError if they were not stored, or are complex."""
    array = timeline.array(value)
    if array is None:
        if value.stats is not None:
            raise NotStored(f"the {what} of #{node}")
        why = "its framework made it inside of another operation"  # nobody has ever seen it
        raise GvizError(f"the {what} of #{node} was not stored", why=why, exit_code=2)
    if array.dtype.kind == "c":
        raise GvizError("complex numbers are not checked", exit_code=2)
    return array.astype(np.float64) if array.dtype.kind == "f" else array

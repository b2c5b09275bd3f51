"""The numbers that went into a recorded node, as an operation that is run again takes them."""

from __future__ import annotations

import numpy as np

from gviz.errors import GvizError, NotStored
from gviz.events import NodeCreated
from gviz.trace.state import NodeInfo
from gviz.trace.timeline import Timeline
from gviz.values import Array, Value


def inputs_of(timeline: Timeline, info: NodeInfo) -> list[Array]:
    """What each input held when the node was made, fractions in float64. GvizError for what was not stored."""
    return [_input(timeline, info, slot) for slot in range(len(info.created.inputs))]


def _input(timeline: Timeline, info: NodeInfo, slot: int) -> Array:
    value = given(timeline, info.created, info.born, slot)
    if value is None:
        raise GvizError(f"an input of #{info.node} is not known", exit_code=2)
    return stored(timeline, info.created.inputs[slot][0], "value", value)


def given(timeline: Timeline, created: NodeCreated, born: int, slot: int) -> Value | None:
    """What an input held when the node was made by event `born`, None if nobody knows."""
    node, output_nr = created.inputs[slot]
    whole = created.given[slot] if slot < len(created.given) else None
    return whole or (timeline.held(node, output_nr, born - 1) if node else None)


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

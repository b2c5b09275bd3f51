"""The input values of a recorded node, in the form that a rerun needs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gviz.engine.operation_lookup import is_in_place
from gviz.errors import GvizError, NotStored
from gviz.trace.graph_state import NodeInfo
from gviz.trace.timeline import Timeline
from gviz.values.value import Array, Value

_MOST_NODES = 2000
"""The most preceding nodes in which the operations of a function are searched: rerunning more would take long."""


def inputs_of(timeline: Timeline, info: NodeInfo) -> list[Array]:
    """Return each input's value when the node was created, floats as float64. Raises GvizError if not stored."""
    return [input_array(timeline, info, slot) for slot in range(len(info.created.inputs))]


def input_array(timeline: Timeline, info: NodeInfo, slot: int) -> Array:
    """Return the value of one input, as `inputs_of` does."""
    value = input_value(timeline, info, slot)
    if value is None:
        raise GvizError(f"an input of #{info.node} is not known", exit_code=2)
    return stored_array(timeline, info.created.inputs[slot][0], "value", value)


def input_value(timeline: Timeline, info: NodeInfo, slot: int) -> Value | None:
    """Return the value of an input when the node's call began; None if unknown."""
    node, output_nr = info.created.inputs[slot]
    whole = info.created.given[slot] if slot < len(info.created.given) else None
    return whole or (
        timeline.memory_value(node, output_nr, moment_before_writes(timeline, info, slot)) if node else None
    )


def moment_before_writes(timeline: Timeline, info: NodeInfo, slot: int) -> int:
    """Return the moment before a call wrote to an input; for a function that returns its input, before its
    forward did.
    """
    node, output_nr = info.created.inputs[slot]
    if not node or not info.op.is_of_program:
        return info.born - 1
    storage = timeline.info(node).created.outputs[output_nr].storage
    if all(output.storage != storage or output.view_of for output in info.created.outputs):
        return info.born - 1
    wrote = (writer for writer in nodes_between(timeline, node, info) if written_storage(writer) == storage)
    return next((writer.born for writer in wrote), info.born) - 1


def nodes_between(timeline: Timeline, node: int, info: NodeInfo) -> Iterator[NodeInfo]:
    """Return the last nodes that were created before the node `info` and after another one."""
    end = timeline.nodes.place_of(info.node)
    start = max(timeline.nodes.place_of(node) + 1 if node else 0, end - _MOST_NODES)
    return map(timeline.info, timeline.nodes[start:end])


def written_storage(info: NodeInfo) -> int:
    """Return the storage that an operation wrote to; 0 if it created its own."""
    if info.created.kind != "op":
        return 0
    return info.created.outputs[0].storage if is_in_place(info.op) or info.op.name == "setitem" else 0


def stored_array(timeline: Timeline, node: int, what: str, value: Value) -> Array:
    """Return the elements of a node's value, floats as float64. Raises GvizError if not stored, or complex."""
    array = timeline.array(value)
    if array is None:
        if value.stats is not None:
            raise NotStored(f"the {what} of #{node}")
        why = "its framework made it inside of another operation"  # no event has its value
        raise GvizError(f"the {what} of #{node} was not stored", why=why, exit_code=2)
    if array.dtype.kind == "c":
        raise GvizError("complex numbers are not checked", exit_code=2)
    return array.astype(np.float64) if array.dtype.kind == "f" else array

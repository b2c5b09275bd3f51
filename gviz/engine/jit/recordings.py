"""Static graphs as events, so that whatever shows a recording shows a graph; and recordings as static graphs.

`events_of` gives a graph as the beginning of a recording: nodes that have no values yet. `graph_of` goes the other way:
the operations of a recording, with the values they started from, can be run again, all of them (`interpret`) or one
(`run_node`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from gviz import site
from gviz.engine.attributes import plain_attrs
from gviz.engine.dtypes import by_name
from gviz.engine.jit.graph import Form, Node, Ref, StaticGraph
from gviz.engine.jit.operations import attributes_of, operation_of
from gviz.engine.tensor import Tensor, WrappedNumber, new_tensor
from gviz.events import Edge, Event, Marked, Named, NodeCreated, OpSeen, Output, StackSeen
from gviz.values import Array, Value, capture

FindArray = Callable[[Value], Array | None]


def events_of(graph: StaticGraph) -> list[Event]:
    """The graph as a recording of it: node `n` of the graph is node ``n + 1``. It ends with a moment of nothing."""
    numbers: dict[tuple[object, bool, bool], int] = {}
    stacks: dict[site.StackKey, int] = {(): 0}
    events: list[Event] = []
    for number, node in enumerate(graph.nodes):
        key = (node.op, node.effect == "new", _writes_a_part(graph, node))
        if key not in numbers:
            numbers[key] = len(numbers) + 1
            events.append(_described(node, numbers[key], key[2]))
        if node.stack not in stacks:
            stacks[node.stack] = len(stacks)
            events.append(StackSeen(stacks[node.stack], site.frames(node.stack)))
        events.append(_created(graph, number, numbers[key], stacks[node.stack]))
        if node.name:
            events.append(Named(number + 1, node.name))
    return [*events, Marked("")]


def _described(node: Node, number: int, is_slices: bool) -> OpSeen:
    if node.op is None:
        return OpSeen(number, "tensor", "", (), (), ())
    if node.effect == "new":
        return node.op.describe(number)
    return node.op.describe_slices(number) if is_slices else node.op.describe_in_place(number)


def _writes_a_part(graph: StaticGraph, node: Node) -> bool:
    """Whether a write is through a view, and so to a part of what others see."""
    if node.effect != "write":
        return False
    target = graph.nodes[node.inputs[0].node]
    return target.op is not None and target.op.memory != "new"


def _created(graph: StaticGraph, number: int, op: int, stack: int) -> NodeCreated:
    node = graph.nodes[number]
    kept = node.tensor is not None and not node.fresh
    outputs = tuple([_output(form, node.tensor if kept else None) for form in node.outputs])
    inputs = tuple([_edge(graph, node, ref) for ref in node.inputs])
    attrs = plain_attrs(dict(node.attrs)) if node.op is not None else ()
    if node.op is None and "number" in node.attrs:
        attrs = (("number", True),)
    kind = {"op": "op", "parameter": "parameter"}.get(node.kind, "constant")
    tracked = node.kind in ("op", "parameter")
    return NodeCreated(number + 1, op, kind, inputs, outputs, attrs, tracked, "", stack, 0)  # type: ignore[arg-type]


def _edge(graph: StaticGraph, node: Node, ref: Ref) -> Edge:
    """Where an operand comes from: the last write to its memory, if another node than its own wrote there since."""
    storage = graph.form(ref).storage
    writers = [n for n in node.after if n > ref.node and graph.form(Ref(n)).storage == storage]
    return (max(writers) + 1, 0) if writers else (ref.node + 1, ref.output_nr)


def _output(form: Form, tensor: Tensor | None) -> Output:
    return Output(None if tensor is None else capture(tensor._array), form.storage + 1)


class Replayable(NamedTuple):
    """A recording's operations as a graph; `places` says which of its nodes each node of the recording is."""

    graph: StaticGraph
    places: dict[int, int]


def graph_of(events: Iterable[Event], find_array: FindArray = Value.array) -> Replayable:
    """The nodes of a recording as a graph without outputs. What no operation made is a parameter or a constant of it.

    `find_array` finds the elements of a value that are not in the event (`Timeline.array`). ValueError, with the node,
    for a value that was not kept, for an operation that the engine has not, and for a write through a view, which an
    event does not describe fully.
    """
    ops: dict[int, OpSeen] = {}
    nodes: list[Node] = []
    places: dict[int, int] = {}
    for event in events:
        if isinstance(event, OpSeen):
            ops[event.op] = event
        elif isinstance(event, NodeCreated):
            try:
                nodes.append(_node(event, ops[event.op], places, find_array))
            except ValueError as error:
                raise ValueError(f"node #{event.node} cannot be run again: {error}") from None
            places[event.node] = len(nodes) - 1
    return Replayable(StaticGraph("recording", tuple(nodes), ()), places)


def _node(event: NodeCreated, seen: OpSeen, places: dict[int, int], find_array: FindArray) -> Node:
    if event.kind != "op":
        return _outside(event, find_array)
    op, writes = operation_of(seen)
    if any(node not in places for node, _ in event.inputs):
        raise ValueError("one of its operands is not known")
    inputs = tuple([Ref(places[node], output_nr) for node, output_nr in event.inputs])
    forms = tuple([_form(output) for output in event.outputs])
    untracked = event.untracked == "no_grad"
    attrs = attributes_of(op, event.attrs)
    return Node(
        "op", forms, op=op, attrs=attrs, inputs=inputs, effect="write" if writes else "new", untracked=untracked
    )


def _outside(event: NodeCreated, find_array: FindArray) -> Node:
    output = event.outputs[0]
    array = None if output.value is None else find_array(output.value)
    if array is None or output.value is None:
        raise ValueError("its value was not kept")
    is_number = ("number", True) in event.attrs
    tensor = new_tensor(np.array(array), WrappedNumber if is_number else Tensor)
    tensor._requires_grad = event.requires_grad
    kind = "parameter" if event.requires_grad else "constant"
    attrs = {"number": tensor._array.item()} if is_number else {}
    return Node(kind, (_form(output),), tensor=tensor, attrs=attrs)  # type: ignore[arg-type]


def _form(output: Output) -> Form:
    value = output.value
    kind = None if value is None else by_name(value.dtype)
    if value is None or kind is None:
        raise ValueError("its shape and dtype are not known")
    strides = np.empty(value.shape, kind.numpy).strides
    if output.strides is not None:
        strides = tuple([step * kind.numpy.itemsize for step in output.strides])
    return Form(value.shape, kind.numpy, strides, output.storage)

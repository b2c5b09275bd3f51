"""A static graph as the events of a recording, so that gviz can draw it; its nodes have no values yet.

`gviz.engine.existing_graph` does the same for the autograd graph of tensors.
"""

from __future__ import annotations

from gviz.engine.instrumentation import plain_attrs
from gviz.engine.jit.static_graph import Form, Node, Ref, StaticGraph
from gviz.engine.tensor import Tensor
from gviz.events import Edge, Event, Marked, Named, NodeCreated, OpSeen, Output, StackSeen
from gviz.source import call_stack
from gviz.values.value import capture


def events_of(graph: StaticGraph) -> list[Event]:
    """The events of a graph. Node `n` of the graph becomes node ``n + 1``; the last event is a mark."""
    numbers: dict[tuple[object, bool, bool], int] = {}
    stacks: dict[call_stack.StackKey, int] = {(): 0}
    events: list[Event] = []
    for number, node in enumerate(graph.nodes):
        key = (node.op, node.effect == "new", _writes_a_part(graph, node))
        if key not in numbers:
            numbers[key] = len(numbers) + 1
            events.append(_described(node, numbers[key], key[2]))
        if node.stack not in stacks:
            stacks[node.stack] = len(stacks)
            events.append(StackSeen(stacks[node.stack], call_stack.frames(node.stack)))
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
    """Return whether a node writes through a view, and therefore to a part of its base."""
    if node.effect != "write":
        return False
    target = graph.nodes[node.inputs[0].node]
    return target.op is not None and target.op.memory != "new"


def _created(graph: StaticGraph, number: int, op: int, stack: int) -> NodeCreated:
    node = graph.nodes[number]
    has_value = node.tensor is not None and not node.fresh
    outputs = tuple([_output(form, node.tensor if has_value else None) for form in node.outputs])
    inputs = tuple([_edge(graph, node, ref) for ref in node.inputs])
    attrs = plain_attrs(dict(node.attrs)) if node.op is not None else ()
    if node.op is None and "number" in node.attrs:
        attrs = (("number", True),)
    kind = {"op": "op", "parameter": "parameter"}.get(node.kind, "constant")
    tracked = node.kind in ("op", "parameter")
    return NodeCreated(number + 1, op, kind, inputs, outputs, attrs, tracked, "", stack, 0)  # type: ignore[arg-type]


def _edge(graph: StaticGraph, node: Node, ref: Ref) -> Edge:
    """Return the edge of an operand: the last write to its memory, if another node has written there since; else its
    node.
    """
    storage = graph.form(ref).storage
    writers = [n for n in node.after if n > ref.node and graph.form(Ref(n)).storage == storage]
    return (max(writers) + 1, 0) if writers else (ref.node + 1, ref.output_nr)


def _output(form: Form, tensor: Tensor | None) -> Output:
    return Output(None if tensor is None else capture(tensor._array), form.storage + 1)

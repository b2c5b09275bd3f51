"""Runs a static graph as ordinary operations, which autograd tracks and a recording observes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from gviz import emit
from gviz.engine.functions_and_methods import number
from gviz.engine.jit.static_graph import Node, StaticGraph
from gviz.engine.modes import no_grad, thread
from gviz.engine.op import Op, apply
from gviz.engine.operation_lookup import Effect
from gviz.engine.tensor import Tensor, new_tensor
from gviz.engine.views import apply_in_place, view_in_place
from gviz.events import ScopeEntered, ScopeLeft
from gviz.source import call_stack

Values = list[Sequence[Tensor]]


def interpret(
    graph: StaticGraph, inputs: Sequence[Tensor], seen: Callable[[int, Sequence[Tensor]], None] | None = None
) -> list[Tensor]:
    """The outputs for these inputs; `seen` is called with the outputs of each node as soon as it has run."""
    arguments = iter(inputs)
    values: Values = []
    last = _last_uses(graph)
    with scope(graph.name, "traced graph"):
        for n, node in enumerate(graph.nodes):
            outputs = [next(arguments)] if node.kind == "input" else _value(node, values, graph)
            values.append(outputs)
            if seen is not None:
                seen(n, outputs)
            for number in last.get(n, ()):
                values[number] = ()
    return [values[ref.node][ref.output_nr] for ref in graph.outputs]


@contextmanager
def scope(name: str, kind: str) -> Iterator[None]:
    """Emits a scope for the operations within the block."""
    channel = emit.channel
    if channel is None:
        yield
        return
    number = channel.next_scope()
    channel.emit(ScopeEntered(number, thread.scopes[-1] if thread.scopes else 0, name, kind))
    thread.scopes.append(number)
    try:
        yield
    finally:
        thread.scopes.pop()
        if emit.channel is channel:
            channel.emit(ScopeLeft(number))


def _value(node: Node, values: Values, graph: StaticGraph) -> Sequence[Tensor]:
    if node.tensor is not None:
        return [new_tensor(node.tensor._array.copy(order="K"))] if node.fresh else [node.tensor]
    if emit.channel is None:
        return _run(node, values, graph)
    before = thread.replayed_from
    thread.replayed_from = (*node.stack, *call_stack.stack()) if node.stack else before
    try:
        return _run(node, values, graph)
    finally:
        thread.replayed_from = before


def _run(node: Node, values: Values, graph: StaticGraph) -> Sequence[Tensor]:
    assert node.op is not None
    operands = _operands(node, values, graph)
    if node.untracked:
        with no_grad():
            return run_node(node, operands)
    return run_node(node, operands)


def run_node(node: Node, operands: Sequence[Tensor]) -> Sequence[Tensor]:
    """Runs one operation on these operands and returns its outputs. One that writes does write to the first operand."""
    assert node.op is not None
    return run_op(node.op, node.effect, operands, node.attrs)


def run_op(op: Op, effect: Effect, operands: Sequence[Tensor], attrs: Mapping[str, Any]) -> Sequence[Tensor]:
    """Runs an op on these operands.

    Returns its outputs, or the first operand if that was written to or became a view.
    """
    if effect == "write":
        return [apply_in_place(op, operands, dict(attrs))]
    if effect == "become":
        return [view_in_place(op, operands[0], dict(attrs))]
    result = apply(op, operands, dict(attrs))
    return tuple(result) if op.has_several_outputs else [result]


def _operands(node: Node, values: Values, graph: StaticGraph) -> list[Tensor]:
    """Return the operands. A number takes the dtype of the other operand, which may differ from the recorded one."""
    operands = [values[ref.node][ref.output_nr] for ref in node.inputs]
    numbers = [place for place, ref in enumerate(node.inputs) if "number" in graph.nodes[ref.node].attrs]
    if numbers and len(numbers) < len(operands):
        other = next(place for place in range(len(operands)) if place not in numbers)
        if operands[other]._array.dtype != graph.form(node.inputs[other]).dtype:
            for place in numbers:
                value = graph.nodes[node.inputs[place].node].attrs["number"]
                operands[place] = number(value, operands[other]._array)
    return operands


def _last_uses(graph: StaticGraph) -> dict[int, list[int]]:
    """Return the nodes that are not used any more after each node."""
    last = {ref.node: n for n, node in enumerate(graph.nodes) for ref in node.inputs}
    for ref in graph.outputs:
        last.pop(ref.node, None)
    ending: dict[int, list[int]] = {}
    for node, n in last.items():
        ending.setdefault(n, []).append(node)
    return ending

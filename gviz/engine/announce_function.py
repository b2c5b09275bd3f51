"""Tells a listener that a custom Function ran: a node of its own, in place of what ran inside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gviz.emit import Channel, Seen
from gviz.engine.announce import say_operation, seen
from gviz.engine.memory import output
from gviz.events import Edge, Output
from gviz.values import Value

if TYPE_CHECKING:
    from gviz.engine.autograd.function_node import FunctionNode
    from gviz.engine.tensor import Tensor


def function_called(channel: Channel, node: FunctionNode, tensors: Sequence[Tensor]) -> tuple[Value | None, ...]:
    """A custom Function is about to run: what it is given, if it is one of the first calls and not kept anyway."""
    node.is_first = channel.is_first(node.function)
    return tuple([channel.whole(tensor._array) for tensor in tensors]) if node.is_first else ()


def function_ran(
    channel: Channel,
    node: FunctionNode,
    args: Sequence[Any],
    inputs: Sequence[Edge],
    outputs: Sequence[Tensor | None],
    untracked: str,
    given: tuple[Value | None, ...],
) -> None:
    """A custom Function ran on `args`. Its outputs are its own from now on, whatever inside it made them."""
    slots, attrs = node.arguments(args)
    key = type(node), slots, bool(node.saved)
    number = channel.op(key, lambda number: node.describe_call(number, slots))
    described = [_output_of_function(channel, tensor, is_first=node.is_first) for tensor in outputs]
    mark = node.seen = Seen(channel.next_node())
    for tensor in outputs:
        if tensor is not None:
            tensor._seen = mark
    node.made_at = say_operation(channel, mark, number, tuple(inputs), attrs, tuple(described), untracked, given)


def _output_of_function(channel: Channel, tensor: Tensor | None, *, is_first: bool) -> Output:
    if tensor is None:
        return Output(None, channel.next_storage())
    seen(channel, tensor)  # it has a storage then
    origin = 0 if tensor._base is None else seen(channel, tensor._base).node
    return output(channel, tensor, origin, is_first=is_first)

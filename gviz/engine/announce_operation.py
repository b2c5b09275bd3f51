"""Says in events that an operation ran: what it made, or what it wrote to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gviz.emit import Channel, Seen
from gviz.engine.announce import say_operation, seen
from gviz.engine.announce_memory import memory_written, say_data
from gviz.engine.memory import Storage, output
from gviz.engine.modes import thread
from gviz.engine.node import Node
from gviz.events import Edge

if TYPE_CHECKING:
    from gviz.engine.op import Op
    from gviz.engine.tensor import Tensor


def ran(
    channel: Channel,
    op: Op,
    inputs: Sequence[Tensor],
    attrs: dict[str, Any],
    outputs: Sequence[Tensor],
    node: Node | None,
    untracked: str,
) -> None:
    """An operation ran and made new tensors."""
    inputs_before = edges(channel, inputs)
    shared = op.memory != "new"
    mark = Seen(channel.next_node())
    described = []
    for output_nr, tensor in enumerate(outputs):
        tensor._seen = mark
        tensor._output_nr = output_nr
        tensor._storage = inputs[0]._storage if shared else Storage(channel)
        view_of = inputs_before[0][0] if shared else 0
        described.append(output(channel, tensor, view_of, has_value=not thread.is_building))
    if node is not None:
        node.seen = mark
    number = channel.op(op, op.describe)
    made_at = say_operation(channel, mark, number, tuple(inputs_before), attrs, tuple(described), untracked)
    if node is not None:
        node.made_at = made_at


def edges(channel: Channel, tensors: Sequence[Tensor]) -> list[Edge]:
    """The tensors as inputs of an operation, as they are now."""
    found = []
    for t in tensors:
        mark = t._seen
        if mark is None or mark.channel is not channel:
            mark = seen(channel, t)
        found.append((mark.node, t._output_nr))
    return found


def in_place(
    channel: Channel,
    op: Op,
    target: Tensor,
    inputs: Sequence[Edge],
    attrs: dict[str, Any],
    node: Node | None,
    untracked: str,
) -> None:
    """An operation wrote to the memory of `target`; `inputs` are as they were before.

    A tracked write makes the tensor, or the base it is a view of, an output of the operation; an untracked one leaves
    it the node it was, so that a parameter stays the leaf it is.
    """
    mark = Seen(channel.next_node())
    written = target
    if node is not None:
        written = target if target._base is None else target._base
        written._seen = node.seen = mark
        written._output_nr = 0
    number = channel.op((op, written is target), op.describe_in_place if written is target else op.describe_slices)
    if written is not target and target._seen is not None and target._seen.channel is channel:
        attrs = attrs | {"view": target._seen.node}
    described = (output(channel, written, 0, has_value=not thread.is_building),)
    made_at = say_operation(channel, mark, number, tuple(inputs), attrs, described, untracked)
    if node is not None:
        node.made_at = made_at
    memory_written(channel, target, mark.node)


def became_view(
    channel: Channel,
    op: Op,
    target: Tensor,
    inputs: Sequence[Edge],
    attrs: dict[str, Any],
    node: Node | None,
    untracked: str,
) -> None:
    """A tensor became another view of its memory. A leaf that does so untracked stays the leaf it is."""
    mark = Seen(channel.next_node())
    if node is not None or not target._requires_grad:
        target._seen, target._output_nr = mark, 0
    described = (output(channel, target, 0 if target._base is None else seen(channel, target._base).node),)
    number = channel.op((op, "in place"), op.describe_in_place)
    made_at = say_operation(channel, mark, number, tuple(inputs), attrs, described, untracked)
    if node is not None:
        node.seen, node.made_at = mark, made_at
    if target._seen is not mark:
        target._storage.move(target)
    for other in target._storage.moved(target._array):
        say_data(channel, other, mark.node)


def regenerated(channel: Channel, op: Op, base: Tensor, view: Tensor, node: Node) -> None:
    """A view got a new node, because its base was written to."""
    origin = seen(channel, base)
    view._seen = node.seen = Seen(channel.next_node())
    view._output_nr = 0
    view._storage = base._storage
    described = (output(channel, view, origin.node),)
    inputs = ((origin.node, base._output_nr),)
    say_operation(channel, view._seen, channel.op(op, op.describe), inputs, node.attrs, described, "")

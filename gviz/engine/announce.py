"""Turns what happens in the engine into events. The engine calls it only while somebody listens.

A tensor or node carries a `Seen` once it was announced. What existed before the recording is announced when it is first
used: a leaf with its value, a graph that was built earlier as nodes without values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gviz.emit import Channel, Seen
from gviz.engine.attributes import Attrs, plain_attrs
from gviz.engine.memory import Storage, output, owner_of
from gviz.engine.modes import thread
from gviz.engine.node import AccumulateGrad, Node
from gviz.events import DataSet, Edge, GradSet, NodeCreated, NodeKind, OpSeen, Output, RequiresGradSet, StorageWritten

if TYPE_CHECKING:
    from gviz.engine.op import Op
    from gviz.engine.tensor import Tensor


def seen(channel: Channel, tensor: Tensor) -> Seen:
    """The announcement of a tensor's node; announces it now if nobody has."""
    mark = tensor._seen
    if mark is not None and mark.channel is channel:
        return mark
    node = tensor._grad_fn
    if node is not None:
        mark = tensor._seen = seen_node(channel, node)
        if tensor._base is not None:
            seen(channel, tensor._base)
        tensor._storage = _storage_of(channel, tensor)
        return mark
    return _enter(channel, tensor)


def seen_node(channel: Channel, node: Node) -> Seen:
    """The announcement of a graph node; announces what it depends on first, inputs before users."""
    known = node.seen
    if known is not None and known.channel is channel:
        return known
    stack = [node]
    while stack:
        top = stack[-1]
        if _announced(channel, top):
            stack.pop()
            continue
        waiting = [e[0] for e in top.next_edges if e is not None and not _announced(channel, e[0])]
        if waiting:
            stack.extend(waiting)
        else:
            _enter_late(channel, stack.pop())
    mark = node.seen
    assert mark is not None
    return mark


def operation(
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
        _say_data(channel, other, mark.node)


def regenerated(channel: Channel, op: Op, base: Tensor, view: Tensor, node: Node) -> None:
    """A view got a new node, because its base was written to."""
    origin = seen(channel, base)
    view._seen = node.seen = Seen(channel.next_node())
    view._output_nr = 0
    view._storage = base._storage
    described = (output(channel, view, origin.node),)
    inputs = ((origin.node, base._output_nr),)
    say_operation(channel, view._seen, channel.op(op, op.describe), inputs, node.attrs, described, "")


def memory_written(channel: Channel, tensor: Tensor, node: int, told: Tensor | None = None) -> None:
    """The memory of `tensor` was changed by `node`, and with it every ``.grad`` that lies there, but that of `told`."""
    if thread.is_building:
        return
    storage, array = tensor._storage, tensor._array
    value = channel.value(owner_of(array).ravel(order="K"))
    channel.say(StorageWritten(storage.number, node, tensor._counter[0], value))
    for other in storage.moved(array):
        _say_data(channel, other, node)
    for owner in storage.owners():
        if owner is not told and owner._grad is not None:
            grad_set(channel, owner, "in place" if owner._grad._array.any() else "zero", channel.stack())


def computed(channel: Channel, tensor: Tensor) -> None:
    """An operation that was announced before computed its output, of which nobody but it has the memory, anew."""
    node = seen(channel, tensor).node
    if owner_of(tensor._array) is not tensor._array or tensor._storage.moved():
        memory_written(channel, tensor, node)
        return
    channel.say(StorageWritten(tensor._storage.number, node, tensor._counter[0], channel.value(tensor._array)))


def moved(channel: Channel, tensor: Tensor, to: Tensor | None = None) -> None:
    """A tensor that was announced lies in the memory of `to` now (None: in new memory), perhaps in another form."""
    (Storage(channel) if to is None else to._storage).move(tensor)
    _say_data(channel, tensor)
    owner = None if tensor._grad_of is None else tensor._grad_of()
    if owner is not None and owner._grad is tensor and tensor._grad_of is not None:
        tensor._storage.add_owner(tensor._grad_of)
        grad_set(channel, owner, "in place" if tensor._array.any() else "zero", channel.stack())


def _say_data(channel: Channel, tensor: Tensor, writer: int = 0) -> None:
    """Say what a tensor shows that lies elsewhere than where it was announced, or in another form."""
    node, version = seen(channel, tensor).node, max(tensor._counter[0], 0)
    value, stack = channel.value(tensor._array), channel.stack()
    channel.say(DataSet(node, tensor._output_nr, version, value, writer or node, stack))


def entered(channel: Channel, tensor: Tensor) -> None:
    """A tensor was made from data."""
    _enter(channel, tensor)


def captured(channel: Channel, tensor: Tensor) -> Seen:
    """The announcement of a gradient that `autograd.grad` gave: it is no new data."""
    known = tensor._seen is not None and tensor._seen.channel is channel
    return seen(channel, tensor) if known or tensor._grad_fn is not None else _enter(channel, tensor, _CAPTURED)


_CAPTURED: Attrs = (("gradient", True),)


def requires_grad_set(channel: Channel, tensor: Tensor) -> None:
    """``requires_grad`` was switched."""
    mark = tensor._seen
    if mark is not None and mark.channel is channel:
        channel.say(RequiresGradSet(mark.node, tensor._requires_grad, channel.stack()))


def grad_set(channel: Channel, tensor: Tensor, how: str, stack: int = 0) -> None:
    """A ``.grad`` was changed outside a pass, or was there before it was announced: then there is no `stack`."""
    value = None if tensor._grad is None else channel.value(tensor._grad._array)
    channel.say(GradSet(seen(channel, tensor).node, tensor._output_nr, how, value, stack))


def _announced(channel: Channel, node: Node) -> bool:
    mark = node.seen
    return mark is not None and mark.channel is channel


def _enter(channel: Channel, tensor: Tensor, attrs: Attrs = ()) -> Seen:
    """Announce a leaf or constant, after the tensor it is a view of, and the ``.grad`` it already has."""
    origin = 0 if tensor._base is None else seen(channel, tensor._base).node
    attrs = attrs or _origin_of(channel, tensor)
    mark = tensor._seen = Seen(channel.next_node())
    tensor._storage = _storage_of(channel, tensor)
    kind: NodeKind = "constant"
    if tensor._requires_grad:
        kind = "parameter" if tensor._is_parameter else "leaf"
    described = (output(channel, tensor, origin, has_value=not tensor._is_placeholder),)
    number, scope = channel.op("tensor", _tensor_op), thread.scopes[-1] if thread.scopes else 0
    stack, during = channel.stack(), thread.during
    channel.say(
        NodeCreated(mark.node, number, kind, (), described, attrs, tensor._requires_grad, "", stack, scope, during)
    )
    mark.said(channel)
    if tensor._grad is not None:
        grad_set(channel, tensor, "assigned")
    return mark


def _origin_of(channel: Channel, tensor: Tensor) -> Attrs:
    """What else is known of a tensor that no operation made."""
    owner = None if tensor._grad_of is None else tensor._grad_of()
    if owner is not None and owner._grad is tensor:
        return (("grad_of", seen(channel, owner).node),)
    return (("number", True),) if tensor._is_number else ()


def _storage_of(channel: Channel, tensor: Tensor) -> Storage:
    """The memory of a tensor that is announced now."""
    return Storage(channel, tensor._grad_of) if tensor._base is None else tensor._base._storage


def _enter_late(channel: Channel, node: Node) -> None:
    """Announce a node of a graph that was built before anybody listened: its values are gone."""
    if isinstance(node, AccumulateGrad):
        _enter(channel, node.variable)
        return
    mark = node.seen = Seen(channel.next_node())
    inputs = tuple((0, 0) if e is None else (seen_node(channel, e[0]).node, e[1]) for e in node.next_edges)
    outputs = tuple(Output(None, channel.next_storage()) for _ in node.outputs)
    say_operation(channel, mark, channel.op(type(node), node.describe), inputs, node.attrs, outputs, "")


def say_operation(
    channel: Channel,
    mark: Seen,
    op: int,
    inputs: tuple[Edge, ...],
    attrs: dict[str, Any],
    outputs: tuple[Output, ...],
    untracked: str,
) -> int:
    """Say that an operation ran; the number of the stack it ran in."""
    described = plain_attrs(attrs) if attrs else ()
    key, scopes, during = thread.replayed_from, thread.scopes, thread.during
    stack = channel.stack(3) if key is None else channel.stack_number(key)  # two more frames are the engine's
    scope = scopes[-1] if scopes else 0
    tracked = not untracked
    channel.say(NodeCreated(mark.node, op, "op", inputs, outputs, described, tracked, untracked, stack, scope, during))
    mark.said(channel)
    return stack


def _tensor_op(number: int) -> OpSeen:
    return OpSeen(number, "tensor", "", (), (), ())

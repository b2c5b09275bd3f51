"""Turns what happens in the engine into events. The engine calls it only while somebody listens.

A tensor or node carries a `Seen` once it was announced. What existed before the recording is announced when it is first
used: a leaf with its value, a graph that was built earlier as nodes without values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gviz.emit import Channel, Seen
from gviz.engine.modes import thread
from gviz.engine.node import AccumulateGrad, Node
from gviz.events import Edge, GradSet, NodeCreated, NodeKind, OpSeen, Output, RequiresGradSet, StorageWritten
from gviz.values import Array

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
        tensor._storage = channel.next_storage()
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
    mark = Seen(channel, channel.next_node())
    described = []
    for output_nr, output in enumerate(outputs):
        output._seen = mark
        output._output_nr = output_nr
        output._storage = inputs[0]._storage if shared else channel.next_storage()
        described.append(_output(channel, output, inputs_before[0][0] if shared else 0))
    if node is not None:
        node.seen = mark
    _say_operation(
        channel, mark.node, channel.op(op, op.describe), tuple(inputs_before), attrs, tuple(described), untracked
    )


def edges(channel: Channel, tensors: Sequence[Tensor]) -> list[Edge]:
    """The tensors as inputs of an operation, as they are now."""
    return [(seen(channel, t).node, t._output_nr) for t in tensors]


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
    mark = Seen(channel, channel.next_node())
    written = target
    if node is not None:
        written = target if target._base is None else target._base
        written._seen = node.seen = mark
        written._output_nr = 0
    number = channel.op((op, written is target), op.describe_in_place if written is target else op.describe_slices)
    described = (_output(channel, written, 0),)
    _say_operation(channel, mark.node, number, tuple(inputs), attrs, described, untracked)
    memory_written(channel, target, mark.node)


def regenerated(channel: Channel, op: Op, base: Tensor, view: Tensor, node: Node) -> None:
    """A view got a new node, because its base was written to."""
    origin = seen(channel, base)
    view._seen = node.seen = Seen(channel, channel.next_node())
    view._output_nr = 0
    view._storage = base._storage
    described = (_output(channel, view, origin.node),)
    inputs = ((origin.node, base._output_nr),)
    _say_operation(channel, view._seen.node, channel.op(op, op.describe), inputs, node.attrs, described, "")


def memory_written(channel: Channel, tensor: Tensor, node: int) -> None:
    """The memory of `tensor` was changed by `node`; if it is somebody's ``.grad``, that changed too."""
    whole = _owner(tensor._array).ravel(order="K")
    channel.say(StorageWritten(tensor._storage, node, tensor._counter[0], channel.value(whole)))
    owner = None if tensor._grad_of is None else tensor._grad_of()
    if owner is not None and owner._grad is tensor:
        grad_set(channel, owner, "in place" if tensor._array.any() else "zero")


def entered(channel: Channel, tensor: Tensor) -> None:
    """A tensor was made from data."""
    _enter(channel, tensor)


def requires_grad_set(channel: Channel, tensor: Tensor) -> None:
    """``requires_grad`` was switched."""
    mark = tensor._seen
    if mark is not None and mark.channel is channel:
        channel.say(RequiresGradSet(mark.node, tensor._requires_grad))


def grad_set(channel: Channel, tensor: Tensor, how: str) -> None:
    """A ``.grad`` was changed outside a pass."""
    value = None if tensor._grad is None else channel.value(tensor._grad._array)
    channel.say(GradSet(seen(channel, tensor).node, tensor._output_nr, how, value))


def _announced(channel: Channel, node: Node) -> bool:
    mark = node.seen
    return mark is not None and mark.channel is channel


def _enter(channel: Channel, tensor: Tensor) -> Seen:
    """Announce a leaf or constant, after the tensor it is a view of."""
    base = tensor._base
    if base is not None:
        seen(channel, base)
    owner = None if tensor._grad_of is None else tensor._grad_of()
    of = seen(channel, owner).node if owner is not None and owner._grad is tensor else 0
    mark = tensor._seen = Seen(channel, channel.next_node())
    tensor._storage = channel.next_storage() if base is None else base._storage
    kind: NodeKind = "constant"
    if tensor._requires_grad:
        kind = "parameter" if tensor._is_parameter else "leaf"
    output = _output(channel, tensor, 0 if base is None or base._seen is None else base._seen.node)
    scope = thread.scopes[-1] if thread.scopes else 0
    number = channel.op("tensor", _tensor_op)
    attrs: tuple[tuple[str, Any], ...] = (("number", True),) if tensor._is_number else ()
    if of:
        attrs = (("grad_of", of),)
    channel.say(
        NodeCreated(
            mark.node,
            number,
            kind,
            (),
            (output,),
            attrs,
            tensor._requires_grad,
            "",
            channel.stack(),
            scope,
            thread.during,
        )
    )
    return mark


def _enter_late(channel: Channel, node: Node) -> None:
    """Announce a node of a graph that was built before anybody listened: its values are gone."""
    if isinstance(node, AccumulateGrad):
        _enter(channel, node.variable)
        return
    mark = node.seen = Seen(channel, channel.next_node())
    inputs = tuple((0, 0) if e is None else (seen_node(channel, e[0]).node, e[1]) for e in node.next_edges)
    outputs = tuple(Output(None, channel.next_storage()) for _ in node.outputs)
    _say_operation(channel, mark.node, channel.op(type(node), node.describe), inputs, {}, outputs, "")


def _say_operation(
    channel: Channel,
    node: int,
    op: int,
    inputs: tuple[Edge, ...],
    attrs: dict[str, Any],
    outputs: tuple[Output, ...],
    untracked: str,
) -> None:
    channel.say(
        NodeCreated(
            node,
            op,
            "op",
            inputs,
            outputs,
            plain_attrs(attrs),
            not untracked,
            untracked,
            channel.stack(),
            thread.scopes[-1] if thread.scopes else 0,
            thread.during,
        )
    )


def plain_attrs(attrs: dict[str, Any]) -> tuple[tuple[str, Any], ...]:
    """Attributes as plain data; empty for most operations, which is the fast way."""
    return tuple([(name, _plain(value)) for name, value in attrs.items()]) if attrs else ()


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (tuple, list)):
        return tuple(_plain(item) for item in value)
    if isinstance(value, slice):
        return ("slice", _plain(value.start), _plain(value.stop), _plain(value.step))
    if is_dataclass(value) and not isinstance(value, type):
        return tuple(_plain(getattr(value, field.name)) for field in fields(value))
    return str(value)


def _tensor_op(number: int) -> OpSeen:
    return OpSeen(number, "tensor", "", (), (), ())


def _output(channel: Channel, tensor: Tensor, view_of: int) -> Output:
    array = tensor._array
    if array.base is None and array.flags.c_contiguous:
        return Output(channel.value(array), tensor._storage, tensor._counter[0], view_of)
    owner = _owner(array)
    if array.flags.c_contiguous and array.nbytes == owner.nbytes:
        return Output(channel.value(array), tensor._storage, tensor._counter[0], view_of)
    offset = (_address(array) - _address(owner)) // array.itemsize
    strides = tuple(stride // array.itemsize for stride in array.strides)
    return Output(channel.value(array), tensor._storage, tensor._counter[0], view_of, offset, strides)


def _owner(array: Array) -> Array:
    """The array whose memory this one looks into."""
    owner = array
    base: Any = array.base
    while base is not None:
        if isinstance(base, np.ndarray):
            owner = base
        base = getattr(base, "base", None)
    return owner


def _address(array: Array) -> int:
    address: int = array.__array_interface__["data"][0]
    return address

"""Says in events of what the graph is made. The engine calls it only while somebody listens.

A tensor or node carries a `Seen` once it was announced. What existed before the recording is announced when it is first
used: a leaf with its value, a graph that was built earlier as nodes without values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gviz import variables
from gviz.emit import Channel, Seen
from gviz.engine.attributes import Attrs, plain_attrs
from gviz.engine.memory import Storage, output
from gviz.engine.modes import thread
from gviz.engine.node import AccumulateGrad, Node
from gviz.events import Edge, GradSet, Named, NodeCreated, NodeKind, OpSeen, Output, RequiresGradSet

if TYPE_CHECKING:
    from gviz.engine.tensor import Tensor
    from gviz.values import Value


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
    return _meet(channel, tensor)


def _meet(channel: Channel, tensor: Tensor) -> Seen:
    """Announce a tensor of which nobody heard how it was made, and say what the program calls it."""
    mark = _enter(channel, tensor)
    if name := _name_of(tensor):
        channel.say(Named(mark.node, name))
    return mark


def _name_of(tensor: Tensor) -> str:
    """What the program calls a tensor that it had before; nothing of what the engine made, or of a ``.grad``."""
    if tensor._is_number or tensor._is_mask or tensor._grad_of is not None:
        return ""
    return variables.global_name(tensor) if tensor._is_parameter else variables.first_name(tensor)


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


def entered(channel: Channel, tensor: Tensor, sharing: Tensor | None = None) -> None:
    """A tensor was made from data, or in the memory of a tensor that may have been announced."""
    shared = sharing is not None and sharing._seen is not None and sharing._seen.channel is channel
    _enter(channel, tensor, memory=sharing._storage if sharing is not None and shared else None)


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


def _enter(channel: Channel, tensor: Tensor, attrs: Attrs = (), *, memory: Storage | None = None) -> Seen:
    """Announce a leaf or constant, after the tensor it is a view of, and the ``.grad`` it already has; it has memory of
    its own, unless another's is given."""
    origin = 0 if tensor._base is None else seen(channel, tensor._base).node
    attrs = attrs or _origin_of(channel, tensor)
    mark = tensor._seen = Seen(channel.next_node())
    tensor._storage = memory or _storage_of(channel, tensor)
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
    return (("number", True),) if tensor._is_number else (("mask", True),) if tensor._is_mask else ()


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
    given: tuple[Value | None, ...] = (),
) -> int:
    """Say that an operation ran; the number of the stack it ran in."""
    described = plain_attrs(attrs) if attrs else ()
    key, scopes, during = thread.replayed_from, thread.scopes, thread.during
    stack = channel.stack() if key is None else channel.stack_number(key)
    scope = scopes[-1] if scopes else 0
    tracked = not untracked
    channel.say(
        NodeCreated(mark.node, op, "op", inputs, outputs, described, tracked, untracked, stack, scope, during, given)
    )
    mark.said(channel)
    return stack


def _tensor_op(number: int) -> OpSeen:
    return OpSeen(number, "tensor", "", (), (), ())

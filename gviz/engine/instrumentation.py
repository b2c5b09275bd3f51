"""Emits the engine's events, only while a recording listens: tensors, operations, writes, backward passes.

A tensor or node has a `Seen` once it was announced. What existed before the recording is announced at its first use: a
leaf with its value, the nodes of an existing graph without values.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np

from gviz import emit, parameter_names
from gviz.emit import Channel, Seen
from gviz.engine.array_storage import address_of, owner_of
from gviz.engine.modes import thread
from gviz.engine.node import Edge as GraphEdge
from gviz.engine.node import Grad, GradientEdge, Node, registration_stacks
from gviz.engine.tensor import AccumulateGrad, Storage, Tensor, callbacks
from gviz.events import (
    Attr,
    BackwardFinished,
    BackwardStarted,
    DataSet,
    Edge,
    GradAccumulated,
    GradCaptured,
    GradFlowed,
    GradRetained,
    GradSet,
    HookRan,
    Named,
    NodeCreated,
    NodeKind,
    OpSeen,
    Output,
    RequiresGradSet,
    Returned,
    SavedFreed,
    StepFinished,
    StepStarted,
    StorageWritten,
)
from gviz.result_tensors import parts
from gviz.source import variables_of_objects
from gviz.source.call_stack import called_by_the_program, forwards
from gviz.values.value import Value, shape_of

# ----------------------------------------------------------------------------------------------------------------------
# Converts the non-tensor arguments of an operation to plain data, for events and files.


Attrs = tuple[tuple[str, Attr], ...]
"""Attributes in the form of events."""


def plain_attrs(attrs: Mapping[str, Any], otherwise: Callable[[Any], Any] = str) -> Attrs:
    """Attributes as numbers, text, and tuples of these; `otherwise` converts any other object."""
    return tuple([(name, _plain(value, otherwise)) for name, value in attrs.items()])


def _plain(value: Any, otherwise: Callable[[Any], Any]) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (tuple, list)):
        return tuple([_plain(item, otherwise) for item in value])
    if isinstance(value, np.generic):
        return value.item()
    if is_dataclass(value) and not isinstance(value, type):
        return tuple([_plain(getattr(value, field.name), otherwise) for field in fields(value)])
    return otherwise(value)


# ----------------------------------------------------------------------------------------------------------------------
# Announces tensors and nodes.


def seen(channel: Channel, tensor: Tensor) -> Seen:
    """The announcement of a tensor's node, made now if there is none."""
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
    return _announce_external(channel, tensor)


def _announce_external(channel: Channel, tensor: Tensor) -> Seen:
    """Announce a tensor that no recorded operation made, and record its name in the program."""
    mark = _enter(channel, tensor)
    if name := _name_of(tensor):
        channel.emit(Named(mark.node, name))
    return mark


def _name_of(tensor: Tensor) -> str:
    """Return the program's name for a tensor that it already had; empty for one that the engine made, and for a
    ``.grad``.
    """
    if tensor._is_number or tensor._is_mask or tensor._grad_of is not None:
        return ""
    return variables_of_objects.global_name(tensor) if tensor._is_parameter else variables_of_objects.first_name(tensor)


def seen_node(channel: Channel, node: Node) -> Seen:
    """The announcement of a graph node. Its dependencies are announced first."""
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
    """Announces a tensor that was made from data, or in the memory of `sharing` if that is announced."""
    shared = sharing is not None and sharing._seen is not None and sharing._seen.channel is channel
    _enter(channel, tensor, memory=sharing._storage if sharing is not None and shared else None)


def captured(channel: Channel, tensor: Tensor) -> Seen:
    """The announcement of a gradient that `autograd.grad` returned, marked so that it does not appear as new data."""
    known = tensor._seen is not None and tensor._seen.channel is channel
    return seen(channel, tensor) if known or tensor._grad_fn is not None else _enter(channel, tensor, _CAPTURED)


_CAPTURED: Attrs = (("gradient", True),)


def requires_grad_set(channel: Channel, tensor: Tensor) -> None:
    """Emits a change of ``requires_grad``."""
    mark = tensor._seen
    if mark is not None and mark.channel is channel:
        channel.emit(RequiresGradSet(mark.node, tensor._requires_grad, channel.stack()))


def grad_set(channel: Channel, tensor: Tensor, how: str, stack: int = 0) -> None:
    """Emits a ``.grad`` that changed outside a pass, or that existed before its tensor was announced (`stack` is 0)."""
    value = None if tensor._grad is None else channel.value(tensor._grad._array)
    channel.emit(GradSet(seen(channel, tensor).node, tensor._output_nr, how, value, stack))


def _announced(channel: Channel, node: Node) -> bool:
    mark = node.seen
    return mark is not None and mark.channel is channel


def _enter(channel: Channel, tensor: Tensor, attrs: Attrs = (), *, memory: Storage | None = None) -> Seen:
    """Announce a leaf or constant, after the tensor that it is a view of, and then its ``.grad`` if it has one.

    It has its own memory, unless `memory` is given.
    """
    origin = 0 if tensor._base is None else seen(channel, tensor._base).node
    attrs = attrs or _origin_of(channel, tensor)
    mark = tensor._seen = Seen(channel.next_node())
    tensor._storage = memory or _storage_of(channel, tensor)
    kind: NodeKind = "parameter" if tensor._is_parameter else "leaf" if tensor._requires_grad else "constant"
    described = (output(channel, tensor, origin, has_value=not tensor._is_placeholder),)
    number, scope = channel.op("tensor", _tensor_op), thread.scopes[-1] if thread.scopes else 0
    stack, during = channel.stack(), thread.running_step
    channel.emit(
        NodeCreated(mark.node, number, kind, (), described, attrs, tensor._requires_grad, "", stack, scope, during)
    )
    mark.confirm(channel)
    if tensor._grad is not None:
        grad_set(channel, tensor, "assigned")
    return mark


def _origin_of(channel: Channel, tensor: Tensor) -> Attrs:
    """Attributes of a tensor that no operation made: whose ``.grad`` it is, a number, a mask."""
    owner = None if tensor._grad_of is None else tensor._grad_of()
    if owner is not None and owner._grad is tensor:
        return (("grad_of", seen(channel, owner).node),)
    return (("number", True),) if tensor._is_number else (("mask", True),) if tensor._is_mask else ()


def _storage_of(channel: Channel, tensor: Tensor) -> Storage:
    """Return the memory of a tensor that is being announced."""
    return Storage(channel, tensor._grad_of) if tensor._base is None else tensor._base._storage


def _enter_late(channel: Channel, node: Node) -> None:
    """Announce a node of a graph that was built before the recording; its values are unknown."""
    if isinstance(node, AccumulateGrad):
        _enter(channel, node.variable)
        return
    mark = node.seen = Seen(channel.next_node())
    inputs = tuple((0, 0) if e is None else (seen_node(channel, e[0]).node, e[1]) for e in node.next_edges)
    outputs = tuple(Output(None, channel.next_storage()) for _ in node.outputs)
    emit_operation(channel, mark, channel.op(type(node), node.describe), inputs, node.attrs, outputs, "")


def emit_operation(
    channel: Channel,
    mark: Seen,
    op: int,
    inputs: tuple[Edge, ...],
    attrs: dict[str, Any],
    outputs: tuple[Output, ...],
    untracked: str,
    given: tuple[Value | None, ...] = (),
) -> int:
    """Emits that an operation ran. Returns the number of its call stack."""
    described = plain_attrs(attrs) if attrs else ()
    key, scopes, during = thread.replayed_from, thread.scopes, thread.running_step
    stack = channel.stack() if key is None else channel.stack_number(key)
    scope = scopes[-1] if scopes else 0
    tracked = not untracked
    channel.emit(
        NodeCreated(mark.node, op, "op", inputs, outputs, described, tracked, untracked, stack, scope, during, given)
    )
    mark.confirm(channel)
    return stack


def output(channel: Channel, tensor: Tensor, view_of: int, *, has_value: bool = True, is_first: bool = False) -> Output:
    """A tensor as an output of its node: its value, and which elements of its memory it covers.

    `is_first` is for the first calls of a custom Function, whose values are kept whole.
    """
    array, storage, version = tensor._array, tensor._storage.number, tensor._counter[0]
    if version < 0:  # an inference tensor has no version counter
        version = 0
    value = (channel.whole(array) if is_first else None) or channel.value(array) if has_value else None
    # A view is drawn from its memory as soon as that has a value, so its shape must be known.
    unknown = value if has_value else Value(array.dtype.name, array.shape)
    if array.base is None and array.flags.c_contiguous:
        return Output(value, storage, version, view_of)
    owner = owner_of(array)
    if array.flags.c_contiguous and array.nbytes == owner.nbytes:
        return Output(value, storage, version, view_of)
    offset = (address_of(array) - address_of(owner)) // array.itemsize
    strides = tuple(stride // array.itemsize for stride in array.strides)
    return Output(unknown, storage, version, view_of, offset, strides)


def _tensor_op(number: int) -> OpSeen:
    return OpSeen(number, "tensor", "", (), (), ())


callbacks.seen, callbacks.grad_set, callbacks.requires_grad_set = seen, grad_set, requires_grad_set


# ----------------------------------------------------------------------------------------------------------------------
# Results with several tensors: which part of a function's or module's result each tensor is.


F = TypeVar("F", bound=Callable[..., Any])

_FOLDER = str(Path(__file__).parent) + "/"


def emitting_parts(function: F) -> F:
    """Wraps `function` so that it records the parts of its result.

    Returns it unchanged if it returns a single tensor.
    """
    signature = getattr(function, "__signature__", None)
    annotation = function.__annotations__.get("return") if signature is None else signature.return_annotation
    if annotation in ("Tensor", "None", "bool", "int", "float", "str", inspect.Signature.empty):
        return function

    @forwards
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        if emit.channel is not None:
            emit_returned(emit.channel, result)
        return result

    return wrapper  # type: ignore[return-value]  # the same signature


@forwards
def emit_returned(channel: Channel, result: object) -> None:
    """Records which part of a call's result each tensor is, if the program itself made the call."""
    if not isinstance(result, Tensor) and called_by_the_program(_FOLDER):
        _emit_parts(channel, result, seen)


@forwards
def emit_gradients(channel: Channel, result: object) -> None:
    """The same for the result of `autograd.grad`, which is announced now."""
    if called_by_the_program(_FOLDER):
        _emit_parts(channel, result, captured)


def _emit_parts(channel: Channel, result: object, announced: Callable[[Channel, Tensor], Seen]) -> None:
    stack = channel.stack()
    for tensor, path in parts(result, Tensor):
        channel.emit(Returned(announced(channel, tensor).node, tensor._output_nr, stack, path))


# ----------------------------------------------------------------------------------------------------------------------
# Writes: memory has new contents, or a tensor has other memory.


def memory_written(channel: Channel, tensor: Tensor, node: int, reported: Tensor | None = None) -> None:
    """Emits that `node` changed the memory of `tensor`, and every ``.grad`` in it except that of `reported`."""
    if thread.is_building:
        return
    storage, array = tensor._storage, tensor._array
    value = channel.value(owner_of(array).ravel(order="K"))
    channel.emit(StorageWritten(storage.number, node, max(tensor._counter[0], 0), value))
    for other in storage.moved(array):
        emit_data(channel, other, node)
    for owner in storage.owners():
        if owner is not reported and owner._grad is not None:
            grad_set(channel, owner, "in place" if owner._grad._array.any() else "zero", channel.stack())


def computed(channel: Channel, tensor: Tensor) -> None:
    """Emits that an announced operation computed its output again, in memory that only its output has."""
    node = seen(channel, tensor).node
    if owner_of(tensor._array) is not tensor._array or tensor._storage.moved():
        memory_written(channel, tensor, node)
        return
    channel.emit(StorageWritten(tensor._storage.number, node, max(tensor._counter[0], 0), channel.value(tensor._array)))


def moved(channel: Channel, tensor: Tensor, to: Tensor | None = None) -> None:
    """Emits that an announced tensor now has the memory of `to` (None: new memory), perhaps with another shape."""
    (Storage(channel) if to is None else to._storage).move(tensor)
    emit_data(channel, tensor)
    owner = None if tensor._grad_of is None else tensor._grad_of()
    if owner is not None and owner._grad is tensor and tensor._grad_of is not None:
        tensor._storage.add_owner(tensor._grad_of)
        grad_set(channel, owner, "in place" if tensor._array.any() else "zero", channel.stack())


def emit_data(channel: Channel, tensor: Tensor, writer: int = 0) -> None:
    """Emits the value of a tensor that has other memory or another shape than when it was announced."""
    node, version = seen(channel, tensor).node, max(tensor._counter[0], 0)
    value, stack = channel.value(tensor._array), channel.stack()
    channel.emit(DataSet(node, tensor._output_nr, version, value, writer or node, stack))


# ----------------------------------------------------------------------------------------------------------------------
# Operations that ran: what they made, or what they wrote to.


class Operation(Protocol):
    """What events need of an operation: a declared `Op`, which is built on this module, provides it."""

    @property
    def memory(self) -> str:
        """``new`` if outputs have their own memory."""

    def describe(self, number: int) -> OpSeen:
        """The operation when it writes to its first input."""

    def describe_in_place(self, number: int) -> OpSeen:
        """The operation when it writes to its first input."""

    def describe_slices(self, number: int) -> OpSeen:
        """The operation when it writes through a view to the base of its first input."""


def ran(
    channel: Channel,
    op: Operation,
    inputs: Sequence[Tensor],
    attrs: dict[str, Any],
    outputs: Sequence[Tensor],
    node: Node | None,
    untracked: str,
) -> None:
    """Emits that an operation ran and made new tensors."""
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
    creation_stack = emit_operation(channel, mark, number, tuple(inputs_before), attrs, tuple(described), untracked)
    if node is not None:
        node.creation_stack = creation_stack


def edges(channel: Channel, tensors: Sequence[Tensor]) -> list[Edge]:
    """The edges of tensors as inputs of an operation, in their current state."""
    input_edges = []
    for t in tensors:
        mark = t._seen
        if mark is None or mark.channel is not channel:
            mark = seen(channel, t)
        input_edges.append((mark.node, t._output_nr))
    return input_edges


def in_place(
    channel: Channel,
    op: Operation,
    target: Tensor,
    inputs: Sequence[Edge],
    attrs: dict[str, Any],
    node: Node | None,
    untracked: str,
) -> None:
    """Emits that an operation wrote to the memory of `target`; `inputs` are the edges before the write.

    A tracked write makes the tensor, or the base of a view, an output of the operation. After an untracked write it
    belongs to the same node as before, so that a parameter stays a leaf.
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
    creation_stack = emit_operation(channel, mark, number, tuple(inputs), attrs, described, untracked)
    if node is not None:
        node.creation_stack = creation_stack
    memory_written(channel, target, mark.node)


def became_view(
    channel: Channel,
    op: Operation,
    target: Tensor,
    inputs: Sequence[Edge],
    attrs: dict[str, Any],
    node: Node | None,
    untracked: str,
) -> None:
    """Emits that a tensor became another view of its memory. An untracked leaf stays the same leaf."""
    mark = Seen(channel.next_node())
    if node is not None or not target._requires_grad:
        target._seen, target._output_nr = mark, 0
    described = (output(channel, target, 0 if target._base is None else seen(channel, target._base).node),)
    number = channel.op((op, "in place"), op.describe_in_place)
    creation_stack = emit_operation(channel, mark, number, tuple(inputs), attrs, described, untracked)
    if node is not None:
        node.seen, node.creation_stack = mark, creation_stack
    if target._seen is not mark:
        target._storage.move(target)
    for other in target._storage.moved(target._array):
        emit_data(channel, other, mark.node)


def regenerated(channel: Channel, op: Operation, base: Tensor, view: Tensor, node: Node) -> None:
    """Emits the new node of a view whose base was written to."""
    origin = seen(channel, base)
    view._seen = node.seen = Seen(channel.next_node())
    view._output_nr = 0
    view._storage = base._storage
    described = (output(channel, view, origin.node),)
    inputs = ((origin.node, base._output_nr),)
    emit_operation(channel, view._seen, channel.op(op, op.describe), inputs, node.attrs, described, "")


# ----------------------------------------------------------------------------------------------------------------------
# Backward passes.


_ARRAYS = (np.ndarray, np.generic)


class PassReport:
    """Emits the events of one backward pass.

    A gradient is often the same array in several places (an addition passes its incoming gradient on to both inputs).
    So the value captured on arrival is kept, with the node's number, until the node has run.
    """

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.number = channel.next_pass()
        self._emit = channel.emit
        # in a graph that is being built nothing has a value
        self._value = shape_of if thread.is_building else channel.value
        self._arrived: dict[Node, tuple[int, list[Value | None]]] = {}
        self._grads: Sequence[Grad | None] = ()
        self._values: Sequence[Value | None] = ()
        self._stack = 0
        self._node: Node | None = None

    def started(
        self,
        roots: Sequence[GraphEdge],
        seeds: Sequence[Grad],
        inputs: Sequence[GraphEdge],
        *,
        retain_graph: bool,
        create_graph: bool,
    ) -> None:
        """Emits the start of the pass."""
        channel = self.channel
        edges = tuple((seen_node(channel, node).node, output_nr) for node, output_nr in roots)
        targets = tuple((seen_node(channel, node).node, output_nr) for node, output_nr in inputs)
        values = tuple(self._captured(seed) for seed in seeds)
        parameter_names.emit_holders(channel, functools.partial(_leaf_node, channel))
        self._stack = channel.stack()
        channel.emit(BackwardStarted(self.number, edges, values, retain_graph, create_graph, targets, self._stack))

    def finished(self, error: str, raised: str) -> None:
        """Emits the end of the pass, with the text and class of an error, or with empty strings."""
        self.channel.emit(BackwardFinished(self.number, error, raised))

    def step_started(self, node: Node, grads: Sequence[Grad | None]) -> int:
        """Emits that a node's backward rule runs. Returns the node's number."""
        arrived = self._arrived.pop(node, None)
        if arrived is None:
            captured = self._of_first if node.is_first else self._captured
            arrived = seen_node(self.channel, node).node, [None if g is None else captured(g) for g in grads]
        number, self._values = arrived
        self._grads, self._node = grads, node
        self._emit(StepStarted(self.number, number, tuple(self._values)))
        return number

    def step_of(self, node: Node) -> tuple[int, int]:
        """The pass and node of a step; everything made during the step carries this pair."""
        return self.number, seen_node(self.channel, node).node

    def flowed(self, source: int, slot: int, target: GraphEdge, part: Grad, total: Grad | None) -> None:
        """Emits the contribution of input `slot` of node number `source`; `total` is None for the first one."""
        node, output_nr = target
        arrived = self._arrived.get(node)
        if arrived is None:
            arrived = self._arrived[node] = seen_node(self.channel, node).node, [None] * len(node.outputs)
        number, values = arrived
        is_first = node.is_first or (self._node is not None and self._node.is_first)
        captured = self._of_first if is_first else self._captured
        value = captured(part)
        sum_so_far = None if total is None else captured(total)
        values[output_nr] = sum_so_far or value
        self._emit(GradFlowed(self.number, source, slot, number, output_nr, value, sum_so_far))

    def step_finished(self, node: int, *, freed: bool) -> None:
        """Emits the end of a node's step; `freed` is True if it released saved tensors."""
        if not node:
            return
        if freed:
            self._emit(SavedFreed(node))
            if self._node is not None:
                self._node.freed_at = self._stack
        self._grads = ()  # the next step counts the references to a gradient
        self._emit(StepFinished(self.number, node))

    def accumulated(self, node: Node, leaf: Tensor, part: Grad, *, first: bool) -> None:
        """Emits the accumulation into a leaf's ``.grad``, and the write to the memory of that tensor."""
        grad = leaf._grad
        assert grad is not None
        number = seen(self.channel, leaf).node
        arrived = self._arrived.pop(node, None)
        value = (arrived and arrived[1][0]) or self._captured(part)
        sum_now = None if first else self.channel.value(grad._array)
        self.channel.emit(GradAccumulated(self.number, number, value, sum_now))
        if not first and grad._seen is not None and grad._seen.channel is self.channel:
            memory_written(self.channel, grad, number, reported=leaf)

    def retained(self, node: Node, output_nr: int, grad: Tensor) -> None:
        """Emits that a non-leaf retained its gradient."""
        value = self.channel.value(grad._array)
        self.channel.emit(GradRetained(self.number, seen_node(self.channel, node).node, output_nr, value))

    def captured(self, edge: GraphEdge, grad: Grad) -> None:
        """Emits a gradient that ``autograd.grad`` returns."""
        node, output_nr = edge
        number = seen_node(self.channel, node).node
        self.channel.emit(GradCaptured(self.number, number, output_nr, self._captured(grad)))

    def hook_ran(self, node: Node, output_nr: int, when: str, hook: object, result: Tensor | None, handle: int) -> None:
        """A hook ran, and returned `result`, or None; `handle` is the number of its handle.

        For the hooks of a module, one of the engine runs, which has the last that gave a gradient.
        """
        inner = getattr(getattr(hook, "__self__", None), "last", None)
        handle, hook = inner if inner is not None else (handle, hook)
        name = getattr(hook, "__name__", type(hook).__name__)
        place = registration_stacks.get(handle)
        stack = self.channel.stack_number(place) if place is not None else 0
        value = None if result is None else self.channel.value(result._array)
        if result is not None:
            self._arrived.pop(node, None)
        number = seen_node(self.channel, node).node
        self.channel.emit(HookRan(self.number, number, output_nr, when, name, value, stack))

    def node_hook_ran(self, node: Node, when: str, hook: object, results: Sequence[Tensor | None], handle: int) -> None:
        """A hook of a node ran: one event for each gradient that it returned, or one event if it returned none."""
        replacements = [(nr, result) for nr, result in enumerate(results) if result is not None]
        for output_nr, result in replacements:
            self.hook_ran(node, output_nr, when, hook, result, handle)
        if not replacements:
            self.hook_ran(node, 0, when, hook, None, handle)

    def _of_first(self, grad: Grad) -> Value:
        """Return the value of a gradient that one of the first calls of a custom Function receives or sends."""
        if thread.is_building:
            return self._captured(grad)
        return self.channel.whole(grad if isinstance(grad, _ARRAYS) else grad._array) or self._captured(grad)

    def _captured(self, grad: Grad) -> Value:
        """Return the value of a gradient: an array, a NumPy scalar or a tensor."""
        for known, value in zip(self._grads, self._values):  # noqa: B905  # `strict=` takes longer than one iteration
            if known is grad and value is not None:
                return value
        return self._value(grad if isinstance(grad, _ARRAYS) else grad._array)


def _leaf_node(channel: Channel, tensor: Tensor) -> int | None:
    """Return the node of a leaf held by a variable, 0 if it has no node; None for a tensor that gets no gradient."""
    if tensor._grad_fn is not None or not (tensor.requires_grad or tensor._is_parameter):
        return None
    mark = tensor._seen
    return mark.node if mark is not None and mark.channel is channel else 0


def refused(
    channel: Channel,
    roots: Sequence[Tensor | GradientEdge],
    seeds: Sequence[Tensor | None],
    error: str,
    *,
    retain_graph: bool,
    create_graph: bool,
) -> None:
    """Emits a pass that starts and ends at once, because one of its roots has no graph."""
    number, edges = channel.next_pass(), tuple(_edge(channel, root) for root in roots)
    values = tuple(_seed(channel, root, seed) for root, seed in zip(roots, seeds, strict=True))
    channel.emit(BackwardStarted(number, edges, values, retain_graph, create_graph, (), channel.stack()))
    channel.emit(BackwardFinished(number, error, "RuntimeError"))


def _edge(channel: Channel, root: Tensor | GradientEdge) -> tuple[int, int]:
    mark = seen_node(channel, root.node) if isinstance(root, GradientEdge) else seen(channel, root)
    return mark.node, root.output_nr


def _seed(channel: Channel, root: Tensor | GradientEdge, seed: Tensor | None) -> Value:
    """Return the gradient passed for a root. Without one it is ones: PyTorch does not ask for one that it
    cannot use.
    """
    if seed is not None or isinstance(root, GradientEdge):
        assert seed is not None  # an edge always has one
        return channel.value(seed._array)
    return channel.value(np.ones_like(root._array))

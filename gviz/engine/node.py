"""The nodes of the backward graph, with their saved tensors and hooks.

There is one node for each tracked operation, and one for each leaf: `AccumulateGrad`, see `tensor`. A node's *outputs*
are those of the forward operation; in a backward pass, gradients arrive there. An edge ``(node, output_nr)`` leads to
one such output. Releasing the saved tensors of a node does not remove its edges.

Nodes and tensors have hooks, which run in a backward pass. Saved tensors have hooks of their own, which pack and unpack
them. If an error concerns a node, its message can show the lines that created, wrote or released what the node saved.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import count
from linecache import getline
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, NoReturn

import numpy as np

from gviz import emit
from gviz.emit import Seen
from gviz.engine import anomaly_detection, dtypes, messages, operation_watchers
from gviz.engine.methods import Methods
from gviz.engine.modes import thread
from gviz.events import OpSeen
from gviz.source import call_stack
from gviz.source.call_stack import Frame, StackKey

if TYPE_CHECKING:
    from gviz.engine.tensor import Tensor

# ----------------------------------------------------------------------------------------------------------------------
# Hooks: their handles, and where a node keeps them.


Hook = Callable[["Tensor"], "Tensor | None"]
Values = tuple["Tensor | None", ...]
HooksById = dict[int, Callable[..., Any]]
"""Hooks of one kind by the id of their handle, in the order in which they run."""

_next_id = count().__next__

registration_stacks: dict[int, StackKey] = {}
"""The call stacks at which hooks were registered, by the id of their handle. Only hooks registered during a recording
have one.
"""


class RemovableHandle:
    """Removes a hook: by ``handle.remove()``, or at the end of a ``with`` block."""

    def __init__(self, hooks: HooksById, hook: Any) -> None:
        self.id = _next_id()
        self._hooks = hooks
        self._registries: tuple[dict[int, bool], ...] = ()
        hooks[self.id] = hook
        if emit.channel is not None:
            registration_stacks[self.id] = call_stack.stack()

    def mark(self, *registries: dict[int, bool]) -> None:
        """Adds the hook to `registries`, which determine how it is called, until it is removed."""
        self._registries = registries
        for registry in registries:
            registry[self.id] = True

    def remove(self) -> None:
        """Removes the hook. A second call does nothing, even if the hook was registered again."""
        self._hooks.pop(self.id, None)
        registration_stacks.pop(self.id, None)
        for registry in self._registries:
            registry.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()


class Extras:
    """What few nodes have.

    - `tensor_hooks`: the hooks of the tensors that the node computed, by output number.
    - `prehooks`, `posthooks`: the hooks of the node itself, which run before and after its backward rule.
    - `retaining_tensors`: the tensors on which ``retain_grad()`` was called, by output number.
    - `metadata`: notes about the node, such as those of anomaly mode.
    - `attach`: connects a saved output with the graph, if it is not an output of this node itself (in `views`).
    """

    __slots__ = ("attach", "metadata", "posthooks", "prehooks", "retaining_tensors", "tensor_hooks")

    def __init__(self) -> None:
        self.tensor_hooks: dict[int, HooksById] = {}
        self.retaining_tensors: dict[int, weakref.ref[Tensor]] = {}
        self.prehooks: HooksById = {}
        self.posthooks: HooksById = {}
        self.metadata: dict[str, Any] = {}
        self.attach: Callable[[Tensor], Tensor] | None = None


def hook_name(hook: object) -> str:
    """A hook's name in PyTorch's messages."""
    name: str = getattr(hook, "__name__", "<unknown>")
    return name


# ----------------------------------------------------------------------------------------------------------------------
# Hooks of saved tensors: `pack` receives each tensor that a node saves and returns any object, such as the name of a
# file. When the tensor is needed, `unpack` receives this object and returns the tensor.
#
# A pair of hooks is either active in a thread, for all nodes made meanwhile, or registered for one saved tensor.


class HookPair(NamedTuple):
    """A pair of hooks for saved tensors."""

    pack: Callable[[Tensor], Any]
    unpack: Callable[[Any], Tensor]


class _ActiveHooks(threading.local):
    """The active pairs of a thread, innermost last; `refusal` is the reason why none may be added."""

    refusal: str | None = None

    def __init__(self) -> None:
        self.pairs: list[HookPair] = []


active_hooks = _ActiveHooks()


def push_hooks(pair: HookPair) -> None:
    """Activates a pair. Raises RuntimeError if that is disabled."""
    if not (callable(pair.pack) and callable(pair.unpack)):
        raise TypeError(messages.SAVED_HOOKS_CALLABLE.format(pack=repr(pair.pack), unpack=repr(pair.unpack)))
    if active_hooks.refusal is not None:
        raise RuntimeError(active_hooks.refusal)
    active_hooks.pairs.append(pair)
    operation_watchers.add(1)


def pop_hooks() -> None:
    """Deactivates the innermost pair."""
    active_hooks.pairs.pop()
    operation_watchers.add(-1)


class PackedTensor:
    """The result of a pack hook for a saved tensor, and what connects the tensor with the graph.

    `hook_input` is the tensor that the hook receives.
    """

    __slots__ = ("accumulator", "content", "grad_fn", "is_output", "output_nr", "requires_grad", "unpack_hook")

    def __init__(self, tensor: Tensor, pair: HookPair, hook_input: Tensor, *, is_output: bool) -> None:
        self.is_output, self.output_nr, self.requires_grad = is_output, tensor._output_nr, tensor._requires_grad
        self.grad_fn = None if is_output else tensor.grad_fn  # that of an output would be a reference cycle
        self.accumulator = tensor._accumulator
        self.unpack_hook = pair.unpack
        version = hook_input._counter[0]
        before, thread.grad_enabled = thread.grad_enabled, False
        try:
            self.content = pair.pack(hook_input)
        finally:
            thread.grad_enabled = before
        if hook_input._counter[0] != version:
            raise RuntimeError(messages.PACK_IN_PLACE)

    def restore(self, node: Node) -> Tensor:
        """Unpacks the tensor and connects it with the graph.

        Raises TypeError if the unpack hook returns anything but a tensor.
        """
        data = self.unpack_hook(self.content)
        if not isinstance(data, Methods):
            raise TypeError(messages.UNPACK_TYPE.format(name=type(data).__name__))
        if self.is_output:
            return node.attach_output(data._alias(), self.output_nr)
        if not self.requires_grad and not data.requires_grad:
            return data
        tensor = data._alias()
        tensor._grad_fn, tensor._output_nr = self.grad_fn, self.output_nr
        tensor._requires_grad, tensor._accumulator = self.requires_grad, self.accumulator
        return tensor


class PackedTensors(list[Any]):
    """The saved tensors of a node, if some of them are packed: each is a `PackedTensor`, a tensor, or None."""

    def tensors(self, node: Node) -> list[Tensor | None]:
        """The saved tensors, unpacked in PyTorch's order."""
        restored: list[Tensor | None] = [None] * len(self)
        for position in node.pack_order():
            restored[position] = node.saved_tensor(position)
        return restored

    def arrays(self, node: Node) -> list[Any]:
        """The saved tensors as arrays; 0-dimensional ones as scalars."""
        arrays = [None if t is None else t._array for t in self.tensors(node)]
        return [a if a is None or a.ndim else a[()] for a in arrays]


def pack_saved_tensors(node: Node, outputs: bool | None = None) -> None:
    """Packs the tensors that a new node saved, if a pair of hooks is active.

    Packs all of them, or with `outputs` only its outputs (True) or only the others (False).
    """
    if not active_hooks.pairs or not node.saved:
        return
    saved = PackedTensors(node.saved)
    for position in node.pack_order():
        tensor, output_nr = saved[position], node.saved_outputs.get(position)
        if tensor is None or isinstance(tensor, PackedTensor) or tensor._is_number or outputs is (output_nr is None):
            continue
        whole = tensor if output_nr is None else node.attach_output(tensor, output_nr)
        saved[position] = PackedTensor(whole, active_hooks.pairs[-1], whole, is_output=output_nr is not None)
    node.saved = saved


NOT_SAVED = -2
"""The version of a tensor that no rule of the node needs, so that it was not saved."""


class SavedTensor:
    """One saved tensor of a node, ``grad_fn._raw_saved_<name>``, which can have its own hooks."""

    def __init__(self, node: Node, position: int) -> None:
        self._node = node
        self._position = position

    def register_hooks(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        """Packs this tensor now, and unpacks it when needed. Raises RuntimeError if it was released, packed or None."""
        node, position = self._node, self._position
        if node.versions[position] == NOT_SAVED:
            raise RuntimeError(messages.SAVED_NONE)
        if node.saved is None:
            raise RuntimeError(messages.SAVED_FREED)
        tensor = node.saved[position]
        if tensor is None:
            raise RuntimeError(messages.SAVED_NONE)
        if isinstance(tensor, PackedTensor):
            raise RuntimeError(messages.SAVED_HOOKS_TWICE)
        output_nr = node.saved_outputs.get(position)
        whole = tensor if output_nr is None else node.attach_output(tensor, output_nr)
        packed = PackedTensor(whole, HookPair(pack_hook, unpack_hook), tensor._alias(), is_output=output_nr is not None)
        node.saved = PackedTensors([packed if i == position else t for i, t in enumerate(node.saved)])


# ----------------------------------------------------------------------------------------------------------------------
# What errors report in addition to PyTorch's text: the line that saved, wrote to or released a tensor.
#
# The line is known during a recording and in anomaly mode. It is added to the exception as a note, so that the text of
# the exception is PyTorch's.


def remember_write(tensor: Tensor) -> None:
    """Stores the current call stack in the version counter of `tensor`, if an error may need it."""
    if emit.channel is not None or anomaly_detection.mode.enabled:
        tensor._counter[1:] = [call_stack.stack()]  # type: ignore[list-item]  # a second element is for notes only


def released_error(node: Node) -> RuntimeError:
    """The error for reading a node's saved tensors after their release."""
    error = RuntimeError(messages.SECOND_BACKWARD)
    origin, by = _creation_line(node), _recorded_line(node, "freed_at")
    if origin:
        error.add_note(f"{node.name()} is of {origin}")
    if by:
        error.add_note(f"what it saved was freed by the backward pass of {by}")
    return error


def modified_error(node: Node, tensor: Tensor, text: str) -> RuntimeError:
    """The error for reading a saved tensor that was modified."""
    error = RuntimeError(text)
    origin, written = _creation_line(node), tensor._counter[1:]
    if origin:
        error.add_note(f"{node.name()} saved it in {origin}")
    if written:
        error.add_note(f"it was last written in {_frame_text(call_stack.frames(written[0]))}")  # type: ignore[arg-type]  # as above
    return error


def _creation_line(node: Node) -> str:
    recorded = _recorded_line(node, "creation_stack")
    if recorded or node.extras is None:
        return recorded
    stack = node.extras.metadata.get(anomaly_detection.STACK)
    return stack[-1].strip() if stack else ""


def _recorded_line(node: Node, slot: str) -> str:
    """Return the line of the recorded call stack in the node's `slot`; empty without a recording."""
    try:
        number = object.__getattribute__(node, slot)
    except AttributeError:
        return ""
    channel = None if node.seen is None else node.seen.channel
    return "" if channel is None else _frame_text(channel.frames(number))


def _frame_text(frames: tuple[Frame, ...]) -> str:
    """Return the innermost frame as a traceback shows it."""
    if not frames:
        return ""
    frame = frames[0]
    line: Any = getline(frame.path, frame.line).strip()
    where = f'File "{frame.path}", line {frame.line}, in {frame.function}'
    return f"{where}\n    {line}" if line else where


# ----------------------------------------------------------------------------------------------------------------------
# The nodes.


Grad = Any
"""A gradient in a running pass: an array or NumPy scalar, or a `Tensor` if the pass builds a graph."""

Edge = tuple["Node", int]
Metadata = tuple[tuple[int, ...], np.dtype[Any]]
"""Shape and dtype of one output; gradients that arrive there are converted to them."""

LAST_SEQUENCE_NR = 2**64 - 1
"""The sequence number of every `AccumulateGrad`, the highest: as in PyTorch, a leaf runs as soon as it is complete."""

next_sequence_nr = count().__next__


class Node:
    """The graph node of a tracked operation: its edges, and what its backward rules need.

    `saved` are the tensors that the op's rules use (None for one that no rule needs), and `versions` their version
    counters when they were saved. `saved` becomes None when they are released. `extras` is created when first needed.
    `seen` is set when an event with the node was emitted. Subclasses add the name and the rules: `op.OpNode` for
    declared operations, `tensor.AccumulateGrad` for leaves.
    """

    __slots__ = (
        "__weakref__",
        "attrs",
        "creation_stack",
        "extras",
        "freed_at",
        "next_edges",
        "outputs",
        "saved",
        "seen",
        "sequence_nr",
        "versions",
    )
    outputs: tuple[Metadata, ...]
    next_edges: Sequence[Edge | None]
    saved: Sequence[Tensor | None] | None
    versions: Sequence[int]
    attrs: dict[str, Any]
    sequence_nr: int
    extras: Extras | None
    seen: Seen | None
    is_first: ClassVar[bool] = False  # one of the first calls of a custom Function, see `instrumentation`
    creation_stack: int  # numbers of call stacks, set only during a recording
    freed_at: int

    def __init__(self) -> None:
        self.seen = None
        self.sequence_nr = next_sequence_nr()
        self.extras = None
        if anomaly_detection.mode.enabled:
            anomaly_detection.remember(self)
        self.next_edges = self.saved = self.versions = ()
        self.attrs = {}

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError(f"cannot pickle '{type(self).__name__}' object")

    @classmethod
    def name(cls) -> str:
        """PyTorch's name of the node, ``MulBackward0``; a few handwritten ones include their namespace."""
        class_name = cls.__name__
        return f"torch::autograd::{class_name}" if class_name in ("CopyBackwards", "NotImplemented") else class_name

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """One edge for each argument that can have a gradient; ``(None, 0)`` where none is needed."""
        return tuple((None, 0) if edge is None else edge for edge in self.by_argument(self.next_edges))

    def by_argument(self, values: Sequence[Any]) -> Sequence[Any]:
        """Reorders `values`, one per slot, into PyTorch's order: one for each argument that can have a gradient."""
        return values

    @property
    def metadata(self) -> dict[str, Any]:
        """A dictionary for notes about this node."""
        return self.with_extras().metadata

    def register_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls ``hook(grad_inputs, grad_outputs)`` after the backward rule; a tuple it returns replaces the first."""
        return RemovableHandle(self.with_extras().posthooks, hook)

    def register_prehook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls ``hook(grad_outputs)`` before the backward rule; a tuple it returns replaces them."""
        return RemovableHandle(self.with_extras().prehooks, hook)

    def with_extras(self) -> Extras:
        """The node's extras, created if it has none."""
        if self.extras is None:
            self.extras = Extras()
        return self.extras

    @property
    def _input_metadata(self) -> tuple[InputMetadata, ...]:
        return tuple([InputMetadata(shape, dtypes.of_numpy(dtype)) for shape, dtype in self.outputs])

    def _sequence_nr(self) -> int:
        return self.sequence_nr

    def __repr__(self) -> str:
        return f"<{type(self).__name__} object at {id(self):#x}>"

    def vjp(self, grads: Sequence[Grad | None], create_graph: bool) -> Sequence[Grad | None]:
        """The gradients of the op's inputs from those of its outputs; None for inputs without an edge."""
        raise NotImplementedError

    def describe(self, number: int) -> OpSeen:
        """The node's operation as an event."""
        raise NotImplementedError

    @property
    def saved_outputs(self) -> dict[int, int]:
        """The saved tensors that are outputs with a gradient: position among the saved ones -> output number."""
        return {}

    def saved_arrays(self) -> list[Any]:
        """The saved arrays; 0-dimensional ones as scalars. Raises RuntimeError if released or modified."""
        saved = self.saved
        if saved is None:
            raise released_error(self)
        if saved.__class__ is PackedTensors:
            return saved.arrays(self)
        arrays: list[Any] = []
        for tensor, version in zip(saved, self.versions):
            if tensor is None:
                arrays.append(None)
            elif tensor._counter[0] != version:
                return [self.saved_tensor(position) for position in self.pack_order()]  # the first one raises
            else:
                array = tensor._array
                arrays.append(array if array.ndim else array[()])  # scalar arithmetic is ten times as fast
        return arrays

    def saved_tensors(self) -> list[Tensor | None]:
        """The saved tensors, for a pass that builds a graph. Raises RuntimeError if released or modified."""
        saved = self.saved
        if saved.__class__ is PackedTensors:
            return saved.tensors(self)
        self.saved_arrays()
        return [self.saved_tensor(position) for position in range(len(saved or ()))]

    def saved_tensor(self, position: int) -> Tensor | None:
        """One saved tensor; an output has this node as its grad_fn. Raises RuntimeError if released or modified."""
        if self.versions[position] == NOT_SAVED:
            return None
        if self.saved is None:
            raise released_error(self)
        tensor = self.saved[position]
        if tensor is None:
            return None
        if isinstance(tensor, PackedTensor):
            return tensor.restore(self)
        if tensor._counter[0] != self.versions[position]:
            raise modified_error(self, tensor, self._modified_text(tensor, position))
        output_nr = self.saved_outputs.get(position)
        return tensor if output_nr is None else self.attach_output(tensor, output_nr)

    def attach_output(self, tensor: Tensor, output_nr: int) -> Tensor:
        """Connects a saved output with the graph again: it was saved without a grad_fn."""
        attach = None if self.extras is None else self.extras.attach
        return tensor._as_output_of(self, output_nr) if attach is None else attach(tensor)

    def pack_order(self) -> Sequence[int]:
        """The positions of the saved tensors, in the order in which PyTorch packs and unpacks them."""
        return range(len(self.saved or ()))

    def release(self) -> bool:
        """Releases the saved tensors. Returns whether there were any: a node that saved none can run again."""
        saved = self.saved
        if not saved or (saved[0] is None and all(version == NOT_SAVED for version in self.versions)):
            return False
        self.saved = None
        return True

    def _modified_text(self, tensor: Tensor, position: int) -> str:
        saved_output = self.saved_outputs.get(position)
        grad_fn, output_nr = (self, saved_output) if saved_output is not None else (tensor._grad_fn, tensor._output_nr)
        origin = "" if grad_fn is None else f"output {output_nr} of {plain_name(grad_fn)}"
        if tensor._is_stale_view():
            origin = "output 0 of AsStrided"  # PyTorch would make this node now; a message should not make nodes
        tensor_type = dtypes.of(tensor._array).tensor_type
        shape, version = tensor._array.shape, tensor._counter[0]
        hint = messages.ANOMALY_SHOWS if anomaly_detection.mode.enabled else messages.ANOMALY_HINT
        return messages.modified_in_place(tensor_type, shape, origin, version, self.versions[position], hint)


@cache
def saved_tensor(position: int) -> property:
    """The attribute ``_saved_<name>`` for a saved tensor.

    Reading it raises RuntimeError if the tensor was released or modified.
    """
    return property(lambda node: node.saved_tensor(position))


@cache
def raw_saved_tensor(position: int) -> property:
    """The attribute ``_raw_saved_<name>`` of a node, which accepts hooks for that tensor."""
    return property(lambda node: SavedTensor(node, position))


@cache
def saved_attribute(name: str) -> property:
    """The attribute ``_saved_<name>`` for a non-tensor argument.

    Reading it raises AttributeError if the node lacks it.
    """

    def read(node: Node) -> Any:
        if name in node.attrs:
            return node.attrs[name]
        raise AttributeError(f"'{type(node).__name__}' object has no attribute '_saved_{name}'")

    return property(read)


class GradientEdge(NamedTuple):
    """The graph edge at which the gradient of one tensor arrives.

    `ownership_token` exists because PyTorch has it; here nothing depends on it.
    """

    node: Node
    output_nr: int
    ownership_token: Node | None = None


@dataclass(frozen=True, slots=True)
class InputMetadata:
    """The shape and dtype of the gradient for one output of the forward operation."""

    shape: tuple[int, ...]
    dtype: dtypes.dtype


def plain_name(node: Node) -> str:
    """A node's name in PyTorch's messages: ``Mul`` for ``MulBackward0``, ``Sum1`` for ``SumBackward1``."""
    name = node.name()
    stem, _, number = name.rpartition("Backward")
    return stem + number.lstrip("0") if not number or number.isdigit() else name

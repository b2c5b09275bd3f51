"""The nodes of the backward graph, with their saved tensors and hooks.

A node's *outputs* below are those of the forward operation; in backward, gradients arrive there. An edge ``(node,
output_nr)`` identifies one such output. Releasing the saved tensors does not remove edges.

There is one node for each tracked operation, and one for each leaf: `AccumulateGrad`, see `tensor`. Nodes have hooks
and saved tensors. Saved tensors have their own hooks, which pack and unpack them. Nodes also know what errors report
about them.
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
from gviz.engine import anomaly_detection, dtypes, messages, watchers
from gviz.engine.methods import Methods
from gviz.engine.modes import thread
from gviz.events import OpSeen
from gviz.source import site
from gviz.source.site import Frame, StackKey

if TYPE_CHECKING:
    from gviz.engine.tensor import Tensor

# ----------------------------------------------------------------------------------------------------------------------
# Hooks: their handles, and where a node keeps them.


Hook = Callable[["Tensor"], "Tensor | None"]
Values = tuple["Tensor | None", ...]
Registered = dict[int, Callable[..., Any]]
"""Hooks of one kind by the id of their handle, in the order in which they run."""

_next_id = count().__next__

registered_at: dict[int, StackKey] = {}
"""Where hooks were registered, by the number of their handle: only those registered during a recording."""


class RemovableHandle:
    """Removes a hook: by ``handle.remove()``, or at the end of a ``with`` block."""

    def __init__(self, hooks: Registered, hook: Any) -> None:
        self.id = _next_id()
        self._hooks = hooks
        self._marks: tuple[dict[int, bool], ...] = ()
        hooks[self.id] = hook
        if emit.channel is not None:
            registered_at[self.id] = site.stack()

    def mark(self, *marked: dict[int, bool]) -> None:
        """Adds the hook to registries that define how it is called, until it is removed."""
        self._marks = marked
        for registry in marked:
            registry[self.id] = True

    def remove(self) -> None:
        """Removes the hook. A second call does nothing, even if the hook was registered again."""
        self._hooks.pop(self.id, None)
        registered_at.pop(self.id, None)
        for registry in self._marks:
            registry.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()


class Extras:
    """What few nodes have: hooks, retained gradients, metadata.

    `of_tensors` are the hooks of the node's outputs by output number, `before` and `after` the node's own. `retained`
    are the outputs that retain their gradient. `metadata` has notes, such as those of anomaly mode. `place` attaches a
    saved output to the graph if it is not an output of the node itself.
    """

    __slots__ = ("after", "before", "metadata", "of_tensors", "place", "retained")

    def __init__(self) -> None:
        self.of_tensors: dict[int, Registered] = {}
        self.retained: dict[int, weakref.ref[Tensor]] = {}
        self.before: Registered = {}
        self.after: Registered = {}
        self.metadata: dict[str, Any] = {}
        self.place: Callable[[Tensor], Tensor] | None = None


def hook_name(hook: object) -> str:
    """A hook's name in PyTorch's messages."""
    name: str = getattr(hook, "__name__", "<unknown>")
    return name


# ----------------------------------------------------------------------------------------------------------------------
# Hooks of saved tensors: `pack` receives each tensor that a node saves, `unpack` returns it.
#
# A pair of hooks is active in a thread, for all nodes made meanwhile, or is registered for one saved tensor.


class Pair(NamedTuple):
    """A pair of hooks for saved tensors."""

    pack: Callable[[Tensor], Any]
    unpack: Callable[[Any], Tensor]


class _Hooks(threading.local):
    """The active pairs of a thread, innermost last; `refusal` is the reason why none may be added."""

    refusal: str | None = None

    def __init__(self) -> None:
        self.pairs: list[Pair] = []


hooks = _Hooks()


def push(pair: Pair) -> None:
    """Activates a pair. Raises RuntimeError if that is disabled."""
    if not (callable(pair.pack) and callable(pair.unpack)):
        raise TypeError(messages.SAVED_HOOKS_CALLABLE.format(pack=repr(pair.pack), unpack=repr(pair.unpack)))
    if hooks.refusal is not None:
        raise RuntimeError(hooks.refusal)
    hooks.pairs.append(pair)
    watchers.add(1)


def pop() -> None:
    """Deactivates the innermost pair."""
    hooks.pairs.pop()
    watchers.add(-1)


class Packed:
    """A saved tensor as its pack hook returned it, with its position in the graph."""

    __slots__ = ("accumulator", "content", "grad_fn", "is_output", "output_nr", "requires_grad", "unpack")

    def __init__(self, tensor: Tensor, pair: Pair, shown: Tensor, *, is_output: bool) -> None:
        self.is_output, self.output_nr, self.requires_grad = is_output, tensor._output_nr, tensor._requires_grad
        self.grad_fn = None if is_output else tensor.grad_fn  # an output's would be a cycle
        self.accumulator = tensor._accumulator
        self.unpack = pair.unpack
        version = shown._counter[0]
        before, thread.grad_enabled = thread.grad_enabled, False
        try:
            self.content = pair.pack(shown)
        finally:
            thread.grad_enabled = before
        if shown._counter[0] != version:
            raise RuntimeError(messages.PACK_IN_PLACE)

    def restored(self, of: Node) -> Tensor:
        """The unpacked tensor at its position in the graph.

        Raises TypeError if the unpack hook returns anything else.
        """
        data = self.unpack(self.content)
        if not isinstance(data, Methods):
            raise TypeError(messages.UNPACK_TYPE.format(name=type(data).__name__))
        if self.is_output:
            return of.placed(data._alias(), self.output_nr)
        if not self.requires_grad and not data.requires_grad:
            return data
        tensor = data._alias()
        tensor._grad_fn, tensor._output_nr = self.grad_fn, self.output_nr
        tensor._requires_grad, tensor._accumulator = self.requires_grad, self.accumulator
        return tensor


class Packing(list[Any]):
    """The saved tensors of a node, if some are packed: each is a `Packed`, a tensor, or None."""

    def tensors(self, of: Node) -> list[Tensor | None]:
        """The saved tensors, unpacked in PyTorch's order."""
        restored: list[Tensor | None] = [None] * len(self)
        for position in of.order_of_saved():
            restored[position] = of.saved_tensor(position)
        return restored

    def arrays(self, of: Node) -> list[Any]:
        """The saved tensors as arrays; 0-dimensional ones as scalars."""
        arrays = [None if t is None else t._array for t in self.tensors(of)]
        return [a if a is None or a.ndim else a[()] for a in arrays]


def pack(node: Node, outputs: bool | None = None) -> None:
    """Packs the tensors that a new node saved, if a pair is active: all, only outputs, or all except outputs."""
    if not hooks.pairs or not node.saved:
        return
    saved = Packing(node.saved)
    for position in node.order_of_saved():
        tensor, output_nr = saved[position], node.saved_outputs.get(position)
        if tensor is None or isinstance(tensor, Packed) or tensor._is_number or outputs is (output_nr is None):
            continue
        whole = tensor if output_nr is None else node.placed(tensor, output_nr)
        saved[position] = Packed(whole, hooks.pairs[-1], whole, is_output=output_nr is not None)
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
        if isinstance(tensor, Packed):
            raise RuntimeError(messages.SAVED_HOOKS_TWICE)
        output_nr = node.saved_outputs.get(position)
        whole = tensor if output_nr is None else node.placed(tensor, output_nr)
        packed = Packed(whole, Pair(pack_hook, unpack_hook), tensor._alias(), is_output=output_nr is not None)
        node.saved = Packing([packed if i == position else t for i, t in enumerate(node.saved)])


# ----------------------------------------------------------------------------------------------------------------------
# What errors report in addition to PyTorch's text: the line that saved, wrote to or released a tensor.
#
# It is known during a recording and in anomaly mode. It is a note of the exception; the text stays PyTorch's.


def remember_write(tensor: Tensor) -> None:
    """Stores the current call stack in the version counter of `tensor`, if an error may need it."""
    if emit.channel is not None or anomaly_detection.mode.enabled:
        tensor._counter[1:] = [site.stack()]  # type: ignore[list-item]  # what follows the number is only for notes


def freed(node: Node) -> RuntimeError:
    """The error for reading saved tensors of a node after they were released."""
    error = RuntimeError(messages.SECOND_BACKWARD)
    origin, by = _creation_line(node), _recorded(node, "freed_at")
    if origin:
        error.add_note(f"{node.name()} is of {origin}")
    if by:
        error.add_note(f"what it saved was freed by the backward pass of {by}")
    return error


def modified(node: Node, tensor: Tensor, text: str) -> RuntimeError:
    """The error for reading a saved tensor that was modified."""
    error = RuntimeError(text)
    origin, written = _creation_line(node), tensor._counter[1:]
    if origin:
        error.add_note(f"{node.name()} saved it in {origin}")
    if written:
        error.add_note(f"it was last written in {_shown(site.frames(written[0]))}")  # type: ignore[arg-type]  # as above
    return error


def _creation_line(node: Node) -> str:
    recorded = _recorded(node, "made_at")
    if recorded or node.extras is None:
        return recorded
    stack = node.extras.metadata.get(anomaly_detection.STACK)
    return stack[-1].strip() if stack else ""


def _recorded(node: Node, slot: str) -> str:
    """Return the line of the recorded call stack in the node's `slot`; empty without a recording."""
    try:
        number = object.__getattribute__(node, slot)
    except AttributeError:
        return ""
    channel = None if node.seen is None else node.seen.channel
    return "" if channel is None else _shown(channel.frames(number))


def _shown(frames: tuple[Frame, ...]) -> str:
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

LAST = 2**64 - 1
"""The sequence number of every `AccumulateGrad`: it runs as soon as it is ready, as in PyTorch."""

next_sequence_nr = count().__next__


class Node:
    """The graph node of a tracked operation: its edges, and what its backward rules need.

    `saved` are the tensors that the op's rules use (None where no rule needs one), and `versions` their version
    counters when they were saved. `saved` becomes None once they are released. `extras` is created when first needed.
    Subclasses add the name and the rule: `op.OpNode` for declared operations, `tensor.AccumulateGrad` for leaves.
    """

    __slots__ = (
        "__weakref__",
        "attrs",
        "extras",
        "freed_at",
        "made_at",
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
    is_first: ClassVar[bool] = False  # only for a custom Function, whose first calls are kept whole
    made_at: int  # numbers of call stacks, set only during a recording
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
        kind = cls.__name__
        return f"torch::autograd::{kind}" if kind in ("CopyBackwards", "NotImplemented") else kind

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """One edge for each argument that can have a gradient; ``(None, 0)`` where none is needed."""
        return tuple((None, 0) if edge is None else edge for edge in self.places(self.next_edges))

    def places(self, of_slots: Sequence[Any]) -> Sequence[Any]:
        """Reorders values of the node's slots into PyTorch's order of the arguments that can have a gradient."""
        return of_slots

    @property
    def metadata(self) -> dict[str, Any]:
        """A dictionary for notes about this node."""
        return self.with_extras().metadata

    def register_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls ``hook(grad_inputs, grad_outputs)`` after the backward rule; a tuple it returns replaces the first."""
        return RemovableHandle(self.with_extras().after, hook)

    def register_prehook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls ``hook(grad_outputs)`` before the backward rule; a tuple it returns replaces them."""
        return RemovableHandle(self.with_extras().before, hook)

    def with_extras(self) -> Extras:
        """The node's extras, created if it has none."""
        if self.extras is None:
            self.extras = Extras()
        return self.extras

    @property
    def _input_metadata(self) -> tuple[InputMetadata, ...]:
        return tuple([InputMetadata(shape, dtypes.of_numpy(kind)) for shape, kind in self.outputs])

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
            raise freed(self)
        if saved.__class__ is Packing:
            return saved.arrays(self)
        arrays: list[Any] = []
        for tensor, version in zip(saved, self.versions):
            if tensor is None:
                arrays.append(None)
            elif tensor._counter[0] != version:
                return [self.saved_tensor(position) for position in self.order_of_saved()]  # the first one raises
            else:
                array = tensor._array
                arrays.append(array if array.ndim else array[()])  # scalar arithmetic is ten times as fast
        return arrays

    def saved_tensors(self) -> list[Tensor | None]:
        """The saved tensors, for a pass that builds a graph. Raises RuntimeError if released or modified."""
        saved = self.saved
        if saved.__class__ is Packing:
            return saved.tensors(self)
        self.saved_arrays()
        return [self.saved_tensor(position) for position in range(len(saved or ()))]

    def saved_tensor(self, position: int) -> Tensor | None:
        """One saved tensor; an output has this node as its grad_fn. Raises RuntimeError if released or modified."""
        if self.versions[position] == NOT_SAVED:
            return None
        if self.saved is None:
            raise freed(self)
        tensor = self.saved[position]
        if tensor is None:
            return None
        if isinstance(tensor, Packed):
            return tensor.restored(self)
        if tensor._counter[0] != self.versions[position]:
            raise modified(self, tensor, self._modified(tensor, position))
        output_nr = self.saved_outputs.get(position)
        return tensor if output_nr is None else self.placed(tensor, output_nr)

    def placed(self, tensor: Tensor, output_nr: int) -> Tensor:
        """A saved output attached to the graph again: it is saved without a grad_fn."""
        place = None if self.extras is None else self.extras.place
        return tensor._as_output_of(self, output_nr) if place is None else place(tensor)

    def order_of_saved(self) -> Sequence[int]:
        """The positions of the saved tensors, in the order in which PyTorch packs and unpacks them."""
        return range(len(self.saved or ()))

    def release(self) -> bool:
        """Releases the saved tensors. Returns whether there were any: a node that saved none can run again."""
        saved = self.saved
        if not saved or (saved[0] is None and all(version == NOT_SAVED for version in self.versions)):
            return False
        self.saved = None
        return True

    def _modified(self, tensor: Tensor, position: int) -> str:
        saved_output = self.saved_outputs.get(position)
        grad_fn, output_nr = (self, saved_output) if saved_output is not None else (tensor._grad_fn, tensor._output_nr)
        origin = "" if grad_fn is None else f"output {output_nr} of {plain_name(grad_fn)}"
        if tensor._is_stale_view():
            origin = "output 0 of AsStrided"  # PyTorch would make this node now; a message should not make nodes
        kind = dtypes.of(tensor._array).tensor_type
        shape, version = tensor._array.shape, tensor._counter[0]
        hint = messages.ANOMALY_SHOWS if anomaly_detection.mode.enabled else messages.ANOMALY_HINT
        return messages.modified_in_place(kind, shape, origin, version, self.versions[position], hint)


@cache
def saved_tensor(position: int) -> property:
    """The attribute ``_saved_<name>`` for a saved tensor. Reading it raises RuntimeError if released or modified."""
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
    """The graph edge where the gradient of one tensor arrives; `ownership_token` keeps nothing alive here."""

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

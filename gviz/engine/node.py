"""The nodes of the backward graph: one per tracked operation, and one `AccumulateGrad` per leaf.

A node's *outputs* below are those of the forward operation; backward, they are where gradients come in. An edge
``(node, output_nr)`` is one such place. Edges stay when saved tensors are freed; only the saved tensors go.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import count
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, NoReturn

import numpy as np

from gviz.emit import Seen
from gviz.engine import anomaly, dtypes, messages, notes
from gviz.engine.hooks import Extras, RemovableHandle
from gviz.engine.saved import Packed, Packing, SavedTensor, in_order
from gviz.events import OpSeen

if TYPE_CHECKING:
    from gviz.engine.op import Op
    from gviz.engine.tensor import Tensor

Grad = Any
"""A gradient in a running pass: an array or numpy scalar, or a `Tensor` if the pass builds a graph."""

Edge = tuple["Node", int]
Metadata = tuple[tuple[int, ...], np.dtype[Any]]
"""Shape and dtype of one output; a gradient arriving there is brought into this form."""

LAST = 2**64 - 1
"""Sequence number of every `AccumulateGrad`: it runs as soon as it is ready, as in PyTorch."""

next_sequence_nr = count().__next__


class Node:
    """What a tracked operation leaves behind: where gradients go next, and what its rules need.

    `saved` are the tensors named by the op's rules (None where no rule needs one), `versions` their version counters
    when they were saved; `saved` becomes None once they are released. `extras` is made when first needed. Subclasses,
    one per op, add the name, the rule and what is saved as attributes; a ``__getattr__`` for these would make every
    other attribute slower to read.
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
    op: ClassVar[Op]
    outputs: tuple[Metadata, ...]
    next_edges: Sequence[Edge | None]
    saved: Sequence[Tensor | None] | None
    versions: Sequence[int]
    attrs: dict[str, Any]
    sequence_nr: int
    extras: Extras | None
    seen: Seen | None
    is_first: ClassVar[bool] = False  # a function of the program's own may be, of which much is kept
    made_at: int  # the number of a call stack, as the next; only while somebody records
    freed_at: int

    def __init__(self) -> None:
        self.seen = None
        self._begin(next_sequence_nr())

    def _begin(self, sequence_nr: int) -> None:
        self.sequence_nr = sequence_nr
        self.extras = None
        if anomaly.mode.enabled:
            anomaly.remember(self)
        self.next_edges = self.saved = self.versions = ()
        self.attrs = {}

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError(f"cannot pickle '{type(self).__name__}' object")

    @classmethod
    def name(cls) -> str:
        """PyTorch's name of the node, ``MulBackward0``; the few that it wrote by hand carry their namespace."""
        kind = cls.__name__
        return f"torch::autograd::{kind}" if kind in ("CopyBackwards", "NotImplemented") else kind

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """Where gradients go, one pair per argument that can have one; ``(None, 0)`` where none is needed."""
        return tuple((None, 0) if edge is None else edge for edge in self.places(self.next_edges))

    def places(self, of_slots: Sequence[Any]) -> Sequence[Any]:
        """What belongs to each argument that can have a gradient, given what belongs to each slot."""
        op: Op | None = getattr(type(self), "op", None)
        return of_slots if op is None else op.places(of_slots)

    @property
    def metadata(self) -> dict[str, Any]:
        """A dictionary for anybody's notes about this node."""
        return self.with_extras().metadata

    def register_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(grad_inputs, grad_outputs)`` after the node's rule; a tuple it returns replaces the first."""
        return RemovableHandle(self.with_extras().after, hook)

    def register_prehook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(grad_outputs)`` before the node's rule; a tuple it returns replaces them."""
        return RemovableHandle(self.with_extras().before, hook)

    def with_extras(self) -> Extras:
        """The node's extras, made now if it has none."""
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
        """The gradients of the op's inputs, from those of its outputs; None where no edge wants one."""
        raise NotImplementedError

    def describe(self, number: int) -> OpSeen:
        """The node's operation as an event."""
        return self.op.describe(number)

    @property
    def saved_outputs(self) -> dict[int, int]:
        """Which of the saved tensors are outputs with a gradient: position among them -> output number."""
        return self.op.saved_outputs

    def saved_arrays(self) -> list[Any]:
        """The saved arrays, scalars where they have no dimensions. RuntimeError if freed or modified since."""
        saved = self.saved
        if saved is None:
            raise notes.freed(self)
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
        """The saved tensors for a pass that builds a graph. RuntimeError if freed or modified since."""
        saved = self.saved
        if saved.__class__ is Packing:
            return saved.tensors(self)
        self.saved_arrays()
        return [self.saved_tensor(position) for position in range(len(saved or ()))]

    def saved_tensor(self, position: int) -> Tensor | None:
        """One saved tensor; an output leads back to this node. RuntimeError if freed or modified since."""
        if self.saved is None:
            raise notes.freed(self)
        tensor = self.saved[position]
        if tensor is None:
            return None
        if isinstance(tensor, Packed):
            return tensor.restored(self)
        if tensor._counter[0] != self.versions[position]:
            raise notes.modified(self, tensor, self._modified(tensor, position))
        output_nr = self.saved_outputs.get(position)
        return tensor if output_nr is None else self.placed(tensor, output_nr)

    def placed(self, tensor: Tensor, output_nr: int) -> Tensor:
        """A saved output, kept without its place in the graph, at this place."""
        place = None if self.extras is None else self.extras.place
        return tensor._as_output_of(self, output_nr) if place is None else place(tensor)

    def order_of_saved(self) -> Sequence[int]:
        """The positions of what is saved, in the order in which PyTorch packs and unpacks it."""
        op: Op | None = getattr(type(self), "op", None)
        if op is None:
            return range(len(self.saved or ()))
        return in_order(op.saved_names, [i for i, name in enumerate(op.saved_names) if name in op.outputs])

    def release(self) -> bool:
        """Free the saved tensors; whether there was anything to free."""
        if not self.saved:
            return False
        self.saved = None
        return True

    def _modified(self, tensor: Tensor, position: int) -> str:
        saved_output = self.saved_outputs.get(position)
        grad_fn, output_nr = (self, saved_output) if saved_output is not None else (tensor._grad_fn, tensor._output_nr)
        origin = "" if grad_fn is None else f"output {output_nr} of {plain_name(grad_fn)}"
        if tensor._is_stale_view():
            origin = "output 0 of AsStrided"  # what PyTorch would make it now; a message should not make nodes
        kind = dtypes.of(tensor._array).tensor_type
        shape, version = tensor._array.shape, tensor._counter[0]
        hint = messages.ANOMALY_SHOWS if anomaly.mode.enabled else messages.ANOMALY_HINT
        return messages.modified_in_place(kind, shape, origin, version, self.versions[position], hint)


@cache
def saved_tensor(position: int) -> property:
    """The attribute ``_saved_<name>`` of a node for a saved tensor. RuntimeError if it was freed or modified since."""
    return property(lambda node: node.saved_tensor(position))


@cache
def raw_saved_tensor(position: int) -> property:
    """The attribute ``_raw_saved_<name>`` of a node, which takes hooks for that tensor."""
    return property(lambda node: SavedTensor(node, position))


@cache
def saved_attribute(name: str) -> property:
    """The attribute ``_saved_<name>`` of a node for an argument that is no tensor; AttributeError if it has none."""

    def read(node: Node) -> Any:
        if name in node.attrs:
            return node.attrs[name]
        raise AttributeError(f"'{type(node).__name__}' object has no attribute '_saved_{name}'")

    return property(read)


class GradientEdge(NamedTuple):
    """The place in a graph where the gradient of one tensor arrives; `ownership_token` keeps nothing alive here."""

    node: Node
    output_nr: int
    ownership_token: Node | None = None


@dataclass(frozen=True, slots=True)
class InputMetadata:
    """What a gradient for one output of the forward operation looks like."""

    shape: tuple[int, ...]
    dtype: dtypes.dtype


def plain_name(node: Node) -> str:
    """A node's name as PyTorch's messages write it: ``Mul`` for ``MulBackward0``, ``Sum1`` for ``SumBackward1``."""
    name = node.name()
    stem, _, number = name.rpartition("Backward")
    return stem + number.lstrip("0") if not number or number.isdigit() else name


class AccumulateGrad(Node):
    """The end of a graph at a leaf: what arrives here is added to the leaf's ``.grad``.

    There is one per leaf, held weakly by the leaf and strongly by the graphs that use it.
    """

    __slots__ = ("variable",)
    variable: Tensor

    def __init__(self, variable: Tensor) -> None:
        self.variable = variable
        self._begin(LAST)
        self.outputs = ((variable._array.shape, variable._array.dtype),)

    @property
    def seen(self) -> Seen | None:  # type: ignore[override]  # a leaf and its accumulator are one node
        """The announcement of the leaf."""
        return self.variable._seen

    @classmethod
    def name(cls) -> str:
        """PyTorch's name, which here differs from the class's."""
        return "torch::autograd::AccumulateGrad"

    def vjp(self, grads: Sequence[Grad | None], create_graph: bool) -> Sequence[Grad | None]:
        raise AssertionError("a leaf accumulates; it has no rule")

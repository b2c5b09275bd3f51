"""Traces a function into a static graph: each operation of the thread calls a `GraphRecorder`, which adds a node.

`trace` is the user's interface to it, and `cuda_graph_capture` adds fixed memory.

A tensor is identified by its array, which all its aliases share. A tensor that is unknown when an operation uses it
comes from outside: a parameter, a constant, or something the program made other than by operations.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any
from weakref import ref

import numpy as np

from gviz.engine import operation_watchers
from gviz.engine.array_storage import owner_of
from gviz.engine.jit import notices
from gviz.engine.jit.nested_tensors import NO_OUTPUT, Structure, flat, rebuilt
from gviz.engine.jit.static_graph import Form, Kind, Node, Ref, StaticGraph, needed, of_nodes
from gviz.engine.jit.tensor_interpreter import scope
from gviz.engine.modes import thread
from gviz.engine.op import Op
from gviz.engine.operation_lookup import Effect
from gviz.engine.ops.copying import clone
from gviz.engine.size import Size
from gviz.engine.tensor import Tensor, new_tensor
from gviz.source import call_stack
from gviz.values.value import Array

# ----------------------------------------------------------------------------------------------------------------------
# Shapes as the traced program sees them: numbers that notice when the program bases a decision on them.


_NUMPY = np.__path__[0]


class TracedSize(int):
    """One size of a traced tensor.

    Arithmetic on it gives another one; converting it to a number warns, as in PyTorch.
    """

    recorder: GraphRecorder

    @classmethod
    def of(cls, value: int, recorder: GraphRecorder) -> TracedSize:
        size = cls(value)
        size.recorder = recorder
        return size

    def __int__(self) -> int:
        self._read("integer")
        return plain_int(self)

    def __float__(self) -> float:
        self._read("float")
        return float(plain_int(self))

    def __bool__(self) -> bool:
        self._read("boolean")
        return plain_int(self) != 0

    def __hash__(self) -> int:
        return hash(plain_int(self))

    def _read(self, how: str) -> None:
        """Warn if the program asks, rather than the engine or NumPy."""
        frame = sys._getframe(1)
        while frame.f_back is not None and frame.f_code.co_filename == __file__:
            frame = frame.f_back
        asking = frame.f_code.co_filename
        if not (call_stack.is_hidden(asking) or asking.startswith(_NUMPY)):
            self.recorder.warns(notices.READING[how])


def _comparison(name: str) -> Callable[[TracedSize, Any], Any]:
    def compare(self: TracedSize, other: Any) -> Any:
        self._read("boolean")
        return getattr(int, name)(self, other)

    return compare


def _arithmetic(name: str) -> Callable[[TracedSize, Any], Any]:
    def compute(self: TracedSize, other: Any) -> Any:
        value = getattr(int, name)(self, other)
        return TracedSize.of(value, self.recorder) if type(value) is int else value

    return compute


for name in ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"):
    setattr(TracedSize, name, _comparison(name))
for name in ("add", "sub", "mul", "floordiv", "mod"):
    for method in (f"__{name}__", f"__r{name}__"):
        setattr(TracedSize, method, _arithmetic(method))


def plain_int(size: int) -> int:
    """The plain number of a size."""
    return int.__add__(size, 0)


def traced_shape(recorder: GraphRecorder, shape: tuple[int, ...]) -> Size:
    """A shape made of `TracedSize`."""
    return tuple.__new__(Size, [TracedSize.of(size, recorder) for size in shape])


def plain(value: Any) -> Any:
    """A copy of attributes in which sizes are plain numbers."""
    if isinstance(value, TracedSize):
        return plain_int(value)
    if type(value) in (tuple, list):
        return type(value)([plain(item) for item in value])
    if type(value) is dict:
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, Size):
        return tuple([plain(item) for item in value])
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{field.name: plain(getattr(value, field.name)) for field in fields(value)})
    return value


class GraphRecorder:
    """Collects nodes, and with `keep` the values of each. `names` maps the ids of parameters to their names.

    `warns` is called for what a graph cannot represent, see `notices`.
    """

    def __init__(
        self,
        name: str,
        *,
        names: Mapping[int, str] | None = None,
        keep: bool = False,
        warns: Callable[[str], None] | None = None,
    ) -> None:
        self.name = name
        self.nodes: list[Node] = []
        self.values: list[list[Array]] = []
        self.warns = warns or (lambda text: None)
        self._names = names or {}
        self._keep = keep
        self.tensors: dict[Ref, Tensor] = {}
        self._refs: dict[int, Ref] = {}
        self._alive: list[Any] = []  # so that no two arrays have the same id while one is known
        self._storages: dict[int, int] = {}
        self._writers: dict[int, int] = {}
        self._born: dict[int, ref[Tensor]] = {}
        self._switched: set[int] = set()
        self._grad_enabled = thread.grad_enabled
        self._written_inputs: set[int] = set()
        self._outside = call_stack.stack()

    def input(self, name: str, tensor: Tensor) -> None:
        """Adds the next input of the graph."""
        self._add(Node("input", (self._form(tensor._array),), name), [tensor])

    def graph(self, outputs: Sequence[Tensor]) -> StaticGraph:
        """The recorded graph, reduced to what these outputs, and writes, depend on."""
        refs = self.refs(outputs)
        numbers = needed(self.nodes, refs)
        self.values = [self.values[number] for number in numbers] if self._keep else []
        return of_nodes(self.name, self.nodes, numbers, refs)

    def knows(self, tensor: Tensor) -> bool:
        """Whether a tensor is an input, or was made by a recorded operation."""
        place = self._refs.get(id(tensor._array))
        return place is not None and self.nodes[place.node].kind in ("input", "op")

    def forget(self) -> None:
        """Drops all tensors; nothing more can be recorded."""
        self.tensors.clear()
        self._refs.clear()
        self._alive.clear()

    # The methods of `watchers.Recorder`

    def refs(self, tensors: Sequence[Tensor]) -> tuple[Ref, ...]:
        return tuple([self._refs.get(id(t._array)) or self._enter(t) for t in tensors])

    def ran(self, op: Op, refs: tuple[Ref, ...], attrs: dict[str, Any], outputs: Sequence[Tensor]) -> None:
        for tensor in outputs:
            if id(tensor._array) in self._refs:  # the forward returned its operand: two tensors, one array
                tensor._array = tensor._array.view()
        self._operation(op, refs, attrs, outputs, "new")

    def wrote(self, op: Op, refs: tuple[Ref, ...], attrs: dict[str, Any], target: Tensor) -> None:
        number = self._operation(op, refs, attrs, [target], "write")
        storage = self.nodes[number].outputs[0].storage
        self._writers[storage] = number
        self._warn_of_write(storage)

    def became(self, op: Op, refs: tuple[Ref, ...], attrs: dict[str, Any], target: Tensor) -> None:
        self._operation(op, refs, attrs, [target], "become")

    def copied(self, tensor: Tensor, copy: Tensor) -> None:
        self._operation(clone, self.refs([tensor]), {}, [copy], "new")

    def born(self, tensor: Tensor) -> None:
        self._born[id(tensor)] = ref(tensor)

    def read(self, tensor: Tensor, how: str) -> None:
        if self.knows(tensor):
            self.warns(notices.READING[how])

    def shape(self, tensor: Tensor) -> Size:
        return traced_shape(self, tensor._array.shape) if self.knows(tensor) else Size(tensor._array.shape)

    def switched(self, tensor: Tensor, how: str) -> None:
        if self.knows(tensor) and id(tensor) not in self._switched:
            self._switched.add(id(tensor))
            self._alive.append(tensor)
            self.warns(notices.SWITCHED.format(how=how))

    def drew(self) -> None:
        self.warns(notices.RANDOM)

    def accumulated(self) -> None:
        self.warns(notices.ACCUMULATED)

    def called(self, function: str) -> None:
        self.warns(notices.CUSTOM.format(function=function))

    # How nodes are made

    def _operation(
        self, op: Op, refs: tuple[Ref, ...], attrs: dict[str, Any], results: Sequence[Tensor], effect: Effect
    ) -> int:
        node = Node(
            "op",
            tuple([self._form(tensor._array) for tensor in results]),
            op=op,
            attrs=plain(attrs),
            inputs=refs,
            effect=effect,
            after=self._earlier_writes(refs),
            untracked=self._grad_enabled and not thread.grad_enabled,
            stack=self._inner(call_stack.stack()),
        )
        return self._add(node, results)

    def _add(self, node: Node, tensors: Sequence[Tensor]) -> int:
        number = len(self.nodes)
        self.nodes.append(node)
        for output_nr, tensor in enumerate(tensors):
            place = self._refs[id(tensor._array)] = Ref(number, output_nr)
            self.tensors[place] = tensor._alias()  # keeps the array alive, so that no other has its id
        if self._keep:
            self.values.append([np.array(tensor._array) for tensor in tensors])
        return number

    def _enter(self, tensor: Tensor) -> Ref:
        """Add a tensor from outside.

        Raises RuntimeError, as in PyTorch, for one whose gradient would leave the graph.
        """
        if tensor._grad_fn is not None:
            raise RuntimeError(notices.CONSTANT_WITH_HISTORY)
        is_parameter = tensor._is_parameter or tensor._requires_grad
        born = self._born.get(id(tensor))
        is_fresh = born is not None and born() is tensor and not (tensor._is_number or is_parameter)
        stored = new_tensor(tensor._array.copy(order="K")) if is_fresh else tensor
        attrs = {"number": tensor.number} if tensor._is_number else {}  # type: ignore[attr-defined]  # numbers have it
        kind: Kind = "parameter" if is_parameter else "constant"
        name = self._names.get(id(tensor), "")
        node = Node(kind, (self._form(tensor._array),), name, stored, is_fresh, attrs=attrs)
        self._entered(tensor, stored if is_fresh else None)
        return Ref(self._add(node, [tensor]))

    def _entered(self, tensor: Tensor, snapshot: Tensor | None) -> None:
        """Called for a tensor from outside; `snapshot` is its value then, if the program made it in this run."""

    def _inner(self, stack: call_stack.StackKey) -> call_stack.StackKey:
        """Return the part of a call stack inside the recorded function."""
        depth = len(stack) - len(self._outside)
        return stack[:depth] if depth >= 0 and stack[depth:] == self._outside else stack

    def _earlier_writes(self, refs: tuple[Ref, ...]) -> tuple[int, ...]:
        """Return the writes to the memory of operands, except those that made the operands."""
        writers = {self._writers.get(self.nodes[r.node].outputs[r.output_nr].storage) for r in refs}
        return tuple(sorted(n for n in writers - {r.node for r in refs} if n is not None))

    def _form(self, array: Array) -> Form:
        storage = self._storages.setdefault(self._known(array), len(self._storages))
        return Form(array.shape, array.dtype, array.strides, storage)

    def _known(self, array: Array) -> int:
        """Return a number for the memory of an array, valid while this recorder exists."""
        owner = owner_of(array)
        if id(owner) not in self._storages:
            self._alive.append(owner)
        return id(owner)

    def _warn_of_write(self, storage: int) -> None:
        for node in self.nodes:
            if node.kind != "input":
                return
            if node.outputs[0].storage == storage and storage not in self._written_inputs:
                self._written_inputs.add(storage)
                self.warns(notices.INPUT_WRITTEN.format(name=node.name))


def form_of(tensor: Tensor, like: Form) -> bool:
    """Whether a tensor has the shape, dtype and layout of a form."""
    array = tensor._array
    return array.shape == like.shape and array.dtype == like.dtype and array.strides == like.strides


@dataclass(frozen=True, slots=True)
class RecordedGraph:
    """A graph, the structures of its inputs and outputs, and, if kept, the values of each node."""

    graph: StaticGraph
    takes: Structure
    gives: Structure
    result: Any
    values: Sequence[Sequence[Array]]


def record(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    *,
    name: str,
    input_names: Sequence[str],
    parameter_names: Mapping[int, str] | None = None,
    warns: Callable[[str], None] | None = None,
    keep: bool = False,
) -> RecordedGraph:
    """Calls `function` on copies of the tensors in `args` and records its operations.

    Raises RuntimeError for arguments or a result that are not tensors or containers of them.
    """
    tensors, takes = flat(args)
    copies = [copied(tensor) for tensor in tensors]
    recorder = GraphRecorder(name, names=parameter_names, keep=keep, warns=warns)
    for input_name, tensor in zip(input_names, copies, strict=True):
        recorder.input(input_name, tensor)
    with operation_watchers.recording(recorder), scope(name, "tracing"):
        result = function(*rebuilt(takes, copies))
    if result is None:
        raise RuntimeError(NO_OUTPUT)
    outputs, gives = flat(result)
    if not outputs:
        raise RuntimeError(NO_OUTPUT)
    graph = recorder.graph(outputs)
    return RecordedGraph(graph, takes, gives, result, recorder.values)


def copied(tensor: Tensor) -> Tensor:
    """A leaf like `tensor` in its own memory."""
    copy = new_tensor(np.array(tensor._array, order="K"))
    copy._requires_grad = tensor.requires_grad
    return copy

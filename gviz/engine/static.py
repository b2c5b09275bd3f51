"""Define-and-run: a graph is built first, from nodes without values, and run later with a feed.

    with static.Graph() as graph:
        x = static.placeholder("x", (3,))
        y = torch.sin(x) * 2               # nothing is computed: y is a node
    graph.run(y, {x: torch.ones(3)})       # now it is

Operations are those of the engine. While building, shapes are known but values are not: reading one raises an error.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import wraps
from threading import Lock
from typing import Any, NoReturn

import numpy as np

from gviz import emit
from gviz.engine import dtypes, instrumentation, operation_watchers
from gviz.engine.arguments import kind_of
from gviz.engine.autograd.grad import grad
from gviz.engine.jit.cuda_graph_capture import CapturedSteps, CaptureRecorder
from gviz.engine.jit.static_graph import Ref, StaticGraph, kind, needed, of_nodes
from gviz.engine.modes import thread
from gviz.engine.op import Op
from gviz.engine.tensor import Tensor, new_tensor
from gviz.events import Named
from gviz.values.value import Array

__all__ = ["Graph", "gradients", "placeholder"]

NO_VALUE = (
    "{what} has no value until its graph is run: fetch it with run(), or compute with it in the graph's with block"
)


class _Here(threading.local):
    """Whether this thread may read the memory of nodes of graphs that it does not build: it runs or describes one."""

    looks: bool = False


_here = _Here()


@contextmanager
def _looking() -> Iterator[None]:
    before, _here.looks = _here.looks, True
    try:
        yield
    finally:
        _here.looks = before


class Symbolic(Tensor):
    """A node of a graph that is being built: it has a shape and a dtype, and no value.

    Only its `_builder` reads its memory, so that no operation outside its graph, or in another graph, uses it as a
    value.
    """

    __slots__ = ()
    _builder: _Builder

    @property
    def _array(self) -> Array:
        if not (_here.looks or self._builder is operation_watchers.graph_maker()):
            self._refuse()
        return _memory_of(self)

    @_array.setter
    def _array(self, array: Array) -> None:
        _set_memory_of(self, array)

    def __repr__(self) -> str:
        array = _memory_of(self)
        return f"<{_title(self)}: {array.dtype.name}{list(array.shape)}, no value until the graph is run>"

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise RuntimeError(NO_VALUE.format(what=_title(self)))

    __bool__ = __index__ = item = tolist = numpy = __array__ = _number = __format__ = __contains__ = _refuse


def _adapted(reading: Any) -> Any:
    """Return a property or method of tensors that does not depend on values, adapted to nodes."""
    if isinstance(reading, property):
        assert reading.fget is not None
        return property(_adapted(reading.fget))

    @wraps(reading)
    def adapted(node: Symbolic, *args: Any, **kwargs: Any) -> Any:
        with _looking():
            return reading(node, *args, **kwargs)

    return adapted


for _name in ("shape", "dtype", "ndim", "itemsize", "nbytes", "size", "dim", "numel", "stride", "element_size",
              "is_floating_point", "is_complex", "is_contiguous", "__len__"):  # fmt: skip
    setattr(Symbolic, _name, _adapted(getattr(Tensor, _name)))
_memory_of: Callable[[Tensor], Array] = Tensor._array.__get__  # type: ignore[attr-defined]  # of its slot
_set_memory_of: Callable[[Tensor, Array], None] = Tensor._array.__set__  # type: ignore[attr-defined]


class Placeholder(Symbolic):
    """An input of a graph, for which every run needs a value."""

    __slots__ = ("name",)  # its own, because that of other tensors is not writable
    _is_placeholder = True
    name: str


class Graph:
    """A graph: operations in its ``with`` block are added to it and not run."""

    def __init__(self) -> None:
        self._recorder = _Builder()
        self._building: AbstractContextManager[None] | None = None
        self._runs: dict[tuple[Ref, ...], CapturedSteps] = {}
        self._running = Lock()

    def __enter__(self) -> Graph:
        if operation_watchers.is_recording():
            raise RuntimeError("a graph cannot be built within a trace, a capture or another graph")
        self._building = operation_watchers.recording(self._recorder)
        self._building.__enter__()
        thread.is_building = True
        self._runs.clear()
        return self

    def __exit__(self, *error: Any) -> None:
        thread.is_building = False
        if self._building is not None:
            self._building.__exit__(*error)

    def run(self, fetches: Any, feed: Mapping[Any, Any] | None = None) -> Any:
        """Computes one node or several, running only what they depend on. Returns new tensors with their values.

        `feed` has a value for every placeholder needed, by the placeholder itself or its name. Raises RuntimeError for
        one that is missing or does not match, and for anything that is not a node of this graph. Threads run in turn,
        because runs share the memory.
        """
        several = isinstance(fetches, (tuple, list))
        targets = list(fetches) if several else [fetches]
        refs = self._refs(targets)
        numbers = needed(self._recorder.nodes, refs)
        with self._running, _looking():
            self._feed(numbers, feed or {})
            if refs not in self._runs:
                chosen = set(numbers)
                self._runs[refs] = CapturedSteps(
                    [step for step in self._recorder.steps if step.node in chosen], counts=True
                )
            self._runs[refs].replay("run")
            results = [new_tensor(np.array(node._array)) for node in targets]
        return type(fetches)(results) if several else results[0]

    def graph(self, *fetches: Tensor) -> StaticGraph:
        """The static graph of what these nodes depend on."""
        refs = self._refs(fetches)
        return of_nodes("graph", self._recorder.nodes, needed(self._recorder.nodes, refs), refs)

    def _refs(self, nodes: Sequence[Any]) -> tuple[Ref, ...]:
        with _looking():
            return tuple([self._ref(node) for node in nodes])

    def _ref(self, node: Any) -> Ref:
        if not isinstance(node, Tensor) or not self._recorder.knows(node):
            raise RuntimeError(f"{_title(node)} is no node of this graph")
        return self._recorder.refs([node])[0]

    def _feed(self, numbers: Sequence[int], feed: Mapping[Any, Any]) -> None:
        named = {key.name if isinstance(key, Placeholder) else key: value for key, value in feed.items()}
        unknown = [name for name in named if name not in self._recorder.placeholders]
        if unknown:
            raise RuntimeError(f"this graph has no placeholder {_title(unknown[0])}")
        for name, holder in self._recorder.placeholders.items():
            if name in named:
                self._set(holder, named[name])
            elif self._ref(holder).node in _used(self._recorder, numbers):
                text = kind(self._recorder.nodes[self._ref(holder).node].outputs[0])
                raise RuntimeError(f"You must feed a value for placeholder '{name}' of {text}")

    def _set(self, holder: Placeholder, value: Any) -> None:
        array = value._array if isinstance(value, Tensor) else np.asarray(value)
        own: Array = holder._array
        if array.shape != own.shape:
            shapes = f"shape {list(array.shape)} for {_title(holder)} of shape {list(own.shape)}"
            raise RuntimeError(f"Cannot feed value of {shapes}")
        if array.dtype.kind not in "buif" or not dtypes.castable(array.dtype, own.dtype):
            raise RuntimeError(f"Cannot feed value of {array.dtype.name} for {_title(holder)} of {own.dtype.name}")
        own[...] = array
        channel = emit.channel
        if channel is not None:
            instrumentation.seen(channel, holder)
            holder._counter[0] += 1
            instrumentation.computed(channel, holder)


def placeholder(name: str, shape: Sequence[int] = (), dtype: Any = None, *, requires_grad: bool = False) -> Placeholder:
    """An input of the graph being built. Raises RuntimeError outside a graph, or for a name that it already has."""
    builder = operation_watchers.graph_maker()
    if not isinstance(builder, _Builder):
        raise RuntimeError("a placeholder belongs to a graph: make it in the block of `with static.Graph()`")
    if name in builder.placeholders:
        raise RuntimeError(f"the graph has a placeholder '{name}' already")
    element_type = kind_of("placeholder", {"dtype": dtype}) if dtype is not None else dtypes.get_default_dtype()
    stand_in = np.random.default_rng(len(builder.placeholders)).uniform(0.1, 1, tuple(shape)).astype(element_type.numpy)
    holder: Placeholder = new_tensor(np.asarray(stand_in), Placeholder)  # type: ignore[assignment]
    holder._requires_grad = requires_grad
    holder.name, holder._builder = name, builder
    builder.add(name, holder)
    channel = emit.channel
    if channel is not None:
        channel.emit(Named(instrumentation.seen(channel, holder).node, name))
    return holder


def gradients(of: Tensor, with_respect_to: Tensor | Sequence[Tensor]) -> list[Tensor]:
    """The nodes that compute the gradients of `of`, added to the graph being built."""
    if not isinstance(operation_watchers.graph_maker(), _Builder):
        raise RuntimeError("gradients belong to a graph: ask for them in the block of `with static.Graph()`")
    targets = [with_respect_to] if isinstance(with_respect_to, Tensor) else list(with_respect_to)
    return [gradient for gradient in grad(of, targets) if gradient is not None]


class _Builder(CaptureRecorder):
    """Records operations on stand-ins, whose numbers are never read."""

    def __init__(self) -> None:
        super().__init__()
        self.placeholders: dict[str, Placeholder] = {}
        self._foreign: list[tuple[Array, Array]] = []

    def add(self, name: str, holder: Placeholder) -> None:
        self.placeholders[name] = holder
        self.input(name, holder)

    def ran(self, op: Op, refs: tuple[Ref, ...], attrs: dict[str, Any], outputs: Sequence[Tensor]) -> None:
        super().ran(op, refs, attrs, outputs)
        for tensor in outputs:
            tensor.__class__ = Symbolic
            tensor._builder = self  # type: ignore[attr-defined]  # nodes have it

    def wrote(self, op: Op, refs: tuple[Ref, ...], attrs: dict[str, Any], target: Tensor) -> None:
        for array, before in self._foreign:
            if np.may_share_memory(array, target._array):
                array[...] = before
                raise RuntimeError(f"{op.name}_ writes to a tensor from outside, while nothing runs: a graph is built")
        super().wrote(op, refs, attrs, target)

    def _entered(self, tensor: Tensor, snapshot: Tensor | None) -> None:
        super()._entered(tensor, snapshot)
        if snapshot is None and not tensor._is_number:
            self._foreign.append((tensor._array, tensor._array.copy()))

    def read(self, tensor: Tensor, how: str) -> None:
        if how not in ("len", "iteration"):
            raise RuntimeError(NO_VALUE.format(what=_title(tensor)))


def _used(recorder: _Builder, numbers: Sequence[int]) -> set[int]:
    """Return the nodes that other nodes of a run use; every placeholder is kept."""
    return {ref.node for number in numbers for ref in recorder.nodes[number].inputs}


def _title(node: object) -> str:
    if isinstance(node, Placeholder):
        return f"placeholder '{node.name}'"
    return "a node" if isinstance(node, Symbolic) else repr(node)[:60]

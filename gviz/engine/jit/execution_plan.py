"""Plans how a static graph runs on arrays (forwards, casts and buffers), and runs it.

Every line of a plan does what `apply` does for one operation: 0-dimensional operands of operators are NumPy scalars,
and dtypes are promoted. The result of a ufunc is written to a free buffer, if that gives the same bits. The results
that a graph returns, and everything that shares memory with them, are new in every run.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from types import CodeType
from typing import Any

import numpy as np

from gviz.engine.jit.static_graph import Form, Node, Ref, StaticGraph
from gviz.engine.modes import thread
from gviz.engine.op import Op, promote_operands
from gviz.engine.tensor import Tensor, new_tensor
from gviz.values.value import Array

UFUNCS: dict[Any, Any] = {
    operator.add: np.add,
    operator.sub: np.subtract,
    operator.mul: np.multiply,
    operator.truediv: np.true_divide,
    operator.neg: np.negative,
}
"""The ufuncs for operators on arrays."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The compiled function ``run(inputs...)``, the values of its names, its buffers, and what it writes to."""

    code: CodeType
    text: str
    names: dict[str, Any]
    buffers: dict[str, Form]
    written: tuple[Tensor, ...]
    written_inputs: tuple[int, ...]


def planned(graph: StaticGraph) -> Plan:
    """Returns the plan of a graph."""
    writing = _PlanWriter(graph)
    for number, node in enumerate(graph.nodes):
        writing.node(number, node)
    text = writing.text()
    code = compile(text, "<plan>", "exec")
    written = [n for n, node in enumerate(graph.nodes) if node.op is None and not node.fresh]
    counts = [(n, writing.writes.count(graph.nodes[n].outputs[0].storage)) for n in written]
    outside = tuple([t for n, times in counts for t in [graph.nodes[n].tensor] * times if t is not None])
    inputs = tuple([n for n, times in counts for _ in range(times) if graph.nodes[n].kind == "input"])
    return Plan(code, text, writing.names, writing.buffers.forms, outside, inputs)


class _PlanWriter:
    """Generates the text of a plan. A value has up to two variables: the array, and its scalar."""

    def __init__(self, graph: StaticGraph) -> None:
        self.graph = graph
        self.names: dict[str, Any] = {"asarray": np.asarray}
        self.writes = [graph.form(node.inputs[0]).storage for _, node in graph.operations() if node.effect == "write"]
        self.buffers = Buffers(graph)
        self._written = frozenset(self.writes)
        self._shared = _shared_storages(graph)
        self._lines: list[str] = []
        self._scalars: dict[Ref, str] = {}
        self._arrays: dict[Ref, str] = {}

    def text(self) -> str:
        takes = ", ".join(f"v{n}" for n, node in enumerate(self.graph.nodes) if node.kind == "input")
        gives = "".join(f"{self._scalars.get(ref) or self._arrays[ref]}, " for ref in self.graph.outputs)
        return "\n ".join([f"def run({takes}):", *self._lines, f"return ({gives})"]) + "\n"

    def node(self, number: int, node: Node) -> None:
        """Generates the line of one node."""
        if node.op is None:
            self._from_outside(number, node)
        elif node.effect == "write":
            self._write(number, node, node.op)
        else:
            self._operation(number, node, node.op)
        self._lines += [f"del v{n}" for n in self.buffers.dropped_after(number)]

    def _from_outside(self, number: int, node: Node) -> None:
        ref = Ref(number)
        self._arrays[ref] = f"v{number}"
        if node.tensor is None:
            return
        name = f"t{number}"
        is_number = node.tensor._is_number
        if is_number:
            self.names[f"s{number}"] = node.tensor._array[()]
            self._scalars[ref] = f"s{number}"
        if is_number or (node.fresh and node.outputs[0].storage not in self._written | self.buffers.escaping):
            self.names[f"v{number}"] = node.tensor._array
            return
        self.names[name] = node.tensor._array if node.fresh else node.tensor
        self._lines.append(f"v{number} = {name}.copy('K')" if node.fresh else f"v{number} = {name}._array")

    def _operation(self, number: int, node: Node, op: Op) -> None:
        form = node.outputs[0]
        ufunc = ufunc_of(op)
        call, all_scalars = self._call(number, node, op)
        ref = Ref(number)
        if op.has_several_outputs:
            self._lines.append(f"v{number} = {call}")
            for output_nr in range(len(node.outputs)):
                self._lines.append(f"v{number}_{output_nr} = asarray(v{number}[{output_nr}])")
                self._arrays[Ref(number, output_nr)] = f"v{number}_{output_nr}"
        elif not form.shape and ufunc is not None and all_scalars and form.storage not in self._shared:
            self._lines.append(f"v{number} = {call}")
            self._scalars[ref] = f"v{number}"
        elif not form.shape:
            self._lines.append(f"v{number} = asarray({call})")
            self._arrays[ref] = f"v{number}"
        else:
            target = self.buffers.for_result(number, node) if ufunc else None
            if target is None:
                self._lines.append(f"v{number} = {call}")
            else:
                self.names[f"u{number}"] = ufunc
                self._lines.append(f"v{number} = u{number}({self._operands(node, op)[0]}, {place(ufunc, target)})")
            self._arrays[ref] = f"v{number}"

    def _write(self, number: int, node: Node, op: Op) -> None:
        target = self._array(node.inputs[0])
        self._lines.append(f"v{number} = {target}")
        self._lines.append(f"v{number}[...] = {self._call(number, node, op)[0]}")
        self._arrays[Ref(number)] = f"v{number}"

    def _call(self, number: int, node: Node, op: Op) -> tuple[str, bool]:
        """Return the call of an op's forward, and whether all its operands are scalars."""
        forward = op.forward if op.is_operator or not node.attrs else partial(op.forward, **node.attrs)
        self.names[f"f{number}"] = forward
        operands, all_scalars = self._operands(node, op)
        return f"f{number}({operands})", all_scalars

    def _operands(self, node: Node, op: Op) -> tuple[str, bool]:
        forms = [self.graph.form(ref) for ref in node.inputs]
        dtypes = casts(op, forms)
        takes_scalars = op.is_operator or isinstance(op.forward, np.ufunc)
        texts = []
        for ref, form, cast in zip(node.inputs, forms, dtypes, strict=True):
            text = self._scalar(ref) if takes_scalars and not form.shape else self._array(ref)
            if cast is not None:
                self.names[f"d_{cast.name}"] = cast
                text = f"{text}.astype(d_{cast.name})"
            texts.append(text)
        return ", ".join(texts), takes_scalars and not any(form.shape for form in forms)

    def _scalar(self, ref: Ref) -> str:
        """Return a 0-dimensional value as a NumPy scalar, for which arithmetic is ten times as fast."""
        if ref not in self._scalars:
            name = self._arrays[ref]
            if self.graph.form(ref).storage in self._written:
                return f"{name}[()]"
            self._lines.append(f"s{ref.node}_{ref.output_nr} = {name}[()]")
            self._scalars[ref] = f"s{ref.node}_{ref.output_nr}"
        return self._scalars[ref]

    def _array(self, ref: Ref) -> str:
        if ref not in self._arrays:
            self._lines.append(f"a{ref.node} = asarray(v{ref.node})")
            self._arrays[ref] = f"a{ref.node}"
        return self._arrays[ref]


def ufunc_of(op: Op) -> Callable[..., Any] | None:
    """The ufunc of an op's forward, if it gives the same with and without ``out``; else None."""
    if op.memory != "new" or op.has_several_outputs:
        return None
    if isinstance(op.forward, np.ufunc):
        return op.forward
    ufunc: Callable[..., Any] | None = UFUNCS.get(op.forward)
    return ufunc


def place(ufunc: Any, target: str) -> str:
    """The argument for a ufunc's result. It is positional: a keyword costs a quarter of a small operation."""
    return f"out={target}" if ufunc in (np.maximum, np.minimum) else target  # NumPy deprecates these by position


def casts(op: Op, forms: Sequence[Form | Array]) -> list[np.dtype[Any] | None]:
    """The dtype that each operand is cast to first, None if it has that dtype already."""
    arrays = [np.zeros((1,) * len(form.shape), form.dtype) for form in forms]
    if not op.promotes or not (op.promotes is not True or arrays[0].dtype is not arrays[-1].dtype):
        return [None] * len(forms)
    common = promote_operands(arrays, op.promotes)
    return [None if new.dtype == old.dtype else new.dtype for new, old in zip(common, arrays, strict=True)]


def _shared_storages(graph: StaticGraph) -> frozenset[int]:
    """Return the memory that more than one value uses."""
    counts = Counter(form.storage for node in graph.nodes for form in node.outputs)
    return frozenset([storage for storage, count in counts.items() if count > 1])


# ----------------------------------------------------------------------------------------------------------------------
# Assigns the results of a plan to buffers, by how long each memory is needed.


class Buffers:
    """Assigns buffers to results, and takes them back after the last use of everything in them.

    `forms` are the buffers that must exist, by name. `escaping` is the memory that outlives a run, which gets no
    buffer.
    """

    def __init__(self, graph: StaticGraph) -> None:
        self.graph = graph
        self.forms: dict[str, Form] = {}
        self.escaping = frozenset([graph.form(ref).storage for ref in graph.outputs])
        self._last = _last_uses(graph)
        self._ending: dict[int, list[int]] = {}
        for storage, number in self._last.items():
            self._ending.setdefault(number, []).append(storage)
        self._names: dict[int, str] = {}
        self._free: dict[tuple[object, ...], list[str]] = {}
        self._dropped: dict[int, list[int]] = _dropped(graph, self._last, self.escaping)

    def for_result(self, number: int, node: Node) -> str | None:
        """The buffer for the result of a pointwise operation, or None if it must have its own memory.

        It may be the buffer of an operand whose last use this is.
        """
        self._take_back(number)
        form = node.outputs[0]
        if form.storage in self.escaping or not _is_dense(form):
            return None
        free = self._free.setdefault((form.shape, form.dtype, form.strides), [])
        if free:
            name = free.pop()
        else:
            name = f"b{len(self.forms)}"
            self.forms[name] = form
        self._names[form.storage] = name
        return name

    def dropped_after(self, number: int) -> list[int]:
        """The nodes whose results, in memory of their own, are not needed after this one."""
        self._take_back(number)
        owned = self._names
        return [n for n in self._dropped.get(number, ()) if self.graph.nodes[n].outputs[0].storage not in owned]

    def _take_back(self, number: int) -> None:
        for storage in self._ending.pop(number, ()):
            name = self._names.pop(storage, None)
            if name is not None:
                form = self.forms[name]
                self._free.setdefault((form.shape, form.dtype, form.strides), []).append(name)


def _last_uses(graph: StaticGraph) -> dict[int, int]:
    """Return the last node that makes, reads or writes each memory."""
    last: dict[int, int] = {}
    for number, node in enumerate(graph.nodes):
        for form in (*node.outputs, *[graph.form(ref) for ref in node.inputs]):
            last[form.storage] = number
    return last


def _dropped(graph: StaticGraph, last: dict[int, int], escaping: frozenset[int]) -> dict[int, list[int]]:
    """Return the arrays that can be freed after each node: those of nodes with one output that is not returned."""
    dropped: dict[int, list[int]] = {}
    for number, node in graph.operations():
        form = node.outputs[0]
        if len(node.outputs) == 1 and form.shape and form.storage not in escaping:
            dropped.setdefault(last[form.storage], []).append(number)
    return dropped


def _is_dense(form: Form) -> bool:
    """Return whether the elements have no gaps, in any order of dimensions."""
    expected = form.dtype.itemsize
    for stride, size in sorted(zip(form.strides, form.shape, strict=True)):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return expected > 0


# ----------------------------------------------------------------------------------------------------------------------
# Runs a static graph on arrays: without tensors, nodes or the user's Python code, in planned buffers.
#
# The plan is a straight-line function on local variables, generated as text and compiled once (`planned`). The
# text contains nothing from the graph but numbers. Buffers belong to one running plan: a second thread gets its own.

Run = Callable[..., tuple[Any, ...]]


class Executor:
    """The plan of one graph, made at its first run, and its idle instances."""

    def __init__(self, graph: StaticGraph) -> None:
        self._graph = graph
        self._plan: Plan | None = None
        self._idle: list[Run] = []

    def run(self, inputs: Sequence[Tensor]) -> list[Tensor]:
        """The outputs for inputs of the recorded shapes, dtypes and layouts. Raises what the operations raise."""
        try:
            run = self._idle.pop()
        except IndexError:
            run = self.instance()
        try:
            results = thread.quietly(run, *[t._array for t in inputs])
        except ValueError as error:
            raise RuntimeError(str(error)) from error
        finally:
            self._idle.append(run)
        assert self._plan is not None
        for written in self._plan.written:
            written._counter[0] += 1
        for place in self._plan.written_inputs:
            inputs[place]._counter[0] += 1
        return [new_tensor(a if a.__class__ is np.ndarray else np.asarray(a)) for a in results]

    def instance(self) -> Run:
        """The plan as a function of the input arrays, with its own buffers."""
        if self._plan is None:
            self._plan = planned(self._graph)
        space = dict(self._plan.names)
        for name, form in self._plan.buffers.items():
            space[name] = buffer(form.shape, form.dtype, form.strides)
        exec(self._plan.code, space)
        run: Run = space["run"]
        return run


def buffer(shape: tuple[int, ...], dtype: np.dtype[Any], strides: tuple[int, ...]) -> Array:
    """New uninitialized memory for a dense array with these strides."""
    order = sorted(range(len(shape)), key=lambda dim: -strides[dim])
    memory = np.empty([shape[dim] for dim in order], dtype)
    return memory.transpose(np.argsort(order)) if order else memory


def is_planned(graph: StaticGraph) -> bool:
    """Whether a plan gives the same as the operations: sizes are known, and no output shares memory with anything."""
    if graph.dynamic:
        return False
    outside = {node.outputs[0].storage for node in graph.nodes if node.op is None and not node.fresh}
    if any(node.effect == "become" and node.outputs[0].storage in outside for node in graph.nodes):
        return False
    storages = [graph.form(ref).storage for ref in graph.outputs]
    return len(set(storages)) == len(storages) and outside.isdisjoint(storages)

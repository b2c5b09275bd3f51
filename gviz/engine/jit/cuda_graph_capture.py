"""Capture as with a CUDA graph: operations are captured once, and run again in the same memory.

`gviz.engine.graphs` and ``torch.cuda.CUDAGraph`` use it. A graph of `gviz.engine.jit.trace` has no memory of its own.

Every tensor that the program holds keeps its array. A replay reads the current inputs and writes every result to the
memory that it had during the capture. Views need no step, because their memory changes with their base. Results that
the program does not hold share memory (`ReleasedMemory`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from heapq import heappop, heappush
from typing import Any, NoReturn
from weakref import ref

import numpy as np

from gviz import emit
from gviz.engine import instrumentation
from gviz.engine.array_storage import address_of, owner_of
from gviz.engine.jit import notices
from gviz.engine.jit.execution_plan import casts, place, ufunc_of
from gviz.engine.jit.graph_tracer import GraphRecorder
from gviz.engine.jit.static_graph import Ref
from gviz.engine.jit.tensor_interpreter import scope
from gviz.engine.modes import thread
from gviz.engine.op import Op, compute
from gviz.engine.operation_lookup import is_by_mask, is_sized_by_data
from gviz.engine.size import Size
from gviz.engine.tensor import Tensor
from gviz.values.value import Array

NOT_PERMITTED = "operation not permitted when stream is capturing: {why}"
_READ = "{what} reads a value, and a replay, which runs operations only, would not read it again"


@dataclass(frozen=True, slots=True)
class Step:
    """The operation of a node on fixed memory. Without `op`, the step copies its operand to its output."""

    node: int
    op: Op | None
    attrs: dict[str, Any]
    operands: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]


class CaptureRecorder(GraphRecorder):
    """Collects steps, and raises RuntimeError, with the reason, for everything that a replay cannot repeat."""

    def __init__(self) -> None:
        super().__init__("captured")
        self.steps: list[Step] = []

    def settled(self) -> list[Step]:
        """Ends the recording and returns the steps. Results without another reference share memory."""
        released = ReleasedMemory(self.steps)
        self.forget()
        released.settle()
        return self.steps

    def ran(self, op: Op, refs: tuple[Ref, ...], attrs: dict[str, Any], outputs: Sequence[Tensor]) -> None:
        super().ran(op, refs, attrs, outputs)
        self._refuse_dynamic(op, refs)
        if op.memory == "new":
            self._step(op, attrs, refs, outputs)

    def wrote(self, op: Op, refs: tuple[Ref, ...], attrs: dict[str, Any], target: Tensor) -> None:
        super().wrote(op, refs, attrs, target)
        self._step(op, attrs, refs, [target])

    def copied(self, tensor: Tensor, copy: Tensor) -> None:
        super().copied(tensor, copy)
        self.steps.append(Step(len(self.nodes) - 1, None, {}, (tensor._alias(),), (copy._alias(),)))

    def read(self, tensor: Tensor, how: str) -> None:
        what = notices.READING[how].partition(" might")[0]
        if how not in ("len", "iteration"):  # sizes cannot change
            self._refuse(_READ.format(what=what[0].lower() + what[1:]))

    def shape(self, tensor: Tensor) -> Size:
        return Size(tensor._array.shape)

    def drew(self) -> None:
        self._refuse("random numbers are drawn outside of operations, and a replay would repeat those of the capture")

    def called(self, function: str) -> None:
        self._refuse(f"{function} is a custom Function, whose forward is Python and cannot be run again")

    def switched(self, tensor: Tensor, how: str) -> None:
        if how != "requires_grad_()":
            self._refuse(f"{how} changes where a tensor lies, and a replay writes to where it was")

    def accumulated(self) -> None:
        """Allowed: a pass consists of operations here, and ``.grad`` is memory like any other."""

    def _step(self, op: Op, attrs: dict[str, Any], refs: tuple[Ref, ...], outputs: Sequence[Tensor]) -> None:
        operands = tuple([self.tensors[ref] for ref in refs])
        results = tuple([t._alias() for t in outputs])
        self.steps.append(Step(len(self.nodes) - 1, op, dict(attrs), operands, results))

    def _entered(self, tensor: Tensor, snapshot: Tensor | None) -> None:
        if snapshot is not None:
            self.steps.append(Step(len(self.nodes), None, {}, (snapshot,), (tensor._alias(),)))

    def _refuse_dynamic(self, op: Op, refs: tuple[Ref, ...]) -> None:
        others = [self.tensors[ref]._array.dtype for ref in refs[1:]]
        if is_sized_by_data(op, others):
            how = "indexing by a mask" if is_by_mask(op, others) else op.name
            self._refuse(f"the size of what {how} gives depends on data, and buffers are of a fixed size")

    def _refuse(self, why: str) -> NoReturn:
        raise RuntimeError(NOT_PERMITTED.format(why=why))


class CapturedSteps:
    """The steps of one capture, or some of them, ready to run again.

    With `counts`, a replay counts as a write. Without, it does not, so that gradients of the capture can still be
    computed.
    """

    def __init__(self, steps: Sequence[Step], *, counts: bool = False) -> None:
        self._steps, self._counts = steps, counts
        self._run = _compiled(steps)

    def replay(self, name: str = "replay") -> None:
        """Runs all steps on the current content of the memory. Emits what each step wrote."""
        channel = emit.channel
        if channel is None:
            thread.quietly(self._run)
            return
        with scope(name, "captured graph"):
            for step in self._steps:
                _run_step(step)
                for tensor in step.outputs:
                    tensor._counter[0] += self._counts
                    instrumentation.computed(channel, tensor)


def _run_step(step: Step) -> None:
    if step.op is None:
        step.outputs[0]._array[...] = step.operands[0]._array
        return
    result = compute(step.op, step.operands, step.attrs)
    for tensor, array in zip(step.outputs, result if step.op.has_several_outputs else (result,), strict=True):
        tensor._array[...] = array


def _compiled(steps: Sequence[Step]) -> Callable[[], None]:
    """Compile the steps to one function, see `execution_plan`: one line each, on arrays bound to names."""
    names: dict[str, Any] = {}
    lines = []
    for number, step in enumerate(steps):
        lines.append(_line(number, step, names))
    exec(compile("\n ".join(["def run():", *lines, "return"]) + "\n", "<captured>", "exec"), names)
    run: Callable[[], None] = names["run"]
    return run


def _line(number: int, step: Step, names: dict[str, Any]) -> str:
    def bound(array: Array) -> str:
        name = f"a{id(array)}"
        names[name] = array
        return name

    out = bound(step.outputs[0]._array)
    if step.op is None:
        return f"{out}[...] = {bound(step.operands[0]._array)}"
    op = step.op
    ufunc = ufunc_of(op)
    dtypes = casts(op, [t._array for t in step.operands])
    texts = []
    for tensor, cast in zip(step.operands, dtypes, strict=True):
        text = bound(tensor._array)
        if (op.is_operator or ufunc is not None) and not tensor._array.ndim:
            text = f"{text}[()]"
        if cast is not None:
            names[f"d_{cast.name}"] = cast
            text = f"{text}.astype(d_{cast.name})"
        texts.append(text)
    operands = ", ".join(texts)
    if ufunc is not None and step.outputs[0]._array.ndim and _fits(op, step):
        names[f"u{number}"] = ufunc
        return f"u{number}({operands}, {place(ufunc, out)})"
    names[f"f{number}"] = partial(op.forward, **step.attrs) if step.attrs else op.forward
    if not op.has_several_outputs:
        return f"{out}[...] = f{number}({operands})"
    places = ", ".join(f"{bound(tensor._array)}[...]" for tensor in step.outputs)
    return f"{places}{',' if len(step.outputs) == 1 else ''} = f{number}({operands})"


def _fits(op: Op, step: Step) -> bool:
    """Return whether a ufunc's result has the dtype and shape of its target; an in-place write may be to
    another dtype.
    """
    result = np.asarray(compute(op, [_tiny(t) for t in step.operands], step.attrs))
    shape = np.broadcast_shapes(*[t._array.shape for t in step.operands])
    array = step.outputs[0]._array
    return bool(result.dtype == array.dtype) and shape == array.shape


def _tiny(tensor: Tensor) -> Tensor:
    """Return a one-element tensor with the dtype and number of dimensions of another."""
    alias = tensor._alias()
    alias._array = np.ones((1,) * tensor._array.ndim, tensor._array.dtype)
    return alias


# ----------------------------------------------------------------------------------------------------------------------
# Memory that the results of a capture share, one after the other.
#
# If the program holds a result, a view of it, or a graph that saved it, the result keeps its memory. Any other result
# is needed only from the step that fills it to the last step that uses it.

Kind = tuple[int, np.dtype[Any]]
"""The number of elements of a memory, and their dtype."""

_NOWHERE = np.empty(0)


class ReleasedMemory:
    """The memory that steps fill, released by them until `settle` gives it back.

    In between their tensors have no memory, and memory without another reference is freed.
    """

    def __init__(self, steps: Sequence[Step]) -> None:
        self._memories = _filled(steps)
        for tensor in {id(t): t for step in steps for t in (*step.operands, *step.outputs)}.values():
            memory = self._memories.get(id(owner_of(tensor._array)))
            if memory is not None:
                memory.parts.append(_Part.of(tensor))
                tensor._array = _NOWHERE

    def settle(self) -> None:
        """Gives every tensor memory again: its own if that still exists, else memory that is free at that step."""
        pool = _Pool()
        for memory in self._memories.values():
            owner = memory.owner()
            if owner is None:
                owner = pool.lent(memory)
            for part in memory.parts:
                part.lay_in(owner)


class _Pool:
    """Arrays that are lent to one memory after the other, in the order in which these are filled."""

    def __init__(self) -> None:
        self._lent: list[tuple[int, int, Kind, Array]] = []  # the second number breaks ties
        self._idle: dict[Kind, list[Array]] = {}

    def lent(self, memory: _Memory) -> Array:
        """An array for a memory, not used by any other until it is free."""
        while self._lent and self._lent[0][0] <= memory.first:
            *_, kind, array = heappop(self._lent)
            self._idle.setdefault(kind, []).append(array)
        idle = self._idle.get(memory.kind)
        array = idle.pop() if idle else np.empty(*memory.kind)
        heappush(self._lent, (memory.until, id(array), memory.kind, array))
        return array


@dataclass(frozen=True, slots=True)
class _Part:
    """A tensor, and its position in its memory."""

    tensor: Tensor
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    offset: int
    strides: tuple[int, ...]

    @classmethod
    def of(cls, tensor: Tensor) -> _Part:
        array = tensor._array
        offset = address_of(array) - address_of(owner_of(array))
        return cls(tensor, array.shape, array.dtype, offset, array.strides)

    def lay_in(self, owner: Array) -> None:
        self.tensor._array = np.ndarray(self.shape, self.dtype, _elements(owner), self.offset, self.strides)


@dataclass(slots=True)
class _Memory:
    """Memory that step `first` fills, and that is free again for step `until`."""

    owner: ref[Array]
    kind: Kind
    first: int
    until: int
    parts: list[_Part] = field(default_factory=list)


def _filled(steps: Sequence[Step]) -> dict[int, _Memory]:
    """Return the memory that steps fill before any uses it, by the id of its owner, in the order of those steps."""
    memories: dict[int, _Memory] = {}
    known: set[int] = set()
    for number, step in enumerate(steps):
        read, written = _owners(step.operands), _owners(step.outputs)
        known |= read
        for tensor in step.outputs:
            owner = owner_of(tensor._array)
            if id(owner) not in known and _fills(tensor._array, owner):
                memories[id(owner)] = _Memory(ref(owner), (owner.size, owner.dtype), number, number)
        known |= written
        for key in memories.keys() & (read | written):
            in_place = key not in written and _lies_alike(step, key)
            memories[key].until = number if in_place else number + 1
    return memories


def _owners(tensors: Sequence[Tensor]) -> set[int]:
    return {id(owner_of(tensor._array)) for tensor in tensors}


def _lies_alike(step: Step, memory: int) -> bool:
    """Return whether the operands of a step in a memory have the layout of its only result, which may then be stored
    there.
    """
    first, *others = [t._array for t in step.outputs]
    read = [t._array for t in step.operands if id(owner_of(t._array)) == memory]
    return not others and all((a.shape, a.strides, a.dtype) == (first.shape, first.strides, first.dtype) for a in read)


def _fills(array: Array, owner: Array) -> bool:
    return 0 < array.nbytes == owner.nbytes and np.shares_memory(_elements(owner), owner)


def _elements(owner: Array) -> Array:
    """Return the elements of a memory in memory order; a copy if it has gaps."""
    return owner.ravel("K")

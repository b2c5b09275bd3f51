"""Operations on fixed memory: recorded once, and run again in the same memory, as with a CUDA graph.

Every tensor that the program holds keeps its array. A replay reads the current inputs and writes every result to the
memory that it had during the capture. Views need no step, because their memory changes with their base.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn

import numpy as np

from gviz import emit
from gviz.engine import instrumentation
from gviz.engine.jit import notices
from gviz.engine.jit.execution_plan import casts, place, ufunc_of
from gviz.engine.jit.graph_recorder import GraphRecorder
from gviz.engine.jit.sharing import ReleasedMemory
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
        """Ends the recording and returns the steps. Results without another reference share memory, see `sharing`."""
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

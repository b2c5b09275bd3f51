"""A recorded operation, run again by the engine from what its event says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np

from gviz.engine.identify import GEOMETRY, attributes_of, effect_of
from gviz.engine.jit.interpreter import run_op
from gviz.engine.modes import enable_grad, no_grad
from gviz.engine.op import Op
from gviz.engine.ops.strided import Geometry, read_part
from gviz.engine.tensor import Tensor
from gviz.events import NodeCreated, OpSeen
from gviz.values import Array
from gviz.whatif.change import Changes

FAILURES = (ArithmeticError, LookupError, MemoryError, RuntimeError, TypeError, ValueError)
"""What operations raise."""


def run(op: Op, seen: OpSeen, created: NodeCreated, tensors: Sequence[Tensor]) -> list[Tensor]:
    """Run an operation on other tensors; its outputs, or the tensor it wrote to. Raises one of `FAILURES`."""
    effect, attrs = effect_of(op, seen), attributes_of(op, created.attrs)
    with no_grad() if created.switched_off else enable_grad():
        outputs = run_op(op, effect, tensors, attrs)
    if effect == "write" and not created.untracked and outputs[0]._base is not None:
        return [outputs[0]._base]
    return list(outputs)


def corrected(op: Op, changes: Mapping[int, Changes]) -> Op:
    """The op with its results changed, by their numbers: nothing, not even its own rules, ever sees others."""
    variant = copy(op)

    def forward(*arrays: Array, **attrs: Any) -> Any:
        result = op.forward(*arrays, **attrs)
        if op.several:
            return [changes[nr].applied(each) if nr in changes else each for nr, each in enumerate(result)]
        return changes[0].applied(np.asarray(result))

    variant.forward = forward
    return variant


def is_regenerated(created: NodeCreated) -> bool:
    """Whether it is no operation of the program's: a view took notice that its base was written to."""
    return any(name == GEOMETRY for name, _ in created.attrs) and any(output.view_of for output in created.outputs)


def is_view(tensor: Tensor, base: Tensor, created: NodeCreated) -> bool:
    """Whether a tensor looks into the memory of `base` as that node does."""
    if tensor._base is not base:
        return False
    recorded: Geometry = attributes_of(read_part, created.attrs)[GEOMETRY]
    return Geometry.of(base._array, tensor._array) == recorded

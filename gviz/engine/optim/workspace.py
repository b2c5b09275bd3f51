"""Memory that an optimizer uses again and again for the intermediate results of an update."""

from __future__ import annotations

from typing import Any

import numpy as np

from gviz import emit
from gviz.engine import watching
from gviz.engine.apply import operands
from gviz.engine.blocks import BLOCK, fit_blocks, run_in_blocks
from gviz.engine.modes import thread
from gviz.engine.op import Op
from gviz.engine.surface import operand
from gviz.engine.tensor import Tensor, new_tensor
from gviz.values import Array


class Workspace:
    """Keeps one array for each intermediate result of an update, as large as the largest parameter needs it.

    An update of one parameter calls the workspace for what it would otherwise make a tensor for: ``square.sqrt()``
    becomes ``workspace(sqrt, square)``. The tensor it returns is valid until `reset`, with which the next update
    begins, and may be written in place. While a recording or a static graph listens each result has memory of its own,
    so that they see the tensors that PyTorch's optimizers make.
    """

    def __init__(self) -> None:
        self._arrays: list[Array] = []
        self._used = 0

    def reset(self) -> None:
        """The memory of all earlier results may be used again."""
        self._used = 0

    def __call__(self, op: Op, tensor: Tensor, *others: Tensor | float, **attrs: Any) -> Tensor:
        """The result of a pointwise op, whose first operand has the shape and dtype of the result."""
        tensors = [tensor, *[operand(op, other, tensor) for other in others]]
        like = tensor._array
        if like.size > BLOCK and emit.channel is None and not watching.watchers:
            out = self._take(like)
            arrays = operands(op, tensors)
            if fit_blocks(op, arrays, out):
                self._used += 1
                thread.quietly(run_in_blocks, op, arrays, attrs, out)
                return new_tensor(out)
        result: Tensor = op(*tensors, **attrs)
        return result

    def _take(self, like: Array) -> Array:
        """The next array, in the shape of `like`; a larger one is made where it does not suffice."""
        if self._used == len(self._arrays):
            self._arrays.append(np.empty(0, like.dtype))
        array = self._arrays[self._used]
        if array.dtype != like.dtype or array.size < like.size:
            array = self._arrays[self._used] = np.empty(like.size, like.dtype)
        return array[: like.size].reshape(like.shape)

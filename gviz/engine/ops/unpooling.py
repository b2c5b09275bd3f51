"""The largest elements of pools, back where they were found."""

from __future__ import annotations

from math import prod

import numpy as np

from gviz.engine.op import Example, Op, Rule
from gviz.engine.ops.examples import normal
from gviz.engine.ops.pooling import flat, picked_at
from gviz.values import Array

Shape = tuple[int, ...]


def _unpooled(self: Array, indices: Array, size: Shape) -> Array:
    dims = len(size)
    lead = self.shape[: self.ndim - dims]
    result = np.zeros((prod(lead), prod(size)), self.dtype)
    np.put_along_axis(result, flat(indices, dims), flat(self, dims), 1)
    return result.reshape(*lead, *size)


def _unpool_op(dims: int) -> Op:
    shape = (2, 1, 1)[:dims]
    return Op(
        f"max_unpool{dims}d(self, indices, *, size)",
        grad_fn=f"MaxUnpool{dims}DBackward0",
        formula="self at indices of the last dimensions, else 0",
        forward=_unpooled,
        rules=(Rule("self", "g at indices", lambda g, indices, size: picked_at(g, indices, dims=len(size))),),
        public=False,
        examples=lambda: [
            Example(
                (normal(2, *shape), np.array([0, 2, 3, 1]).reshape(2, *shape)),
                {"size": (2, 2, 1)[:dims] if dims > 1 else (4,)},
            )
        ],
    )


unpool = {1: _unpool_op(1), 2: _unpool_op(2), 3: _unpool_op(3)}
"""Each by its number of dimensions. An index given twice keeps one of its values, and gives both the gradient."""

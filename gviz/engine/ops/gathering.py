"""Elements picked along one dimension by an index, and put back."""

from __future__ import annotations

from typing import Any

import numpy as np

from gviz.engine.op import Example, Op, Rule
from gviz.engine.ops.examples import normal
from gviz.values import Array

Shape = tuple[int, ...]

scatter_along: Op = Op(
    "scatter(self, index, *, size, dim)",
    grad_fn="ScatterBackward0",
    formula="self at index along dim, 0 elsewhere",
    forward=lambda self, index, size, dim: _scattered(self, index, size, dim),
    rules=(Rule("self", "g at index", lambda g, index, dim: gather_op(g, index, dim=dim)),),
    public=False,
    examples=lambda: [Example((normal(2, 2), np.array([[0, 0], [2, 1]])), {"size": (2, 3), "dim": 1})],
)
gather_op: Op = Op(
    "gather(self, index, *, dim)",
    grad_fn="GatherBackward0",
    formula="self at index along dim",
    forward=lambda self, index, dim: np.take_along_axis(self, index, dim),
    rules=(
        Rule(
            "self",
            "g added at index",
            lambda g, index, self_sym_sizes, dim: scatter_along(g, index, size=self_sym_sizes, dim=dim),
        ),
    ),
    public=False,
    examples=lambda: [Example((normal(2, 3), np.array([[0, 0], [2, 1]])), {"dim": 1})],
)


def _scattered(self: Array, index: Array, size: Shape, dim: int) -> Array:
    result = np.zeros(size, self.dtype)
    places: list[Any] = list(np.indices(index.shape, sparse=True))
    places[dim] = index
    np.add.at(result, tuple(places), self)
    return result

"""What recurrent layers are made of besides ordinary operations."""

from __future__ import annotations

import numpy as np

from gviz.engine.op import Example, Op, Rule
from gviz.engine.ops.examples import normal
from gviz.engine.ops.joining import cat_op
from gviz.values import Array


def _split(self: Array, split_size: int, dim: int) -> list[Array]:
    places = range(split_size, self.shape[dim], split_size)
    return [part.copy() for part in np.split(self, list(places), dim)]


unsafe_split: Op = Op(
    "unsafe_split(self, *, split_size, dim=0)",
    grad_fn="UnsafeSplitBackward0",
    formula="self cut along dim, each part in memory of its own",
    forward=_split,
    rules=(Rule("self", "the parts of g joined", lambda grads, dim: cat_op(*grads, dim=dim)),),
    outputs=("results...",),
    public=False,
    examples=lambda: [Example((normal(2, 6),), {"split_size": 2, "dim": 1})],
)

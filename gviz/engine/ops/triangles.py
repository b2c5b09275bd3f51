"""Triangles of matrices: their elements, the others 0, and where they are."""

from __future__ import annotations

from typing import Any

import numpy as np

from gviz.engine.dtypes import dtype as DType
from gviz.engine.op import Example, Op, Rule
from gviz.engine.ops.examples import normal
from gviz.engine.ops.kernels import in_rows
from gviz.engine.ops.variants import Prepared, in_both_ways
from gviz.engine.surface import front
from gviz.engine.tensor import Tensor, new_tensor

tril_op: Op = Op(
    "tril(self, *, diagonal=0)",
    grad_fn="TrilBackward0",
    formula="self, 0 above a diagonal",
    forward=in_rows(lambda self, diagonal: np.tril(self, diagonal)),
    rules=(Rule("self", "g, 0 above a diagonal", lambda g, diagonal: tril_op(g, diagonal=diagonal)),),
    public=False,
    torch="tril",
    overlap="free",
    examples=lambda: [Example((normal(3, 4),), {"diagonal": 1}), Example((normal(2, 3, 2),), {"diagonal": -1})],
)
triu_op: Op = Op(
    "triu(self, *, diagonal=0)",
    grad_fn="TriuBackward0",
    formula="self, 0 below a diagonal",
    forward=in_rows(lambda self, diagonal: np.triu(self, diagonal)),
    rules=(Rule("self", "g, 0 below a diagonal", lambda g, diagonal: triu_op(g, diagonal=diagonal)),),
    public=False,
    torch="triu",
    overlap="free",
    examples=lambda: [Example((normal(3, 4),), {"diagonal": -1})],
)


def _check_matrix(name: str, self: Tensor) -> None:
    if self.ndim < 2:
        raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")


@in_both_ways("tril")
def tril(self: Tensor, diagonal: int = 0) -> Prepared:
    """The lower triangle of matrices, 0 above a diagonal."""
    _check_matrix("tril", self)
    return tril_op, (self,), {"diagonal": int(diagonal)}


@in_both_ways("triu")
def triu(self: Tensor, diagonal: int = 0) -> Prepared:
    """The upper triangle of matrices, 0 below a diagonal."""
    _check_matrix("triu", self)
    return triu_op, (self,), {"diagonal": int(diagonal)}


def _indices(name: str, pick: Any) -> None:
    """Offer ``torch.<name>``: the row and column numbers of a triangle."""

    def indices(row: int, col: int, offset: int = 0, *, dtype: DType | None = None, device: Any = None) -> Tensor:
        for side, n in (("row", row), ("col", col)):
            if n < 0:
                raise RuntimeError(f"{side} must be non-negative, got{n}")
        rows = np.stack(pick(row, offset, col)) if row and col else np.zeros((2, 0), np.int64)
        return new_tensor(rows.astype(np.int64 if dtype is None else dtype.numpy))

    indices.__name__, indices.__doc__ = name, "The row and column numbers of a triangle of a matrix."
    front(name, method=False)(indices)


_indices("tril_indices", np.tril_indices)
_indices("triu_indices", np.triu_indices)

"""Functions of whole matrices: powers, the exponential, sizes, conditions."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

import numpy as np

from gviz.engine.op import Example, Op, Rule
from gviz.engine.ops.decompositions import svdvals
from gviz.engine.ops.examples import normal
from gviz.engine.ops.joining import cat_op
from gviz.engine.ops.matrix import matmul
from gviz.engine.ops.matrix_checks import check_matrices, check_square, turned
from gviz.engine.ops.memory import clone_in_order
from gviz.engine.ops.norms import vector_norm
from gviz.engine.ops.selecting import narrow
from gviz.engine.ops.shape import normal_dims, run
from gviz.engine.ops.solving import inv
from gviz.engine.surface import Number, front
from gviz.engine.tensor import Tensor, new_tensor
from gviz.values import Array


def _exponential(self: Array) -> Array:
    from scipy.linalg import expm  # slow to import

    return np.asarray(expm(self), self.dtype) if self.size else self.copy()


def _exponential_vjp(g: Any, self: Any) -> Any:
    """The exponential's differential stands in the corner of the exponential of ``[[A, G], [0, A]]``."""
    A, size, last = turned(self), self.shape[-1], self.ndim - 1
    beside = cat_op(A, g, dim=last)
    below = cat_op(A * 0, A, dim=last)
    whole = exponential_op(cat_op(beside, below, dim=last - 1))
    top = narrow(whole, dim=last - 1, start=0, end=size, step=1)
    return narrow(top, dim=last, start=size, end=2 * size, step=1)


exponential_op: Op = Op(
    "linalg_matrix_exp(self)",
    grad_fn="LinalgMatrixExpBackward0",
    formula="1 + self + self @ self / 2 + ...",
    forward=_exponential,
    rules=(Rule("self", "the differential of the exponential at self.T towards g", _exponential_vjp),),
    public=False,
    torch="linalg.matrix_exp",
    examples=lambda: [Example((normal(2, 2),), {}), Example((normal(2, 2, 2),), {})],
)


@front("matrix_exp")
def matrix_exp(A: Tensor) -> Tensor:
    """The exponential of matrices."""
    check_square("linalg.matrix_exp", A)
    return run(exponential_op, A)


@front("matrix_power")
def matrix_power(A: Tensor, n: int) -> Tensor:
    """The product of `n` times a matrix; of its inverse for a negative `n`."""
    check_square("linalg.matrix_power", A)
    if n == 0:
        ones = np.broadcast_to(np.eye(A.shape[-1], dtype=A._array.dtype), tuple(A.shape))
        return run(clone_in_order, A).copy_(new_tensor(ones))
    base = inv(A) if n < 0 else A
    count = abs(n)
    if count == 1:
        return base if n < 0 else run(clone_in_order, A)
    if count == 3:
        return matmul(matmul(base, base), base)
    square, result = base, None
    while True:
        if count & 1:
            result = square if result is None else matmul(result, square)
        count >>= 1
        if not count:
            assert result is not None, "the highest bit is set"
            return result
        square = matmul(square, square)


def matrix_norm(
    A: Tensor, ord: Number | str = "fro", dim: Sequence[int] = (-2, -1), keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    """The size of the matrices in the plane of two dimensions."""
    check_matrices("linalg.matrix_norm", A, low_precision=True)
    if len(dim) != 2:
        raise RuntimeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {' '.join(map(str, dim))}")
    rows, columns = normal_dims(dim, A.ndim)
    if rows == columns:
        raise RuntimeError(f"linalg.matrix_norm: dims must be different. Got ({dim[0]}, {dim[1]})")
    if ord == "fro":
        return vector_norm(A, 2, (rows, columns), keepdim, dtype)
    if ord == "nuc" or ord in (2, -2):
        return _norm_by_values(A, ord, rows, columns, keepdim)
    if ord not in (1, -1, inf, -inf):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    summed, left = (rows, columns) if ord in (1, -1) else (columns, rows)
    sums = vector_norm(A, 1, (summed,), keepdim, dtype)
    along = left if keepdim or left < summed else left - 1
    return _extreme(sums, along, keepdim, largest=float(ord) > 0)


def _norm_by_values(A: Tensor, ord: Number | str, rows: int, columns: int, keepdim: bool) -> Tensor:
    order = [d for d in range(A.ndim) if d not in (rows, columns)] + [rows, columns]
    values = svdvals(A.permute(order))
    if ord == "nuc":
        reduced: Tensor = values.sum(-1, keepdim=keepdim)
    else:
        reduced = _extreme(values, values.ndim - 1, keepdim, largest=ord == 2)
    return reduced.unsqueeze(-1).permute(np.argsort(order).tolist()) if keepdim else reduced


def _extreme(values: Tensor, dim: int, keepdim: bool, *, largest: bool) -> Tensor:
    result: Tensor = (values.amax if largest else values.amin)(dim, keepdim)
    return result


def norm(
    A: Tensor, ord: Any = None, dim: int | Sequence[int] | None = None, keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    """The size of a vector or a matrix, or of all elements; see `vector_norm` and `matrix_norm`."""
    if ord is None:
        return vector_norm(A, 2, dim, keepdim, dtype)
    dims = (dim,) if isinstance(dim, int) else dim
    if dims is None and A.ndim not in (1, 2):
        raise RuntimeError(
            f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {A.ndim}D."
        )
    count = A.ndim if dims is None else len(dims)
    if count == 1 and not isinstance(ord, str):
        return vector_norm(A, ord, dims, keepdim, dtype)
    return matrix_norm(A, ord, (-2, -1) if dims is None else dims, keepdim, dtype=dtype)


def cond(A: Tensor, p: Any = None) -> Tensor:
    """How much a matrix magnifies errors: its size times that of its inverse."""
    check_matrices("linalg.cond", A)
    if p is None or p in (2, -2):
        values = svdvals(A)
        first, last = values.narrow(-1, 0, 1), values.narrow(-1, -1, 1)
        result: Tensor = (last / first if p == -2 else first / last).squeeze(-1)
        return result
    check_square("linalg.cond", A)
    product: Tensor = matrix_norm(A, p) * matrix_norm(inv(A), p)
    return product


def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """The sums of products of the vectors along `dim`."""
    result: Tensor = x.vdot(y) if x.ndim == y.ndim == 1 and x.shape == y.shape else (x * y).sum(dim)
    return result

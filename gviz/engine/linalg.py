"""``torch.linalg``: linear algebra."""

from __future__ import annotations

from gviz.engine.argument_parser import want_tensors as _want_tensors
from gviz.engine.ops.diagonals import diagonal as _diagonal
from gviz.engine.ops.linear_algebra import (
    cholesky,
    cond,
    det,
    eigh,
    eigvalsh,
    inv,
    lstsq,
    matrix_exp,
    matrix_norm,
    matrix_power,
    matrix_rank,
    norm,
    pinv,
    qr,
    slogdet,
    solve,
    solve_triangular,
    svd,
    svdvals,
    tensorsolve,
    vecdot,
)
from gviz.engine.ops.matrix_products import LinAlgError, matmul, multi_dot
from gviz.engine.ops.matrix_products import linalg_cross as cross
from gviz.engine.ops.norms_and_distances import vector_norm
from gviz.engine.tensor import Tensor
from gviz.engine.unsupported_names import lookup_in

__all__ = [
    "LinAlgError",
    "cholesky",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eigh",
    "eigvalsh",
    "inv",
    "lstsq",
    "matmul",
    "matrix_exp",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "multi_dot",
    "norm",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_triangular",
    "svd",
    "svdvals",
    "tensorsolve",
    "vecdot",
    "vector_norm",
]


def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The diagonals of matrices, as a view."""
    return _diagonal(A, offset, dim1, dim2)


_want_tensors(globals(), "linalg_")

__getattr__ = lookup_in(__name__)

"""``torch.linalg``: linear algebra."""

from __future__ import annotations

from gviz.engine.missing import lookup_in
from gviz.engine.ops.cross import linalg_cross as cross
from gviz.engine.ops.decompositions import cholesky, eigh, eigvalsh, qr, svd, svdvals
from gviz.engine.ops.diagonals import diagonal as _diagonal
from gviz.engine.ops.matrix import matmul
from gviz.engine.ops.matrix_checks import LinAlgError
from gviz.engine.ops.matrix_functions import cond, matrix_exp, matrix_norm, matrix_power, norm, vecdot
from gviz.engine.ops.norms import vector_norm
from gviz.engine.ops.pseudo_inverses import lstsq, matrix_rank, pinv
from gviz.engine.ops.solving import det, inv, slogdet, solve, solve_triangular, tensorsolve
from gviz.engine.ops.tensor_products import multi_dot
from gviz.engine.tensor import Tensor
from gviz.engine.wanting import want_tensors as _want_tensors

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

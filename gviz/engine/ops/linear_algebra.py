"""Linear algebra: inverses, determinants, systems of equations, decompositions, functions of matrices."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any, NoReturn

import numpy as np

from gviz.engine.functions_and_methods import Number, front
from gviz.engine.memory_format import in_columns
from gviz.engine.op import Example, Op, Rule, apply
from gviz.engine.ops._examples import normal
from gviz.engine.ops.comparison import where_op
from gviz.engine.ops.copying import clone_in_order
from gviz.engine.ops.diagonals import diag_embed_op, diagonal_op, tril_op, triu_op
from gviz.engine.ops.indexing import narrow
from gviz.engine.ops.joining import cat_op
from gviz.engine.ops.matrix_products import (
    LinAlgError,
    check_floating,
    check_matrix_stack,
    check_square,
    element_text,
    matmul,
    minor_not_positive,
    turned,
    zero_pivot,
)
from gviz.engine.ops.norms_and_distances import vector_norm
from gviz.engine.ops.shape import flatten, normal_dims, reshape, run, unsqueeze_dims
from gviz.engine.return_types import results_type
from gviz.engine.tensor import Tensor, new_tensor
from gviz.values.value import Array

# ----------------------------------------------------------------------------------------------------------------------
# Inverses, determinants and systems of linear equations.


def _invertible(*stack: int) -> Array:
    return normal(*stack, 3, 3) + 3 * np.eye(3)


def _inverse(A: Array) -> Array:
    try:
        return in_columns(np.linalg.inv(A))
    except np.linalg.LinAlgError:
        _no_inverse(A)


def _no_inverse(A: Array) -> NoReturn:
    for rounded in (False, True):
        for position, matrix in enumerate(A.reshape(-1, *A.shape[-2:])):
            pivot = zero_pivot(matrix, rounded=rounded)
            if pivot:
                raise LinAlgError(
                    f"linalg.inv: {element_text(A, position)}The diagonal element {pivot} is zero, the inversion could "
                    "not be completed because the input matrix is singular."
                ) from None
    raise LinAlgError("linalg.inv: the inversion could not be completed because the input matrix is singular.")


def _solution(A: Array, B: Array, left: bool) -> Array:
    vector = is_vector(A.shape, B.shape)
    columns = B[..., None] if vector else B
    try:
        if left:
            solved = in_columns(np.linalg.solve(A, columns))
        else:
            turned_back = np.linalg.solve(np.swapaxes(A, -1, -2), np.swapaxes(columns, -1, -2))
            solved = np.ascontiguousarray(np.swapaxes(turned_back, -1, -2))
    except np.linalg.LinAlgError:
        bad = next((i for i, a in enumerate(A.reshape(-1, *A.shape[-2:])) if zero_pivot(a)), 0)
        raise LinAlgError(
            f"torch.linalg.solve: {element_text(A, bad)}The solver failed because the input matrix is singular."
        ) from None
    return np.asarray(solved[..., 0] if vector else solved)


def is_vector(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    """Whether right-hand sides of these sizes are vectors, one for each matrix."""
    return len(b) == 1 or (len(a) - 1 == len(b) and tuple(b) == tuple(a[:-1]))


def _solve_vjp(g: Any, A: Any, result: Any, left: bool) -> tuple[Any, Any]:
    to_b = solve_op(turned(A), g, left=left)
    if is_vector(A.shape, result.shape):
        return -_pairs(to_b, result), to_b
    return (-(to_b @ turned(result)) if left else -(turned(result) @ to_b)), to_b


def _pairs(a: Any, b: Any) -> Any:
    """Return the products of all pairs of elements of two vectors, for each element of a stack."""
    return unsqueeze_dims(a, dims=(-1,)) * unsqueeze_dims(b, dims=(-2,))


def _cofactors(A: Array) -> Array:
    """Return the gradient of the determinant, also for matrices without an inverse."""
    u, s, vh = np.linalg.svd(A)
    others = np.stack([np.prod(np.delete(s, i, -1), -1) for i in range(s.shape[-1])], -1)
    sign = np.linalg.det(u) * np.linalg.det(vh)
    return np.asarray((sign[..., None, None] * (u * others[..., None, :]) @ vh).astype(A.dtype))


def _no_second_derivative(g: Any) -> NoReturn:
    raise RuntimeError("gviz's built-in engine has no second derivative of the determinant at a singular matrix")


def _det_vjp(g: Any, A: Any, result: Any) -> Any:
    factor = unsqueeze_dims(g, dims=(-2, -1))
    singular = not np.all(result._array if isinstance(result, Tensor) else result)
    if singular or not A.shape[-1]:
        return factor * cofactors(A)
    return factor * unsqueeze_dims(result, dims=(-2, -1)) * turned(inverse_op(A))


def _slogdet_vjp(grads: Any, A: Any) -> Any:
    return unsqueeze_dims(grads[1], dims=(-2, -1)) * turned(inverse_op(A))


def _triangle(A: Any, upper: bool, unitriangular: bool) -> Any:
    pick = triu_op if upper else tril_op
    return pick(A, diagonal=int(unitriangular) if upper else -int(unitriangular))


def _solved_triangular(self: Array, B: Array, upper: bool, left: bool, unitriangular: bool) -> Array:
    A = np.triu(self, int(unitriangular)) if upper else np.tril(self, -int(unitriangular))
    if unitriangular:
        A = A + np.eye(A.shape[-1], dtype=A.dtype)
    if not np.diagonal(A, axis1=-2, axis2=-1).all():
        return _substituted(A, B, upper, left)
    return _solution(A, B, left)


def _substituted(A: Array, B: Array, upper: bool, left: bool) -> Array:
    """Solve row by row, and divide by zeros on the diagonal as PyTorch does."""
    if not left:
        turned_back = _substituted(np.swapaxes(A, -1, -2), np.swapaxes(B, -1, -2), not upper, True)
        return np.swapaxes(turned_back, -1, -2)
    result = np.broadcast_to(B, (*np.broadcast_shapes(A.shape[:-2], B.shape[:-2]), *B.shape[-2:])).copy()
    size = A.shape[-1]
    for row in reversed(range(size)) if upper else range(size):
        known = slice(row + 1, size) if upper else slice(0, row)
        result[..., row, :] -= (A[..., row : row + 1, known] @ result[..., known, :])[..., 0, :]
        result[..., row, :] /= A[..., row, row, None]
    return result


def _triangular_vjp(g: Any, self: Any, result: Any, upper: bool, left: bool, unitriangular: bool) -> tuple[Any, Any]:
    to_b = triangular_op(turned(self), g, upper=not upper, left=left, unitriangular=unitriangular)
    to_a = -(to_b @ turned(result)) if left else -(turned(result) @ to_b)
    return _triangle(to_a, upper, unitriangular), to_b


inverse_op: Op = Op(
    "linalg_inv(A)",
    grad_fn="LinalgInvExBackward0",
    formula="the inverse of A",
    forward=_inverse,
    rules=(Rule("A", "-inverse.T @ g @ inverse.T", lambda g, inverse: -(turned(inverse) @ g @ turned(inverse))),),
    outputs=("inverse",),
    public=False,
    torch="linalg.inv",
    examples=lambda: [Example((_invertible(),), {}), Example((_invertible(2),), {})],
)
solve_op: Op = Op(
    "linalg_solve(A, B, *, left=True)",
    grad_fn="LinalgSolveExBackward0",
    formula="X with A @ X = B (X @ A = B unless left)",
    forward=_solution,
    rules=(Rule("A, B", "-solve(A.T, g) @ result.T; solve(A.T, g)", _solve_vjp),),
    public=False,
    torch="linalg.solve",
    examples=lambda: [
        Example((_invertible(), normal(3, 2)), {"left": True}),
        Example((_invertible(2), normal(2, 3)), {"left": True}),
        Example((_invertible(2), normal(2, 2, 3)), {"left": False}),
    ],
)
cofactors: Op = Op(
    "cofactors(self)",
    grad_fn="NotImplemented",
    formula="the cofactors of self",
    forward=_cofactors,
    rules=(Rule("self", "none", _no_second_derivative),),
    public=False,
)
det_op: Op = Op(
    "linalg_det(A)",
    grad_fn="LinalgDetBackward0",
    formula="the determinant of A",
    forward=np.linalg.det,
    rules=(Rule("A", "g * result * inverse(A).T", _det_vjp),),
    public=False,
    torch="linalg.det",
    examples=lambda: [Example((_invertible(),), {}), Example((_invertible(2),), {})],
)
slogdet_op: Op = Op(
    "linalg_slogdet(A)",
    grad_fn="LinalgSlogdetBackward0",
    formula="sign and logarithm of the size of the determinant of A",
    forward=lambda A: tuple(np.linalg.slogdet(A)),
    rules=(Rule("A", "g * inverse(A).T", _slogdet_vjp),),
    outputs=("sign", "logabsdet"),
    public=False,
    named=True,
    torch="linalg.slogdet",
    examples=lambda: [Example((_invertible(2),), {})],
)
triangular_op: Op = Op(
    "linalg_solve_triangular(self, B, *, upper, left=True, unitriangular=False)",
    grad_fn="LinalgSolveTriangularBackward0",
    formula="X with self @ X = B for a triangular self",
    forward=_solved_triangular,
    rules=(Rule("self, B", "-solve(self.T, g) @ result.T, its triangle; solve(self.T, g)", _triangular_vjp),),
    public=False,
    torch="linalg.solve_triangular",
    examples=lambda: [
        Example((_invertible(), normal(3, 2)), {"upper": True, "left": True, "unitriangular": False}),
        Example((_invertible(2), normal(2, 2, 3)), {"upper": False, "left": False, "unitriangular": True}),
    ],
)


def inv(A: Tensor) -> Tensor:
    """The inverses of matrices. Raises LinAlgError for a singular one."""
    check_square("linalg.inv", A)
    return run(inverse_op, A)


front("inverse")(inv)


def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
    """X with ``A @ X = B``, or with ``X @ A = B``. Raises LinAlgError for a singular matrix."""
    check_square("linalg.solve", A)
    if A.dtype is not B.dtype:
        raise RuntimeError(
            "linalg.solve: Expected A and B to have the same dtype, but found A of type "
            f"{A.dtype.tensor_type} and B of type {B.dtype.tensor_type} instead"
        )
    if not is_vector(tuple(A.shape), tuple(B.shape)):
        check_sides("linalg.solve", A, B, left)
    elif A.shape[-1] != B.shape[-1]:
        raise RuntimeError(
            "linalg.solve: Incompatible shapes of A and B for the equation AX = B "
            f"({A.shape[-2]}x{A.shape[-1]} and {B.shape[-1]}x1)"
        )
    return run(solve_op, A, B, left=left)


def check_sides(name: str, A: Tensor, B: Tensor, left: bool) -> None:
    """Raises RuntimeError, with PyTorch's text, for equations whose sides have mismatched shapes."""
    if B.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor B must have at least 2 dimensions.")
    if B.shape[-2 if left else -1] != A.shape[-1]:
        equation = "AX = B" if left else "XA = B"
        raise RuntimeError(
            f"{name}: Incompatible shapes of A and B for the equation {equation} "
            f"({A.shape[-2]}x{A.shape[-1]} and {B.shape[-2]}x{B.shape[-1]})"
        )


def det(A: Tensor) -> Tensor:
    """The determinants of matrices."""
    check_square("linalg.det", A)
    return run(det_op, A)


front("det")(det)


def slogdet(A: Tensor) -> Any:
    """The signs of determinants, and the logarithms of their absolute values."""
    check_square("linalg.slogdet", A)
    return apply(slogdet_op, (A,))


front("slogdet")(slogdet)


@front("logdet")
def logdet(A: Tensor) -> Tensor:
    """The logarithms of determinants; nan for a negative one."""
    check_square("logdet", A)
    sign, logarithm = apply(slogdet_op, (A,))
    nothing = new_tensor(np.asarray(np.nan, A._array.dtype))
    result: Tensor = apply(where_op, (sign.detach() == -1, nothing, logarithm))
    return result


def solve_triangular(A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Tensor:
    """X with ``A @ X = B`` or ``X @ A = B`` for a triangular matrix; only its triangle is read."""
    check_square("linalg.solve_triangular", A)
    check_sides("linalg.solve_triangular", A, B, left)
    return run(triangular_op, A, B, upper=upper, left=left, unitriangular=unitriangular)


def tensorsolve(A: Tensor, B: Tensor) -> Tensor:
    """X with ``tensordot(A, X, X.ndim) = B``."""
    size, rest = B.numel(), A.shape[B.ndim :]
    return reshape(solve(reshape(A, size, -1), flatten(B)), *rest)


# ----------------------------------------------------------------------------------------------------------------------
# Matrix decompositions: Cholesky, QR, singular values, eigenvalues.


def positive_definite(*stack: int) -> Array:
    """Symmetric example matrices whose eigenvalues differ from each other and from 0."""
    half = normal(*stack, 3, 3) * 0.3
    return np.asarray(half @ np.swapaxes(half, -1, -2) + np.diag([1.0, 2.0, 4.0]))


def _part(g: Any, dim: int, start: int, end: int) -> Any:
    return narrow(g, dim=g.ndim + dim, start=start, end=end, step=1)


def _nothing_arrived(g: Any) -> bool:
    """Return whether an output received no gradient."""
    if isinstance(g, Tensor):
        return not g.requires_grad and not g._array.any()
    return not np.any(g)


def _diagonals(values: Any) -> Any:
    return diag_embed_op(values, offset=0, dim1=values.ndim - 1, dim2=values.ndim)


def _cholesky(A: Array, upper: bool) -> Array:
    try:
        factor = np.linalg.cholesky(np.swapaxes(A, -1, -2) if upper else A)
        if np.isnan(factor).any():  # PyTorch calls no such matrix positive-definite
            raise np.linalg.LinAlgError
    except np.linalg.LinAlgError:
        orders = [minor_not_positive(matrix) for matrix in A.reshape(-1, *A.shape[-2:])]
        bad = next(i for i, order in enumerate(orders) if order)
        raise LinAlgError(
            f"linalg.cholesky: {element_text(A, bad)}The factorization could not be completed because the input is not "
            f"positive-definite (the leading minor of order {orders[bad]} is not positive-definite)."
        ) from None
    return in_columns(np.swapaxes(factor, -1, -2) if upper else factor)


def _cholesky_vjp(g: Any, L: Any, upper: bool) -> Any:
    factor, grad = (turned(L), turned(g)) if upper else (L, g)
    inverse = inverse_op(factor)
    product = turned(factor) @ grad
    half = tril_op(product, diagonal=0) - _diagonals(diagonal_op(product, offset=0, dim1=-2, dim2=-1)) / 2
    inner = turned(inverse) @ half @ inverse
    return (inner + turned(inner)) / 2


def _qr(A: Array, mode: str) -> tuple[Array, Array]:
    if mode == "r":
        return np.zeros(0, A.dtype), in_columns(np.linalg.qr(A).R)
    q, r = np.linalg.qr(A, "complete" if mode == "complete" else "reduced")
    return in_columns(q), in_columns(r)


def _qr_vjp(grads: Any, Q: Any, R: Any, A_sym_sizes: tuple[int, ...], mode: str) -> Any:
    rows, columns = A_sym_sizes[-2:]
    if mode == "r":
        raise RuntimeError(
            "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use "
            "linalg.qr(A, mode='reduced') if you are going to differentiate through linalg.qr."
        )
    if mode == "complete" and rows > columns:
        raise RuntimeError("The QR decomposition is not differentiable when mode='complete' and nrows > ncols")
    to_q, to_r = grads
    if rows >= columns:
        return _tall_qr_vjp(to_q, to_r, Q, R)
    square, rest = _part(R, -1, 0, rows), _part(R, -1, rows, columns)
    to_square, to_rest = _part(to_r, -1, 0, rows), _part(to_r, -1, rows, columns)
    projected = Q @ rest
    first = _tall_qr_vjp(to_q + projected @ turned(to_rest), to_square, Q, square)
    return cat_op(first, Q @ to_rest, dim=first.ndim - 1)


def _tall_qr_vjp(to_q: Any, to_r: Any, Q: Any, R: Any) -> Any:
    mixed = R @ turned(to_r) - turned(to_q) @ Q
    below = tril_op(mixed, diagonal=-1)
    symmetric = below + turned(below) + _diagonals(diagonal_op(mixed, offset=0, dim1=-2, dim2=-1))
    return triangular_op(turned(R), to_q + Q @ symmetric, upper=False, left=False, unitriangular=False)


def _svd(A: Array, full_matrices: bool) -> tuple[Array, Array, Array]:
    u, s, vh = _decomposed(A, full_matrices)
    return in_columns(u), s, in_columns(vh)


def _decomposed(A: Array, full_matrices: bool) -> tuple[Array, Array, Array]:
    """Return NumPy's decomposition. Raises LinAlgError, with PyTorch's text, if it fails."""
    try:
        u, s, vh = np.linalg.svd(A, full_matrices)
    except np.linalg.LinAlgError:
        raise LinAlgError(
            "linalg.svd: The algorithm failed to converge because the input matrix contained non-finite values."
        ) from None
    return u, s, vh


def _gaps(values: Any) -> Any:
    """Return the differences of all pairs of numbers, with 1 for a number and itself."""
    gaps = unsqueeze_dims(values, dims=(-2,)) - unsqueeze_dims(values, dims=(-1,))
    array = gaps._array if isinstance(gaps, Tensor) else gaps
    ones = np.eye(array.shape[-1], dtype=array.dtype)
    return gaps + (new_tensor(ones) if isinstance(gaps, Tensor) else ones)


def _svd_vjp(grads: Any, U: Any, S: Any, Vh: Any) -> Any:
    to_u, to_s, to_vh = grads
    size = S.shape[-1]
    if _nothing_arrived(to_u) and _nothing_arrived(to_vh):
        return (_part(U, -1, 0, size) * unsqueeze_dims(to_s, dims=(-2,))) @ _part(Vh, -2, 0, size)
    U, to_u = _part(U, -1, 0, size), _part(to_u, -1, 0, size)
    Vh, to_vh = _part(Vh, -2, 0, size), _part(to_vh, -2, 0, size)
    rows, columns = unsqueeze_dims(S, dims=(-1,)), unsqueeze_dims(S, dims=(-2,))
    left, right = turned(U) @ to_u, Vh @ turned(to_vh)
    gaps = _gaps(S * S)
    inner = (left - turned(left)) / gaps * columns + rows * ((right - turned(right)) / gaps) + _diagonals(to_s)
    result = U @ inner @ Vh
    if U.shape[-2] > size:
        result = result + (to_u - U @ left) / columns @ Vh
    if Vh.shape[-1] > size:
        result = result + (U / columns) @ (to_vh - turned(right) @ Vh)
    return result


def _eigh(A: Array, UPLO: str) -> tuple[Array, Array]:
    values, vectors = np.linalg.eigh(A, "U" if UPLO == "U" else "L")
    return values, in_columns(vectors)


def _eigh_vjp(grads: Any, eigenvalues: Any, eigenvectors: Any) -> Any:
    to_values, to_vectors = grads
    if _nothing_arrived(to_vectors):
        return (eigenvectors * unsqueeze_dims(to_values, dims=(-2,))) @ turned(eigenvectors)
    mixed = turned(eigenvectors) @ to_vectors
    off_diagonal = mixed - _diagonals(diagonal_op(mixed, offset=0, dim1=-2, dim2=-1))
    result = eigenvectors @ (off_diagonal / _gaps(eigenvalues) + _diagonals(to_values)) @ turned(eigenvectors)
    return (result + turned(result)) / 2


cholesky_op: Op = Op(
    "linalg_cholesky(A, *, upper=False)",
    grad_fn="LinalgCholeskyExBackward0",
    formula="the triangular L with L @ L.T = A",
    forward=_cholesky,
    rules=(Rule("A", "L.T^-1 @ (L.T @ g, its triangle) @ L^-1, made symmetric", _cholesky_vjp),),
    outputs=("L",),
    public=False,
    torch="linalg.cholesky",
    examples=lambda: [
        Example((positive_definite(),), {"upper": False}),
        Example((positive_definite(2),), {"upper": True}),
    ],
)
old_cholesky_op: Op = Op(
    "cholesky(A, *, upper=False)",
    grad_fn="CholeskyBackward0",
    formula="the triangular L with L @ L.T = A",
    forward=_cholesky,
    rules=(
        Rule(
            "A",
            "L.T^-1 @ (L.T @ g, its triangle) @ L^-1, made symmetric",
            lambda g, result, upper: _cholesky_vjp(g, result, upper),
        ),
    ),
    public=False,
    examples=lambda: [Example((positive_definite(),), {"upper": False})],
)
qr_op: Op = Op(
    "linalg_qr(A, *, mode='reduced')",
    grad_fn="LinalgQrBackward0",
    formula="Q with orthonormal columns and the triangular R with Q @ R = A",
    forward=_qr,
    rules=(Rule("A", "the gradient of both through Q and R^-1", _qr_vjp),),
    outputs=("Q", "R"),
    public=False,
    named=True,
    torch="linalg.qr",
    examples=lambda: [Example((normal(3, 2),), {"mode": "reduced"}), Example((normal(2, 3),), {"mode": "reduced"})],
)
svd_op: Op = Op(
    "linalg_svd(A, *, full_matrices=True)",
    grad_fn="LinalgSvdBackward0",
    formula="U, S and Vh with U @ diag(S) @ Vh = A",
    forward=_svd,
    rules=(Rule("A", "the gradients of all three through U, S and Vh", _svd_vjp),),
    outputs=("U", "S", "Vh"),
    public=False,
    named=True,
    examples=lambda: [
        Example((normal(3, 2),), {"full_matrices": False}),
        Example((normal(2, 3),), {"full_matrices": False}),
    ],
)
eigh_op: Op = Op(
    "linalg_eigh(A, *, UPLO='L')",
    grad_fn="LinalgEighBackward0",
    formula="eigenvalues and eigenvectors of a symmetric A",
    forward=_eigh,
    rules=(Rule("A", "the gradients of both through the eigenvectors", _eigh_vjp),),
    outputs=("eigenvalues", "eigenvectors"),
    public=False,
    named=True,
    torch="linalg.eigh",
    examples=lambda: [Example((positive_definite(),), {"UPLO": "L"}), Example((positive_definite(2),), {"UPLO": "U"})],
)


def cholesky(A: Tensor, *, upper: bool = False) -> Tensor:
    """The triangular L with ``L @ L.T = A``. Raises LinAlgError for a matrix that is not positive-definite."""
    check_square("linalg.cholesky", A)
    return run(cholesky_op, A, upper=upper)


@front("cholesky")
def old_cholesky(input: Tensor, upper: bool = False) -> Tensor:
    """The triangular L with ``L @ L.T = input``, like ``torch.linalg.cholesky``."""
    check_square("cholesky", input)
    return run(old_cholesky_op, input, upper=upper)


def qr(A: Tensor, mode: str = "reduced") -> Any:
    """Q with orthonormal columns and the upper triangular R with ``Q @ R = A``."""
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'"
        )
    check_matrix_stack("linalg.qr", A)
    return apply(qr_op, (A,), {"mode": mode})


def svd(A: Tensor, full_matrices: bool = True) -> Any:
    """U, S and Vh with ``U @ diag(S) @ Vh = A``; the singular values S are in descending order."""
    check_matrix_stack("linalg.svd", A)
    return apply(svd_op, (A,), {"full_matrices": full_matrices})


def svdvals(A: Tensor) -> Tensor:
    """The singular values of matrices, in descending order."""
    check_matrix_stack("linalg.svd", A)
    values: Tensor = apply(svd_op, (A,), {"full_matrices": False})[1]
    return values


def eigh(A: Tensor, UPLO: str = "L") -> Any:
    """The eigenvalues, in ascending order, and eigenvectors of symmetric matrices."""
    check_square("linalg.eigh", A)
    if UPLO.upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    return apply(eigh_op, (A,), {"UPLO": UPLO.upper()})


def eigvalsh(A: Tensor, UPLO: str = "L") -> Tensor:
    """The eigenvalues of symmetric matrices, in ascending order."""
    values: Tensor = eigh(A, UPLO)[0]
    return values


@front("qr")
def old_qr(input: Tensor, some: bool = True) -> Any:
    """Q and R, like ``torch.linalg.qr``."""
    return _OldQr(qr(input, "reduced" if some else "complete"))


@front("svd")
def old_svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> Any:
    """U, S and V with ``U @ diag(S) @ V.T = input``."""
    if not compute_uv:
        raise RuntimeError("gviz's built-in engine has no torch.svd without U and V; it has torch.linalg.svdvals")
    u, s, vh = svd(input, not some)
    return _OldSvd((u, s, vh.mT))


_OldQr = results_type("qr", ("Q", "R"))
_OldSvd = results_type("svd", ("U", "S", "V"))


# ----------------------------------------------------------------------------------------------------------------------
# Best solutions of equations with none or many: pseudo-inverses, least squares, rank, solutions from a factor.


def _cutoffs(A: Array, atol: float | None, rtol: float | None) -> Any:
    """Return the threshold below which a singular value of `A` counts as 0."""
    largest = np.linalg.norm(A, 2, (-2, -1)) if A.size else np.zeros(A.shape[:-2], A.dtype)
    relative = rtol if rtol is not None else (0.0 if atol else max(A.shape[-2:]) * np.finfo(A.dtype).eps)
    return np.maximum(atol or 0.0, relative * largest)


def _pinv(self: Array, atol: float | None, rtol: float | None) -> Array:
    u, s, vh = _decomposed(self, full_matrices=False)
    is_large = s > np.asarray(_cutoffs(self, atol, rtol))[..., None]
    inverse = np.where(is_large, 1 / np.where(is_large, s, 1), 0).astype(self.dtype)
    return np.asarray(np.swapaxes(vh, -1, -2) * inverse[..., None, :] @ np.swapaxes(u, -1, -2))


def pinv_vjp(g: Any, self: Any, result: Any) -> Any:
    """The gradient of a matrix from that of its pseudo-inverse `result`."""
    inverse, flipped, grad = result, turned(result), turned(g)
    if self.shape[-2] <= self.shape[-1]:
        k = grad @ inverse
        back = k @ flipped
        return -turned(inverse @ k) + back - (self @ inverse) @ back + (flipped @ inverse) @ (grad - k @ self)
    k = inverse @ grad
    back = flipped @ k
    return -turned(k @ inverse) + (grad - self @ k) @ inverse @ flipped + back - (back @ inverse) @ self


def _lstsq(self: Array, b: Array, rcond: float | None) -> tuple[Array, Array, Array, Array]:
    cut = max(self.shape[-2:]) * np.finfo(self.dtype).eps if rcond is None else rcond
    solution = in_columns(_pinv(self, None, cut) @ b)
    values = np.linalg.svd(self, compute_uv=False)
    rank = np.asarray((values > cut * values.max(-1, keepdims=True, initial=0)).sum(-1), np.int64)
    nothing = np.zeros(0, self.dtype)  # the default driver "gelsy" gives neither residuals nor singular values
    return solution, nothing, rank, nothing.copy()


def _lstsq_vjp(grads: Any, self: Any, b: Any) -> tuple[Any, Any]:
    g = grads[0]
    inverse = pinv_op(self, atol=None, rtol=None)
    return pinv_vjp(g @ turned(b), self, inverse), turned(inverse) @ g


def _by_factor(self: Array, input2: Array, upper: bool) -> Array:
    factor = np.triu(input2) if upper else np.tril(input2)
    across = np.swapaxes(factor, -1, -2)
    return in_columns(np.linalg.solve(across @ factor if upper else factor @ across, self))


def _by_factor_vjp(g: Any, input2: Any, result: Any, upper: bool) -> tuple[Any, Any]:
    to_b = cholesky_solve_op(g, input2, upper=upper)
    both = to_b @ turned(result)
    both = both + turned(both)
    return to_b, -(input2 @ both) if upper else -(both @ input2)


pinv_op: Op = Op(
    "linalg_pinv(self, *, atol=None, rtol=None)",
    grad_fn="LinalgPinvBackward0",
    formula="the pseudo-inverse of self",
    forward=_pinv,
    rules=(Rule("self", "the gradient through result and self", pinv_vjp),),
    public=False,
    examples=lambda: [
        Example((normal(3, 2),), {"atol": None, "rtol": None}),
        Example((normal(2, 3),), {"atol": None, "rtol": None}),
    ],
)
lstsq_op: Op = Op(
    "linalg_lstsq(self, b, *, rcond=None)",
    grad_fn="LinalgLstsqBackward0",
    formula="X for which self @ X is nearest to b",
    forward=_lstsq,
    rules=(Rule("self, b", "through the pseudo-inverse; pinv(self).T @ g", _lstsq_vjp),),
    outputs=("solution", "residuals", "rank", "singular_values"),
    differentiable_outputs=2,
    public=False,
    named=True,
    examples=lambda: [Example((normal(4, 2), normal(4, 1)), {"rcond": None})],
)
rank_op: Op = Op(
    "linalg_matrix_rank(self, *, atol=None, rtol=None)",
    grad_fn="",
    formula="how many singular values of self count",
    forward=lambda self, atol, rtol: (
        _decomposed(self, full_matrices=False)[1] > np.asarray(_cutoffs(self, atol, rtol))[..., None]
    ).sum(-1),
    public=False,
)
cholesky_solve_op: Op = Op(
    "cholesky_solve(self, input2, *, upper=False)",
    grad_fn="CholeskySolveBackward0",
    formula="X with input2 @ input2.T @ X = self",
    forward=_by_factor,
    rules=(
        Rule("self, input2", "cholesky_solve(g, input2); -(its product with result.T, twice) @ input2", _by_factor_vjp),
    ),
    public=False,
    examples=lambda: [Example((normal(3, 2), positive_definite()), {"upper": False})],
)


def pinv(A: Tensor, *, atol: float | None = None, rtol: float | None = None, hermitian: bool = False) -> Tensor:
    """The pseudo-inverses of matrices."""
    check_matrix_stack("linalg.pinv", A)
    return run(pinv_op, A, atol=atol, rtol=rtol)


@front("pinverse")
def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """The pseudo-inverse of a matrix; singular values below `rcond` times the largest count as 0."""
    return pinv(input, rtol=rcond)


def lstsq(A: Tensor, B: Tensor, rcond: float | None = None, *, driver: str | None = None) -> Any:
    """X that minimizes the distance of ``A @ X`` from `B`; also the rank."""
    check_matrix_stack("torch.linalg.lstsq", A)
    if driver not in (None, "gelsy"):
        raise RuntimeError(f"gviz's built-in engine has no torch.linalg.lstsq with driver '{driver}'; it has 'gelsy'")
    if A.shape[-2] != B.shape[-2]:
        raise RuntimeError("torch.linalg.lstsq: input.size(-2) should match other.size(-2)")
    return apply(lstsq_op, (A, B), {"rcond": rcond})


def matrix_rank(A: Tensor, *, atol: float | None = None, rtol: float | None = None, hermitian: bool = False) -> Tensor:
    """The number of singular values of a matrix that are not 0 within rounding."""
    check_matrix_stack("linalg.matrix_rank", A)
    return run(rank_op, A, atol=atol, rtol=rtol)


@front("cholesky_solve")
def cholesky_solve(input: Tensor, L: Tensor, upper: bool = False) -> Tensor:
    """X with ``L @ L.T @ X = input``, for the Cholesky factor `L`."""
    check_square("cholesky_solve", L)
    check_sides("cholesky_solve", L, input, left=True)
    return run(cholesky_solve_op, input, L, upper=upper)


# ----------------------------------------------------------------------------------------------------------------------
# Functions of whole matrices: powers, the exponential, norms, condition numbers.


def _exponential(self: Array) -> Array:
    from scipy.linalg import expm  # slow to import

    return np.asarray(expm(self), self.dtype) if self.size else self.copy()


def _exponential_vjp(g: Any, self: Any) -> Any:
    """Return the differential: the upper right block of the exponential of ``[[A, G], [0, A]]``."""
    A, size, last = turned(self), self.shape[-1], self.ndim - 1
    above = cat_op(A, g, dim=last)
    below = cat_op(A * 0, A, dim=last)
    whole = exponential_op(cat_op(above, below, dim=last - 1))
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
    """The `n`-th power of a matrix; of its inverse for a negative `n`."""
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
    """The norm of the matrices in two dimensions."""
    check_matrix_stack("linalg.matrix_norm", A, low_precision=True)
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
    axis = left if keepdim or left < summed else left - 1
    return _extreme(sums, axis, keepdim, largest=float(ord) > 0)


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
    """The norm of a vector or a matrix, or of all elements; see `vector_norm` and `matrix_norm`."""
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
    """The condition number of a matrix: its norm times that of its inverse."""
    check_matrix_stack("linalg.cond", A)
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
    check_floating("linalg.vecdot", x)
    if x.dtype is not y.dtype:
        raise RuntimeError(
            "linalg.vecdot: Expected x and y to have the same dtype, but found x of type "
            f"{x.dtype.tensor_type} and y of type {y.dtype.tensor_type} instead"
        )
    result: Tensor = x.vdot(y) if x.ndim == y.ndim == 1 else (x * y).sum(dim)
    return result

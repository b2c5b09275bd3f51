"""Matrices as products of simpler ones: Cholesky, QR, singular values, eigenvalues."""

from __future__ import annotations

from typing import Any

import numpy as np

from gviz.engine.apply import apply
from gviz.engine.memory_order import in_columns
from gviz.engine.op import Example, Op, Rule
from gviz.engine.ops.diagonals import diag_embed_op, diagonal_op
from gviz.engine.ops.examples import normal
from gviz.engine.ops.joining import cat_op
from gviz.engine.ops.matrix_checks import (
    LinAlgError,
    check_matrices,
    check_square,
    element_text,
    minor_not_positive,
    turned,
)
from gviz.engine.ops.selecting import narrow
from gviz.engine.ops.shape import run, unsqueeze_dims
from gviz.engine.ops.solving import inverse_op, triangular_op
from gviz.engine.ops.triangles import tril_op
from gviz.engine.return_types import results_type
from gviz.engine.surface import front
from gviz.engine.tensor import Tensor, new_tensor
from gviz.values import Array


def positive_definite(*stack: int) -> Array:
    """Symmetric matrices for examples, with eigenvalues apart from each other and from 0."""
    half = normal(*stack, 3, 3) * 0.3
    return np.asarray(half @ np.swapaxes(half, -1, -2) + np.diag([1.0, 2.0, 4.0]))


def _part(g: Any, dim: int, start: int, end: int) -> Any:
    return narrow(g, dim=g.ndim + dim, start=start, end=end, step=1)


def _nothing_arrived(g: Any) -> bool:
    """Whether the gradient of an output is none at all."""
    if isinstance(g, Tensor):
        return not g.requires_grad and not g._array.any()
    return not np.any(g)


def _diagonals(values: Any) -> Any:
    return diag_embed_op(values, offset=0, dim1=values.ndim - 1, dim2=values.ndim)


def _cholesky(A: Array, upper: bool) -> Array:
    try:
        factor = np.linalg.cholesky(np.swapaxes(A, -1, -2) if upper else A)
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
    beside = Q @ rest
    first = _tall_qr_vjp(to_q + beside @ turned(to_rest), to_square, Q, square)
    return cat_op(first, Q @ to_rest, dim=first.ndim - 1)


def _tall_qr_vjp(to_q: Any, to_r: Any, Q: Any, R: Any) -> Any:
    mixed = R @ turned(to_r) - turned(to_q) @ Q
    below = tril_op(mixed, diagonal=-1)
    symmetric = below + turned(below) + _diagonals(diagonal_op(mixed, offset=0, dim1=-2, dim2=-1))
    return triangular_op(turned(R), to_q + Q @ symmetric, upper=False, left=False, unitriangular=False)


def _svd(A: Array, full_matrices: bool) -> tuple[Array, Array, Array]:
    try:
        u, s, vh = np.linalg.svd(A, full_matrices)
    except np.linalg.LinAlgError:
        raise LinAlgError(
            "linalg.svd: The algorithm failed to converge because the input matrix contained non-finite values."
        ) from None
    return in_columns(u), s, in_columns(vh)


def _gaps(values: Any) -> Any:
    """The differences of all pairs of numbers, 1 for a number with itself."""
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
    aside = mixed - _diagonals(diagonal_op(mixed, offset=0, dim1=-2, dim2=-1))
    result = eigenvectors @ (aside / _gaps(eigenvalues) + _diagonals(to_values)) @ turned(eigenvectors)
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
    """The triangular L with ``L @ L.T = A``. LinAlgError for a matrix that is not positive-definite."""
    check_square("linalg.cholesky", A)
    return run(cholesky_op, A, upper=upper)


@front("cholesky")
def old_cholesky(input: Tensor, upper: bool = False) -> Tensor:
    """The triangular L with ``L @ L.T = input``, as ``torch.linalg.cholesky`` gives it."""
    check_square("cholesky", input)
    return run(old_cholesky_op, input, upper=upper)


def qr(A: Tensor, mode: str = "reduced") -> Any:
    """Q with orthonormal columns and the upper triangular R with ``Q @ R = A``."""
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'"
        )
    check_matrices("linalg.qr", A)
    return apply(qr_op, (A,), {"mode": mode})


def svd(A: Tensor, full_matrices: bool = True) -> Any:
    """U, S and Vh with ``U @ diag(S) @ Vh = A``, the singular values S from the largest to the smallest."""
    check_matrices("linalg.svd", A)
    return apply(svd_op, (A,), {"full_matrices": full_matrices})


def svdvals(A: Tensor) -> Tensor:
    """The singular values of matrices, from the largest to the smallest."""
    check_matrices("linalg.svd", A)
    values: Tensor = apply(svd_op, (A,), {"full_matrices": False})[1]
    return values


def eigh(A: Tensor, UPLO: str = "L") -> Any:
    """Eigenvalues, from the smallest to the largest, and eigenvectors of symmetric matrices."""
    check_square("linalg.eigh", A)
    if UPLO.upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    return apply(eigh_op, (A,), {"UPLO": UPLO.upper()})


def eigvalsh(A: Tensor, UPLO: str = "L") -> Tensor:
    """The eigenvalues of symmetric matrices, from the smallest to the largest."""
    values: Tensor = eigh(A, UPLO)[0]
    return values


@front("qr")
def old_qr(input: Tensor, some: bool = True) -> Any:
    """Q and R, as ``torch.linalg.qr`` gives them."""
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

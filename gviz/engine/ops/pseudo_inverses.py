"""Best solutions of equations that have none or many: pseudo-inverses, least squares, rank, solutions by a factor."""

from __future__ import annotations

from typing import Any

import numpy as np

from gviz.engine.apply import apply
from gviz.engine.memory_order import in_columns
from gviz.engine.op import Example, Op, Rule
from gviz.engine.ops.decompositions import positive_definite
from gviz.engine.ops.examples import normal
from gviz.engine.ops.matrix_checks import check_matrices, check_square, turned
from gviz.engine.ops.shape import run
from gviz.engine.ops.solving import check_sides
from gviz.engine.surface import front
from gviz.engine.tensor import Tensor
from gviz.values import Array


def _cutoffs(A: Array, atol: float | None, rtol: float | None) -> Any:
    """The size from which on a singular value of `A` counts."""
    largest = np.linalg.norm(A, 2, (-2, -1)) if A.size else np.zeros(A.shape[:-2], A.dtype)
    relative = rtol if rtol is not None else (0.0 if atol else max(A.shape[-2:]) * np.finfo(A.dtype).eps)
    return np.maximum(atol or 0.0, relative * largest)


def _pinv(self: Array, atol: float | None, rtol: float | None) -> Array:
    u, s, vh = np.linalg.svd(self, full_matrices=False)
    kept = s > np.asarray(_cutoffs(self, atol, rtol))[..., None]
    inverse = np.where(kept, 1 / np.where(kept, s, 1), 0).astype(self.dtype)
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
    nothing = np.zeros(0, self.dtype)  # the driver "gelsy", the default, gives neither residuals nor singular values
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
        np.linalg.svd(self, compute_uv=False) > np.asarray(_cutoffs(self, atol, rtol))[..., None]
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
    check_matrices("linalg.pinv", A)
    return run(pinv_op, A, atol=atol, rtol=rtol)


@front("pinverse")
def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """The pseudo-inverse of a matrix; singular values below `rcond` times the largest count as 0."""
    return pinv(input, rtol=rcond)


def lstsq(A: Tensor, B: Tensor, rcond: float | None = None, *, driver: str | None = None) -> Any:
    """X for which ``A @ X`` is nearest to `B`; also the rank."""
    check_matrices("torch.linalg.lstsq", A)
    if driver not in (None, "gelsy"):
        raise RuntimeError(f"gviz's built-in engine has no torch.linalg.lstsq with driver '{driver}'; it has 'gelsy'")
    if A.shape[-2] != B.shape[-2]:
        raise RuntimeError("torch.linalg.lstsq: input.size(-2) should match other.size(-2)")
    return apply(lstsq_op, (A, B), {"rcond": rcond})


def matrix_rank(A: Tensor, *, atol: float | None = None, rtol: float | None = None, hermitian: bool = False) -> Tensor:
    """How many singular values of a matrix are not 0, as far as rounding lets one say."""
    check_matrices("linalg.matrix_rank", A)
    return run(rank_op, A, atol=atol, rtol=rtol)


@front("cholesky_solve")
def cholesky_solve(input: Tensor, L: Tensor, upper: bool = False) -> Tensor:
    """X with ``L @ L.T @ X = input``, for the Cholesky factor `L`."""
    check_square("cholesky_solve", L)
    check_sides("cholesky_solve", L, input, left=True)
    return run(cholesky_solve_op, input, L, upper=upper)

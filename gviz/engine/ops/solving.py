"""Inverses, determinants and systems of linear equations."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from gviz.engine.apply import apply
from gviz.engine.memory_order import in_columns
from gviz.engine.op import Example, Op, Rule
from gviz.engine.ops.comparison import where_op
from gviz.engine.ops.examples import normal
from gviz.engine.ops.flattening import flatten
from gviz.engine.ops.matrix_checks import LinAlgError, check_square, element_text, turned, zero_pivot
from gviz.engine.ops.shape import reshape, run, unsqueeze_dims
from gviz.engine.ops.triangles import tril_op, triu_op
from gviz.engine.surface import front
from gviz.engine.tensor import Tensor, new_tensor
from gviz.values import Array


def _invertible(*stack: int) -> Array:
    return normal(*stack, 3, 3) + 3 * np.eye(3)


def _inverse(A: Array) -> Array:
    try:
        return in_columns(np.linalg.inv(A))
    except np.linalg.LinAlgError:
        _no_inverse(A)


def _no_inverse(A: Array) -> NoReturn:
    for position, matrix in enumerate(A.reshape(-1, *A.shape[-2:])):
        pivot = zero_pivot(matrix)
        if pivot:
            raise LinAlgError(
                f"linalg.inv: {element_text(A, position)}The diagonal element {pivot} is zero, the inversion could not "
                "be completed because the input matrix is singular."
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
    """The products of all pairs of elements of two vectors, for each of a stack."""
    return unsqueeze_dims(a, dims=(-1,)) * unsqueeze_dims(b, dims=(-2,))


def _cofactors(A: Array) -> Array:
    """What the determinant's gradient is, also where there is no inverse."""
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
    """The solution row by row, which divides by the zeros on the diagonal as PyTorch does."""
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
    """The inverses of matrices. LinAlgError for a singular one."""
    check_square("linalg.inv", A)
    return run(inverse_op, A)


front("inverse")(inv)


def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
    """X with ``A @ X = B``, or with ``X @ A = B``. LinAlgError for a singular matrix."""
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
    """RuntimeError, in PyTorch's words, for equations whose sides do not fit."""
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
    """Signs and logarithms of the sizes of determinants."""
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
    """X with ``A @ X = B`` or ``X @ A = B`` for a triangular matrix, of which only its triangle is read."""
    check_square("linalg.solve_triangular", A)
    check_sides("linalg.solve_triangular", A, B, left)
    return run(triangular_op, A, B, upper=upper, left=left, unitriangular=unitriangular)


def tensorsolve(A: Tensor, B: Tensor) -> Tensor:
    """X with ``tensordot(A, X, X.ndim) = B``."""
    size, rest = B.numel(), A.shape[B.ndim :]
    return reshape(solve(reshape(A, size, -1), flatten(B)), *rest)

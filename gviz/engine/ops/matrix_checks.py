"""What the operations of linear algebra share: checks of matrices, the error for singular ones, transposes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gviz.engine.ops.axes import transpose
from gviz.engine.ops.kernels import refuse_unless
from gviz.engine.tensor import Tensor
from gviz.values import Array


class _LinAlgError(RuntimeError):  # PyTorch's own name for it, as users see it in a traceback
    """A matrix has no inverse, no factorization or no solution."""


LinAlgError = _LinAlgError


def turned(matrices: Any) -> Any:
    """Matrices transposed; arrays and tensors."""
    return transpose(matrices, dim0=-2, dim1=-1)


def check_matrices(name: str, A: Tensor, *, low_precision: bool = False) -> None:
    """RuntimeError, in PyTorch's words, for what is no stack of matrices of floating-point numbers."""
    if A.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor A must have at least 2 dimensions.")
    if not A.dtype.is_floating_point:
        raise RuntimeError(f"{name}: Expected a floating point or complex tensor as input. Got {A.dtype.tensor_type}")
    if A.dtype.name == "float16" and not low_precision:
        raise RuntimeError(f"{name}: Low precision dtypes not supported. Got Half")


def check_square(name: str, A: Tensor) -> None:
    """RuntimeError, in PyTorch's words, for what is no stack of square matrices."""
    if A.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor A must have at least 2 dimensions.")
    if A.shape[-1] != A.shape[-2]:
        raise RuntimeError(
            f"{name}: A must be batches of square matrices, but they are {A.shape[-2]} by {A.shape[-1]} matrices"
        )
    check_matrices(name, A)


def zero_pivot(matrix: Array) -> int:
    """Which diagonal element of the triangle becomes 0 in elimination with pivots, from 1; 0 if none does."""
    left = np.array(matrix)
    for k in range(len(left)):
        row = k + int(np.argmax(np.abs(left[k:, k])))
        if not left[row, k]:
            return k + 1
        left[[k, row]] = left[[row, k]]
        left[k + 1 :] -= np.outer(left[k + 1 :, k] / left[k, k], left[k])
    return 0


def minor_not_positive(matrix: Array) -> int:
    """The order of the smallest leading minor that is not positive-definite, from 1; 0 if all are."""
    for k in range(1, len(matrix) + 1):
        try:
            np.linalg.cholesky(matrix[:k, :k])
        except np.linalg.LinAlgError:
            return k
    return 0


def element_text(A: Array, position: int) -> str:
    """Which matrix of a stack an error is about; empty for a single one."""
    return f"(Batch element {position}): " if A.ndim > 2 else ""


def refuse_bools(kernel: str, *tensors: Tensor) -> None:
    """NotImplementedError, in PyTorch's words, for a product of booleans; one of no elements needs no kernel."""
    if tensors[0]._array.dtype.kind == "b" and all(t._array.size for t in tensors):
        refuse_unless(False, kernel, tensors[0]._array)


def check_factors(tensors: Sequence[Any], attrs: dict[str, Any]) -> None:
    """RuntimeError, in PyTorch's words, for a factor of integers that is none."""
    if all(t._array.dtype.kind != "f" for t in tensors):
        for name in ("beta", "alpha"):
            if isinstance(attrs[name], float):
                raise RuntimeError(f"For integral input tensors, argument {name} must not be a floating point number.")


def size_text(tensor: Tensor) -> str:
    """The sizes as PyTorch's messages write them, ``2x3``."""
    return "x".join(map(str, tensor.shape))

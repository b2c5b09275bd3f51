"""Products of vectors and matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from gviz.engine.apply import apply
from gviz.engine.op import Example, Op, Rule
from gviz.engine.ops.axes import t, transpose
from gviz.engine.ops.examples import normal
from gviz.engine.ops.shape import reshaped, unsqueeze_dims
from gviz.engine.surface import checked, front
from gviz.engine.tensor import Tensor

mm: Op = Op(
    "mm(self, mat2)",
    grad_fn="MmBackward0",
    formula="self @ mat2",
    forward=np.matmul,
    rules=(
        Rule("self", "g @ mat2.T", lambda g, mat2: g @ mat2.T),
        Rule("mat2", "self.T @ g", lambda g, self: self.T @ g),
    ),
    public=False,
    examples=lambda: [Example((normal(2, 3), normal(3, 4)), {})],
)
mv: Op = Op(
    "mv(self, vec)",
    grad_fn="MvBackward0",
    formula="self @ vec",
    forward=np.matmul,
    rules=(
        Rule("self", "outer(g, vec)", lambda g, vec: unsqueeze_dims(g, dims=(1,)) * unsqueeze_dims(vec, dims=(0,))),
        Rule("vec", "self.T @ g", lambda g, self: self.T @ g),
    ),
    public=False,
    examples=lambda: [Example((normal(2, 3), normal(3)), {})],
)
dot: Op = Op(
    "dot(self, tensor)",
    grad_fn="DotBackward0",
    formula="sum of self * tensor",
    forward=np.dot,
    rules=(
        Rule("self", "g * tensor", lambda g, tensor: g * tensor),
        Rule("tensor", "g * self", lambda g, self: g * self),
    ),
    public=False,
    examples=lambda: [Example((normal(3), normal(3)), {})],
)
bmm: Op = Op(
    "bmm(self, mat2)",
    grad_fn="BmmBackward0",
    formula="self @ mat2, matrix by matrix",
    forward=np.matmul,
    rules=(
        Rule("self", "g @ mat2.T", lambda g, mat2: bmm(g, transpose(mat2, dim0=-1, dim1=-2))),
        Rule("mat2", "self.T @ g", lambda g, self: bmm(transpose(self, dim0=-1, dim1=-2), g)),
    ),
    public=False,
    examples=lambda: [Example((normal(2, 2, 3), normal(2, 3, 2)), {})],
)
addmm: Op = Op(
    "addmm(self, mat1, mat2)",
    grad_fn="AddmmBackward0",
    formula="self + mat1 @ mat2",
    forward=lambda self, mat1, mat2: np.add(np.matmul(mat1, mat2), self),
    rules=(
        Rule("self", "g", lambda g: g),
        Rule("mat1", "g @ mat2.T", lambda g, mat2: g @ mat2.T),
        Rule("mat2", "mat1.T @ g", lambda g, mat1: (g.T @ mat1).T),  # laid out like a layer's turned weight
    ),
    public=False,
    examples=lambda: [Example((normal(4), normal(2, 3), normal(3, 4)), {})],
)

squeeze_rows: Op = Op(
    "squeeze(self)",
    grad_fn="SqueezeBackward4",  # PyTorch squeezes the fresh product in place
    formula="self without its one row",
    forward=lambda self: self[0].copy(),
    rules=(Rule("self", "g as one row", lambda g: unsqueeze_dims(g, dims=(0,))),),
    public=False,
    examples=lambda: [Example((normal(1, 3),), {})],
)


@front("mm")
def mm_front(self: Tensor, mat2: Tensor) -> Tensor:
    """The product of two matrices."""
    _check_matrices(self, mat2)
    result: Tensor = apply(mm, (self, mat2))
    return result


@front("mv")
def mv_front(self: Tensor, vec: Tensor) -> Tensor:
    """The product of a matrix and a vector."""
    if self.shape[1] != vec.shape[0]:
        raise RuntimeError(f"size mismatch, got input ({self.shape[0]}), mat ({_by(self)}), vec ({vec.shape[0]})")
    result: Tensor = apply(mv, (self, vec))
    return result


@front("dot", "inner")
def dot_front(self: Tensor, tensor: Tensor) -> Tensor:
    """The sum of the products of two vectors' elements."""
    if self.ndim != 1 or tensor.ndim != 1:
        raise RuntimeError(f"1D tensors expected, but got {self.ndim}D and {tensor.ndim}D tensors")
    if self.shape != tensor.shape:
        raise RuntimeError(
            "inconsistent tensor size, expected tensor "
            f"[{self.shape[0]}] and src [{tensor.shape[0]}] to have the same number of elements, but got "
            f"{self.shape[0]} and {tensor.shape[0]} elements respectively"
        )
    result: Tensor = apply(dot, (self, tensor))
    return result


@front("addmm")
def addmm_front(self: Tensor, mat1: Tensor, mat2: Tensor) -> Tensor:
    """`self` + `mat1` @ `mat2`."""
    _check_shapes(mat1, mat2)
    if mat1._array.dtype != mat2._array.dtype:
        kinds = f"{mat1.dtype.tensor_type} and {mat2.dtype.tensor_type}"
        raise RuntimeError(f"mat1 and mat2 must have the same dtype, but got {kinds}")
    result: Tensor = apply(addmm, (self, mat1, mat2))
    return result


@front("bmm")
def bmm_front(self: Tensor, mat2: Tensor) -> Tensor:
    """The products of two stacks of matrices."""
    result: Tensor = apply(bmm, (self, mat2))
    return result


@front("matmul", "__matmul__")
def matmul(self: Tensor, other: Tensor) -> Tensor:
    """The matrix product, by the operands' dimensions: dot, mv, mm, or matrix by matrix over leading dimensions."""
    checked(mm, other, 2)
    dims = self.ndim, other.ndim
    if 0 in dims:
        raise RuntimeError(
            f"both arguments to matmul need to be at least 1D, but they are {self.ndim}D and {other.ndim}D"
        )
    if dims == (1, 1):
        return dot_front(self, other)
    if dims == (2, 1):
        return mv_front(self, other)
    if dims == (2, 2):
        return mm_front(self, other)
    if dims == (1, 2):
        return _apply(squeeze_rows, mm_front(self.unsqueeze(0), other))
    if self.ndim == 1:
        return matmul(other.transpose(-1, -2), self)
    if other.ndim <= 2:
        return _folded(self, other)
    return _batched(self, other)


def _folded(self: Tensor, other: Tensor) -> Tensor:
    """Leading dimensions as rows of one matrix, times a matrix or vector."""
    rows = self.reshape(-1, self.shape[-1])
    product = mm_front(rows, other) if other.ndim == 2 else mv_front(rows, other)
    return _apply(reshaped, product, size=(*self.shape[:-1], *other.shape[1:]))


def _batched(self: Tensor, other: Tensor) -> Tensor:
    """Leading dimensions broadcast, then one product per pair of matrices."""
    lead = np.broadcast_shapes(tuple(self.shape[:-2]), tuple(other.shape[:-2]))
    left = self.expand(*lead, *self.shape[-2:]).reshape(-1, *self.shape[-2:])
    right = other.expand(*lead, *other.shape[-2:]).reshape(-1, *other.shape[-2:])
    return _apply(reshaped, bmm_front(left, right), size=(*lead, self.shape[-2], other.shape[-1]))


def _apply(op: Op, self: Tensor, **attrs: Any) -> Tensor:
    result: Tensor = apply(op, (self,), attrs)
    return result


def _check_matrices(a: Tensor, b: Tensor) -> None:
    _check_shapes(a, b)
    if a._array.dtype != b._array.dtype:
        kinds = a.dtype.tensor_type.lower(), b.dtype.tensor_type.lower()
        raise RuntimeError(f"expected m1 and m2 to have the same dtype, but got: {kinds[0]} != {kinds[1]}")


def _check_shapes(a: Tensor, b: Tensor) -> None:
    if a.ndim != 2 or b.ndim != 2:
        raise RuntimeError(f"{'self' if a.ndim != 2 else 'mat2'} must be a matrix")
    if a.shape[1] != b.shape[0]:
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({_by(a)} and {_by(b)})")


def _by(tensor: Tensor) -> str:
    return "x".join(map(str, tensor.shape))


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`input` @ `weight`.T + `bias`, as ``torch.nn.functional.linear`` computes it."""
    turned = apply(t, (weight,))
    if bias is None:
        return matmul(input, turned)
    if input.ndim == 2:
        return addmm_front(bias, input, turned)
    rows = addmm_front(bias, input.view(-1, input.shape[-1]), turned)
    result: Tensor = rows.view(*input.shape[:-1], weight.shape[0])
    return result

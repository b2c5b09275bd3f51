"""Products of vectors and matrices."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from gviz.engine.apply import apply
from gviz.engine.op import Example, Op, Rule
from gviz.engine.ops.axes import adjoint, t, t_front, transpose
from gviz.engine.ops.examples import normal
from gviz.engine.ops.kernels import refuse_unless
from gviz.engine.ops.matrix_checks import refuse_bools, size_text
from gviz.engine.ops.matrix_sums import check_matrices, plus_product, product, times
from gviz.engine.ops.memory import contiguous
from gviz.engine.ops.repeating import common_shape
from gviz.engine.ops.shape import expand, reshape, reshaped, run, unsqueeze, unsqueeze_dims
from gviz.engine.surface import checked, front
from gviz.engine.tensor import Tensor

mm: Op = Op(
    "mm(self, mat2)",
    grad_fn="MmBackward0",
    formula="self @ mat2",
    forward=product,
    rules=(
        Rule("self", "g @ mat2.T", lambda g, mat2: times(g, mat2.T)),
        Rule("mat2", "self.T @ g", lambda g, self: times(self.T, g)),
    ),
    public=False,
    torch="mm",
    examples=lambda: [Example((normal(2, 3), normal(3, 4)), {}), Example((normal(2, 0), normal(0, 4)), {})],
)
mv: Op = Op(
    "mv(self, vec)",
    grad_fn="MvBackward0",
    formula="self @ vec",
    forward=product,
    rules=(
        Rule("self", "outer(g, vec)", lambda g, vec: unsqueeze_dims(g, dims=(1,)) * unsqueeze_dims(vec, dims=(0,))),
        Rule("vec", "self.T @ g", lambda g, self: times(self.T, g)),
    ),
    public=False,
    torch="mv",
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
    torch="dot",
    examples=lambda: [Example((normal(3), normal(3)), {})],
)
vdot: Op = Op(
    "vdot(self, other)",
    grad_fn="VdotBackward0",
    formula="sum of self * other",
    forward=np.dot,
    rules=(
        Rule("self", "g * other", lambda g, other: g * other),
        Rule("other", "g * self", lambda g, self: g * self),
    ),
    public=False,
    torch="vdot",
    examples=lambda: [Example((normal(3), normal(3)), {})],
)
bmm: Op = Op(
    "bmm(self, mat2)",
    grad_fn="BmmBackward0",
    formula="self @ mat2, matrix by matrix",
    forward=product,
    rules=(
        Rule("self", "g @ mat2.T", lambda g, mat2: bmm(g, transpose(mat2, dim0=-1, dim1=-2))),
        Rule("mat2", "self.T @ g", lambda g, self: bmm(transpose(self, dim0=-1, dim1=-2), g)),
    ),
    public=False,
    torch="bmm",
    examples=lambda: [Example((normal(2, 2, 3), normal(2, 3, 2)), {})],
)
squeeze_rows: Op = Op(
    "squeeze(self, *, dim)",
    grad_fn="SqueezeBackward4",  # PyTorch squeezes the fresh product in place
    formula="self without its one row",
    forward=lambda self, dim: self[dim],
    rules=(Rule("self", "g as one row", lambda g, self_sym_sizes: unsqueeze_dims(g, dims=(0,))),),
    public=False,
    examples=lambda: [Example((normal(1, 3),), {"dim": 0})],
)


@front("mm")
def mm_front(self: Tensor, mat2: Tensor) -> Tensor:
    """The product of two matrices."""
    check_matrices(self, mat2)
    result: Tensor = apply(mm, (self, mat2))
    return result


@front("mv")
def mv_front(self: Tensor, vec: Tensor) -> Tensor:
    """The product of a matrix and a vector."""
    if self.ndim != 2 or vec.ndim != 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got 1, {self.ndim}, {vec.ndim}")
    if self.shape[1] != vec.shape[0]:
        raise RuntimeError(f"size mismatch, got input ({self.shape[0]}), mat ({size_text(self)}), vec ({vec.shape[0]})")
    if self.dtype is not vec.dtype:
        kinds = f"{vec.dtype.tensor_type}, {self.dtype.tensor_type}, and {vec.dtype.tensor_type}"
        raise RuntimeError(f"addmv input tensors must have the same dtype, but got {kinds}")
    refuse_bools("addmv_impl_cpu", self, vec)
    result: Tensor = apply(mv, (self, vec))
    return result


@front("dot")
def dot_front(self: Tensor, tensor: Tensor) -> Tensor:
    """The sum of the products of two vectors' elements."""
    _check_vectors("dot", self, tensor)
    result: Tensor = apply(dot, (self, tensor))
    return result


@front("vdot")
def vdot_front(self: Tensor, other: Tensor) -> Tensor:
    """The sum of the products of two vectors' elements."""
    _check_vectors("vdot", self, other)
    result: Tensor = apply(vdot, (self, other))
    return result


def _check_vectors(name: str, a: Tensor, b: Tensor) -> None:
    """RuntimeError, in PyTorch's words, unless both are vectors of one length."""
    if a.ndim != 1 or b.ndim != 1:
        raise RuntimeError(f"1D tensors expected, but got {a.ndim}D and {b.ndim}D tensors")
    if a.dtype is not b.dtype:
        kinds = f"{a.dtype.tensor_type} and {b.dtype.tensor_type}"
        raise RuntimeError(f"dot : expected both vectors to have same dtype, but found {kinds}")
    if a.shape != b.shape:
        raise RuntimeError(
            "inconsistent tensor size, expected tensor "
            f"[{a.shape[0]}] and src [{b.shape[0]}] to have the same number of elements, but got "
            f"{a.shape[0]} and {b.shape[0]} elements respectively"
        )
    refuse_unless(a._array.dtype.kind != "b", "dot", a._array)


@front("bmm")
def bmm_front(self: Tensor, mat2: Tensor) -> Tensor:
    """The products of two stacks of matrices."""
    for name, tensor in (("batch1", self), ("batch2", mat2)):
        if tensor.ndim != 3:
            raise RuntimeError(f"{name} must be a 3D tensor")
    expected = [self.shape[0], self.shape[2]]
    if list(mat2.shape[:2]) != expected:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: {expected} but got: "
            f"{list(mat2.shape[:2])}."
        )
    if self.dtype is not mat2.dtype:
        raise RuntimeError(f"expected scalar type {self.dtype.tensor_type} but found {mat2.dtype.tensor_type}")
    refuse_bools("bmm", self, mat2)
    result: Tensor = apply(bmm, (self, mat2))
    return result


@front("__matmul__", function=False, checks=True)
def matmul_operator(self: Tensor, other: Any) -> Any:
    """``self @ other``, which numbers have not."""
    return NotImplemented if isinstance(other, (bool, int, float)) else matmul(self, other)


@front("matmul")
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
        row = run(squeeze_rows, mm_front(unsqueeze(self, 0), other), dim=0)
        row._counter[0] += 1  # PyTorch squeezes in place
        return row
    return _folded(self, other) if _folds(self, other) else _batched(self, other)


def _folds(self: Tensor, other: Tensor) -> bool:
    """Whether leading dimensions become rows of one matrix, as PyTorch decides it: always where the other operand wants
    a gradient, which would otherwise be made for each matrix; else where that needs no copy."""
    large, small = (self, other) if self.ndim >= other.ndim else (other, self)
    if small.ndim > 2:
        return False
    if small.requires_grad:
        return True
    if self.ndim == 2:
        return False
    array = large._array
    steps = zip(array.strides[:-2], array.strides[1:-1], array.shape[1:-1], strict=True)
    return not array.size or all(stride == inner * n for stride, inner, n in steps)


def _folded(self: Tensor, other: Tensor) -> Tensor:
    """Leading dimensions as rows of one matrix, times a matrix or vector; a matrix on the left is turned for it."""
    turned = other.ndim > self.ndim
    large, small = (adjoint(other), _turned(self)) if turned else (self, other)
    lead = large.shape[:-1]
    rows = reshape(large, prod(lead), large.shape[-1])
    if small.ndim == 1:
        return run(reshaped, mv_front(rows, small), size=tuple(lead))
    folded = run(reshaped, mm_front(rows, small), size=(*lead, small.shape[1]))
    return contiguous(adjoint(folded)) if turned else folded


def _turned(self: Tensor) -> Tensor:
    """A matrix transposed; a vector as it is."""
    return run(t, self) if self.ndim == 2 else self


def _batched(self: Tensor, other: Tensor) -> Tensor:
    """Leading dimensions broadcast, then one product per pair of matrices."""
    lead = common_shape(tuple(self.shape[:-2]), tuple(other.shape[:-2]))
    rows = self.shape[-2:-1]
    left = reshape(
        run(expand, self, size=(*lead, *(rows or (1,)), self.shape[-1])), -1, *(rows or (1,)), self.shape[-1]
    )
    if other.ndim == 1:
        right = unsqueeze(reshape(run(expand, other, size=(*lead, *other.shape)), -1, *other.shape), 2)
    else:
        right = reshape(run(expand, other, size=(*lead, *other.shape[-2:])), -1, *other.shape[-2:])
    columns = () if other.ndim == 1 else other.shape[-1:]
    return run(reshaped, bmm_front(left, right), size=(*lead, *rows, *columns))


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`input` @ `weight`.T + `bias`, as ``torch.nn.functional.linear`` computes it."""
    turned: Tensor = t_front(weight)
    if bias is None:
        return matmul(input, turned)
    if input.ndim == 2 and weight.ndim == 2:
        return plus_product(bias, input, turned)
    if input.ndim and weight.ndim == 2 and input._array.flags.c_contiguous:
        rows = plus_product(bias, input.view(prod(input.shape[:-1]), input.shape[-1]), turned)
        result: Tensor = rows.view(*input.shape[:-1], weight.shape[0])
        return result
    total: Tensor = matmul(input, turned).add_(bias)
    return total

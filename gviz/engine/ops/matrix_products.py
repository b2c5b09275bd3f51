"""Products of matrices and vectors, of chains and over selected dimensions; the cross product, covariance.

It also has the checks of matrices with PyTorch's error texts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from gviz.engine import dtypes, messages
from gviz.engine.argument_parser import all_tensors
from gviz.engine.arguments import whole_numbers
from gviz.engine.functions_and_methods import Number, bind, checked, front, signature
from gviz.engine.memory_format import with_more_dimensions
from gviz.engine.op import Example, Op, Rule, apply, promote_operands
from gviz.engine.ops._declaration import Prepared
from gviz.engine.ops._examples import normal
from gviz.engine.ops._kernels import check_broadcast, refuse_unless
from gviz.engine.ops.copying import clone, contiguous
from gviz.engine.ops.joining import common_shape
from gviz.engine.ops.shape import (
    adjoint,
    expand,
    expanded,
    flatten,
    normal_dims,
    one_dim,
    permute_front,
    reshape,
    reshaped,
    run,
    t,
    t_front,
    transpose,
    unsqueeze,
    unsqueeze_dims,
    view,
)
from gviz.engine.tensor import Tensor
from gviz.engine.views import apply_in_place
from gviz.values.value import Array

# ----------------------------------------------------------------------------------------------------------------------
# Common helpers of linear algebra: checks of matrices, the error for singular ones, transposes.


class _LinAlgError(RuntimeError):  # PyTorch's own name, as users see it in a traceback
    """A matrix has no inverse, no factorization or no solution."""


LinAlgError = _LinAlgError


def turned(matrices: Any) -> Any:
    """Transposes matrices; accepts arrays and tensors."""
    return transpose(matrices, dim0=-2, dim1=-1)


def check_floating(name: str, A: Tensor) -> None:
    """Raises RuntimeError, with PyTorch's text, for a tensor that is not of floating-point numbers."""
    if not A.dtype.is_floating_point:
        raise RuntimeError(f"{name}: Expected a floating point or complex tensor as input. Got {A.dtype.tensor_type}")


def check_matrix_stack(name: str, A: Tensor, *, low_precision: bool = False) -> None:
    """Raises RuntimeError, with PyTorch's text, for anything but a stack of floating-point matrices."""
    if A.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor A must have at least 2 dimensions.")
    check_floating(name, A)
    if A.dtype.name == "float16" and not low_precision:
        raise RuntimeError(f"{name}: Low precision dtypes not supported. Got Half")


def check_square(name: str, A: Tensor) -> None:
    """Raises RuntimeError, with PyTorch's text, for anything but a stack of square matrices."""
    if A.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor A must have at least 2 dimensions.")
    if A.shape[-1] != A.shape[-2]:
        raise RuntimeError(
            f"{name}: A must be batches of square matrices, but they are {A.shape[-2]} by {A.shape[-1]} matrices"
        )
    check_matrix_stack(name, A)


def zero_pivot(matrix: Array, *, rounded: bool = False) -> int:
    """The diagonal element, counted from 1, that becomes 0 in elimination with pivoting; 0 if none does.

    With `rounded` also one that differs from 0 by rounding only, as in another order of the same sums it may not.
    """
    left = np.array(matrix)
    least = np.abs(left).max(initial=0) * len(left) * np.finfo(left.dtype).eps if rounded else 0
    for k in range(len(left)):
        row = k + int(np.argmax(np.abs(left[k:, k])))
        if np.abs(left[row, k]) <= least:
            return k + 1
        left[[k, row]] = left[[row, k]]
        left[k + 1 :] -= np.outer(left[k + 1 :, k] / left[k, k], left[k])
    return 0


def minor_not_positive(matrix: Array) -> int:
    """The order of the smallest leading minor that is not positive-definite, from 1; 0 if all are."""
    for k in range(1, len(matrix) + 1):
        try:
            if np.isnan(np.linalg.cholesky(matrix[:k, :k])).any():
                return k
        except np.linalg.LinAlgError:
            return k
    return 0


def element_text(A: Array, position: int) -> str:
    """The matrix of a stack that an error is about; empty for a single one."""
    return f"(Batch element {position}): " if A.ndim > 2 else ""


def refuse_bools(kernel: str, *tensors: Tensor) -> None:
    """Raises NotImplementedError, with PyTorch's text, for a product of booleans, unless a factor is empty."""
    if tensors[0]._array.dtype.kind == "b" and all(t._array.size for t in tensors):
        refuse_unless(False, kernel, tensors[0]._array)


def check_factors(tensors: Sequence[Any], attrs: dict[str, Any]) -> None:
    """Raises RuntimeError, with PyTorch's text, for a floating factor of integer tensors."""
    if all(t._array.dtype.kind != "f" for t in tensors):
        for name in ("beta", "alpha"):
            if isinstance(attrs[name], float):
                raise RuntimeError(f"For integral input tensors, argument {name} must not be a floating point number.")


def size_text(tensor: Tensor) -> str:
    """The sizes in PyTorch's messages, ``2x3``."""
    return "x".join(map(str, tensor.shape))


# ----------------------------------------------------------------------------------------------------------------------
# Products of matrices added to a tensor: ``beta * self + alpha * product``.


class UnscaledSum(Op):
    """The sum with both factors 1, which a node shows without saving them."""

    def saved_properties(self) -> dict[str, property]:
        return super().saved_properties() | dict.fromkeys(("alpha", "beta"), property(lambda node: 1))


def product(a: Array, b: Array) -> Any:
    """``a @ b``, through BLAS even for a repeated gradient or strided elements."""
    return np.matmul(_in_rows(a), _in_rows(b))


def _in_rows(a: Array) -> Array:
    """Return the array, or a copy if neither rows nor columns are contiguous: NumPy has only slow loops for those."""
    if a.ndim < 2:
        return a if a.strides == (a.itemsize,) else np.ascontiguousarray(a)
    rows, columns = a.strides[-2:]
    height, width = a.shape[-2:]
    if (columns == a.itemsize and rows >= width * columns) or (rows == a.itemsize and columns >= height * rows):
        return a
    return np.ascontiguousarray(a)


def _plus(self: Array, product: Array) -> Array:
    if product.dtype == self.dtype and isinstance(product, np.ndarray):
        return np.add(product, self, out=product)
    return np.add(product, self)


def _sum(self: Array, product: Any, beta: Number, alpha: Number) -> Array:
    """`beta` * `self` + `alpha` * `product`; `self` has no effect, not even as nan, if `beta` is 0."""
    scaled = product if alpha == 1 else product * np.asarray(alpha, product.dtype)
    if not beta:
        return np.asarray(scaled + np.zeros(self.shape, self.dtype))
    return np.asarray(scaled + (self if beta == 1 else self * np.asarray(beta, self.dtype)))


def _with_outer(self: Array, vec1: Array, vec2: Array, beta: Number, alpha: Number) -> Array:
    """`_sum` with the outer product, in the common dtype of a matrix and two vectors, even if `self` is a number."""
    whole = np.broadcast_to(self, (vec1.size, vec2.size))
    whole, vec1, vec2 = promote_operands([whole, vec1, vec2], True)
    return _sum(whole, np.multiply.outer(vec1, vec2), beta, alpha)


def _sum_by_blas(self: Array, product: Array, beta: Number, alpha: Number) -> Array:
    """As `_sum`; a `product` that BLAS multiplies by 0 it does not compute, so that it has no effect as nan either."""
    return _sum(self, product if alpha or product.itemsize < 4 else np.zeros_like(product), beta, alpha)


def times(a: Any, b: Any) -> Any:
    """``a @ b`` in a rule: with BLAS for arrays, tracked for tensors."""
    return a @ b if isinstance(a, Tensor) else product(a, b)


def _turned(matrices: Any) -> Any:
    return transpose(matrices, dim0=-1, dim1=-2)


def _outer(a: Any, b: Any) -> Any:
    return unsqueeze_dims(a, dims=(1,)) * unsqueeze_dims(b, dims=(0,))


def _for_each(g: Any, count: int) -> Any:
    """Return one gradient for each of `count` matrices that were summed."""
    return expand(unsqueeze_dims(g, dims=(0,)), size=(count, *g.shape))


_by_beta = Rule("self", "g * beta", lambda g, beta: g if beta == 1 else g * beta)

addmm: Op = UnscaledSum(
    "addmm(self, mat1, mat2)",
    grad_fn="AddmmBackward0",
    formula="self + mat1 @ mat2",
    forward=lambda self, mat1, mat2: _plus(self, product(mat1, mat2)),
    rules=(
        Rule("self", "g", lambda g: g),
        Rule("mat1", "g @ mat2.T", lambda g, mat2: times(g, mat2.T)),
        Rule("mat2", "mat1.T @ g", lambda g, mat1: times(g.T, mat1).T),  # in the layout of a layer's transposed weight
    ),
    public=False,
    torch="addmm",
    examples=lambda: [Example((normal(4), normal(2, 3), normal(3, 4)), {})],
)
addmm_scaled: Op = Op(
    "addmm(self, mat1, mat2, *, beta=1, alpha=1)",
    grad_fn="AddmmBackward0",
    formula="beta * self + alpha * mat1 @ mat2",
    forward=lambda self, mat1, mat2, beta, alpha: _sum_by_blas(self, product(mat1, mat2), beta, alpha),
    rules=(
        _by_beta,
        Rule("mat1", "alpha * g @ mat2.T", lambda g, mat2, alpha: times(g, mat2.T) * alpha),
        Rule("mat2", "alpha * mat1.T @ g", lambda g, mat1, alpha: times(mat1.T, g) * alpha),
    ),
    public=False,
    torch="addmm",
    examples=lambda: [Example((normal(4), normal(2, 3), normal(3, 4)), {"beta": 0.5, "alpha": 2})],
)
addmv: Op = Op(
    "addmv(self, mat, vec, *, beta=1, alpha=1)",
    grad_fn="AddmvBackward0",
    formula="beta * self + alpha * mat @ vec",
    forward=lambda self, mat, vec, beta, alpha: _sum_by_blas(self, product(mat, vec), beta, alpha),
    rules=(
        _by_beta,
        Rule("mat", "alpha * outer(g, vec)", lambda g, vec, alpha: _outer(g, vec) * alpha),
        Rule("vec", "alpha * mat.T @ g", lambda g, mat, alpha: (mat.T @ g) * alpha),
    ),
    public=False,
    torch="addmv",
    examples=lambda: [Example((normal(2), normal(2, 3), normal(3)), {"beta": 0.5, "alpha": 2})],
)
addr: Op = Op(
    "addr(self, vec1, vec2, *, beta=1, alpha=1)",
    grad_fn="AddrBackward0",
    formula="beta * self + alpha * outer(vec1, vec2)",
    forward=lambda self, vec1, vec2, beta, alpha: _with_outer(self, vec1, vec2, beta, alpha),
    rules=(
        _by_beta,
        Rule("vec1", "alpha * g @ vec2", lambda g, vec2, alpha: (g @ vec2) * alpha),
        Rule("vec2", "alpha * g.T @ vec1", lambda g, vec1, alpha: (g.T @ vec1) * alpha),
    ),
    public=False,
    torch="addr",
    examples=lambda: [Example((normal(2, 3), normal(2), normal(3)), {"beta": 0.5, "alpha": 2})],
)
addbmm: Op = Op(
    "addbmm(self, batch1, batch2, *, beta=1, alpha=1)",
    grad_fn="AddbmmBackward0",
    formula="beta * self + alpha * the sum of batch1 @ batch2",
    forward=lambda self, batch1, batch2, beta, alpha: _sum_by_blas(self, product(batch1, batch2).sum(0), beta, alpha),
    rules=(
        _by_beta,
        Rule(
            "batch1",
            "alpha * g @ batch2.T",
            lambda g, batch2, alpha: (_for_each(g, batch2.shape[0]) @ _turned(batch2)) * alpha,
        ),
        Rule(
            "batch2",
            "alpha * batch1.T @ g",
            lambda g, batch1, alpha: (_turned(batch1) @ _for_each(g, batch1.shape[0])) * alpha,
        ),
    ),
    public=False,
    torch="addbmm",
    examples=lambda: [Example((normal(2, 2), normal(2, 2, 3), normal(2, 3, 2)), {"beta": 0.5, "alpha": 2})],
)
baddbmm: Op = Op(
    "baddbmm(self, batch1, batch2, *, beta=1, alpha=1)",
    grad_fn="BaddbmmBackward0",
    formula="beta * self + alpha * batch1 @ batch2",
    forward=lambda self, batch1, batch2, beta, alpha: _sum(self, product(batch1, batch2), beta, alpha),
    rules=(
        _by_beta,
        Rule("batch1", "alpha * g @ batch2.T", lambda g, batch2, alpha: times(g, _turned(batch2)) * alpha),
        Rule("batch2", "alpha * batch1.T @ g", lambda g, batch1, alpha: times(_turned(batch1), g) * alpha),
    ),
    public=False,
    torch="baddbmm",
    examples=lambda: [Example((normal(2, 2, 2), normal(2, 2, 3), normal(2, 3, 2)), {"beta": 0.5, "alpha": 2})],
)


def check_matrices(a: Tensor, b: Tensor) -> None:
    """Raises RuntimeError, with PyTorch's text, for operands without a matrix product."""
    if a.ndim != 2 or b.ndim != 2:
        raise RuntimeError(f"{'self' if a.ndim != 2 else 'mat2'} must be a matrix")
    check_inner_sizes(a, b)
    if a._array.dtype is not b._array.dtype and a._array.dtype != b._array.dtype:
        words = f"{a.dtype.cpp_name} != {b.dtype.cpp_name}"
        raise RuntimeError(f"expected m1 and m2 to have the same dtype, but got: {words}")
    refuse_bools("addmm_impl_cpu_", a, b)


def check_inner_sizes(a: Tensor, b: Tensor) -> None:
    """Raises RuntimeError, with PyTorch's text, if the numbers of columns and rows differ."""
    if a.shape[1] != b.shape[0]:
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({size_text(a)} and {size_text(b)})")


def _check_addmm(self: Tensor, mat1: Tensor, mat2: Tensor) -> tuple[int, ...]:
    _check_dtypes(self, mat1, mat2)
    for name, matrix in (("mat1", mat1), ("mat2", mat2)):
        if matrix.ndim != 2:
            raise RuntimeError(f"{name} must be a matrix, got {matrix.ndim}-D tensor")
    check_inner_sizes(mat1, mat2)
    refuse_bools("addmm_impl_cpu_", mat1, mat2)
    return mat1.shape[0], mat2.shape[1]


def _check_dtypes(self: Tensor, mat1: Tensor, mat2: Tensor) -> None:
    for name, matrix in (("self", self), ("mat1", mat1)):
        if matrix._array.dtype != mat2._array.dtype:
            kinds = f"{matrix.dtype.tensor_type} and {mat2.dtype.tensor_type}"
            raise RuntimeError(f"{name} and mat2 must have the same dtype, but got {kinds}")


def plus_product(self: Tensor, mat1: Tensor, mat2: Tensor) -> Tensor:
    """``torch.addmm`` with factors of 1, for layers: without parsing arguments by name."""
    shape = _check_addmm(self, mat1, mat2)
    if self._array.shape != shape[1:]:
        expanded(self._array, shape)
    result: Tensor = apply(addmm, (self, mat1, mat2))
    return result


def _check_addmv(self: Tensor, mat: Tensor, vec: Tensor) -> tuple[int, ...]:
    if mat.ndim != 2 or vec.ndim != 1 or self.ndim > 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got {self.ndim}, {mat.ndim}, {vec.ndim}")
    if mat.shape[1] != vec.shape[0] or self._array.size not in (1, mat.shape[0]):
        raise RuntimeError(
            f"size mismatch, got input ({self._array.size}), mat ({size_text(mat)}), vec ({vec.shape[0]})"
        )
    if not self.dtype is mat.dtype is vec.dtype:
        kinds = f"{self.dtype.tensor_type}, {mat.dtype.tensor_type}, and {vec.dtype.tensor_type}"
        raise RuntimeError(f"addmv input tensors must have the same dtype, but got {kinds}")
    refuse_bools("addmv_impl_cpu", mat, vec)
    return (mat.shape[0],)


def _check_addr(self: Tensor, vec1: Tensor, vec2: Tensor) -> tuple[int, ...]:
    for name, vector in (("vec1", vec1), ("vec2", vec2)):
        if vector.ndim != 1:
            raise RuntimeError(f"addr: Expected 1-D argument {name}, but got {vector.ndim}-D")
    return vec1.shape[0], vec2.shape[0]


def _check_batches(self: Tensor, a: Tensor, b: Tensor, dims: Sequence[int]) -> tuple[int, ...]:
    """The shape of the result: `dims` of `a`, and the last of `b`. `self` must expand to it, which comes first."""
    shape = tuple([tensor.shape[one_dim(dim, tensor.ndim)] for tensor, dim in (*[(a, dim) for dim in dims], (b, 2))])
    expanded(self._array, shape)
    for name, tensor in (("batch1", a), ("batch2", b)):
        if tensor.ndim != 3:
            raise RuntimeError(f"{name} must be a 3D tensor")
    return shape


def _check_addbmm(self: Tensor, batch1: Tensor, batch2: Tensor) -> tuple[int, ...]:
    shape = _check_batches(self, batch1, batch2, (1,))
    if batch1.shape[0] != batch2.shape[0]:
        raise RuntimeError("batch1 and batch2 must have same number of batches")
    if batch1.shape[2] != batch2.shape[1]:
        sizes = [size_text(t)[len(str(t.shape[0])) + 1 :] for t in (batch1, batch2)]
        raise RuntimeError(f"Incompatible matrix sizes for bmm ({sizes[0]} and {sizes[1]})")
    _check_dtypes(self, batch1, batch2)
    refuse_bools("addmm_impl_cpu_", batch1, batch2)
    return shape


def _check_baddbmm(self: Tensor, batch1: Tensor, batch2: Tensor) -> tuple[int, ...]:
    shape = _check_batches(self, batch1, batch2, (0, 1))
    expected = [batch1.shape[0], batch1.shape[2]]
    if list(batch2.shape[:2]) != expected:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: {expected} but got: "
            f"{list(batch2.shape[:2])}."
        )
    if batch1.dtype is not self.dtype:
        kinds = f"input {self.dtype.cpp_name}, batch1: {batch1.dtype.cpp_name}, batch2: {batch2.dtype.cpp_name}"
        raise RuntimeError(f"Input dtypes must be the same, got: {kinds}")
    if batch2.dtype is not self.dtype:
        raise RuntimeError(f"expected scalar type {self.dtype.tensor_type} but found {batch2.dtype.tensor_type}")
    refuse_bools("baddbmm", batch1, batch2)
    return shape


def _bad_size(written: list[int], shape: tuple[int, ...]) -> str:
    """The error for a result of this shape that is written to a tensor of another size."""
    return f"Bad in-place call: input tensor size {written} and output tensor size {list(shape)} should match"


def _bad_size_of_addr(written: list[int], shape: tuple[int, ...]) -> str:
    if len(written) != 2:
        return f"2D tensor expected, got {len(written)}D tensor for input"
    return f"size mismatch, input: {written}, v1: [{shape[0]}], v2: [{shape[1]}]"


def _offered(
    op: Op,
    check: Callable[..., tuple[int, ...]],
    plain: Op | None = None,
    bad_size: Callable[[list[int], tuple[int, ...]], str] = _bad_size,
) -> None:
    """Define ``torch.<name>`` and ``<name>_``; `plain` is the op for factors of 1."""

    def prepare(args: Any, kwargs: dict[str, Any]) -> tuple[tuple[int, ...], Prepared]:
        tensors, attrs = bind(op, args, kwargs)
        shape = check(*tensors)
        if op is addr:
            check_factors(tensors, attrs)
        unscaled = plain is not None and attrs == {"beta": 1, "alpha": 1}
        return shape, (plain, tensors, {}) if plain and unscaled else (op, tensors, attrs)  # type: ignore[return-value]

    def function(*args: Any, **kwargs: Any) -> Tensor:
        shape, prepared = prepare(args, kwargs)
        expanded(prepared[1][0]._array, shape)
        result: Tensor = apply(*prepared)
        return result

    def method(*args: Any, **kwargs: Any) -> Tensor:
        shape, prepared = prepare(args, kwargs)
        written = list(args[0].shape)
        if written != list(shape):
            raise RuntimeError(bad_size(written, shape))
        return apply_in_place(*prepared)

    for wrapper, name in ((function, op.name), (method, op.name + "_")):
        wrapper.__name__, wrapper.__doc__ = name, f"{op.formula}."
        wrapper.__signature__ = signature(op)  # type: ignore[attr-defined]  # every function may have one
    front(op.name)(function)
    front(op.name + "_", function=False)(method)


_offered(addmm_scaled, _check_addmm, addmm)
_offered(addmv, _check_addmv)
_offered(addr, _check_addr, bad_size=_bad_size_of_addr)
_offered(addbmm, _check_addbmm)
_offered(baddbmm, _check_baddbmm)


# ----------------------------------------------------------------------------------------------------------------------
# Products of vectors and matrices.


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


def _inner(self: Array, other: Array) -> Any:
    return np.dot(self, other) + self.dtype.type(0)  # the sum begins with 0, to which -0 adds nothing


dot: Op = Op(
    "dot(self, tensor)",
    grad_fn="DotBackward0",
    formula="sum of self * tensor",
    forward=_inner,
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
    forward=_inner,
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
    grad_fn="SqueezeBackward4",  # PyTorch squeezes the new product in place
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
    """Raise RuntimeError, with PyTorch's text, unless both are vectors of the same length."""
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
def matmul_operator(self: Tensor, other: Any) -> Tensor:
    """``self @ other``; NotImplemented if `other` is not a tensor."""
    return matmul(self, other) if isinstance(other, Tensor) else NotImplemented


@front("matmul")
def matmul(self: Tensor, other: Tensor) -> Tensor:
    """The matrix product, by the operands' dimensions: dot, mv, mm, or matrix by matrix over leading dimensions."""
    checked(mm, other, 2)
    dims = self.ndim, other.ndim
    _refuse_numbers("matmul", dims)
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
    """Return whether leading dimensions are folded into rows of one matrix, by the same criteria as in PyTorch.

    Always if the other operand requires grad, whose gradient would otherwise be computed per matrix; else if that needs
    no copy."""
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
    """Return the product with leading dimensions folded into rows; a matrix on the left is transposed first."""
    turned = other.ndim > self.ndim
    large, small = (adjoint(other), _transposed_matrix(self)) if turned else (self, other)
    lead = large.shape[:-1]
    rows = reshape(large, prod(lead), large.shape[-1])
    if small.ndim == 1:
        return run(reshaped, mv_front(rows, small), size=tuple(lead))
    folded = run(reshaped, mm_front(rows, small), size=(*lead, small.shape[1]))
    return contiguous(adjoint(folded)) if turned else folded


def _transposed_matrix(self: Tensor) -> Tensor:
    """Return a matrix transposed; a vector unchanged."""
    return run(t, self) if self.ndim == 2 else self


def _batched(self: Tensor, other: Tensor) -> Tensor:
    """Return the product with leading dimensions broadcast, one for each pair of matrices."""
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


def _refuse_numbers(name: str, dims: tuple[int, int]) -> None:
    if 0 in dims:
        raise RuntimeError(f"both arguments to {name} need to be at least 1D, but they are {dims[0]}D and {dims[1]}D")


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`input` @ `weight`.T + `bias`, as in ``torch.nn.functional.linear``."""
    _refuse_numbers("linear", (input.ndim, weight.ndim))
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


# ----------------------------------------------------------------------------------------------------------------------
# Products over selected dimensions, of all pairs of elements, and of chains of matrices.


Dims = Sequence[int]


@front("inner")
def inner(self: Tensor, other: Tensor) -> Tensor:
    """The sums of products over the last dimension of both."""
    if not self.ndim or not other.ndim:
        product: Tensor = self * other
        return product
    if self.shape[-1] != other.shape[-1]:
        raise RuntimeError(
            "inner() the last dimension must match on both input tensors but got shapes "
            f"{list(self.shape)} and {list(other.shape)}"
        )
    return _contracted(self, other, [-1], [-1])


@front("outer", "ger")
def outer(self: Tensor, vec2: Tensor) -> Tensor:
    """The products of all pairs of two vectors' elements."""
    for name, vector in (("self", self), ("vec2", vec2)):
        if vector.ndim != 1:
            raise RuntimeError(f"outer: Expected 1-D argument {name}, but got {vector.ndim}-D")
    product: Tensor = reshape(self, self.shape[0], 1) * vec2
    return product


def _spread(self: Tensor, size: tuple[int, ...]) -> Tensor:
    """A view with further dimensions of size 1, whose strides decide in which order a product lies in memory."""
    result: Tensor = run(reshaped, self, size=size)
    result._array = with_more_dimensions(self._array, size)
    return result


@front("kron")
def kron(self: Tensor, other: Tensor) -> Tensor:
    """The Kronecker product: every element of one times the whole of the other."""
    width = max(self.ndim, other.ndim)
    a = (1,) * (width - self.ndim) + tuple(self.shape)
    b = (1,) * (width - other.ndim) + tuple(other.shape)
    apart = _spread(self, tuple(n for size in a for n in (size, 1)))
    between = _spread(other, tuple(n for size in b for n in (1, size)))
    product, size = apart * between, tuple(m * n for m, n in zip(a, b, strict=True))
    product.detach().view(size)  # raises where the product lies in another order: PyTorch, too, makes no copy
    return run(reshaped, product, size=size)


@front("tensordot", method=False)
def tensordot(a: Tensor, b: Tensor, dims: Any = 2) -> Tensor:
    """The sums of products over the last `dims` dimensions of `a` and the first of `b`, or over two lists of them."""
    if isinstance(dims, Tensor):
        dims = dims.tolist() if dims.numel() > 1 else int(dims.item())
    if not isinstance(dims, int):
        if not isinstance(dims, (tuple, list)):
            raise RuntimeError(
                "tensordot expects dims to be int or tuple[list[int], list[int]] or list[list[int]] containing two "
                f"lists, but got dims={dims}"
            )
        first, second = dims
        first = whole_numbers("tensordot", "dims_self", first, 3)
        return _contracted(a, b, first, whole_numbers("tensordot", "dims_other", second, 4))
    if dims < 0:
        raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
    if dims > min(a.ndim, b.ndim):
        raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
    return _contracted(a, b, list(range(-dims, 0)), list(range(dims)))


def _contracted(a: Tensor, b: Tensor, dims_a: Dims, dims_b: Dims) -> Tensor:
    """Return both as matrices whose product is the sum. Dimensions of size 1 on one side are first summed on
    the other.
    """
    if len(dims_a) != len(dims_b):
        raise RuntimeError("both dimension lists should have same length")
    if a.dtype is not b.dtype:
        raise RuntimeError("both inputs should have same dtype")
    inner_size = 1
    for dim_a, dim_b in zip(dims_a, dims_b, strict=True):
        for tensor, dim in ((a, dim_a), (b, dim_b)):
            if not tensor.ndim:
                raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
            normal_dims(dim, tensor.ndim)
        (p,), (q,) = normal_dims(dim_a, a.ndim), normal_dims(dim_b, b.ndim)
        m, n = a.shape[p], b.shape[q]
        if n == 1:
            a = a.sum(p, keepdim=True)
        elif m == 1:
            b = b.sum(q, keepdim=True)
        elif m != n:
            raise RuntimeError(
                f"contracted dimensions need to match, but first has size {m} in dim {dim_a} and second has size {n} "
                f"in dim {dim_b}"
            )
        else:
            inner_size *= m
    return _as_matrices(a, b, normal_dims(dims_a, a.ndim), normal_dims(dims_b, b.ndim), inner_size)


def _as_matrices(a: Tensor, b: Tensor, dims_a: Dims, dims_b: Dims, inner_size: int) -> Tensor:
    rest_a = [d for d in range(a.ndim) if d not in dims_a]
    rest_b = [d for d in range(b.ndim) if d not in dims_b]
    rows, columns = [a.shape[d] for d in rest_a], [b.shape[d] for d in rest_b]
    left, right = permute_front(a, *rest_a, *dims_a), permute_front(b, *dims_b, *rest_b)
    if prod(rows) == prod(columns) == 1:
        if left.is_contiguous() and right.is_contiguous():
            product = dot_front(flatten(left), flatten(right))
        else:
            product = (left.squeeze() * right.squeeze()).sum()
        return reshape(product, (*rows, *columns))
    product = mm_front(reshape(left, prod(rows), inner_size), reshape(right, inner_size, prod(columns)))
    return reshape(product, *rows, *columns)


@front("chain_matmul", method=False)
def chain_matmul(*matrices: Any) -> Tensor:
    """The product of several matrices, in the cheapest order."""
    all_tensors(matrices)
    messages.warn_once(messages.CHAIN_MATMUL)
    for matrix in matrices:
        if matrix.ndim != 2:
            raise RuntimeError(f"Tensor dimension is {matrix.ndim}, expected 2 instead.")
    if not matrices:
        raise RuntimeError("chain_matmul(): Expected one or more matrices")
    return run(clone, matrices[0]) if len(matrices) == 1 else multi_dot(matrices)


def multi_dot(tensors: Sequence[Tensor]) -> Tensor:
    """The product of several matrices, in the cheapest order; the first and the last may be vectors."""
    all_tensors(tensors)
    if len(tensors) < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {len(tensors)}")
    last = len(tensors) - 1
    _check_chain_dtypes(tensors)
    for i, tensor in enumerate(tensors):
        if tensor.ndim != 2 and not (tensor.ndim == 1 and i in (0, last)):
            expected = "1D or 2D" if i in (0, last) else "2D"
            raise RuntimeError(f"multi_dot(): tensor {i} must be {expected} but got {tensor.ndim}D")
    matrices = list(tensors)
    shape: list[int] = []
    if tensors[0].ndim == 1:
        matrices[0] = unsqueeze(tensors[0], 0)
    else:
        shape.append(tensors[0].shape[0])
    if tensors[last].ndim == 1:
        matrices[last] = unsqueeze(tensors[last], -1)
    else:
        shape.append(tensors[last].shape[1])
    _check_chain(tensors, matrices)
    return view(_chained(matrices), *shape) if shape else view(_chained(matrices), ())


def _check_chain_dtypes(tensors: Sequence[Tensor]) -> None:
    for i, tensor in enumerate(tensors):
        if tensor.dtype is not tensors[0].dtype:
            own, first = tensor.dtype.cpp_name, tensors[0].dtype.cpp_name
            raise RuntimeError(
                f"multi_dot(): all tensors must have be the same dtype but tensor 0 is {first} and tensor {i} {own}"
            )


def _check_chain(tensors: Sequence[Tensor], matrices: Sequence[Tensor]) -> None:
    for i in range(len(matrices) - 1):
        if matrices[i].shape[1] != matrices[i + 1].shape[0]:
            raise RuntimeError(
                f"multi_dot(): tensors {i} and {i + 1} with shapes {list(tensors[i].shape)} and "
                f"{list(tensors[i + 1].shape)} cannot be multiplied"
            )


def _chained(matrices: Sequence[Tensor]) -> Tensor:
    """Return the product in the cheapest order; among equally cheap ones, from the left."""
    sizes = [matrices[0].shape[0], *[m.shape[1] for m in matrices]]
    count = len(matrices)
    cost = {(i, i): 0 for i in range(count)}
    split: dict[tuple[int, int], int] = {}
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            options = [(cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)]
            cost[i, j], split[i, j] = min(
                options, key=lambda option: (option[0], -option[1] if count == 3 else option[1])
            )
    return _product(matrices, split, 0, count - 1)


def _product(matrices: Sequence[Tensor], split: dict[tuple[int, int], int], i: int, j: int) -> Tensor:
    if i == j:
        return matrices[i]
    k = split[i, j]
    return mm_front(_product(matrices, split, i, k), _product(matrices, split, k + 1, j))


# ----------------------------------------------------------------------------------------------------------------------
# The sum of products of three tensors. Each tensor lacks some of the dimensions.


Axes = tuple[int, ...]


def _trilinear_sum(i1: Array, i2: Array, i3: Array, expand1: Axes, expand2: Axes, expand3: Axes, sumdim: Axes) -> Array:
    refuse_unless(i1.dtype != bool, "bmm", i1)
    dims = range(i1.ndim + len(expand1))
    first, second, third, left = (
        [dim for dim in dims if dim not in lacking] for lacking in (expand1, expand2, expand3, sumdim)
    )
    result: Array = np.einsum(i1, first, i2, second, i3, third, left, optimize=True)
    return result


trilinear: Op = Op(
    "trilinear(i1, i2, i3, *, expand1, expand2, expand3, sumdim)",
    grad_fn="TrilinearBackward0",
    formula="sum of i1 * i2 * i3 over sumdim, each expanded to all dimensions",
    forward=_trilinear_sum,
    rules=(
        Rule(
            "i1",
            "sum of g * i2 * i3 over expand1",
            lambda g, i2, i3, expand1, expand2, expand3, sumdim: trilinear(
                g, i2, i3, expand1=sumdim, expand2=expand2, expand3=expand3, sumdim=expand1
            ),
        ),
        Rule(
            "i2",
            "sum of i1 * g * i3 over expand2",
            lambda g, i1, i3, expand1, expand2, expand3, sumdim: trilinear(
                i1, g, i3, expand1=expand1, expand2=sumdim, expand3=expand3, sumdim=expand2
            ),
        ),
        Rule(
            "i3",
            "sum of i1 * i2 * g over expand3",
            lambda g, i1, i2, expand1, expand2, expand3, sumdim: trilinear(
                i1, i2, g, expand1=expand1, expand2=expand2, expand3=sumdim, sumdim=expand3
            ),
        ),
    ),
    public=False,
    examples=lambda: [
        Example(
            (normal(2, 3), normal(2, 3, 4), normal(2, 4)),
            {"expand1": (1, 3), "expand2": (0,), "expand3": (1, 2), "sumdim": (2, 3)},
        )
    ],
)


# ----------------------------------------------------------------------------------------------------------------------
# The cross product.


def _cross(self: Array, other: Array, dim: int) -> Any:
    if self.dtype != other.dtype:
        names = [dtypes.of(a).tensor_type for a in (self, other)]
        refuse_unless(self.dtype.kind != "b", "cross", self)
        raise RuntimeError(f"expected scalar type {names[0]} but found {names[1]}")
    refuse_unless(self.dtype.kind != "b", "cross", self)
    a, b = (np.moveaxis(array, dim, 0) for array in np.broadcast_arrays(self, other))
    parts = [a[(i + 1) % 3] * b[(i + 2) % 3] - a[(i + 2) % 3] * b[(i + 1) % 3] for i in range(3)]
    return np.stack(parts, dim)


cross_op: Op = Op(
    "cross(self, other, *, dim)",
    grad_fn="LinalgCrossBackward0",
    formula="cross product of self and other along dim",
    forward=_cross,
    rules=(
        Rule("self", "cross(other, g)", lambda g, other, dim: cross_op(other, g, dim=dim)),
        Rule("other", "cross(g, self)", lambda g, self, dim: cross_op(g, self, dim=dim)),
    ),
    public=False,
    torch="cross",
    examples=lambda: [
        Example((normal(2, 3), normal(2, 3)), {"dim": 1}),
        Example((normal(3, 2), normal(3, 1)), {"dim": 0}),
    ],
)


def linalg_cross(input: Tensor, other: Tensor, *, dim: int = -1) -> Tensor:
    """The cross product of the 3-vectors along `dim`."""
    if checked(cross_op, input, 1).ndim != checked(cross_op, other, 2).ndim:
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    axis = one_dim(dim, input.ndim)
    if not input.ndim or not input.shape[axis] == other.shape[axis] == 3:
        sizes = [t.shape[axis] if t.ndim else 1 for t in (input, other)]
        raise RuntimeError(f"linalg.cross: inputs dimension {dim} must have length 3. Got {sizes[0]} and {sizes[1]}")
    check_broadcast(input._array, other._array)
    result: Tensor = apply(cross_op, (input, other), {"dim": axis})
    return result


@front("cross")
def cross(input: Tensor, other: Tensor, dim: int | None = None) -> Tensor:
    """The cross product of the 3-vectors along `dim`, or along the first dimension of size 3."""
    if dim is not None:
        return linalg_cross(input, other, dim=dim)
    for axis, size in enumerate(checked(cross_op, input, 1).shape):
        if size == 3:
            messages.warn_once(messages.CROSS)
            return linalg_cross(input, checked(cross_op, other, 2), dim=axis)
    raise RuntimeError("no dimension of size 3 in input")

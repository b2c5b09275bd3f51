"""Products of matrices added to something: ``beta * self + alpha * product``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gviz.engine.apply import apply
from gviz.engine.op import Example, Op, Rule
from gviz.engine.ops.axes import transpose
from gviz.engine.ops.examples import normal
from gviz.engine.ops.matrix_checks import check_factors, refuse_bools, size_text
from gviz.engine.ops.shape import expand, expanded, unsqueeze_dims
from gviz.engine.ops.variants import Prepared
from gviz.engine.surface import Number, bind, front, signature
from gviz.engine.tensor import Tensor
from gviz.engine.views import apply_in_place
from gviz.values import Array


class Unscaled(Op):
    """The sum with both factors 1, which a node shows without keeping them."""

    def shown(self) -> dict[str, property]:
        return super().shown() | dict.fromkeys(("alpha", "beta"), property(lambda node: 1))


def product(a: Array, b: Array) -> Any:
    """``a @ b``, through BLAS also where a gradient was repeated or elements are taken with gaps."""
    return np.matmul(_in_rows(a), _in_rows(b))


def _in_rows(a: Array) -> Array:
    """The array, or a copy if neither rows nor columns lie side by side, for which numpy has slow loops only."""
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
    """`beta` * `self` + `alpha` * `product`; without a trace of `self` if `beta` is 0."""
    scaled = product if alpha == 1 else product * np.asarray(alpha, product.dtype)
    if not beta:
        return np.asarray(scaled + np.zeros(self.shape, self.dtype))
    return np.asarray(scaled + (self if beta == 1 else self * np.asarray(beta, self.dtype)))


def times(a: Any, b: Any) -> Any:
    """``a @ b`` inside a rule: of arrays as fast as BLAS, of tensors tracked."""
    return a @ b if isinstance(a, Tensor) else product(a, b)


def _turned(matrices: Any) -> Any:
    return transpose(matrices, dim0=-1, dim1=-2)


def _outer(a: Any, b: Any) -> Any:
    return unsqueeze_dims(a, dims=(1,)) * unsqueeze_dims(b, dims=(0,))


def _for_each(g: Any, count: int) -> Any:
    """One gradient for each of `count` matrices that were summed."""
    return expand(unsqueeze_dims(g, dims=(0,)), size=(count, *g.shape))


_by_beta = Rule("self", "g * beta", lambda g, beta: g * beta)

addmm: Op = Unscaled(
    "addmm(self, mat1, mat2)",
    grad_fn="AddmmBackward0",
    formula="self + mat1 @ mat2",
    forward=lambda self, mat1, mat2: _plus(self, product(mat1, mat2)),
    rules=(
        Rule("self", "g", lambda g: g),
        Rule("mat1", "g @ mat2.T", lambda g, mat2: times(g, mat2.T)),
        Rule("mat2", "mat1.T @ g", lambda g, mat1: times(g.T, mat1).T),  # laid out like a layer's turned weight
    ),
    public=False,
    torch="addmm",
    examples=lambda: [Example((normal(4), normal(2, 3), normal(3, 4)), {})],
)
addmm_scaled: Op = Op(
    "addmm(self, mat1, mat2, *, beta=1, alpha=1)",
    grad_fn="AddmmBackward0",
    formula="beta * self + alpha * mat1 @ mat2",
    forward=lambda self, mat1, mat2, beta, alpha: _sum(self, product(mat1, mat2), beta, alpha),
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
    forward=lambda self, mat, vec, beta, alpha: _sum(self, product(mat, vec), beta, alpha),
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
    forward=lambda self, vec1, vec2, beta, alpha: _sum(self, np.multiply.outer(vec1, vec2), beta, alpha),
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
    forward=lambda self, batch1, batch2, beta, alpha: _sum(self, product(batch1, batch2).sum(0), beta, alpha),
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
    """RuntimeError, in PyTorch's words, for what has no matrix product."""
    if a.ndim != 2 or b.ndim != 2:
        raise RuntimeError(f"{'self' if a.ndim != 2 else 'mat2'} must be a matrix")
    check_inner_sizes(a, b)
    if a._array.dtype is not b._array.dtype and a._array.dtype != b._array.dtype:
        words = f"{a.dtype.cpp_name} != {b.dtype.cpp_name}"
        raise RuntimeError(f"expected m1 and m2 to have the same dtype, but got: {words}")
    refuse_bools("addmm_impl_cpu_", a, b)


def check_inner_sizes(a: Tensor, b: Tensor) -> None:
    """RuntimeError, in PyTorch's words, where columns and rows differ in number."""
    if a.shape[1] != b.shape[0]:
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({size_text(a)} and {size_text(b)})")


def _check_addmm(self: Tensor, mat1: Tensor, mat2: Tensor) -> tuple[int, ...]:
    for name, matrix in (("mat1", mat1), ("mat2", mat2)):
        if matrix.ndim != 2:
            raise RuntimeError(f"{name} must be a matrix, got {matrix.ndim}-D tensor")
    _check_dtypes(self, mat1, mat2)
    check_inner_sizes(mat1, mat2)
    refuse_bools("addmm_impl_cpu_", mat1, mat2)
    return mat1.shape[0], mat2.shape[1]


def _check_dtypes(self: Tensor, mat1: Tensor, mat2: Tensor) -> None:
    for name, matrix in (("self", self), ("mat1", mat1)):
        if matrix._array.dtype != mat2._array.dtype:
            kinds = f"{matrix.dtype.tensor_type} and {mat2.dtype.tensor_type}"
            raise RuntimeError(f"{name} and mat2 must have the same dtype, but got {kinds}")


def plus_product(self: Tensor, mat1: Tensor, mat2: Tensor) -> Tensor:
    """``torch.addmm`` with factors of 1, as a layer of a network calls it: without reading arguments by name."""
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


def _check_batches(a: Tensor, b: Tensor) -> None:
    for name, tensor in (("batch1", a), ("batch2", b)):
        if tensor.ndim != 3:
            raise RuntimeError(f"{name} must be a 3D tensor")


def _check_addbmm(self: Tensor, batch1: Tensor, batch2: Tensor) -> tuple[int, ...]:
    _check_batches(batch1, batch2)
    if batch1.shape[0] != batch2.shape[0]:
        raise RuntimeError("batch1 and batch2 must have same number of batches")
    if batch1.shape[2] != batch2.shape[1]:
        sizes = [size_text(t)[len(str(t.shape[0])) + 1 :] for t in (batch1, batch2)]
        raise RuntimeError(f"Incompatible matrix sizes for bmm ({sizes[0]} and {sizes[1]})")
    _check_dtypes(self, batch1, batch2)
    refuse_bools("addmm_impl_cpu_", batch1, batch2)
    return batch1.shape[1], batch2.shape[2]


def _check_baddbmm(self: Tensor, batch1: Tensor, batch2: Tensor) -> tuple[int, ...]:
    _check_batches(batch1, batch2)
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
    return (*batch1.shape[:2], batch2.shape[2])


def _offered(op: Op, check: Callable[..., tuple[int, ...]], plain: Op | None = None) -> None:
    """Offer ``torch.<name>`` and ``<name>_``; `plain` is the op for factors of 1."""

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
        if tuple(args[0].shape) != shape:
            raise RuntimeError(
                f"Bad in-place call: input tensor size {list(args[0].shape)} and output tensor size {list(shape)} "
                "should match"
            )
        return apply_in_place(*prepared)

    for way, name in ((function, op.name), (method, op.name + "_")):
        way.__name__, way.__doc__ = name, f"{op.formula}."
        way.__signature__ = signature(op)  # type: ignore[attr-defined]  # every function may have one
    front(op.name)(function)
    front(op.name + "_", function=False)(method)


_offered(addmm_scaled, _check_addmm, addmm)
_offered(addmv, _check_addmv)
_offered(addr, _check_addr)
_offered(addbmm, _check_addbmm)
_offered(baddbmm, _check_baddbmm)

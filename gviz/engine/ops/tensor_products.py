"""Products over chosen dimensions, of all pairs of elements, and of chains of matrices."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from gviz.engine import messages
from gviz.engine.arguments import whole_numbers
from gviz.engine.ops.axes import permute_front
from gviz.engine.ops.flattening import flatten
from gviz.engine.ops.matrix import dot_front, mm_front
from gviz.engine.ops.memory import clone
from gviz.engine.ops.shape import normal_dims, reshape, reshaped, run, unsqueeze, view
from gviz.engine.surface import front
from gviz.engine.tensor import Tensor
from gviz.engine.wanting import all_tensors, several

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


@front("kron")
def kron(self: Tensor, other: Tensor) -> Tensor:
    """The Kronecker product: every element of one times all of the other."""
    width = max(self.ndim, other.ndim)
    a = (1,) * (width - self.ndim) + tuple(self.shape)
    b = (1,) * (width - other.ndim) + tuple(other.shape)
    apart = run(reshaped, self, size=tuple(n for size in a for n in (size, 1)))
    between = run(reshaped, other, size=tuple(n for size in b for n in (1, size)))
    return run(reshaped, apart * between, size=tuple(m * n for m, n in zip(a, b, strict=True)))


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
    """Both as matrices whose product is the sum; dimensions of size 1 on one side are summed on the other first."""
    if len(dims_a) != len(dims_b):
        raise RuntimeError("both dimension lists should have same length")
    if a.dtype is not b.dtype:
        raise RuntimeError("both inputs should have same dtype")
    inner_size = 1
    for given_a, given_b in zip(dims_a, dims_b, strict=True):
        (p,), (q,) = normal_dims(given_a, a.ndim), normal_dims(given_b, b.ndim)
        m, n = a.shape[p], b.shape[q]
        if n == 1:
            a = a.sum(p, keepdim=True)
        elif m == 1:
            b = b.sum(q, keepdim=True)
        elif m != n:
            raise RuntimeError(
                f"contracted dimensions need to match, but first has size {m} in dim {given_a} and second has size {n} "
                f"in dim {given_b}"
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
        return reshape(dot_front(flatten(left), flatten(right)), (*rows, *columns))
    product = mm_front(reshape(left, prod(rows), inner_size), reshape(right, inner_size, prod(columns)))
    return reshape(product, *rows, *columns)


@front("chain_matmul", method=False)
def chain_matmul(*matrices: Any) -> Tensor:
    """The product of several matrices, in the cheapest order."""
    messages.warn_once(messages.CHAIN_MATMUL)
    listed = several(matrices)
    return run(clone, listed[0]) if len(listed) == 1 else multi_dot(listed)


def multi_dot(tensors: Sequence[Tensor]) -> Tensor:
    """The product of several matrices, in the cheapest order; the first and the last may be vectors."""
    all_tensors(tensors)
    if len(tensors) < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {len(tensors)}")
    last = len(tensors) - 1
    _check_dtypes(tensors)
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


def _check_dtypes(tensors: Sequence[Tensor]) -> None:
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
    """The product by the cheapest order of pairs; of equally cheap ones that which multiplies from the left."""
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

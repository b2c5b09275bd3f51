"""Norms of vectors, distances between vectors, and logsumexp."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from gviz.engine import messages
from gviz.engine.dtypes import dtype as DType
from gviz.engine.functions_and_methods import Number, checked, front
from gviz.engine.op import Example, Op, Reading, Rule, apply, zeros
from gviz.engine.ops._examples import normal, spaced
from gviz.engine.ops._kernels import in_rows
from gviz.engine.ops._reduction_arguments import (
    Dims,
    Shape,
    all_dims,
    applied,
    in_dtype,
    kept,
    name_of,
    numpy_names,
    reduced_dims,
)
from gviz.engine.ops.arithmetic import absolute, sign
from gviz.engine.ops.comparison import isnan, where_op
from gviz.engine.ops.elementary_functions import exp
from gviz.engine.ops.reductions import sum_dim
from gviz.engine.tensor import Tensor
from gviz.values.value import Array

ORDERS = (0.5, 1, 1.5, 2, 3.0, inf, -inf, -1)


def _uneven(*shape: int) -> Array:
    """Return numbers with distinct absolute values."""
    return spaced(*shape) + 0.06


def _size(self: Array, ord: Number, dim: Shape | None, keepdim: Any, dtype: str | None = None) -> Any:
    self = in_dtype(self, dtype)
    axis = all_dims(self, dim)
    wide = np.abs(self).astype(np.float64)
    if ord == 0:
        result = np.add.reduce(wide != 0, axis=axis, keepdims=keepdim, dtype=np.float64)
    elif ord in (inf, -inf):
        best = np.maximum if ord == inf else np.minimum
        result = best.reduce(wide, axis=axis, keepdims=keepdim)
    else:
        result = np.add.reduce(wide**ord, axis=axis, keepdims=keepdim) ** (1 / ord)
    return np.asarray(result).astype(self.dtype)


def _through_norm(g: Any, self: Any, result: Any, ord: Number, dim: Shape | None, keepdim: bool) -> Any:
    """Zero where the norm is 0: at that point no direction is distinguished."""
    dims = all_dims(self, dim)
    g, result = kept(g, dims, keepdim), kept(result, dims, keepdim)
    nought = zeros(g, ())
    if ord == 0:
        return None  # PyTorch returns none
    if ord == 1:
        return g * sign(self)
    if ord == 2:
        return g * where_op(result == 0, nought, self / result)
    if ord in (inf, -inf):
        size = absolute(self)
        where = where_op((size == result) | isnan(size), nought + 1, nought)
        return sign(self) * (g / sum_dim(where, dim=dims, keepdim=True) * where)
    if ord < 1:
        scaled = sign(self) * where_op(self == 0, nought, absolute(self) ** (ord - 1))
        return scaled * g * result ** (1 - ord)
    scaled = sign(self) * absolute(self) ** (ord - 1) if ord < 2 else self * absolute(self) ** (ord - 2)
    return scaled * where_op(result == 0, nought, g / result ** (ord - 1))


def read_by_order(name: str) -> tuple[Reading, ...]:
    """The formula of a norm for each value of `name` that is not a number.

    The nuclear norm has none: it is not a norm of elements, and the name of the call shows which norm it is.
    """
    return (
        Reading(((name, "inf"),), "size of self over dim: the largest |self|"),
        Reading(((name, "-inf"),), "size of self over dim: the smallest |self|"),
        Reading(((name, "fro"),), "size of self over dim: (sum of |self|**2)**(1 / 2)", ((name, "2"),)),
        Reading(((name, "nuc"),), ""),
    )


vector_norm_op: Op = Op(
    "norm(self, *, ord, dim=None, keepdim=False, dtype=None)",
    grad_fn="LinalgVectorNormBackward0",
    formula="size of self over dim: (sum of |self|**ord)**(1 / ord)",
    readings=read_by_order("ord"),
    forward=in_rows(_size),
    rules=(Rule("self", "g * sign(self) * (|self| / result)**(ord - 1)", _through_norm),),
    public=False,
    examples=lambda: [
        *[Example((_uneven(2, 3),), {"ord": p, "dim": None, "keepdim": False}) for p in ORDERS],
        *[Example((_uneven(2, 3),), {"ord": p, "dim": (1,), "keepdim": True}) for p in (1, 2, 3, inf)],
    ],
)


def vector_norm(
    self: Tensor, ord: Number = 2, dim: Dims = None, keepdim: bool = False, dtype: DType | None = None
) -> Tensor:
    """The norm of the vectors along `dim`, or of all elements as one vector."""
    kind = self.dtype if dtype is None else dtype
    if not kind.is_floating_point:
        raise RuntimeError(
            "linalg.vector_norm: Expected a floating point or complex tensor as input. Got " + kind.tensor_type
        )
    dims = reduced_dims(dim, self.ndim)
    if ord in (inf, -inf) or ord < 0:
        _check_identity(self, ord, dim, dims)
    attrs = {"ord": ord, "dim": None if dim in (None, ()) else dims, "keepdim": keepdim}
    result: Tensor = apply(vector_norm_op, (self,), attrs | ({} if dtype is None else {"dtype": name_of(dtype, self)}))
    return result


def _check_identity(self: Tensor, ord: Number, dim: Dims, dims: Shape) -> None:
    words = f"linalg.vector_norm cannot compute the {float(ord):g} norm on "
    reason = "the operation does not have an identity"
    if dim is None and not self.numel():
        raise RuntimeError(f"{words}an empty tensor because {reason}")
    for d in dims if dim is not None else ():
        if self.ndim and not self.shape[d]:
            raise RuntimeError(f"{words}the dimension {d}because this dimension is empty and {reason}")


@front("norm")
@numpy_names
def norm(
    input: Tensor,
    p: Number | str | None = None,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
) -> Tensor:
    """The norm of `input`, or of the vectors along `dim`: the `p`-th root of the sum of the `p`-th powers."""
    checked(vector_norm_op, input, 1)
    if p == "nuc":
        raise RuntimeError("gviz's built-in engine has no nuclear norm; it has norms of vectors, 'fro' and numbers")
    if isinstance(p, str) and p != "fro":
        raise RuntimeError(f"linalg.matrix_norm: Order {p} not supported.")
    return vector_norm(input, 2 if p is None or isinstance(p, str) else p, dim, keepdim, dtype)


def _logsumexp(self: Array, dim: Shape, keepdim: Any) -> Any:
    if not self.size:
        return np.add.reduce(self, axis=dim, keepdims=keepdim) - self.dtype.type(np.inf)
    largest = np.maximum.reduce(self, axis=dim, keepdims=True)
    largest = np.where(np.isinf(largest), np.zeros((), self.dtype), largest)
    total = np.log(np.add.reduce(np.exp(self - largest), axis=dim, keepdims=True)) + largest
    return total if keepdim else total.squeeze(dim)


def _through_logsumexp(g: Any, self: Any, result: Any, dim: Shape, keepdim: bool) -> Any:
    return kept(g, dim, keepdim) * exp(self - kept(result, dim, keepdim))


logsumexp_op: Op = Op(
    "logsumexp(self, *, dim, keepdim=False)",
    grad_fn="LogsumexpBackward0",
    formula="log of the sum of exp(self) over dim",
    forward=in_rows(_logsumexp),
    rules=(Rule("self", "g * exp(self - result)", _through_logsumexp),),
    promotes="float",
    pointwise=False,
    public=False,
    torch="logsumexp",
    examples=lambda: [
        Example((normal(2, 3),), {"dim": (1,), "keepdim": False}),
        Example((normal(2, 3),), {"dim": (0, 1), "keepdim": True}),
    ],
)


@front("logsumexp")
@numpy_names
def logsumexp(input: Tensor, dim: Dims, keepdim: bool = False) -> Tensor:
    """The logarithm of the sum of exponentials over `dim`, computed without overflow."""
    dims = reduced_dims(dim, checked(logsumexp_op, input, 1).ndim)
    if dim == () and input.ndim and input.numel() and not keepdim:  # a bug of PyTorch, reproduced
        raise RuntimeError(messages.OUTPUT_SHAPE.format(own=[], result=[1] * input.ndim))
    return applied(logsumexp_op, input, dim=dims, keepdim=keepdim)


def _distance(self: Array, other: Array, p: Number) -> Any:
    return _size(np.subtract(self, other), p, None, False)


def _through_dist(g: Any, self: Any, other: Any, result: Any, p: Number) -> Any:
    if p == 0:
        raise RuntimeError(
            "Expected a proper Tensor but got None (or an undefined Tensor in C++) for argument #0 'self'"
        )
    return _through_norm(g, self - other, result, p, None, False)


dist_op: Op = Op(
    "dist(self, other, *, p=2)",
    grad_fn="DistBackward0",
    formula="size of self - other",
    forward=_distance,
    rules=(
        Rule("self", "g * sign(self - other) * (|self - other| / result)**(p - 1)", _through_dist),
        Rule(
            "other",
            "-g * sign(self - other) * (|self - other| / result)**(p - 1)",
            lambda g, self, other, result, p: -_through_dist(g, self, other, result, p),
        ),
    ),
    promotes=True,
    public=False,
    torch="dist",
    examples=lambda: [Example((_uneven(2, 3), normal(3) * 0.01), {"p": p}) for p in (1, 2, 3, inf)],
)


@front("dist")
def dist(input: Tensor, other: Tensor, p: Number = 2) -> Tensor:
    """The norm of the difference of two tensors."""
    kind = (checked(dist_op, input, 1) - checked(dist_op, other, 2)).dtype
    if not kind.is_floating_point:
        raise RuntimeError(
            f"norm(): input dtype should be either floating point or complex. Got {kind.tensor_type} instead."
        )
    result: Tensor = dist_op(input, other, p=p)
    return result


def _differences(x1: Any, x2: Any) -> Any:
    """Each row of the first minus each row of the second."""
    return x1[..., :, None, :] - x2[..., None, :, :]


def _distances(x1: Any, x2: Any, p: Number) -> Any:
    """The size of each difference of rows; 0 for rows without elements."""
    apart = _differences(x1, x2)
    return _size(apart, p, (-1,), False) if apart.shape[-1] else apart.sum(-1)


def _through_cdist(g: Any, x1: Any, x2: Any, result: Any, p: Number) -> Any:
    """The gradient of each pair of rows; zero for p = 0, and where two rows are equal."""
    apart = _differences(x1, x2)
    if p == 0:
        return apart * 0
    if p == inf:  # every largest element gets all of it
        return g[..., None] * sign(apart) * (absolute(apart) == result[..., None])
    return _through_norm(g, apart, result, p, (apart.ndim - 1,), False)


cdist_op: Op = Op(
    "cdist(x1, x2, *, p=2.0)",
    grad_fn="CdistBackward0",
    formula="size of each row of x1 - each row of x2",
    forward=in_rows(_distances),
    rules=(
        Rule(
            "x1",
            "g * sign(x1 - x2) * (|x1 - x2| / result)**(p - 1), summed over x2",
            lambda g, x1, x2, result, p: sum_dim(_through_cdist(g, x1, x2, result, p), dim=(-2,), keepdim=False),
        ),
        Rule(
            "x2",
            "-g * sign(x1 - x2) * (|x1 - x2| / result)**(p - 1), summed over x1",
            lambda g, x1, x2, result, p: -sum_dim(_through_cdist(g, x1, x2, result, p), dim=(-3,), keepdim=False),
        ),
    ),
    public=False,
    torch="cdist",
    examples=lambda: [
        *[Example((_uneven(2, 3), normal(4, 3) * 0.01), {"p": p}) for p in (1, 2, 3, inf)],
        Example((_uneven(2, 2, 3), normal(2, 3) * 0.01), {"p": 2}),
    ],
)

_COMPUTE_MODES = (
    "use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist",
)  # fmt: skip


@front("cdist", method=False)
def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str = _COMPUTE_MODES[0]) -> Tensor:
    """The distance of each row of one tensor from each row of another, as a matrix for each batch.

    `compute_mode` chooses how PyTorch computes it; here it is always the norm of the differences.
    """
    if compute_mode not in _COMPUTE_MODES:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    for nr, x in enumerate((checked(cdist_op, x1, 1), checked(cdist_op, x2, 2)), 1):
        if x.ndim < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, X{nr} got: {x.ndim}D")
    if x1.shape[-1] != x2.shape[-1]:
        columns = f"X1: {x1.shape[-1]} X2: {x2.shape[-1]}"
        raise RuntimeError(f"X1 and X2 must have the same number of columns. {columns}")
    for nr, x in enumerate((x1, x2), 1):
        if not x.dtype.is_floating_point:
            raise RuntimeError(f"cdist only supports floating-point dtypes, X{nr} got: {x.dtype.tensor_type}")
    if x1.dtype != x2.dtype:
        kinds = [x.dtype.tensor_type for x in (x1, x2)]
        raise RuntimeError(f"expected scalar type {kinds[0]} but found {kinds[1]}")
    if not p >= 0:
        raise RuntimeError("cdist only supports non-negative p values")
    result: Tensor = cdist_op(x1, x2, p=p)
    return result

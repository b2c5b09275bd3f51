"""Sizes of vectors: norms, distances, and the logarithm of a sum of exponentials."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from gviz.engine import messages
from gviz.engine.apply import apply, zeros
from gviz.engine.dtypes import dtype as DType
from gviz.engine.op import Example, Op, Reading, Rule
from gviz.engine.ops.comparison import isnan, where_op
from gviz.engine.ops.dims import Dims, applied, kept, numpy_names, reduced_dims
from gviz.engine.ops.examples import normal, spaced
from gviz.engine.ops.exponential import exp
from gviz.engine.ops.kernels import in_rows
from gviz.engine.ops.reduction import in_dtype, name_of, sum_dim
from gviz.engine.ops.signs import absolute, sign
from gviz.engine.surface import Number, checked, front
from gviz.engine.tensor import Tensor
from gviz.values import Array

Shape = tuple[int, ...]
ORDERS = (0.5, 1, 1.5, 2, 3.0, inf, -inf, -1)


def _uneven(*shape: int) -> Array:
    """Numbers no two of which have the same size."""
    return spaced(*shape) + 0.06


def _size(self: Array, ord: Number, dim: Shape | None, keepdim: Any, dtype: str | None = None) -> Any:
    self = in_dtype(self, dtype)
    axis = tuple(range(self.ndim)) if dim is None else dim
    wide = np.abs(self).astype(np.float64)
    if ord == 0:
        result = np.add.reduce(wide != 0, axis=axis, keepdims=keepdim, dtype=np.float64)
    elif ord in (inf, -inf):
        best = np.maximum if ord == inf else np.minimum
        result = best.reduce(wide, axis=axis, keepdims=keepdim)
    else:
        result = np.add.reduce(wide**ord, axis=axis, keepdims=keepdim) ** (1 / ord)
    return np.asarray(result).astype(self.dtype)


def _dims_of(self: Any, dim: Shape | None) -> Shape:
    return tuple(range(len(self.shape))) if dim is None else dim


def _through_norm(g: Any, self: Any, result: Any, ord: Number, dim: Shape | None, keepdim: bool) -> Any:
    """Nothing where the norm is 0, which it is only at a point where no direction is better than another."""
    dims = _dims_of(self, dim)
    g, result = kept(g, dims, keepdim), kept(result, dims, keepdim)
    nought = zeros(g, ())
    if ord == 0:
        return None  # PyTorch gives none
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
    """How a norm reads for each argument `name` that is none of the ordinary orders.

    The nuclear norm is none of the elements: the call itself says what it is.
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
    """The size of the vectors along `dim`, or of all elements as one vector."""
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
    """The size of `input`, or of the vectors along `dim`: the `p`-th root of the sum of the `p`-th powers."""
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
    forward=_logsumexp,
    rules=(Rule("self", "g * exp(self - result)", _through_logsumexp),),
    promotes="float",
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
    """The logarithm of the sum of exponentials over `dim`, without overflow."""
    dims = reduced_dims(dim, checked(logsumexp_op, input, 1).ndim)
    if dim == () and input.ndim and not keepdim:  # PyTorch's own slip
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
    """The size of the difference of two tensors."""
    kind = (checked(dist_op, input, 1) - checked(dist_op, other, 2)).dtype
    if not kind.is_floating_point:
        raise RuntimeError(
            f"norm(): input dtype should be either floating point or complex. Got {kind.tensor_type} instead."
        )
    result: Tensor = dist_op(input, other, p=p)
    return result

"""Products of the elements of one tensor, of all or along a dimension: ``prod`` and ``cumprod``."""

from __future__ import annotations

from typing import Any

import numpy as np

from gviz.engine.dtypes import dtype as DType
from gviz.engine.functions_and_methods import checked, front
from gviz.engine.op import Example, Op, Rule
from gviz.engine.ops._examples import normal
from gviz.engine.ops._kernels import in_rows, refuse_unless
from gviz.engine.ops._reduction_arguments import applied, in_wide_dtype, kept, name_of, numpy_names
from gviz.engine.ops.comparison import where_op
from gviz.engine.ops.cumulative import derive_cumulative, from_end
from gviz.engine.ops.reductions import sum_dim
from gviz.engine.ops.shape import expand, flip_op, in_shape, one_dim, roll_op, transpose, unsqueeze_dims
from gviz.engine.tensor import Tensor, new_tensor
from gviz.values.value import Array


def _cumprod(self: Array, dim: int, dtype: str | None = None) -> Any:
    wide = in_wide_dtype(self, dtype)
    refuse_unless(wide.dtype.kind != "b", "cumprod_out_cpu", wide)
    return np.multiply.accumulate(wide, axis=dim, dtype=wide.dtype) if wide.ndim else wide.copy()


def _constant_like(like: Any, array: Array) -> Any:
    """Return a constant for rules: an array next to arrays, a tensor next to tensors."""
    return new_tensor(array) if isinstance(like, Tensor) else array


def _one(like: Any) -> Any:
    kind = like._array.dtype if isinstance(like, Tensor) else like.dtype
    return _constant_like(like, np.ones((), kind))


def _through_cumprod(g: Any, self: Any, result: Any, dim: int) -> Any:
    """Return each product divided by the element; at the first zero, after which all is zero, the product
    without it.
    """
    if not self.shape:
        return g
    zero = self == 0
    if isinstance(g, Tensor) and zero.any():
        return _through_cumprod_again(g, self, dim)
    first = _constant_like(g, _first(zero._array if isinstance(zero, Tensor) else zero, dim))
    without = cumprod_op(where_op(first, _one(g), self), dim=dim)
    divisor = where_op(zero, _one(g), self)
    return where_op(first, from_end(g * without, dim=dim), from_end(g * result, dim=dim) / divisor)


def _first(zero: Array, dim: int) -> Array:
    first: Array = zero & (np.cumsum(zero, dim) == 1)
    return first


def _through_cumprod_again(g: Any, self: Any, dim: int) -> Any:
    """Return the same, also differentiable at zeros: computes the products without each element."""
    size, ndim = self.shape[dim], len(self.shape)
    last = transpose(self, dim0=dim, dim1=ndim - 1)
    rows = expand(unsqueeze_dims(last, dims=(ndim - 1,)), size=(*last.shape, size))
    without = cumprod_op(where_op(_constant_like(g, np.eye(size, dtype=np.bool_)), _one(g), rows), dim=ndim)
    later = _constant_like(g, np.triu(np.ones((size, size), g._array.dtype)))
    incoming = unsqueeze_dims(transpose(g, dim0=dim, dim1=ndim - 1), dims=(ndim - 1,))
    return transpose(sum_dim(without * later * incoming, dim=(ndim,), keepdim=False), dim0=dim, dim1=ndim - 1)


cumprod_op: Op = Op(
    "cumprod(self, *, dim, dtype=None)",
    grad_fn="CumprodBackward0",
    formula="product of self up to each element along dim",
    forward=in_rows(_cumprod),
    rules=(Rule("self", "sum along dim from each element on of g * result / self", _through_cumprod),),
    in_place=True,
    public=False,
    torch="cumprod",
    examples=lambda: [
        Example((normal(2, 3),), {"dim": 0}),
        *[Example((_with_zeros(n),), {"dim": 1}) for n in (0, 1, 2)],
    ],
)
derive_cumulative(cumprod_op)


def _with_zeros(count: int) -> Array:
    array = normal(2, 4)
    array[:, 1 : 1 + count] = 0
    return array


def _prod(self: Array, dim: int | None = None, keepdim: Any = False, dtype: str | None = None) -> Any:
    wide = in_wide_dtype(self, dtype)
    return np.multiply.reduce(wide, axis=dim if wide.ndim else None, keepdims=keepdim, dtype=wide.dtype)


def _before(self: Any, dim: int) -> Any:
    """For each element, the product of those before it."""
    shape = [1] * len(self.shape)
    shape[dim] = self.shape[dim]
    first = _constant_like(self, (np.arange(self.shape[dim]) == 0).reshape(shape))
    return cumprod_op(where_op(first, _one(self), roll_op(self, shifts=(1,), dims=(dim,))), dim=dim)


def _others(self: Any, dim: int) -> Any:
    """For each element, the product of all others along `dim`; correct also if some are zero."""
    after = flip_op(_before(flip_op(self, dims=(dim,)), dim), dims=(dim,))
    return _before(self, dim) * after


def _through_prod(g: Any, self: Any, result: Any) -> Any:
    if not self.shape:
        return g
    if not (self == 0).any():
        return g * (result / self)
    return g * in_shape(_others(in_shape(self, (int(np.prod(self.shape)),)), 0), self.shape)


def _through_prod_dim(g: Any, self: Any, result: Any, dim: int, keepdim: bool) -> Any:
    if not self.shape:
        return g
    if not (self == 0).any():
        return kept(g, (dim,), keepdim) * (kept(result, (dim,), keepdim) / self)
    return kept(g, (dim,), keepdim) * _others(self, dim)


prod_all: Op = Op(
    "prod(self, *, dtype=None)",
    grad_fn="ProdBackward0",
    formula="product of self",
    forward=in_rows(_prod),
    rules=(Rule("self", "g * product of all others", _through_prod),),
    public=False,
    torch="prod",
    examples=lambda: [Example((normal(2, 3),), {}), Example((normal(),), {}), Example((_with_zeros(1),), {})],
)
prod_dim: Op = Op(
    "prod(self, *, dim, keepdim=False, dtype=None)",
    grad_fn="ProdBackward1",
    formula="product of self over dim",
    forward=in_rows(_prod),
    rules=(Rule("self", "g * product of the others along dim", _through_prod_dim),),
    public=False,
    torch="prod",
    examples=lambda: [
        Example((normal(2, 3),), {"dim": 1, "keepdim": False}),
        *[Example((_with_zeros(n),), {"dim": 1, "keepdim": True}) for n in (1, 2)],
    ],
)


@front("prod")
@numpy_names
def prod_front(input: Tensor, dim: int | None = None, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
    """The product of all elements, or along `dim`."""
    if dim is None:
        return applied(prod_all, checked(prod_all, input, 1), dtype=name_of(dtype, input))
    axis = one_dim(dim, checked(prod_dim, input, 1).ndim)
    return applied(prod_dim, input, dim=axis, keepdim=keepdim, dtype=name_of(dtype, input))

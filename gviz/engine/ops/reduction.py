"""Sums and means, of all elements or along dimensions."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from gviz.engine import dtypes
from gviz.engine.apply import apply, zeros
from gviz.engine.broadcasting import reducible, summed_dims
from gviz.engine.dtypes import dtype as DType
from gviz.engine.modes import thread
from gviz.engine.op import Example, Op, Rule
from gviz.engine.ops.comparison import isnan, where_op
from gviz.engine.ops.dims import Dims, applied, numpy_names, reduced_dims, spread
from gviz.engine.ops.examples import normal
from gviz.engine.ops.kernels import in_rows
from gviz.engine.ops.shape import expand
from gviz.engine.surface import checked, front
from gviz.engine.tensor import Tensor
from gviz.values import Array

Shape = tuple[int, ...]


def in_dtype(self: Array, dtype: str | None) -> Array:
    """`self` in the dtype of this name, if one is given."""
    return self if dtype is None else self.astype(dtypes.named(dtype).numpy, copy=False)


def name_of(dtype: DType | None, self: Tensor | None = None) -> str | None:
    """How an attribute holds a dtype. RuntimeError if `self` wants a gradient and the dtype cannot have one."""
    if dtype is None:
        return None
    if self is not None and self.requires_grad and thread.grad_enabled and not dtype.is_floating_point:
        raise RuntimeError(f"Autograd not support dtype: {dtype.tensor_type}")
    return dtype.name


def _sum(self: Array, dim: Any = None, keepdim: Any = False, dtype: str | None = None) -> Any:
    self = in_dtype(self, dtype)
    if self.dtype == np.float16:  # summed in float32, as PyTorch does
        return np.add.reduce(self, axis=dim, keepdims=keepdim, dtype=np.float32).astype(np.float16)
    whole = None if dtype is not None or self.dtype.kind == "f" else np.int64
    return np.add.reduce(self, axis=dim, keepdims=keepdim, dtype=whole or self.dtype)


def _mean(self: Array, dim: Any = None, keepdim: Any = False, dtype: str | None = None) -> Any:
    self = in_dtype(self, dtype)
    if self.size:
        return np.mean(self, axis=dim, keepdims=keepdim)
    return np.add.reduce(self, axis=dim, keepdims=keepdim) * self.dtype.type(np.nan)  # np.mean would warn


def _shared(g: Any, sizes: Shape, dim: Shape, keepdim: bool) -> Any:
    """The gradient of a mean in equal parts. In memory of its own: a hook may write to it, unlike to that of a sum."""
    count = prod([sizes[d] for d in dim])
    if isinstance(g, Tensor):
        return spread(g, sizes, dim, keepdim) / count
    return np.array(spread(g / count, sizes, dim, keepdim), order="C")


class Mean(Op):
    """A mean, whose node shows the number of elements too."""

    def shown(self) -> dict[str, property]:
        return super().shown() | {"self_sym_numel": property(lambda node: prod(node.attrs["self_sym_sizes"]))}


sum_all: Op = Op(
    "sum(self, *, dtype=None)",
    grad_fn="SumBackward0",
    formula="sum of self",
    forward=_sum,
    rules=(Rule("self", "g for every element", lambda g, self_sym_sizes: expand(g, size=self_sym_sizes)),),
    public=False,
    torch="sum",
    examples=lambda: [Example((normal(2, 3),), {}), Example((normal(),), {}), Example((normal(0),), {})],
)
sum_dim: Op = Op(
    "sum(self, *, dim, keepdim=False, dtype=None)",
    grad_fn="SumBackward1",
    formula="sum of self over dim",
    forward=in_rows(_sum),
    rules=(
        Rule(
            "self",
            "g, repeated along dim",
            lambda g, self_sym_sizes, dim, keepdim: spread(g, self_sym_sizes, dim, keepdim),
        ),
    ),
    public=False,
    torch="sum",
    examples=lambda: [
        Example((normal(2, 3),), {"dim": (1,), "keepdim": False}),
        Example((normal(2, 3),), {"dim": (0, 1), "keepdim": True}),
        Example((normal(),), {"dim": (), "keepdim": False}),
    ],
)
mean_all: Op = Mean(
    "mean(self, *, dtype=None)",
    grad_fn="MeanBackward0",
    formula="mean of self",
    forward=_mean,
    rules=(
        Rule(
            "self",
            "g / number of elements",
            lambda g, self_sym_sizes: _shared(g, self_sym_sizes, tuple(range(len(self_sym_sizes))), keepdim=False),
        ),
    ),
    public=False,
    torch="mean",
    examples=lambda: [Example((normal(2, 3),), {}), Example((normal(),), {})],
)
mean_dim: Op = Mean(
    "mean(self, *, dim, keepdim=False, dtype=None)",
    grad_fn="MeanBackward1",
    formula="mean of self over dim",
    forward=in_rows(_mean),
    rules=(
        Rule(
            "self",
            "g / size of dim",
            lambda g, self_sym_sizes, dim, keepdim: _shared(g, self_sym_sizes, dim, keepdim),
        ),
    ),
    public=False,
    torch="mean",
    examples=lambda: [
        Example((normal(2, 3),), {"dim": (0,), "keepdim": True}),
        Example((normal(2, 3),), {"dim": (0, 1), "keepdim": False}),
    ],
)


def _nansum(self: Array, dim: Shape | None, keepdim: bool, dtype: str | None = None) -> Any:
    self = in_dtype(self, dtype)
    return _sum(np.where(np.isnan(self), np.zeros((), self.dtype), self), dim, keepdim, dtype)


def _through_nansum(g: Any, self: Any, dim: Shape | None, keepdim: bool) -> Any:
    dims = tuple(range(len(self.shape))) if dim is None else dim
    return where_op(isnan(self), zeros(g, ()), spread(g, tuple(self.shape), dims, keepdim))


nansum_op: Op = Op(
    "nansum(self, *, dim=None, keepdim=False, dtype=None)",
    grad_fn="NansumBackward0",
    formula="sum of what is a number in self",
    forward=in_rows(_nansum),
    rules=(Rule("self", "g for every element that is a number", _through_nansum),),
    public=False,
    torch="nansum",
    examples=lambda: [
        Example((normal(2, 3),), {"dim": (0,), "keepdim": False}),
        Example((normal(2, 3),), {"dim": None, "keepdim": True}),
    ],
)


@front("sum")
@numpy_names
def sum_front(input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
    """The sum of all elements, or over `dim`."""
    return _reduced(sum_all, sum_dim, input, dim, keepdim, dtype)


@front("mean")
@numpy_names
def mean_front(input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
    """The mean of all elements, or over `dim`. RuntimeError for integers, which have none."""
    kind, which = (checked(mean_all, input, 1).dtype, "Input") if dtype is None else (dtype, "Optional")
    if not kind.is_floating_point:
        raise RuntimeError(
            f"mean(): could not infer output dtype. {which} dtype must be either a floating point or complex dtype. "
            f"Got: {kind.tensor_type}"
        )
    return _reduced(mean_all, mean_dim, input, dim, keepdim, dtype)


@front("nansum")
@numpy_names
def nansum(input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
    """The sum of the elements that are numbers."""
    dims = reduced_dims(dim, checked(nansum_op, input, 1).ndim)
    attrs = {"dim": None if dim is None else dims, "keepdim": keepdim} | (
        {} if dtype is None else {"dtype": name_of(dtype, input)}
    )
    result: Tensor = apply(nansum_op, (input,), attrs)
    return result


@front("nanmean")
@numpy_names
def nanmean(input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
    """The mean of the elements that are numbers."""
    if not checked(nansum_op, input, 1).dtype.is_floating_point:
        raise RuntimeError(
            f"nanmean(): expected input to have floating point or complex dtype but got {input.dtype.tensor_type}"
        )
    count = isnan(input.detach()).logical_not().sum(dim, keepdim)
    result: Tensor = nansum(input, dim, keepdim, dtype=dtype) / count
    return result


def _reduced(whole: Op, along: Op, self: Tensor, dim: Dims, keepdim: bool, dtype: DType | None) -> Tensor:
    if dim is None and not keepdim:
        return applied(whole, checked(whole, self, 1), dtype=name_of(dtype, self))
    dims = reduced_dims(dim, checked(along, self, 1).ndim)
    return applied(along, self, dim=dims, keepdim=keepdim, dtype=name_of(dtype, self))


@front("sum_to_size", function=False)
def sum_to_size(self: Tensor, *size: Any) -> Tensor:
    """Sum what was broadcast, back to `size`."""
    shape = tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else tuple(size)
    if not reducible(self.shape, shape):
        raise RuntimeError(f"size {{{list(shape)}}} is not expandable to size {{{list(self.shape)}}}.")
    in_front, repeated = summed_dims(self.shape, shape)
    if in_front and not shape:
        return self.sum()
    summed = (*in_front, *[len(in_front) + d for d in repeated])
    result = self.sum(summed, keepdim=True) if summed else self
    return result.view(shape) if in_front else result

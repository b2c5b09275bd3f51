"""Reductions: sums, means, ``all``, ``any`` and ``count_nonzero``.

Most reductions are two operations, over all elements and along dimensions, as they are two nodes in PyTorch.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from gviz.engine.broadcasting import reducible, summed_dims
from gviz.engine.dtypes import dtype as DType
from gviz.engine.functions_and_methods import checked, front
from gviz.engine.op import Example, Op, Rule, apply
from gviz.engine.ops._examples import normal
from gviz.engine.ops._kernels import in_rows
from gviz.engine.ops._reduction_arguments import (
    Dims,
    Shape,
    all_dims,
    applied,
    in_dtype,
    name_of,
    numpy_names,
    reduced_dims,
    spread,
)
from gviz.engine.ops.comparison import eq, isnan
from gviz.engine.ops.shape import expand
from gviz.engine.tensor import Tensor
from gviz.values.value import Array

# ----------------------------------------------------------------------------------------------------------------------
# Sums and means, of all elements or along dimensions.


def _sum(self: Array, dim: Any = None, keepdim: Any = False, dtype: str | None = None) -> Any:
    self = in_dtype(self, dtype)
    if self.dtype == np.float16:  # summed in float32, as in PyTorch
        return np.add.reduce(self, axis=dim, keepdims=keepdim, dtype=np.float32).astype(np.float16)
    whole = None if dtype is not None or self.dtype.kind == "f" else np.int64
    return np.add.reduce(self, axis=dim, keepdims=keepdim, dtype=whole or self.dtype)


def _mean(self: Array, dim: Any = None, keepdim: Any = False, dtype: str | None = None) -> Any:
    self = in_dtype(self, dtype)
    if self.size:
        return np.mean(self, axis=dim, keepdims=keepdim)
    return np.add.reduce(self, axis=dim, keepdims=keepdim) * -self.dtype.type(np.nan)  # np.mean would warn


def _shared(g: Any, sizes: Shape, dim: Shape, keepdim: bool) -> Any:
    """Return the gradient of a mean in equal parts. It has its own memory, unlike that of a sum: a hook may write to
    it.
    """
    count = prod([sizes[d] for d in dim])
    if isinstance(g, Tensor):
        return spread(g, sizes, dim, keepdim) / count
    return np.array(spread(g / count, sizes, dim, keepdim), order="C")


class Mean(Op):
    """A mean; its node also shows the number of elements."""

    def saved_properties(self) -> dict[str, property]:
        return super().saved_properties() | {
            "self_sym_numel": property(lambda node: prod(node.attrs["self_sym_sizes"]))
        }


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
    dims = all_dims(self, dim)
    return spread(g, tuple(self.shape), dims, keepdim) * eq(self, self)  # a product: an infinite gradient is nan there


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
    """The mean of all elements, or over `dim`. Raises RuntimeError for integers."""
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
    """The sum of the elements that are not nan."""
    dims = reduced_dims(dim, checked(nansum_op, input, 1).ndim)
    attrs = {"dim": None if dim is None else dims, "keepdim": keepdim} | (
        {} if dtype is None else {"dtype": name_of(dtype, input)}
    )
    result: Tensor = apply(nansum_op, (input,), attrs)
    return result


@front("nanmean")
@numpy_names
def nanmean(input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
    """The mean of the elements that are not nan."""
    if not checked(nansum_op, input, 1).dtype.is_floating_point:
        raise RuntimeError(
            f"nanmean(): expected input to have floating point or complex dtype but got {input.dtype.tensor_type}"
        )
    count = isnan(input.detach()).logical_not().sum(dim, keepdim)
    result: Tensor = nansum(input, dim, keepdim, dtype=dtype) / count
    return result


def _reduced(whole: Op, over_dims: Op, self: Tensor, dim: Dims, keepdim: bool, dtype: DType | None) -> Tensor:
    if dim is None and not keepdim:
        return applied(whole, checked(whole, self, 1), dtype=name_of(dtype, self))
    dims = reduced_dims(dim, checked(over_dims, self, 1).ndim)
    return applied(over_dims, self, dim=dims, keepdim=keepdim, dtype=name_of(dtype, self))


@front("sum_to_size", function=False)
def sum_to_size(self: Tensor, *size: Any) -> Tensor:
    """Sums a broadcast tensor back to `size`."""
    shape = tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else tuple(size)
    if not reducible(self.shape, shape):
        raise RuntimeError(f"size {{{list(shape)}}} is not expandable to size {{{list(self.shape)}}}.")
    in_front, repeated = summed_dims(self.shape, shape)
    if in_front and not shape:
        return self.sum()
    summed = (*in_front, *[len(in_front) + d for d in repeated])
    result = self.sum(summed, keepdim=True) if summed else self
    return result.view(shape) if in_front else result


# ----------------------------------------------------------------------------------------------------------------------
# Whether all or any elements are true, and the number of nonzero ones.


def _holds(name: str, ufunc: np.ufunc, formula: str) -> Op:
    def forward(self: Array, dim: Any, keepdim: bool) -> Any:
        truth = ufunc.reduce(self != 0, axis=dim, keepdims=keepdim)
        return np.asarray(truth).astype(np.uint8) if self.dtype == np.uint8 else truth  # as in PyTorch

    return Op(
        f"{name}(self, *, dim=None, keepdim=False)", grad_fn="", formula=formula, forward=in_rows(forward), public=False
    )


all_op = _holds("all", np.logical_and, "whether all hold")
any_op = _holds("any", np.logical_or, "whether any holds")
count_op: Op = Op(
    "count_nonzero(self, *, dim)",
    grad_fn="",
    formula="number of elements of self that are not 0",
    forward=in_rows(lambda self, dim: np.add.reduce(self != 0, axis=dim, dtype=np.int64)),
    public=False,
)


@front("all")
@numpy_names
def all_front(input: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """Whether all elements are true, or all along `dim`."""
    return _truth(all_op, input, dim, keepdim)


@front("any")
@numpy_names
def any_front(input: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """Whether any element is true, or any along `dim`."""
    return _truth(any_op, input, dim, keepdim)


@front("count_nonzero")
@numpy_names
def count_nonzero(input: Tensor, dim: Dims = None) -> Tensor:
    """The number of nonzero elements, of all or along `dim`."""
    result: Tensor = apply(count_op, (checked(count_op, input, 1),), {"dim": _dims(input, dim)})
    return result


def _truth(op: Op, input: Tensor, dim: Dims, keepdim: bool) -> Tensor:
    attrs = {"dim": _dims(checked(op, input, 1), dim), "keepdim": keepdim}
    result: Tensor = apply(op, (input,), attrs)
    return result


def _dims(input: Tensor, dim: Dims) -> tuple[int, ...] | None:
    return None if dim is None else reduced_dims(dim, input.ndim)

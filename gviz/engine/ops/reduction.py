"""Sums, means and extremes over all elements or along dimensions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gviz.engine.apply import apply
from gviz.engine.broadcasting import summed_dims
from gviz.engine.dtypes import dtype as DType
from gviz.engine.op import Example, Op, Rule
from gviz.engine.ops.examples import normal, spaced
from gviz.engine.ops.gathering import scatter_along
from gviz.engine.ops.larger import maximum, minimum
from gviz.engine.ops.shape import expand, normal_dims, unsqueeze_dims
from gviz.engine.surface import front
from gviz.engine.tensor import Tensor
from gviz.values import Array

Dims = int | Sequence[int] | None


def _spread(g: Any, sizes: tuple[int, ...], dim: tuple[int, ...], keepdim: bool) -> Any:
    """A reduced gradient repeated over the dimensions it was reduced along."""
    return expand(g if keepdim else unsqueeze_dims(g, dims=dim), size=sizes)


sum_all: Op = Op(
    "sum(self)",
    grad_fn="SumBackward0",
    formula="sum of self",
    forward=lambda self: np.add.reduce(self, axis=None, dtype=_accumulator(self)),
    rules=(Rule("self", "g for every element", lambda g, self_sym_sizes: expand(g, size=self_sym_sizes)),),
    public=False,
    examples=lambda: [Example((normal(2, 3),), {}), Example((normal(),), {}), Example((normal(0),), {})],
)
sum_dim: Op = Op(
    "sum(self, *, dim, keepdim=False)",
    grad_fn="SumBackward1",
    formula="sum of self over dim",
    forward=lambda self, dim, keepdim: np.add.reduce(self, axis=dim, keepdims=keepdim, dtype=_accumulator(self)),
    rules=(
        Rule(
            "self",
            "g for every element of dim",
            lambda g, self_sym_sizes, dim, keepdim: _spread(g, self_sym_sizes, dim, keepdim),
        ),
    ),
    public=False,
    examples=lambda: [Example((normal(2, 3),), {"dim": (1,), "keepdim": False})],
)
mean_all: Op = Op(
    "mean(self)",
    grad_fn="MeanBackward0",
    formula="mean of self",
    forward=lambda self: _mean(self, None, False),
    rules=(
        Rule(
            "self",
            "g / number of elements",
            lambda g, self_sym_sizes: expand(g / int(np.prod(self_sym_sizes)), size=self_sym_sizes),
        ),
    ),
    public=False,
    examples=lambda: [Example((normal(2, 3),), {}), Example((normal(),), {})],
)
mean_dim: Op = Op(
    "mean(self, *, dim, keepdim=False)",
    grad_fn="MeanBackward1",
    formula="mean of self over dim",
    forward=lambda self, dim, keepdim: _mean(self, dim, keepdim),
    rules=(
        Rule(
            "self",
            "g / size of dim",
            lambda g, self_sym_sizes, dim, keepdim: _spread(
                g / int(np.prod([self_sym_sizes[d] for d in dim])), self_sym_sizes, dim, keepdim
            ),
        ),
    ),
    public=False,
    examples=lambda: [Example((normal(2, 3),), {"dim": (0,), "keepdim": True})],
)


def _back_to_indices(g: Any, indices: Any, self_sym_sizes: tuple[int, ...], dim: int, keepdim: bool) -> Any:
    if not self_sym_sizes:
        return g
    if not keepdim:
        g, indices = unsqueeze_dims(g, dims=(dim,)), unsqueeze_dims(indices, dims=(dim,))
    return scatter_along(g, indices, size=self_sym_sizes, dim=dim)


def _extreme(best: Any, pick: Any, name: str, grad_fn: str) -> Op:
    """``max`` or ``min`` along one dimension: values and where they were found."""

    def forward(self: Array, dim: int, keepdim: bool) -> tuple[Array, Array]:
        if not self.ndim:
            return self.copy(), np.zeros((), np.int64)
        indices = np.expand_dims(pick(self, axis=dim), dim)
        values = np.take_along_axis(self, indices, dim)
        return (values, indices) if keepdim else (values.squeeze(dim), indices.squeeze(dim))

    return Op(
        f"{name}(self, *, dim, keepdim=False)",
        grad_fn=grad_fn,
        formula=f"{name} of self over dim",
        forward=forward,
        rules=(
            Rule(
                "self",
                "g at indices, else 0",
                _back_to_indices,
            ),
        ),
        outputs=("values", "indices"),
        differentiable_outputs=1,
        public=False,
        examples=lambda: [Example((spaced(*shape),), {"dim": 0, "keepdim": False}) for shape in ((2, 3), ())],
    )


max_dim = _extreme(np.max, np.argmax, "max", "MaxBackward0")
min_dim = _extreme(np.min, np.argmin, "min", "MinBackward0")
tied: Op = Op(
    "tied(self, result)",
    grad_fn="",
    formula="1 where self is result (a nan is a nan), shared among ties",
    forward=lambda self, result: _shared(self == result if result == result else np.isnan(self), self.dtype),
    public=False,
)


def _extreme_of_all(name: str, pick: Callable[[Array], Any], grad_fn: str) -> Op:
    """``max`` or ``min`` of all elements; tied ones share the gradient."""
    return Op(
        f"{name}(self)",
        grad_fn=grad_fn,
        formula=f"{name} of self",
        forward=pick,
        rules=(
            Rule("self", "g where self is result, shared among ties", lambda g, self, result: g * tied(self, result)),
        ),
        public=False,
        examples=lambda: [Example((spaced(2, 3),), {})],
    )


max_all = _extreme_of_all("max", np.max, "MaxBackward1")
min_all = _extreme_of_all("min", np.min, "MinBackward1")
argmax_op: Op = Op(
    "argmax(self)", grad_fn="", formula="where self is largest", forward=lambda self: np.argmax(self), public=False
)


class Extremes(NamedTuple):
    """The largest or smallest elements along a dimension, and where they are."""

    values: Tensor
    indices: Tensor


def _shared(where: Array, kind: Any) -> Array:
    share: Array = (where / where.sum()).astype(kind)
    return share


def _mean(self: Array, dim: tuple[int, ...] | None, keepdim: Any) -> Any:
    if self.size:
        return np.mean(self, axis=dim, keepdims=keepdim)
    return np.add.reduce(self, axis=dim, keepdims=keepdim) * self.dtype.type(np.nan)  # np.mean would warn


def _accumulator(array: Array) -> Any:
    """Sums of integers and booleans are int64."""
    return np.int64 if array.dtype.kind in "bui" else None


@front("sum")
def sum_front(self: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
    """The sum of all elements, or over `dim`."""
    tensor = self if dtype is None else self.to(dtype)
    return _reduced(sum_all, sum_dim, tensor, dim, keepdim)


@front("mean")
def mean_front(self: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
    """The mean of all elements, or over `dim`. RuntimeError for integers, which have none."""
    tensor = self if dtype is None else self.to(dtype)
    if not tensor.dtype.is_floating_point:
        raise RuntimeError(
            "mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. "
            f"Got: {tensor.dtype.tensor_type}"
        )
    return _reduced(mean_all, mean_dim, tensor, dim, keepdim)


def _reduced(whole: Op, along: Op, self: Tensor, dim: Dims, keepdim: bool) -> Tensor:
    if dim is None and not keepdim:
        return apply_one(whole, self)
    dims = tuple(range(self.ndim)) if dim is None else normal_dims(dim, self.ndim)
    dims = dims if self.ndim else ()  # a tensor without dimensions counts as having one, as long as it is not used
    result: Tensor = apply(along, (self,), {"dim": dims, "keepdim": keepdim})
    return result


def apply_one(op: Op, self: Tensor) -> Tensor:
    """Run an op of one tensor and no arguments."""
    result: Tensor = apply(op, (self,))
    return result


@front("max")
def max_front(
    self: Tensor, dim: int | Tensor | None = None, keepdim: bool = False, *, other: Tensor | None = None
) -> Any:
    """The largest element; with `dim`, values and indices along it; with another tensor, the larger of the two."""
    return _extreme_of(max_all, max_dim, maximum, self, dim if other is None else other, keepdim)


@front("min")
def min_front(
    self: Tensor, dim: int | Tensor | None = None, keepdim: bool = False, *, other: Tensor | None = None
) -> Any:
    """The smallest element; with `dim`, values and indices along it; with another tensor, the smaller of the two."""
    return _extreme_of(min_all, min_dim, minimum, self, dim if other is None else other, keepdim)


def _extreme_of(whole: Op, along: Op, of_two: Op, self: Tensor, dim: int | Tensor | None, keepdim: bool) -> Any:
    if isinstance(dim, Tensor):
        return apply(of_two, (self, dim))
    return apply_one(whole, self) if dim is None else _extremes(along, self, dim, keepdim)


def _extremes(op: Op, self: Tensor, dim: int, keepdim: bool) -> Extremes:
    (axis,) = normal_dims(dim, self.ndim)
    if self.ndim and not self.shape[axis]:
        raise IndexError(f"{op.name}(): Expected reduction dim {axis} to have non-zero size.")
    return Extremes(*apply(op, (self,), {"dim": axis, "keepdim": keepdim}))


@front("argmax")
def argmax_front(self: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Where the largest element is."""
    if dim is None:
        return apply_one(argmax_op, self)
    return _extremes(max_dim, self.detach(), dim, keepdim).indices


@front("sum_to_size", function=False)
def sum_to_size(self: Tensor, *size: Any) -> Tensor:
    """Sum what was broadcast, back to `size`."""
    shape = tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else tuple(size)
    in_front, repeated = summed_dims(self.shape, shape)
    result = self.sum(in_front) if in_front else self
    return result.sum(repeated, keepdim=True) if repeated else result

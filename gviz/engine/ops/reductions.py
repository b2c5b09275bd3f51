"""Reductions and scans: sums, means, products, variances, norms, ``all``, ``cumsum``, ``trapezoid``.

`reduced_dims` reads the argument `dim` in the forms that PyTorch accepts. Most reductions are two operations, over all
elements and along dimensions, as they are two nodes in PyTorch.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from math import inf, prod
from typing import Any, TypeVar

import numpy as np

from gviz.engine import dtypes, messages
from gviz.engine.broadcasting import reducible, summed_dims
from gviz.engine.dtypes import bool_
from gviz.engine.dtypes import dtype as DType
from gviz.engine.functions_and_methods import Number, Runner, checked, front
from gviz.engine.modes import thread
from gviz.engine.op import Example, Op, Reading, Rule, apply, zeros
from gviz.engine.ops._examples import normal, spaced
from gviz.engine.ops._kernels import all_in_rows, in_rows, only, refuse_unless
from gviz.engine.ops.arithmetic import absolute, over_number, sign, times_number
from gviz.engine.ops.comparison import eq, isnan, where_op
from gviz.engine.ops.copying import copy_
from gviz.engine.ops.elementary_functions import exp
from gviz.engine.ops.gathering import scatter_along
from gviz.engine.ops.indexing import sliced
from gviz.engine.ops.joining import cat
from gviz.engine.ops.shape import expand, flip_op, in_shape, normal_dims, roll_op, run, transpose, unsqueeze_dims
from gviz.engine.tensor import Tensor, count_writes, new_tensor
from gviz.engine.views import apply_in_place
from gviz.source.call_stack import warn
from gviz.values.value import Array

# ----------------------------------------------------------------------------------------------------------------------
# The dimensions of reductions, in the forms that PyTorch accepts.


Dims = int | Sequence[int] | None
F = TypeVar("F", bound=Callable[..., Any])


def reduced_dims(dim: Dims, ndim: int) -> tuple[int, ...]:
    """The dimensions to reduce, counted from 0; all for None or an empty list. Raises RuntimeError for a repeated one.

    A 0-dimensional tensor counts as having one dimension, as long as it is not used.
    """
    if dim is None or dim == () or dim == []:
        return tuple(range(ndim))
    dims = normal_dims(dim, ndim)
    for d in dims:
        if dims.count(d) > 1:
            raise RuntimeError(f"dim {d} appears multiple times in the list of dims")
    return dims if ndim else ()


def one_dim(dim: int, ndim: int) -> int:
    """One dimension, counted from 0. Raises TypeError for anything but an integer."""
    if not isinstance(dim, (int, np.integer)):
        raise TypeError(f"argument 'dim' must be int, not {type(dim).__name__}")
    return normal_dims(dim, ndim)[0]


def spread(g: Any, sizes: tuple[int, ...], dim: tuple[int, ...], keepdim: bool) -> Any:
    """A reduced gradient repeated over the reduced dimensions; for use in rules."""
    return expand(kept(g, dim, keepdim), size=sizes)


def kept(reduced: Any, dim: tuple[int, ...], keepdim: bool) -> Any:
    """A reduced value with the reduced dimensions of size 1; for use in rules."""
    return reduced if keepdim or not dim else unsqueeze_dims(reduced, dims=dim)


def applied(op: Op, self: Tensor, **attrs: Any) -> Tensor:
    """Runs an op of one tensor and one output, without the attributes that are None."""
    result: Tensor = apply(op, (self,), {name: value for name, value in attrs.items() if value is not None})
    return result


def numpy_names(function: F) -> F:
    """Accepts `axis` and `keepdims` for `dim` and `keepdim`, as PyTorch does for programs written for NumPy.

    Raises TypeError if both are passed.
    """
    name = function.__name__.removesuffix("_front")
    places = {own: place for place, own in enumerate(inspect.signature(function).parameters)}
    synonyms = [(other, own) for other, own in (("axis", "dim"), ("keepdims", "keepdim")) if own in places]

    @functools.wraps(function)
    def renamed(*args: Any, **kwargs: Any) -> Any:
        for other, own in synonyms:
            if other in kwargs:
                if own in kwargs or places[own] < len(args):
                    raise TypeError(f"{name}() got an unexpected keyword argument '{other}'")
                kwargs[own] = kwargs.pop(other)
        return function(*args, **kwargs)

    return renamed  # type: ignore[return-value]  # a wrapper of the same signature


# ----------------------------------------------------------------------------------------------------------------------
# Sums and means, of all elements or along dimensions.


Shape = tuple[int, ...]


def in_dtype(self: Array, dtype: str | None) -> Array:
    """`self` converted to the dtype of this name, if one is given."""
    return self if dtype is None else self.astype(dtypes.named(dtype).numpy, copy=False)


def name_of(dtype: DType | None, self: Tensor | None = None) -> str | None:
    """A dtype as an attribute. Raises RuntimeError if `self` requires a gradient and the dtype cannot have one."""
    if dtype is None:
        return None
    if self is not None and self.requires_grad and thread.grad_enabled and not dtype.is_floating_point:
        raise RuntimeError(f"Autograd not support dtype: {dtype.tensor_type}")
    return dtype.name


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
    dims = tuple(range(len(self.shape))) if dim is None else dim
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


# ----------------------------------------------------------------------------------------------------------------------
# Variances and standard deviations.


def _all_dims(self: Any, dim: Shape | None) -> Shape:
    return dim or tuple(range(len(self.shape)))


def _freedom(self: Any, dim: Shape, correction: Number | None) -> Number:
    size: int = prod([self.shape[d] for d in dim])
    return size - (1 if correction is None else correction)


def _var(self: Array, dim: Shape | None, correction: Number | None, keepdim: Any) -> Any:
    dims = _all_dims(self, dim)
    wide = self.astype(np.float64)
    size = prod([self.shape[d] for d in dims])
    middle = np.add.reduce(wide, axis=dims, keepdims=True) / np.float64(size)
    squares = np.add.reduce((wide - middle) ** 2, axis=dims, keepdims=keepdim)
    freedom = max(_freedom(self, dims, correction), 0) if size else np.nan  # 0 / 0 has a minus sign
    return (squares / np.float64(freedom)).astype(self.dtype)


def _std(self: Array, dim: Shape | None, correction: Number | None, keepdim: bool) -> Any:
    return np.sqrt(_var(self.astype(np.float64), dim, correction, keepdim)).astype(self.dtype)


def _centered(self: Any, dim: Shape) -> Any:
    return self - mean_dim(self, dim=dim, keepdim=True)


def _through_var(g: Any, self: Any, dim: Shape | None, correction: Number | None, keepdim: bool) -> Any:
    dims = _all_dims(self, dim)
    freedom = _freedom(self, () if dim == () else dims, correction)  # PyTorch counts nothing for ``var(())``
    incoming, centered = kept(g, dims, keepdim), _centered(self, dims)
    if freedom <= 0 and (dim is None or not self.shape):
        steep = zeros(g, ()) + float("inf")
        return incoming * where_op(centered == 0, steep - steep, steep)
    return incoming * (2 / freedom if freedom else float("inf")) * centered


def _through_std(g: Any, self: Any, result: Any, dim: Shape | None, correction: Number | None, keepdim: bool) -> Any:
    """Zero where all elements are equal, although the root is infinitely steep there."""
    share = where_op(result == 0, zeros(g, ()), g / (result * 2))
    return _through_var(share, self, dim, correction, keepdim)


def _through_mean(g: Any, self: Any, dim: Shape | None, keepdim: bool) -> Any:
    dims = _all_dims(self, dim)
    return spread(g / prod([self.shape[d] for d in dims]), tuple(self.shape), dims, keepdim)


def _examples() -> list[Example]:
    return [
        Example((normal(2, 3),), {"dim": None, "correction": None, "keepdim": False}),
        Example((normal(2, 3),), {"dim": (1,), "correction": 1, "keepdim": True}),
        Example((normal(2, 3),), {"dim": (0, 1), "correction": 0, "keepdim": False}),
    ]


def _declared(name: str, grad_fn: str, formula: str, forward: Callable[..., Any], vjp: Callable[..., Any]) -> Op:
    return Op(
        f"{name}(self, *, dim=None, correction=None, keepdim=False)",
        grad_fn=grad_fn,
        formula=formula,
        forward=in_rows(forward),
        rules=(Rule("self", RULE_TEXTS[name], vjp),),
        public=False,
        torch=name,
        examples=_examples,
    )


RULE_TEXTS = {
    "var": "g * 2 * (self - mean(self)) / (number of elements - correction)",
    "std": "g * (self - mean(self)) / (result * (number of elements - correction)), 0 where result is 0",
}
var_op = _declared("var", "VarBackward0", "variance of self over dim", _var, _through_var)
std_op = _declared("std", "StdBackward0", "standard deviation of self over dim", _std, _through_std)


def _with_mean(name: str, grad_fn: str, forward: Callable[..., Any], vjp: Callable[..., Any]) -> Op:
    """Compute both at once, the deviation and the mean."""

    def both(self: Array, **attrs: Any) -> tuple[Any, Any]:
        dims = _all_dims(self, attrs["dim"])
        total = np.add.reduce(self, axis=dims, keepdims=attrs["keepdim"], dtype=np.float64)
        size = np.float64(prod([self.shape[d] for d in dims]) or np.nan)  # 0 / 0 has a minus sign
        return forward(self, **attrs), np.asarray(total / size).astype(self.dtype)

    return Op(
        f"{name}(self, *, dim=None, correction=None, keepdim=False)",
        grad_fn=grad_fn,
        formula=f"{name.removesuffix('_mean')} and mean of self over dim",
        forward=all_in_rows(both),
        rules=(Rule("self", "what the rules of both give, together", vjp),),
        outputs=("result0", "result1"),
        public=False,
        torch=name,
        examples=_examples,
    )


def _through_var_mean(grads: Any, self: Any, dim: Any, correction: Any, keepdim: bool) -> Any:
    return _through_var(grads[0], self, dim, correction, keepdim) + _through_mean(grads[1], self, dim, keepdim)


def _through_std_mean(grads: Any, self: Any, result0: Any, dim: Any, correction: Any, keepdim: bool) -> Any:
    part = _through_std(grads[0], self, result0, dim, correction, keepdim)
    return part + _through_mean(grads[1], self, dim, keepdim)


var_mean_op = _with_mean("var_mean", "VarMeanBackward0", _var, _through_var_mean)
std_mean_op = _with_mean("std_mean", "StdMeanBackward0", _std, _through_std_mean)


def _offer(op: Op, *, method: bool) -> None:
    def function(
        input: Tensor,
        dim: Dims | bool = None,
        unbiased: bool | None = None,
        keepdim: bool = False,
        *,
        correction: Number | None = None,
    ) -> Any:
        checked(op, input, 1)
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        if correction is None and (unbiased is not None or dim is not None):
            correction = int(unbiased is not False)
        return _run(op, input, dim, correction, keepdim)

    function.__name__ = function.__qualname__ = op.name
    front(op.name, method=method)(numpy_names(function))


def _run(op: Op, self: Tensor, dim: Dims, correction: Number | None, keepdim: bool) -> Any:
    if not self.dtype.is_floating_point:
        name = op.name if "mean" in op.name else "std and var"
        raise RuntimeError(f"{name} only support floating point and complex dtypes")
    dims = reduced_dims(dim, self.ndim)
    if _freedom(self, dims, correction) <= 0 or not self._array.size:
        warn(
            f"{op.name}(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor "
            "(input numel divided by output numel).",
        )
    listed = () if isinstance(dim, Sequence) and not dim else dims
    attrs = {"dim": None if dim is None else listed, "correction": correction, "keepdim": keepdim}
    return apply(op, (self,), attrs)


for op in (var_op, std_op):
    _offer(op, method=True)
for op in (var_mean_op, std_mean_op):
    _offer(op, method=False)


# ----------------------------------------------------------------------------------------------------------------------
# Norms of vectors, distances, and logsumexp.


ORDERS = (0.5, 1, 1.5, 2, 3.0, inf, -inf, -1)


def _uneven(*shape: int) -> Array:
    """Return numbers with distinct absolute values."""
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
    """Zero where the norm is 0: at that point no direction is distinguished."""
    dims = _dims_of(self, dim)
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


# ----------------------------------------------------------------------------------------------------------------------
# Cumulative sums, extremes and logsumexp along a dimension; and differences.


def _cumsum(self: Array, dim: int, dtype: str | None = None) -> Any:
    self = in_dtype(self, dtype)
    refuse_unless(dtype is None or self.dtype.kind != "b", "cumsum_out_cpu", self)
    wide = self if dtype is not None or self.dtype.kind == "f" else self.astype(np.int64)
    sums = np.add.accumulate(wide, axis=dim, dtype=wide.dtype) if wide.ndim else wide.copy()
    return sums + 0 if wide.ndim and wide.dtype.kind == "f" else sums  # 0 + -0 is 0


def _from_end(self: Array, dim: int) -> Any:
    return np.ascontiguousarray(np.flip(_cumsum(np.flip(self, dim), dim), dim)) if self.ndim else self.copy()


def _dim_examples() -> list[Example]:
    return [
        Example((normal(2, 3),), {"dim": 0}),
        Example((normal(2, 3),), {"dim": 1}),
        Example((normal(),), {"dim": 0}),
    ]


cumsum_op: Op = Op(
    "cumsum(self, *, dim, dtype=None)",
    grad_fn="CumsumBackward0",
    formula="sum of self up to each element along dim",
    forward=in_rows(_cumsum),
    rules=(Rule("self", "sum of g from each element on", lambda g, dim: from_end(g, dim=dim)),),
    in_place=True,
    public=False,
    torch="cumsum",
    examples=_dim_examples,
)
from_end: Op = Op(
    "cumsum_from_end(self, *, dim)",
    grad_fn="FlipBackward0",
    formula="sum of self from each element on along dim",
    forward=_from_end,
    rules=(Rule("self", "sum of g up to each element", lambda g, dim: cumsum_op(g, dim=dim)),),
    public=False,
    examples=_dim_examples,
)


def _logcumsumexp(self: Array, dim: int) -> Any:
    return np.logaddexp.accumulate(self, axis=dim) if self.ndim else self.copy()


def _through_logcumsumexp(g: Any, self: Any, result: Any, dim: int) -> Any:
    """Return the sums of g * exp(self - result) over each element and those after it."""
    if not self.shape:
        return g * exp(self - result)
    if isinstance(g, Tensor):
        return _through_pairs(g, self, result, dim)
    with np.errstate(all="ignore"):  # as logarithms, separately for both signs
        return np.exp(_summed_logs(np.log(g), result, dim) + self) - np.exp(
            _summed_logs(np.log(-g), result, dim) + self
        )


def _summed_logs(logs: Array, result: Array, dim: int) -> Array:
    known = np.where(np.isnan(logs), -np.inf, logs).astype(logs.dtype) - result
    summed: Array = np.flip(_logcumsumexp(np.flip(known, dim), dim), dim)
    return summed


def _through_pairs(g: Tensor, self: Tensor, result: Tensor, dim: int) -> Any:
    """Return the same, differentiable again: each element is paired with each result that depends on it."""
    last = self.ndim - 1
    later = new_tensor(np.triu(np.ones((self.shape[dim],) * 2, np.bool_)))
    columns, rows = self.transpose(dim, last).unsqueeze(-1), result.transpose(dim, last).unsqueeze(-2)
    shares = exp(where_op(later, columns - rows, zeros(g, ()) - float("inf")))
    return (shares * g.transpose(dim, last).unsqueeze(-2)).sum(-1).transpose(dim, last)


logcumsumexp_op: Op = Op(
    "logcumsumexp(self, *, dim)",
    grad_fn="LogcumsumexpBackward0",
    formula="log of the sum of exp(self) up to each element along dim",
    forward=in_rows(only("f", "logcumsumexp_out_cpu", _logcumsumexp)),
    rules=(Rule("self", "sum of g * exp(self - result) from each element on", _through_logcumsumexp),),
    public=False,
    torch="logcumsumexp",
    examples=_dim_examples,
)


def _running(best: Any) -> Any:
    """Return the cumulative extreme and its index: the last of equal ones; nan remains the extreme."""

    def forward(self: Array, dim: int) -> tuple[Array, Array]:
        if not self.ndim:
            return self.copy(), np.zeros((), np.int64)
        values = best.accumulate(self, axis=dim)
        shape = [1] * self.ndim
        shape[dim] = self.shape[dim]
        places = np.arange(self.shape[dim]).reshape(shape)
        is_extreme = (self == values) | (self != self)
        return values, np.maximum.accumulate(np.where(is_extreme, places, 0), axis=dim)

    return forward


def _cumulative_extreme(name: str, grad_fn: str, best: np.ufunc) -> Op:
    return Op(
        f"{name}(self, *, dim)",
        grad_fn=grad_fn,
        formula=f"{name[3:]} of self up to each element along dim",
        forward=all_in_rows(_running(best)),
        rules=(
            Rule(
                "self",
                "sum of g at indices",
                lambda g, self, indices, dim: scatter_along(g, indices, size=self.shape, dim=dim) if self.shape else g,
            ),
        ),
        outputs=("values", "indices"),
        differentiable_outputs=1,
        named=True,
        public=False,
        torch=name,
        examples=lambda: [Example((spaced(2, 3),), {"dim": d}) for d in (0, 1)],
    )


cummax = _cumulative_extreme("cummax", "CummaxBackward0", np.maximum)
cummin = _cumulative_extreme("cummin", "CumminBackward0", np.minimum)


def derive_cumulative(op: Op) -> None:
    """Makes an op along a dimension, with an optional `dtype`, public as function, method and in-place method."""

    def run(runner: Runner, self: Tensor, dim: int, dtype: DType | None) -> Tensor:
        attrs = {"dim": one_dim(dim, checked(op, self, 1).ndim)}
        result: Tensor = runner(op, (self,), attrs | ({} if dtype is None else {"dtype": name_of(dtype, self)}))
        return result

    def function(input: Tensor, dim: int, *, dtype: DType | None = None) -> Tensor:
        return run(apply, input, dim, dtype)

    def method(self: Tensor, dim: int, *, dtype: DType | None = None) -> Tensor:
        own = None if self.dtype.is_floating_point else self.dtype  # integers are not made wider, as they are elsewhere
        return run(apply_in_place, self, dim, dtype or own)

    function.__name__ = function.__qualname__ = op.name
    method.__name__ = method.__qualname__ = op.name + "_"
    front(op.name)(numpy_names(function))
    front(op.name + "_", function=False)(numpy_names(method))


derive_cumulative(cumsum_op)


@front("logcumsumexp")
def logcumsumexp(input: Tensor, dim: int) -> Tensor:
    """The logarithm of the cumulative sum of exponentials along `dim`."""
    result: Tensor = logcumsumexp_op(checked(logcumsumexp_op, input, 1), dim=one_dim(dim, input.ndim))
    return result


def _dim_of_extreme(name: str, dim: int, input: Tensor) -> int:
    if not input.ndim and dim not in (-1, 0):
        raise IndexError(f"{name}(): Expected reduction dim -1 or 0 for scalar but got {dim}")
    if not input.numel():
        return 0  # PyTorch looks at no dimension, and has nothing to compare
    return one_dim(dim, input.ndim)


@front("cummax")
def cummax_front(input: Tensor, dim: int) -> Any:
    """The cumulative maximum along `dim`, and its index."""
    return cummax(checked(cummax, input, 1), dim=_dim_of_extreme("cummax", dim, input))


@front("cummin")
def cummin_front(input: Tensor, dim: int) -> Any:
    """The cumulative minimum along `dim`, and its index."""
    return cummin(checked(cummin, input, 1), dim=_dim_of_extreme("cummin", dim, input))


@front("diff")
def diff(
    input: Tensor, n: int = 1, dim: int = -1, prepend: Tensor | None = None, append: Tensor | None = None
) -> Tensor:
    """The `n`-th differences of neighbours along `dim`."""
    if not input.ndim:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    for extra in (prepend, append):
        if extra is not None and extra.ndim != input.ndim:
            raise RuntimeError("diff expects prepend or append to be the same dimension as input")
    around = [t for t in (prepend, input, append) if t is not None]
    result = cat(around, dim) if len(around) > 1 else input
    if n == 0:
        return copy_(input.detach().clone(), input) if len(around) == 1 else result
    axis = one_dim(dim, input.ndim)
    for _ in range(min(n, result.shape[axis])):
        size = max(result.shape[axis] - 1, 0)
        last, first = result.narrow(axis, min(1, size + 1), size), result.narrow(axis, 0, size)
        result = last.logical_xor(first) if input._array.dtype.kind == "b" else last - first
    return result


# ----------------------------------------------------------------------------------------------------------------------
# Products of all elements, along a dimension, and cumulative.


def _wide(self: Array, dtype: str | None) -> Array:
    """`self` in the dtype in which products are computed: int64 for integers."""
    self = in_dtype(self, dtype)
    return self if dtype is not None or self.dtype.kind == "f" else self.astype(np.int64)


def _prod(self: Array, dim: int | None = None, keepdim: Any = False, dtype: str | None = None) -> Any:
    wide = _wide(self, dtype)
    return np.multiply.reduce(wide, axis=dim if wide.ndim else None, keepdims=keepdim, dtype=wide.dtype)


def _cumprod(self: Array, dim: int, dtype: str | None = None) -> Any:
    wide = _wide(self, dtype)
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


@front("prod")
@numpy_names
def prod_front(input: Tensor, dim: int | None = None, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
    """The product of all elements, or along `dim`."""
    if dim is None:
        return applied(prod_all, checked(prod_all, input, 1), dtype=name_of(dtype, input))
    axis = one_dim(dim, checked(prod_dim, input, 1).ndim)
    return applied(prod_dim, input, dim=axis, keepdim=keepdim, dtype=name_of(dtype, input))


# ----------------------------------------------------------------------------------------------------------------------
# Integrals of sampled curves.


def _neighbours(y: Tensor, axis: int) -> tuple[Tensor, Tensor]:
    """Return all but the last element along `axis`, and all but the first."""
    size = y.shape[axis]
    return sliced(y, axis, 0, max(size - 1, 0)), sliced(y, axis, min(1, size), size)


@front("trapezoid", "trapz", method=False)
def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Number | None = None, dim: int = -1) -> Tensor:
    """The integral of `y`, sampled at `x` or with spacing `dx`, by the trapezoidal rule."""
    axis = _axis(y, dim)
    if not y.shape[axis]:
        return count_writes(y.detach().sum(axis).to(y.dtype), 1)
    if y.dtype is bool_ or (x is not None and x.dtype is bool_):
        names = "`y`" if x is None else "`x` or `y`"
        raise RuntimeError(f"trapezoid: received a bool input for {names}, but bool is not supported")
    if x is None:
        whole = y.sum(axis) - run(times_number, y.select(axis, 0) + y.select(axis, -1), other=0.5)
        return run(times_number, whole, other=float(1 if dx is None else dx))
    left, right = _neighbours(y, axis)
    return run(over_number, ((left + right) * _steps(x, y, axis)).sum(axis), other=2.0)


@front("cumulative_trapezoid", method=False)
def cumulative_trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Number | None = None, dim: int = -1) -> Tensor:
    """The integral of `y` up to each of its samples but the first."""
    if not y.ndim:
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
    axis = _axis(y, dim)
    if y.dtype is bool_ or (x is not None and x.dtype is bool_):
        names = "`y`" if x is None else "`x` or `y`"
        raise RuntimeError(f"cumulative_trapezoid: received a bool input for {names}, but bool is not supported")
    left, right = _neighbours(y, axis)
    if x is None:
        return run(times_number, left + right, other=float(1 if dx is None else dx) / 2).cumsum(axis)
    return run(over_number, ((left + right) * _steps(x, y, axis)).cumsum(axis), other=2.0)


def _steps(x: Tensor, y: Tensor, axis: int) -> Tensor:
    if x.ndim == 1 and y.ndim > 1:
        if x.shape[0] != y.shape[axis]:
            raise RuntimeError("trapezoid: There must be one `x` value for each sample point")
        x = x.reshape([-1 if d == axis else 1 for d in range(y.ndim)])
    elif x.ndim < y.ndim:
        x = x.reshape([1] * (y.ndim - x.ndim) + list(x.shape))
    before, after = _neighbours(x, axis if x.ndim == y.ndim else one_dim(-1, x.ndim))
    return after - before


def _axis(y: Tensor, dim: int) -> int:
    if not y.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return one_dim(dim, y.ndim)

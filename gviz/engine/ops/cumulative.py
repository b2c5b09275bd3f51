"""Results for each place along a dimension: cumulative sums, extremes and logsumexp; differences and integrals."""

from __future__ import annotations

from typing import Any

import numpy as np

from gviz.engine.dtypes import bool_
from gviz.engine.dtypes import dtype as DType
from gviz.engine.functions_and_methods import Number, Runner, checked, front
from gviz.engine.op import Example, Op, Rule, apply, zeros
from gviz.engine.ops._examples import normal, spaced
from gviz.engine.ops._kernels import all_in_rows, in_rows, only, refuse_unless
from gviz.engine.ops._reduction_arguments import in_wide_dtype, name_of, numpy_names
from gviz.engine.ops.arithmetic import over_number, times_number
from gviz.engine.ops.comparison import where_op
from gviz.engine.ops.copying import copy_
from gviz.engine.ops.elementary_functions import exp
from gviz.engine.ops.gathering import scatter_along
from gviz.engine.ops.indexing import sliced
from gviz.engine.ops.joining import cat
from gviz.engine.ops.shape import one_dim, run
from gviz.engine.tensor import Tensor, count_writes, new_tensor
from gviz.engine.views import apply_in_place
from gviz.values.value import Array

# ----------------------------------------------------------------------------------------------------------------------
# Cumulative sums, extremes and logsumexp along a dimension; and differences.


def _cumsum(self: Array, dim: int, dtype: str | None = None) -> Any:
    wide = in_wide_dtype(self, dtype)
    refuse_unless(wide.dtype.kind != "b", "cumsum_out_cpu", wide)
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

"""What has come so far along a dimension: sums, extremes, logarithms of sums; and differences."""

from __future__ import annotations

from typing import Any

import numpy as np

from gviz.engine.apply import apply, zeros
from gviz.engine.dtypes import dtype as DType
from gviz.engine.op import Example, Op, Rule
from gviz.engine.ops.comparison import where_op
from gviz.engine.ops.dims import numpy_names, one_dim
from gviz.engine.ops.examples import normal, spaced
from gviz.engine.ops.exponential import exp
from gviz.engine.ops.gathering import scatter_along
from gviz.engine.ops.joining import cat
from gviz.engine.ops.kernels import all_in_rows, in_rows, only
from gviz.engine.ops.memory import copy_
from gviz.engine.ops.reduction import in_dtype, name_of
from gviz.engine.surface import Runner, checked, front
from gviz.engine.tensor import Tensor, new_tensor
from gviz.engine.views import apply_in_place
from gviz.values import Array


def _cumsum(self: Array, dim: int, dtype: str | None = None) -> Any:
    self = in_dtype(self, dtype)
    wide = self if dtype is not None or self.dtype.kind == "f" else self.astype(np.int64)
    return np.add.accumulate(wide, axis=dim, dtype=wide.dtype) if wide.ndim else wide.copy()


def _from_end(self: Array, dim: int) -> Any:
    return np.ascontiguousarray(np.flip(_cumsum(np.flip(self, dim), dim), dim)) if self.ndim else self.copy()


def _along() -> list[Example]:
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
    examples=_along,
)
from_end: Op = Op(
    "cumsum_from_end(self, *, dim)",
    grad_fn="FlipBackward0",
    formula="sum of self from each element on along dim",
    forward=_from_end,
    rules=(Rule("self", "sum of g up to each element", lambda g, dim: cumsum_op(g, dim=dim)),),
    public=False,
    examples=_along,
)


def _logcumsumexp(self: Array, dim: int) -> Any:
    return np.logaddexp.accumulate(self, axis=dim) if self.ndim else self.copy()


def _through_logcumsumexp(g: Any, self: Any, result: Any, dim: int) -> Any:
    """The sums of g * exp(self - result) from each element on."""
    if not self.shape:
        return g * exp(self - result)
    if isinstance(g, Tensor):
        return _through_pairs(g, self, result, dim)
    with np.errstate(all="ignore"):  # as logarithms, those of both signs apart
        return np.exp(_summed_logs(np.log(g), result, dim) + self) - np.exp(
            _summed_logs(np.log(-g), result, dim) + self
        )


def _summed_logs(logs: Array, result: Array, dim: int) -> Array:
    known = np.where(np.isnan(logs), -np.inf, logs).astype(logs.dtype) - result
    summed: Array = np.flip(_logcumsumexp(np.flip(known, dim), dim), dim)
    return summed


def _through_pairs(g: Tensor, self: Tensor, result: Tensor, dim: int) -> Any:
    """As above, differentiable again: each element beside each result that it is part of."""
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
    examples=_along,
)


def _running(best: Any) -> Any:
    """The best so far and where it was: the last of equals; what is no number stays the best."""

    def forward(self: Array, dim: int) -> tuple[Array, Array]:
        if not self.ndim:
            return self.copy(), np.zeros((), np.int64)
        values = best.accumulate(self, axis=dim)
        shape = [1] * self.ndim
        shape[dim] = self.shape[dim]
        places = np.arange(self.shape[dim]).reshape(shape)
        found = (self == values) | (self != self)
        return values, np.maximum.accumulate(np.where(found, places, 0), axis=dim)

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
    """Offer an op along a dimension, with an optional `dtype`, as function, method and in place."""

    def run(runner: Runner, self: Tensor, dim: int, dtype: DType | None) -> Tensor:
        attrs = {"dim": one_dim(dim, checked(op, self, 1).ndim)}
        result: Tensor = runner(op, (self,), attrs | ({} if dtype is None else {"dtype": name_of(dtype, self)}))
        return result

    def function(input: Tensor, dim: int, *, dtype: DType | None = None) -> Tensor:
        return run(apply, input, dim, dtype)

    def method(self: Tensor, dim: int, *, dtype: DType | None = None) -> Tensor:
        return run(apply_in_place, self, dim, dtype)

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


@front("cummax")
def cummax_front(input: Tensor, dim: int) -> Any:
    """The largest element so far along `dim`, and where it was."""
    return cummax(checked(cummax, input, 1), dim=one_dim(dim, input.ndim))


@front("cummin")
def cummin_front(input: Tensor, dim: int) -> Any:
    """The smallest element so far along `dim`, and where it was."""
    return cummin(checked(cummin, input, 1), dim=one_dim(dim, input.ndim))


@front("diff")
def diff(
    input: Tensor, n: int = 1, dim: int = -1, prepend: Tensor | None = None, append: Tensor | None = None
) -> Tensor:
    """The differences of neighbours along `dim`, `n` times over."""
    if not input.ndim:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    for beside in (prepend, append):
        if beside is not None and beside.ndim != input.ndim:
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

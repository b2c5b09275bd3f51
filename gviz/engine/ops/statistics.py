"""Variance, standard deviation, covariance and correlation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from gviz.engine import dtypes, messages
from gviz.engine.functions_and_methods import Number, checked, front
from gviz.engine.op import Example, Op, Rule, apply, zeros
from gviz.engine.ops._examples import normal
from gviz.engine.ops._kernels import all_in_rows, in_rows
from gviz.engine.ops._reduction_arguments import Dims, Shape, all_dims, kept, numpy_names, reduced_dims, spread
from gviz.engine.ops.comparison import where_op
from gviz.engine.ops.reductions import mean_dim
from gviz.engine.tensor import Tensor, new_tensor
from gviz.source.call_stack import warn
from gviz.values.value import Array

# ----------------------------------------------------------------------------------------------------------------------
# Variances and standard deviations.


def _freedom(self: Any, dim: Shape, correction: Number | None) -> Number:
    size: int = prod([self.shape[d] for d in dim])
    return size - (1 if correction is None else correction)


def _var(self: Array, dim: Shape | None, correction: Number | None, keepdim: Any) -> Any:
    dims = all_dims(self, dim or None)
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
    dims = all_dims(self, dim or None)
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
    dims = all_dims(self, dim or None)
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
        dims = all_dims(self, attrs["dim"] or None)
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
# Covariance and correlation of the rows of a matrix.


def _check_rows(name: str, input: Tensor) -> None:
    if input.ndim > 2:
        raise RuntimeError(
            f"{name}(): expected input to have two or fewer dimensions but got an input with {input.ndim} dimensions"
        )


@front("cov")
def cov(
    input: Tensor, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None
) -> Tensor:
    """The covariance matrix of the rows of `input`."""
    _check_rows("cov", input)
    if input.dtype is dtypes.bool_:
        raise RuntimeError("cov(): bool dtype is not supported for input")
    if fweights is not None or aweights is not None:
        raise RuntimeError("gviz's built-in engine has no weights for cov()")
    rows = input if input.ndim == 2 else input.view(1, -1)
    if not rows.dtype.is_floating_point:
        rows = rows.to(dtypes.get_default_dtype())
    count = new_tensor(np.array(rows.shape[1]))
    if rows.shape[1] <= correction:
        warn(messages.COV_FREEDOM)
    centered = rows - (rows.sum(1) / count).unsqueeze(1)
    freedom = (count - correction).clamp(min=0)
    result: Tensor = (centered.mm(centered.t()) / freedom).squeeze()
    return result


@front("corrcoef")
def corrcoef(input: Tensor) -> Tensor:
    """The correlation matrix of the rows of `input`, with values between -1 and 1."""
    _check_rows("corrcoef", input)
    together = cov(input)
    if not together.ndim:
        return together / together
    deviation = together.diagonal().sqrt()
    scaled = together / deviation.view(-1, 1) / deviation.view(1, -1)
    result: Tensor = scaled.clamp(-1, 1)
    return result

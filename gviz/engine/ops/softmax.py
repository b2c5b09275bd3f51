"""The softmax family: shares of the exponential along one dimension."""

from __future__ import annotations

from typing import Any

import numpy as np

from gviz.engine.dtypes import dtype as DType
from gviz.engine.op import Example, Op, Rule
from gviz.engine.ops.examples import normal
from gviz.engine.ops.exponential import exp
from gviz.engine.ops.kernels import in_rows, refuse_unless
from gviz.engine.ops.reduction import sum_dim
from gviz.engine.ops.shape import normal_dims, run
from gviz.engine.surface import checked, front
from gviz.engine.tensor import Tensor
from gviz.values import Array


def _check(self: Array, kernel: str, dim: int) -> None:
    last = "lastdim_" if dim == self.ndim - 1 or not self.ndim else ""
    refuse_unless(self.dtype.kind == "f", f"{kernel}_{last}kernel_impl", self)


def _above_largest(self: Array, dim: int) -> Any:
    """`self` less its largest along `dim`, so that no exponential overflows."""
    if not self.size:
        return self.copy()
    return self - self.max(axis=dim, keepdims=True) if self.ndim else self * 0


def _softmax(self: Array, dim: int) -> Any:
    _check(self, "softmax", dim)
    return _shares(_above_largest(self, dim), dim)


def _shares(shifted: Any, dim: int) -> Any:
    if not shifted.ndim:
        return np.exp(shifted)
    np.exp(shifted, out=shifted)
    shifted /= np.add.reduce(shifted, axis=dim, keepdims=True)
    return shifted


def _safe_softmax(self: Array, dim: int) -> Any:
    if not self.size:
        return self.copy()
    largest = self.max(axis=dim, keepdims=True)
    shares = _shares(self - largest, dim)
    empty = largest == -np.inf
    return np.where(empty, np.zeros((), self.dtype), shares) if empty.any() else shares


def _log_softmax(self: Array, dim: int) -> Any:
    _check(self, "log_softmax", dim)
    shifted = _above_largest(self, dim)
    if not self.ndim:
        return shifted
    shifted -= np.log(np.add.reduce(np.exp(shifted), axis=dim, keepdims=True))
    return shifted


def _over(tensor: Any, dim: int) -> Any:
    return sum_dim(tensor, dim=(dim,), keepdim=True) if tensor.ndim else tensor


def _through_softmax(g: Any, result: Any, dim: int) -> Any:
    weighted = g * result
    return weighted - result * _over(weighted, dim)


def _examples() -> list[Example]:
    return [*[Example((normal(2, 3),), {"dim": dim}) for dim in (0, 1)], Example((normal(),), {"dim": 0})]


softmax: Op = Op(
    "softmax(self, *, dim)",
    grad_fn="SoftmaxBackward0",
    formula="exp(self) / sum of exp(self) over dim",
    forward=in_rows(_softmax),
    rules=(Rule("self", "result * (g - sum of g * result over dim)", _through_softmax),),
    public=False,
    torch="softmax",
    examples=_examples,
)
safe_softmax: Op = Op(
    "_safe_softmax(self, *, dim)",
    grad_fn="SafeSoftmaxBackward0",
    formula="exp(self) / sum of exp(self) over dim, 0 where all are -inf",
    forward=in_rows(_safe_softmax),
    rules=softmax.rules,
    public=False,
    examples=lambda: _examples()[:2],
)
log_softmax: Op = Op(
    "log_softmax(self, *, dim)",
    grad_fn="LogSoftmaxBackward0",
    formula="self - log of the sum of exp(self) over dim",
    forward=in_rows(_log_softmax),
    rules=(
        Rule(
            "self",
            "g - exp(result) * sum of g over dim",
            lambda g, result, dim: g - exp(result) * _over(g, dim),
        ),
    ),
    public=False,
    torch="log_softmax",
    examples=_examples,
)


@front("softmax")
def softmax_front(input: Tensor, dim: int, dtype: DType | None = None) -> Tensor:
    """Shares of `dim` that add up to 1, each in proportion to the exponential of `input`."""
    return _along(softmax, input, dim, dtype)


@front("log_softmax")
def log_softmax_front(input: Tensor, dim: int, dtype: DType | None = None) -> Tensor:
    """The logarithm of `softmax`, computed in one."""
    return _along(log_softmax, input, dim, dtype)


def _along(op: Op, input: Tensor, dim: int, dtype: DType | None) -> Tensor:
    tensor = checked(op, input, 1) if dtype is None else checked(op, input, 1).to(dtype)
    return run(op, tensor, dim=normal_dims(dim, tensor.ndim)[0])

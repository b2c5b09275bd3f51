"""Whether all or any elements hold, and how many do."""

from __future__ import annotations

from typing import Any

import numpy as np

from gviz.engine.apply import apply
from gviz.engine.op import Op
from gviz.engine.ops.dims import Dims, numpy_names, reduced_dims
from gviz.engine.ops.kernels import in_rows
from gviz.engine.surface import checked, front
from gviz.engine.tensor import Tensor
from gviz.values import Array


def _holds(name: str, ufunc: np.ufunc, formula: str) -> Op:
    def forward(self: Array, dim: Any, keepdim: bool) -> Any:
        truth = ufunc.reduce(self != 0, axis=dim, keepdims=keepdim)
        return np.asarray(truth).astype(np.uint8) if self.dtype == np.uint8 else truth  # as PyTorch has it

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
    """Whether all elements hold, or all along `dim`."""
    return _asked(all_op, input, dim, keepdim)


@front("any")
@numpy_names
def any_front(input: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """Whether any element holds, or any along `dim`."""
    return _asked(any_op, input, dim, keepdim)


@front("count_nonzero")
@numpy_names
def count_nonzero(input: Tensor, dim: Dims = None) -> Tensor:
    """How many elements are not 0, of all or along `dim`."""
    result: Tensor = apply(count_op, (checked(count_op, input, 1),), {"dim": _dims(input, dim)})
    return result


def _asked(op: Op, input: Tensor, dim: Dims, keepdim: bool) -> Tensor:
    attrs = {"dim": _dims(checked(op, input, 1), dim), "keepdim": keepdim}
    result: Tensor = apply(op, (input,), attrs)
    return result


def _dims(input: Tensor, dim: Dims) -> tuple[int, ...] | None:
    return None if dim is None else reduced_dims(dim, input.ndim)

"""The cross product, and how variables vary together."""

from __future__ import annotations

from typing import Any

import numpy as np

from gviz.engine import dtypes, messages
from gviz.engine.apply import apply
from gviz.engine.op import Example, Op, Rule
from gviz.engine.ops.dims import one_dim
from gviz.engine.ops.examples import normal
from gviz.engine.ops.kernels import check_broadcast, refuse_unless
from gviz.engine.surface import checked, front
from gviz.engine.tensor import Tensor, new_tensor
from gviz.values import Array


def _cross(self: Array, other: Array, dim: int) -> Any:
    if self.dtype != other.dtype:
        names = [dtypes.of(a).tensor_type for a in (self, other)]
        refuse_unless(self.dtype.kind != "b", "cross", self)
        raise RuntimeError(f"expected scalar type {names[0]} but found {names[1]}")
    refuse_unless(self.dtype.kind != "b", "cross", self)
    a, b = (np.moveaxis(array, dim, 0) for array in np.broadcast_arrays(self, other))
    parts = [a[(i + 1) % 3] * b[(i + 2) % 3] - a[(i + 2) % 3] * b[(i + 1) % 3] for i in range(3)]
    return np.stack(parts, dim)


cross_op: Op = Op(
    "cross(self, other, *, dim)",
    grad_fn="LinalgCrossBackward0",
    formula="cross product of self and other along dim",
    forward=_cross,
    rules=(
        Rule("self", "cross(other, g)", lambda g, other, dim: cross_op(other, g, dim=dim)),
        Rule("other", "cross(g, self)", lambda g, self, dim: cross_op(g, self, dim=dim)),
    ),
    public=False,
    torch="cross",
    examples=lambda: [
        Example((normal(2, 3), normal(2, 3)), {"dim": 1}),
        Example((normal(3, 2), normal(3, 1)), {"dim": 0}),
    ],
)


def linalg_cross(input: Tensor, other: Tensor, *, dim: int = -1) -> Tensor:
    """The cross product of the vectors of three along `dim`."""
    if checked(cross_op, input, 1).ndim != checked(cross_op, other, 2).ndim:
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    axis = one_dim(dim, input.ndim)
    if not input.ndim or not input.shape[axis] == other.shape[axis] == 3:
        sizes = [t.shape[axis] if t.ndim else 1 for t in (input, other)]
        raise RuntimeError(f"linalg.cross: inputs dimension {dim} must have length 3. Got {sizes[0]} and {sizes[1]}")
    check_broadcast(input._array, other._array)
    result: Tensor = apply(cross_op, (input, other), {"dim": axis})
    return result


@front("cross")
def cross(input: Tensor, other: Tensor, dim: int | None = None) -> Tensor:
    """The cross product of the vectors of three along `dim`, or along the first dimension of size 3."""
    if dim is not None:
        return linalg_cross(input, other, dim=dim)
    for axis, size in enumerate(checked(cross_op, input, 1).shape):
        if size == 3:
            messages.warn_once(messages.CROSS)
            return linalg_cross(input, checked(cross_op, other, 2), dim=axis)
    raise RuntimeError("no dimension of size 3 in input")


@front("cov")
def cov(
    input: Tensor, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None
) -> Tensor:
    """How much each row of `input` varies with each other."""
    if input.ndim > 2:
        raise RuntimeError(
            f"cov(): expected input to have two or fewer dimensions but got an input with {input.ndim} dimensions"
        )
    if input.dtype is dtypes.bool_:
        raise RuntimeError("cov(): bool dtype is not supported for input")
    if fweights is not None or aweights is not None:
        raise RuntimeError("gviz's built-in engine has no weights for cov()")
    rows = input if input.ndim == 2 else input.view(1, -1)
    if not rows.dtype.is_floating_point:
        rows = rows.to(dtypes.get_default_dtype())
    count = new_tensor(np.array(rows.shape[1]))
    if rows.shape[1] <= correction:
        messages.warn_once(messages.COV_FREEDOM)
    centered = rows - (rows.sum(1) / count).unsqueeze(1)
    freedom = (count - correction).clamp(min=0)
    result: Tensor = (centered.mm(centered.t()) / freedom).squeeze()
    return result


@front("corrcoef")
def corrcoef(input: Tensor) -> Tensor:
    """How much each row of `input` correlates with each other, between -1 and 1."""
    together = cov(input)
    if not together.ndim:
        return together / together
    deviation = together.diagonal().sqrt()
    scaled = together / deviation.view(-1, 1) / deviation.view(1, -1)
    result: Tensor = scaled.clamp(-1, 1)
    return result

"""Sums whose second operand is scaled: ``add(alpha=)`` and its relatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gviz.engine.blocks import scratch
from gviz.engine.dtypes import promote
from gviz.engine.op import Example, Op, Rule
from gviz.engine.ops.examples import normal
from gviz.engine.surface import Number
from gviz.engine.tensor import Tensor
from gviz.values import Array


def _scaled_op(name: str, grad_fn: str, formula: str, forward: Callable[..., Any], sign: int) -> Op:
    rule = "g * alpha" if sign > 0 else "-g * alpha"
    return Op(
        f"{name}(self, other, *, alpha)",
        grad_fn=grad_fn,
        formula=formula,
        forward=forward,
        write_block=lambda self, other, alpha: _plus_block(self, other, sign * alpha),
        rules=(
            Rule("self", "g", lambda g: g),
            Rule("other", rule, lambda g, alpha: g * (alpha if sign > 0 else -alpha)),
        ),
        promotes=True,
        in_place=True,
        public=False,
        torch=name,
        examples=lambda: [Example((normal(2, 3), normal(3)), {"alpha": 2.5})],
    )


add_scaled = _scaled_op(
    "add", "AddBackward0", "self + alpha * other", lambda self, other, alpha: _plus(self, other, alpha), 1
)
sub_scaled = _scaled_op(
    "sub", "SubBackward0", "self - alpha * other", lambda self, other, alpha: _plus(self, other, -alpha), -1
)


def _rsub_scaled(grad_fn: str, *rules: Rule) -> Op:
    return Op(
        "rsub(self, other, *, alpha)",
        grad_fn=grad_fn,
        formula="other - alpha * self",
        forward=lambda self, other, alpha: _plus(other, self, -alpha),
        rules=(Rule("self", "-g * alpha", lambda g, alpha: -g * alpha), *rules),
        promotes=True,
        public=False,
        examples=lambda: [Example((normal(2, 3), normal(3)), {"alpha": 2.5})],
    )


rsub_scaled = _rsub_scaled("RsubBackward0", Rule("other", "g", lambda g: g))
rsub_number_scaled = _rsub_scaled("RsubBackward1")


def _plus(self: Array, other: Array, alpha: Number) -> Array:
    """`self` + `alpha` * `other`, rounded once, as the fused instruction PyTorch uses."""
    if self.dtype.kind != "f":
        whole: Array = np.add(self, np.multiply(self.dtype.type(alpha), other))
        return whole
    if self.dtype == np.float64:
        return _fused(self, other, alpha)
    # Converting first is faster than `dtype=np.float64`, for which numpy goes through buffers of its own.
    wide = np.multiply(other.astype(np.float64), float(self.dtype.type(alpha)))
    return np.add(self.astype(np.float64), wide).astype(self.dtype)


def _plus_block(self: Array, other: Array, alpha: Number) -> None:
    if self.dtype == np.float64:
        self[...] = _fused(self, other, alpha)
        return
    wide, own = scratch(self.size, np.float64)
    np.copyto(wide, other)
    np.multiply(wide, float(self.dtype.type(alpha)), out=wide)
    np.copyto(own, self)
    np.add(own, wide, out=own)
    np.copyto(self, own, casting="same_kind")


def _fused(self: Array, other: Array, alpha: Number) -> Array:
    """As above in float64: the error of the product, exact after Dekker, is added to the sum with the sum's own."""
    product = other * alpha
    high, rest = _halves(other)
    high_alpha, rest_alpha = _halves(np.float64(alpha))
    lost = ((high * high_alpha - product) + high * rest_alpha + rest * high_alpha) + rest * rest_alpha
    total = self + product
    back = total - self
    missed = (self - (total - back)) + (product - back) + lost
    exact: Array = np.where(np.isfinite(missed), total + missed, total)
    return exact


def _halves(value: Any) -> tuple[Any, Any]:
    """A float64 as the sum of two of half the digits each (Veltkamp's splitting)."""
    shifted = value * 134217729.0  # 2**27 + 1
    high = shifted - (shifted - value)
    return high, value - high


def check_alpha(op: Op, operands: Sequence[Tensor], alpha: object) -> None:
    """TypeError or RuntimeError, in PyTorch's words, for an alpha that does not fit the operands."""
    if not isinstance(alpha, (bool, int, float, np.number)):
        raise TypeError(f"{op.name}(): argument 'alpha' must be Number, not {type(alpha).__name__}")
    kind = promote([t._array for t in operands]).kind
    if isinstance(alpha, bool) and kind != "b":
        raise RuntimeError("Boolean alpha only supported for Boolean results.")
    if isinstance(alpha, float) and kind != "f":
        raise RuntimeError("For integral input tensors, argument alpha must not be a floating point number.")

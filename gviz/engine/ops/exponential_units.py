"""Exponential linear units, out of place and written in place."""

from __future__ import annotations

from typing import Any

import numpy as np

from gviz.engine.apply import zeros
from gviz.engine.op import Example, Op, Rule
from gviz.engine.ops.activations import NEGATIVE_SLOPE
from gviz.engine.ops.comparison import where_op
from gviz.engine.ops.examples import spaced
from gviz.engine.ops.exponential import exp
from gviz.engine.ops.kernels import only
from gviz.values import Array


def _negative(self: Any) -> Any:
    """`self` where it is negative, else zero: its exponential is finite, and at 0 it has no slope, as in PyTorch."""
    return where_op(self < 0, self, zeros(self, ()))


def _elu(self: Array, alpha: float, scale: float, input_scale: float) -> Any:
    below = np.expm1(np.minimum(self, 0) * input_scale) * (alpha * scale)
    return np.where(self <= 0, below, self * scale)


def _through_elu(g: Any, self: Any, alpha: float, scale: float, input_scale: float) -> Any:
    slope = exp(_negative(self) * input_scale) * (input_scale * alpha * scale)
    return where_op(self <= 0, g * slope, g * scale)


def _through_written_elu(g: Any, result: Any, alpha: float, scale: float, input_scale: float) -> Any:
    if alpha < 0:
        raise RuntimeError(NEGATIVE_SLOPE.format(name="elu") + ".")
    return where_op(result <= 0, g * ((_negative(result) + alpha * scale) * input_scale), g * scale)


def _rounded_inverse(alpha: float) -> float:
    """1 / `alpha` rounded to float32, as PyTorch's formula of celu has it for every dtype."""
    return 1 / float(np.float32(alpha))


ELU_FORMULA = "scale * self, alpha * scale * (exp(input_scale * self) - 1) below 0"


_elu_examples = [(1.0, 1, 1), (0.7, 1.05, 1.0)]


elu: Op = Op(
    "elu(self, *, alpha=1.0, scale=1, input_scale=1)",
    grad_fn="EluBackward0",
    formula=ELU_FORMULA,
    forward=only("f", "elu_cpu", _elu),
    rules=(Rule("self", "g * scale, g * alpha * scale * input_scale * exp(input_scale * self) below 0", _through_elu),),
    public=False,
    examples=lambda: [
        Example((spaced(2, 3),), {"alpha": a, "scale": s, "input_scale": i}) for a, s, i in _elu_examples
    ],
)


elu_written: Op = Op(
    "elu(self, *, alpha=1.0, scale=1, input_scale=1)",
    grad_fn="EluBackward1",
    formula=ELU_FORMULA,
    forward=elu.forward,
    rules=(Rule("self", "g * scale, g * input_scale * (result + alpha * scale) below 0", _through_written_elu),),
    in_place=True,
    public=False,
    examples=elu.examples,
)


celu: Op = Op(
    "celu(self, *, alpha=1.0)",
    grad_fn="CeluBackward0",
    formula="self, alpha * (exp(self / alpha) - 1) below 0",
    forward=lambda self, alpha: elu.forward(self, alpha, 1, 1 / alpha),
    rules=(
        Rule(
            "self",
            "g, g * exp(self / alpha) below 0",
            lambda g, self, alpha: _through_elu(g, self, alpha, 1, _rounded_inverse(alpha)),
        ),
    ),
    public=False,
    torch="celu",
    examples=lambda: [Example((spaced(2, 3),), {"alpha": alpha}) for alpha in (1.0, 0.7)],
)


celu_written: Op = Op(
    "celu(self, *, alpha=1.0)",
    grad_fn="CeluBackward1",
    formula=celu.formula,
    forward=celu.forward,
    rules=(
        Rule(
            "self",
            "g, g * (result / alpha + 1) below 0",
            lambda g, result, alpha: _through_written_elu(g, result, alpha, 1, _rounded_inverse(alpha)),
        ),
    ),
    in_place=True,
    public=False,
    examples=celu.examples,
)

"""Smooth activations: gelu, silu, softplus and others. Those made of other operations are in ``nn.functional``."""

from __future__ import annotations

from math import pi, sqrt
from typing import Any

import numpy as np

from gviz.engine.apply import zeros
from gviz.engine.op import Example, Op, Rule
from gviz.engine.ops.comparison import where_op
from gviz.engine.ops.examples import normal, spaced
from gviz.engine.ops.exponential import exp, sigmoid
from gviz.engine.ops.joining import cat_op
from gviz.engine.ops.kernels import in_rows, only
from gviz.engine.ops.selecting import narrow
from gviz.engine.ops.special import erf
from gviz.engine.ops.trigonometric import tanh
from gviz.engine.ops.unary import on
from gviz.values import Array

KAPPA, CUBE = sqrt(2 / pi), 0.044715
"""The constants of gelu's approximation by tanh."""


def _gelu(self: Array, approximate: str) -> Any:
    if approximate == "tanh":
        return 0.5 * self * (1 + np.tanh(KAPPA * (self + CUBE * (self * self * self))))
    return self * _normal_cdf(self)


def _normal_cdf(self: Any) -> Any:
    """How probable a standard normal number below `self` is."""
    scaled = self * sqrt(0.5)
    bent = _erf(scaled) if isinstance(self, np.ndarray) and self.dtype == np.float32 else erf(scaled)
    return 0.5 * (1 + bent)


ODD = (-2.72614225801306e-10, 2.77068142495902e-08, -2.10102402082508e-06, -5.69250639462346e-05,
       -7.34990630326855e-04, -2.95459980854025e-03, -1.60960333262415e-02)  # fmt: skip
EVEN = (-1.45660718464996e-05, -2.13374055278905e-04, -1.68282697438203e-03, -7.37332916720468e-03,
        -1.42647390514189e-02)  # fmt: skip
"""Coefficients of a quotient of polynomials that is erf between -4 and 4, to the last bits of float32."""


def _erf(self: Array) -> Array:
    """The error function in float32, several times as fast as scipy's."""
    clipped = np.clip(self, -4, 4)
    square = clipped * clipped
    result = _polynomial(square, ODD)
    result *= clipped
    result /= _polynomial(square, EVEN)
    return result


def _polynomial(square: Array, coefficients: tuple[float, ...]) -> Array:
    total = square * np.float32(coefficients[0])
    for coefficient in coefficients[1:-1]:
        total += np.float32(coefficient)
        total *= square
    total += np.float32(coefficients[-1])
    return total


def _through_gelu(g: Any, self: Any, approximate: str) -> Any:
    square = self * self
    if approximate == "tanh":
        bent = tanh(KAPPA * (self + CUBE * (square * self)))
        slope = (1 - bent * bent) * (KAPPA * (1 + 3 * CUBE * square))
        return g * (0.5 * (1 + bent) + 0.5 * self * slope)
    return g * (_normal_cdf(self) + self * (exp(-0.5 * square) * (1 / sqrt(2 * pi))))


gelu: Op = Op(
    "gelu(self, *, approximate='none')",
    grad_fn="GeluBackward0",
    formula="self * probability that a normal number is below self",
    pointwise=True,
    forward=only("f", "GeluKernelImpl", _gelu),
    rules=(Rule("self", "g * (cdf(self) + self * pdf(self))", _through_gelu),),
    public=False,
    torch="nn.functional.gelu",
    examples=lambda: [Example((normal(2, 3),), {"approximate": how}) for how in ("none", "tanh")],
)


silu: Op = Op(
    "silu(self)",
    grad_fn="SiluBackward0",
    formula="self * sigmoid(self)",
    pointwise=True,
    forward=only("f", "silu_cpu", lambda self: self / (1 + np.exp(-self))),
    rules=(
        Rule("self", "g * sigmoid(self) * (1 + self * (1 - sigmoid(self)))", lambda g, self: _through_silu(g, self)),
    ),
    in_place=True,
    public=False,
    torch="nn.functional.silu",
    examples=on(normal),
)


def _through_silu(g: Any, self: Any) -> Any:
    gate = sigmoid(self)
    return g * (gate * (1 + self * (1 - gate)))


def _mish(self: Array) -> Any:
    return self * np.tanh(np.logaddexp(self, np.zeros((), self.dtype)))


def _through_mish(g: Any, self: Any) -> Any:
    gate, bent = sigmoid(self), tanh(softplus(self, beta=1, threshold=20))
    return g * (bent + self * gate * (1 - bent * bent))


mish: Op = Op(
    "mish(self)",
    grad_fn="MishBackward0",
    formula="self * tanh(softplus(self))",
    pointwise=True,
    forward=only("f", "mish_cpu", _mish),
    rules=(Rule("self", "g * (tanh(softplus(self)) + self * derivative of tanh(softplus(self)))", _through_mish),),
    in_place=True,
    public=False,
    torch="nn.functional.mish",
    examples=on(normal),
)


def _softplus(self: Array, beta: float, threshold: float) -> Any:
    scaled = self * beta
    return np.where(scaled > threshold, self, np.log1p(np.exp(np.minimum(scaled, threshold))) / beta)


def _through_softplus(g: Any, self: Any, beta: float, threshold: float) -> Any:
    scaled = self * beta
    bent = where_op(scaled < threshold, scaled, zeros(self, ()) + threshold)  # at the threshold it counts as straight
    return where_op(scaled > threshold, g, g * sigmoid(bent))


softplus: Op = Op(
    "softplus(self, *, beta=1, threshold=20)",
    grad_fn="SoftplusBackward0",
    formula="log(1 + exp(beta * self)) / beta, self where beta * self is above threshold",
    pointwise=True,
    forward=only("f", "softplus_cpu", _softplus),
    rules=(Rule("self", "g * sigmoid(beta * self), g above threshold", _through_softplus),),
    public=False,
    torch="nn.functional.softplus",
    examples=lambda: [
        Example((normal(2, 3),), {"beta": 1, "threshold": 20}),
        Example((spaced(2, 3),), {"beta": 2.0, "threshold": 1.1}),
    ],
)


log_sigmoid: Op = Op(
    "logsigmoid(self)",
    grad_fn="LogSigmoidBackward0",
    formula="log(sigmoid(self))",
    forward=in_rows(only("f", "log_sigmoid_cpu", lambda self: np.minimum(self, 0) - np.log1p(np.exp(-np.abs(self))))),
    rules=(Rule("self", "g * sigmoid(-self)", lambda g, self: g * sigmoid(-self)),),
    public=False,
    torch="nn.functional.logsigmoid",
    examples=on(normal),
)


def _glu(self: Array, dim: int) -> Any:
    value, gate = np.split(self, 2, dim)
    return value * sigmoid(gate)


def _through_glu(g: Any, self: Any, dim: int) -> Any:
    dim, half = dim % self.ndim, self.shape[dim] // 2
    value, gate = (narrow(self, dim=dim, start=n, end=n + half, step=1) for n in (0, half))
    opened = sigmoid(gate)
    return cat_op(g * opened, g * value * (opened * (1 - opened)), dim=dim)


glu: Op = Op(
    "glu(self, *, dim=-1)",
    grad_fn="GluBackward0",
    formula="first half of self * sigmoid(second half)",
    forward=only("f", "glu_cpu", _glu),
    rules=(Rule("self", "g * sigmoid(second); g * first * sigmoid'(second)", _through_glu),),
    public=False,
    torch="nn.functional.glu",
    examples=lambda: [Example((normal(2, 4),), {"dim": dim}) for dim in (-1, 0)],
)

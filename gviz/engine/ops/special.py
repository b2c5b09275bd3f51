"""Error and gamma functions."""

from __future__ import annotations

from math import pi, sqrt
from typing import Any

import numpy as np

from gviz.engine.apply import apply
from gviz.engine.op import Example, Op, Rule
from gviz.engine.ops.examples import normal, positive, within
from gviz.engine.ops.exponential import exp
from gviz.engine.ops.kernels import scipy_special
from gviz.engine.ops.unary import on, smooth
from gviz.engine.surface import derive_all, front
from gviz.engine.tensor import Tensor
from gviz.engine.views import apply_in_place
from gviz.values import Array


def _bell(self: Any) -> Any:
    return 2 / sqrt(pi) * exp(-(self * self))


def _trigamma(self: Array) -> Any:
    """As PyTorch computes it: six steps of the recurrence, then the first terms of the series."""
    x = np.asarray(self, np.result_type(self, np.float32))
    mirrored = x < 0.5
    x = np.where(mirrored, 1 - x, x)
    total = np.zeros_like(x)
    for _ in range(6):
        total += 1 / (x * x)
        x = x + 1
    square = 1 / (x * x)
    total += (1 + 1 / (2 * x) + square * (1 / 6 - square * (1 / 30 - square * (1 / 42)))) / x
    sine = np.sin(pi * np.asarray(self))
    return np.where(mirrored, (pi * pi) / (sine * sine) - total, total).astype(self.dtype)


def _between(*shape: int) -> Array:
    return within(-0.9, 0.9, *shape)


erf: Op = smooth(
    "erf",
    "ErfBackward0",
    scipy_special("erf"),
    "g * 2 / sqrt(pi) * exp(-self**2)",
    lambda g, self: g * _bell(self),
    on(normal),
)
erfc: Op = smooth(
    "erfc",
    "ErfcBackward0",
    scipy_special("erfc"),
    "-g * 2 / sqrt(pi) * exp(-self**2)",
    lambda g, self: -g * _bell(self),
    on(normal),
)
erfinv: Op = smooth(
    "erfinv",
    "ErfinvBackward0",
    scipy_special("erfinv"),
    "g * sqrt(pi) / 2 * exp(erfinv(self)**2)",
    lambda g, self: g * (sqrt(pi) / 2 * exp(erfinv(self) * erfinv(self))),
    on(_between),
)
lgamma: Op = smooth(
    "lgamma",
    "LgammaBackward0",
    lambda self: np.where(np.isinf(self), np.abs(self), scipy_special("gammaln")(self)),
    "g * digamma(self)",
    lambda g, self: g * digamma(self),
    on(positive),
)
digamma: Op = smooth(
    "digamma",
    "DigammaBackward0",
    scipy_special("psi"),
    "g * polygamma(1, self)",
    lambda g, self: g * polygamma_op(self, n=1),
    on(positive),
)
polygamma_op: Op = Op(
    "polygamma(self, *, n)",
    grad_fn="PolygammaBackward0",
    formula="the n-th derivative of digamma(self)",
    forward=lambda self, n: _trigamma(self) if n == 1 else scipy_special("polygamma")(n, self),
    rules=(Rule("self", "g * polygamma(n + 1, self)", lambda g, self, n: g * polygamma_op(self, n=n + 1)),),
    promotes="float",
    in_place=True,
    public=False,
    examples=lambda: [Example((positive(2, 3),), {"n": n}) for n in (0, 1, 2)],
)

derive_all(erf, erfc, erfinv, lgamma, digamma)


@front("polygamma", method=False)
def polygamma(n: int, input: Tensor) -> Tensor:
    """The `n`-th derivative of `digamma`. RuntimeError for a negative `n`."""
    _check_order(n)
    result: Tensor = apply(polygamma_op, (input,), {"n": n})
    return result


@front("polygamma", function=False)
def polygamma_method(self: Tensor, n: int) -> Tensor:
    """The `n`-th derivative of `digamma`. RuntimeError for a negative `n`."""
    return polygamma(n, self)


@front("polygamma_", function=False)
def polygamma_in_place(self: Tensor, n: int) -> Tensor:
    """`polygamma`, written here."""
    _check_order(n)
    return apply_in_place(polygamma_op, (self,), {"n": n})


def _check_order(n: int) -> None:
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")

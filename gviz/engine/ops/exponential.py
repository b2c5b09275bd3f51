"""Exponentials and logarithms."""

from __future__ import annotations

from math import log as ln
from typing import Any

import numpy as np

from gviz.engine.apply import zeros
from gviz.engine.op import Example, Op, Rule
from gviz.engine.ops.comparison import where_op
from gviz.engine.ops.examples import normal, positive, within
from gviz.engine.ops.kernels import only
from gviz.engine.ops.overloads import Overloads
from gviz.engine.ops.unary import on, smooth
from gviz.engine.surface import derive_all
from gviz.values import Array

LN2, LN10 = ln(2), ln(10)

exp: Op = smooth("exp", "ExpBackward0", np.exp, "g * result", lambda g, result: g * result, on(normal))
exp2: Op = smooth("exp2", "Exp2Backward0", np.exp2, "g * result * ln 2", lambda g, result: g * result * LN2, on(normal))
expm1: Op = smooth(
    "expm1", "Expm1Backward0", np.expm1, "g * (result + 1)", lambda g, result: g * (result + 1), on(normal)
)
log: Op = smooth("log", "LogBackward0", np.log, "g / self", lambda g, self: g / self, on(positive))
log2: Op = smooth("log2", "Log2Backward0", np.log2, "g / (self * ln 2)", lambda g, self: g / (self * LN2), on(positive))
log10: Op = smooth(
    "log10", "Log10Backward0", np.log10, "g / (self * ln 10)", lambda g, self: g / (self * LN10), on(positive)
)
log1p: Op = smooth("log1p", "Log1PBackward0", np.log1p, "g / (self + 1)", lambda g, self: g / (self + 1), on(positive))


def _sigmoid(self: Array) -> Array:
    decay = np.exp(-np.abs(self))  # never overflows, on either side
    return np.where(self >= 0, 1 / (1 + decay), decay / (1 + decay)).astype(self.dtype, copy=False)


sigmoid: Op = Op(
    "sigmoid(self)",
    grad_fn="SigmoidBackward0",
    formula="1 / (1 + exp(-self))",
    forward=_sigmoid,
    rules=(Rule("self", "g * result * (1 - result)", lambda g, result: g * (result * (1 - result))),),
    promotes="float",
    in_place=True,
    examples=on(normal),
)


def _logit(self: Array, eps: float | None) -> Any:
    inside = self if eps is None else np.clip(self, eps, 1 - eps)
    return np.log(inside / (1 - inside))


def _through_logit(g: Any, self: Any, eps: float | None) -> Any:
    low, high, outside = (0.0, 1.0, zeros(g, ()) + float("nan")) if eps is None else (eps, 1 - eps, zeros(g, ()))
    return where_op((self < low) | (self > high), outside, g / (self * (1 - self)))


logit: Op = Op(
    "logit(self, *, eps=None)",
    grad_fn="LogitBackward0",
    formula="log(self / (1 - self))",
    forward=_logit,
    rules=(Rule("self", "g / (self * (1 - self)) inside eps and 1 - eps", _through_logit),),
    promotes="float",
    in_place=True,
    examples=lambda: [Example((within(0.1, 0.9, 2, 3),), {"eps": eps}) for eps in (None, 0.05)],
)
logaddexp: Op = Op(
    "logaddexp(self, other)",
    grad_fn="LogaddexpBackward0",
    formula="log(exp(self) + exp(other))",
    forward=only("f", "logaddexp_cpu", np.logaddexp),
    rules=(
        Rule("self", "g / (1 + exp(other - self))", lambda g, self, other: g / (1 + exp(other - self))),
        Rule("other", "g / (1 + exp(self - other))", lambda g, self, other: g / (1 + exp(self - other))),
    ),
    promotes=True,
    examples=lambda: [Example((normal(2, 3), normal(3)), {}), Example((normal(), normal()), {})],
)
logaddexp2: Op = Op(
    "logaddexp2(self, other)",
    grad_fn="Logaddexp2Backward0",
    formula="log2(2**self + 2**other)",
    forward=only("f", "logaddexp2_cpu", np.logaddexp2),
    rules=(
        Rule("self", "g / (1 + 2**(other - self))", lambda g, self, other: g / (1 + exp2(other - self))),
        Rule("other", "g / (1 + 2**(self - other))", lambda g, self, other: g / (1 + exp2(self - other))),
    ),
    promotes=True,
    examples=lambda: [Example((normal(2, 3), normal(3)), {}), Example((normal(), normal()), {})],
)


def _xlogy(self: Array, other: Array) -> Any:
    return np.where((self == 0) & ~np.isnan(other), np.zeros((), self.dtype), self * np.log(other))


def _by_factor(g: Any, self: Any, other: Any) -> Any:
    return where_op((self == 0) & (other <= 0), zeros(g, ()), g * log(other))


def _xlogy_op(grad_fn: str, *rules: Rule) -> Op:
    return Op(
        "xlogy(self, other)",
        grad_fn=grad_fn,
        formula="self * log(other), 0 where self is 0",
        forward=_xlogy,
        rules=rules,
        promotes="float",
        public=False,
        examples=lambda: [Example((normal(2, 3), positive(3)), {})],
    )


FACTOR = Rule("self", "g * log(other)", _by_factor)
ARGUMENT = Rule("other", "g * self / other", lambda g, self, other: g * self / other)
xlogy = _xlogy_op("XlogyBackward0", FACTOR, ARGUMENT)
xlogy_by_number = _xlogy_op("XlogyBackward2", FACTOR)
xlogy_of_number = _xlogy_op("XlogyBackward1", ARGUMENT)

derive_all(exp, exp2, expm1, log, log2, log10, log1p, sigmoid, logit)
derive_all(logaddexp, logaddexp2, numbers=False)
Overloads(xlogy, xlogy_by_number, xlogy_of_number).offer()

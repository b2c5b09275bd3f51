"""Functions of one tensor, element by element."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gviz.engine.op import Example, Op, Rule
from gviz.engine.ops.examples import normal, positive, spaced, within
from gviz.engine.surface import derive, derive_all, front
from gviz.engine.tensor import Tensor
from gviz.values import Array


def _on(*arrays: Callable[..., Array]) -> Callable[[], Sequence[Example]]:
    """Examples of one tensor each, in two shapes, drawn from each of the generators."""
    return lambda: [Example((make(*shape),), {}) for make in arrays for shape in ((), (2, 3))]


exp: Op = Op(
    "exp(self)",
    grad_fn="ExpBackward0",
    formula="exp(self)",
    forward=np.exp,
    rules=(Rule("self", "g * result", lambda g, result: g * result),),
    promotes="float",
    in_place=True,
    examples=_on(normal),
)
log: Op = Op(
    "log(self)",
    grad_fn="LogBackward0",
    formula="log(self)",
    forward=np.log,
    rules=(Rule("self", "g / self", lambda g, self: g / self),),
    promotes="float",
    in_place=True,
    examples=_on(positive),
)
sqrt: Op = Op(
    "sqrt(self)",
    grad_fn="SqrtBackward0",
    formula="sqrt(self)",
    forward=np.sqrt,
    rules=(Rule("self", "g / (2 * result)", lambda g, result: g / (2 * result)),),
    promotes="float",
    in_place=True,
    examples=_on(positive),
)
reciprocal: Op = Op(
    "reciprocal(self)",
    grad_fn="ReciprocalBackward0",
    formula="1 / self",
    forward=lambda self: np.true_divide(1, self),
    rules=(Rule("self", "-g * result**2", lambda g, result: -g * (result * result)),),
    promotes="float",
    in_place=True,
    examples=_on(positive),
)
square: Op = Op(
    "square(self)",
    grad_fn="PowBackward0",
    formula="self**2",
    forward=np.square,
    rules=(Rule("self", "g * 2 * self", lambda g, self: g * (2 * self)),),
    in_place=True,
    examples=_on(normal),
)
sin: Op = Op(
    "sin(self)",
    grad_fn="SinBackward0",
    formula="sin(self)",
    forward=np.sin,
    rules=(Rule("self", "g * cos(self)", lambda g, self: g * cos(self)),),
    promotes="float",
    in_place=True,
    examples=_on(normal),
)
cos: Op = Op(
    "cos(self)",
    grad_fn="CosBackward0",
    formula="cos(self)",
    forward=np.cos,
    rules=(Rule("self", "-g * sin(self)", lambda g, self: -g * sin(self)),),
    promotes="float",
    in_place=True,
    examples=_on(normal),
)
tan: Op = Op(
    "tan(self)",
    grad_fn="TanBackward0",
    formula="tan(self)",
    forward=np.tan,
    rules=(Rule("self", "g * (1 + result**2)", lambda g, result: g * (1 + result * result)),),
    promotes="float",
    in_place=True,
    examples=lambda: [Example((within(-1.0, 1.0, 2, 3),), {})],
)
tanh: Op = Op(
    "tanh(self)",
    grad_fn="TanhBackward0",
    formula="tanh(self)",
    forward=np.tanh,
    rules=(Rule("self", "g * (1 - result**2)", lambda g, result: g * (1 - result * result)),),
    promotes="float",
    in_place=True,
    examples=_on(normal),
)


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
    examples=_on(normal),
)
step: Op = Op(
    "heaviside(self)",
    grad_fn="HeavisideBackward0",
    formula="1 where self > 0, else 0",
    forward=lambda self: (self > 0).astype(self.dtype),
    untracked="dtype",
    public=False,
)
relu: Op = Op(
    "relu(self)",
    grad_fn="ReluBackward0",
    formula="max(self, 0)",
    forward=lambda self: np.maximum(self, np.zeros((), self.dtype)),
    rules=(Rule("self", "g where result > 0, else 0", lambda g, result: g * step(result)),),
    in_place=True,
    examples=_on(spaced),
)
sign: Op = Op(
    "sign(self)",
    grad_fn="SignBackward0",
    formula="sign of self",
    forward=np.sign,
    rules=(Rule("self", "0", lambda g: g * 0),),
    in_place=True,
    examples=_on(spaced),
)
absolute: Op = Op(
    "abs(self)",
    grad_fn="AbsBackward0",
    formula="|self|",
    forward=np.abs,
    rules=(Rule("self", "g * sign(self)", lambda g, self: g * sign(self)),),
    in_place=True,
    examples=_on(spaced),
)

derive_all(exp, log, sqrt, reciprocal, square, sin, cos, tan, tanh, sigmoid, relu, sign)
derive(absolute, "absolute")
front("__abs__", function=False)(Tensor.abs)


def _keep(self: Array, low: Any, high: Any) -> Array:
    inside = np.ones(self.shape, bool)
    if low is not None:
        inside &= self >= low
    if high is not None:
        inside &= self <= high
    return inside.astype(self.dtype)


inside: Op = Op(
    "inside(self, *, min, max)", grad_fn="", forward=lambda self, min, max: _keep(self, min, max), public=False
)
clamp: Op = Op(
    "clamp(self, *, min=None, max=None)",
    grad_fn="ClampBackward1",
    formula="self, at least min, at most max",
    forward=lambda self, min, max: np.clip(self, min, max),
    rules=(
        Rule(
            "self",
            "g where min <= self <= max, else 0",
            lambda g, self, min, max: g * inside(self, min=min, max=max),
        ),
    ),
    in_place=True,
    examples=lambda: [
        Example((spaced(2, 3),), {"min": -0.5, "max": 0.6}),
        Example((spaced(4),), {"min": 0.1, "max": None}),
    ],
)
derive(clamp, "clip")

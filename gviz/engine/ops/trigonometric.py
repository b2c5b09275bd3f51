"""Trigonometric and hyperbolic functions, and their inverses."""

from __future__ import annotations

from math import pi
from typing import Any

import numpy as np

from gviz.engine.apply import zeros
from gviz.engine.op import Example, Op, Rule
from gviz.engine.ops.comparison import where_op
from gviz.engine.ops.examples import normal, positive, within
from gviz.engine.ops.powers import rsqrt
from gviz.engine.ops.unary import on, smooth
from gviz.engine.surface import derive, derive_all
from gviz.values import Array


def _inside(*shape: int) -> Array:
    """Numbers for which the inverse functions exist."""
    return within(-0.9, 0.9, *shape)


def _beyond(*shape: int) -> Array:
    return within(1.1, 3.0, *shape)


sin: Op = smooth("sin", "SinBackward0", np.sin, "g * cos(self)", lambda g, self: g * cos(self), on(normal))
cos: Op = smooth("cos", "CosBackward0", np.cos, "-g * sin(self)", lambda g, self: -g * sin(self), on(normal))
tan: Op = smooth(
    "tan", "TanBackward0", np.tan, "g * (1 + result**2)", lambda g, result: g * (1 + result * result), on(_inside)
)
asin: Op = smooth(
    "asin",
    "AsinBackward0",
    np.arcsin,
    "g / sqrt(1 - self**2)",
    lambda g, self: g * rsqrt(1 - self * self),
    on(_inside),
)
acos: Op = smooth(
    "acos",
    "AcosBackward0",
    np.arccos,
    "-g / sqrt(1 - self**2)",
    lambda g, self: g * -rsqrt(1 - self * self),
    on(_inside),
)
atan: Op = smooth(
    "atan", "AtanBackward0", np.arctan, "g / (self**2 + 1)", lambda g, self: g / (self * self + 1), on(normal)
)
sinh: Op = smooth("sinh", "SinhBackward0", np.sinh, "g * cosh(self)", lambda g, self: g * cosh(self), on(normal))
cosh: Op = smooth("cosh", "CoshBackward0", np.cosh, "g * sinh(self)", lambda g, self: g * sinh(self), on(normal))
tanh: Op = smooth(
    "tanh", "TanhBackward0", np.tanh, "g * (1 - result**2)", lambda g, result: g * (1 - result * result), on(normal)
)
asinh: Op = smooth(
    "asinh",
    "AsinhBackward0",
    np.arcsinh,
    "g / sqrt(self**2 + 1)",
    lambda g, self: g * rsqrt(self * self + 1),
    on(normal),
)
acosh: Op = smooth(
    "acosh",
    "AcoshBackward0",
    np.arccosh,
    "g / sqrt(self**2 - 1)",
    lambda g, self: g * rsqrt(self * self - 1),
    on(_beyond),
)
atanh: Op = smooth(
    "atanh", "AtanhBackward0", np.arctanh, "g / (1 - self**2)", lambda g, self: g / (1 - self * self), on(_inside)
)


def _turned(part: str) -> Any:
    """The rule for one input of `atan2`: 0 at the origin, where there is no angle."""

    def vjp(g: Any, self: Any, other: Any) -> Any:
        square = self * self + other * other
        along = other if part == "self" else -self
        return g * (along * where_op(square == 0, zeros(square, ()), 1 / square))

    return vjp


atan2: Op = Op(
    "atan2(self, other)",
    grad_fn="Atan2Backward0",
    formula="angle of (other, self)",
    forward=np.arctan2,
    rules=(
        Rule("self", "g * other / (self**2 + other**2)", _turned("self")),
        Rule("other", "-g * self / (self**2 + other**2)", _turned("other")),
    ),
    promotes="float",
    in_place=True,
    examples=lambda: [Example((normal(2, 3), positive(3)), {}), Example((normal(), positive()), {})],
)
deg2rad: Op = smooth(
    "deg2rad",
    "Deg2RadBackward0",
    lambda self: self * self.dtype.type(pi / 180),
    "g * pi / 180",
    lambda g: g * (pi / 180),
    on(normal),
)
rad2deg: Op = smooth(
    "rad2deg",
    "Rad2DegBackward0",
    lambda self: self * self.dtype.type(180 / pi),
    "g * 180 / pi",
    lambda g: g * (180 / pi),
    on(normal),
)


def _sinc(self: Array) -> Any:
    wide = self.astype(np.float32) if self.dtype == np.float16 else self
    angle = wide * wide.dtype.type(pi)
    return np.where(wide == 0, np.ones((), wide.dtype), np.sin(angle) / angle).astype(self.dtype, copy=False)


def _through_sinc(g: Any, self: Any) -> Any:
    angle = self * pi
    square = angle * self
    return where_op(square == 0, zeros(g, ()), g * ((angle * cos(angle) - sin(angle)) / square))


sinc: Op = smooth(
    "sinc",
    "SincBackward0",
    _sinc,
    "g * (cos(pi * self) - result) / self",
    _through_sinc,
    on(positive),
)

derive_all(sin, cos, tan, sinh, cosh, tanh, deg2rad, rad2deg, sinc)
for inverse in (asin, acos, atan, asinh, acosh, atanh):
    derive(inverse, "arc" + inverse.name[1:])
derive(atan2, "arctan2", numbers=False)

"""Pointwise functions: exponentials, logarithms, powers, roots, trigonometry, erf and gamma."""

from __future__ import annotations

import math
from math import log as ln
from math import pi
from typing import Any

import numpy as np

from gviz.engine import dtypes, messages
from gviz.engine.functions_and_methods import NUMBERS, Number, Runner, checked, derive, derive_all, front, number
from gviz.engine.op import Example, Op, Rule, apply, promote_operands, zeros
from gviz.engine.ops._declaration import Overloads, on, smooth
from gviz.engine.ops._examples import normal, positive, uniform_array
from gviz.engine.ops._kernels import in_rows, only, refuse_unless, scipy_special
from gviz.engine.ops.comparison import where_op
from gviz.engine.tensor import Tensor
from gviz.engine.views import apply_in_place
from gviz.source.call_stack import warn
from gviz.values.value import Array

# ----------------------------------------------------------------------------------------------------------------------
# Exponentials and logarithms.


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
    decay = np.exp(-np.abs(self))  # cannot overflow for either sign
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
    examples=lambda: [Example((uniform_array(0.1, 0.9, 2, 3),), {"eps": eps}) for eps in (None, 0.05)],
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
_PER_LOG_2 = 1 / np.log(2.0)


def _halves(x: Any) -> tuple[Any, Any]:
    """Return two numbers of half as many bits with the sum `x`, whose products are exact (Dekker, Veltkamp)."""
    scaled = x * (2.0**27 + 1)
    high = scaled - (scaled - x)
    return high, x - high


def _multiplied_and_added(a: Any, b: Any, c: Any) -> Any:
    """Return ``a * b + c`` of doubles, rounded once, as processors compute it in one instruction."""
    (a_high, a_low), (b_high, b_low) = _halves(a), _halves(b)
    product = a * b
    lost_by_product = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    total = product + c
    of_c = total - product
    lost_by_sum = (product - (total - of_c)) + (c - of_c)
    return total + (lost_by_sum + lost_by_product)


def _logaddexp2(self: Array, other: Array) -> Any:
    """Return ``log2(2**self + 2**other)`` with PyTorch's rounding: of -1 and -1 it is not 0, but a bit more."""
    if self.dtype != np.float64:
        wide = np.float32
        larger = np.maximum(self, other).astype(wide)
        apart = np.where(self == other, wide(0), np.abs(self.astype(wide) - other.astype(wide)))
        logs = np.log1p(np.exp2(-apart)).astype(np.float64)
        return (logs * wide(_PER_LOG_2) + larger).astype(self.dtype)
    larger = np.maximum(self, other)
    logs = np.log1p(np.exp2(-np.where(self == other, 0.0, np.abs(self - other))))
    return np.where(np.isfinite(larger), _multiplied_and_added(logs, _PER_LOG_2, larger), larger)


logaddexp2: Op = Op(
    "logaddexp2(self, other)",
    grad_fn="Logaddexp2Backward0",
    formula="log2(2**self + 2**other)",
    forward=only("f", "logaddexp2_cpu", _logaddexp2),
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
    return where_op((self == 0) & (other <= 0), zeros(g, ()), xlogy(g, other))


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


# ----------------------------------------------------------------------------------------------------------------------
# Powers: of tensors and numbers, by tensors and numbers; roots and reciprocals.


sqrt: Op = smooth(
    "sqrt", "SqrtBackward0", np.sqrt, "g / (2 * result)", lambda g, result: g / (2 * result), on(positive)
)
rsqrt: Op = smooth(
    "rsqrt",
    "RsqrtBackward0",
    lambda self: np.true_divide(1, np.sqrt(self)),
    "-g / 2 * result**3",
    lambda g, result: g * (-0.5 * (result * result * result)),
    on(positive),
)
reciprocal: Op = Op(
    "reciprocal(self)",
    grad_fn="ReciprocalBackward0",
    formula="1 / self",
    forward=lambda self: np.true_divide(1, self),
    rules=(Rule("self", "-g * result**2", lambda g, result: -g * (result * result)),),
    promotes="float",
    in_place=True,
    examples=on(positive),
)


def _by(g: Any, self: Any, exponent: Any, result: Any) -> Any:
    """Return the gradient of an exponent; 0 where the base is 0, although its logarithm is infinite."""
    return g * where_op((self == 0) & (exponent >= 0), zeros(g, ()), result * log(self))


def _power(self: Array, exponent: Number) -> Any:
    if self.dtype.kind != "f" and not isinstance(exponent, float) and exponent < 0:
        raise RuntimeError("Integers to negative integer powers are not allowed.")
    base, by = promote_operands((self, np.array(exponent, dtypes.scalar_dtype(exponent, self.dtype))), True)
    if base.dtype.kind == "b":
        return np.logical_or(self, not exponent)
    if base.dtype.kind == "f" and exponent in (0.5, -0.5):  # a root, which differs at -0 and -inf
        return np.sqrt(base) if exponent > 0 else np.true_divide(1, np.sqrt(base))
    return np.power(base, by)


def _less_one(self: Any, exponent: Number) -> Any:
    return pow_scalar(self, exponent=-0.5) if exponent == 0.5 else self ** (exponent - 1)


def _powers(self: Array, exponent: Array) -> Any:
    if self.dtype.kind == "f":
        return np.power(self, exponent)
    fraction = exponent < 0  # of integers, rounded towards 0: only 1 and -1 have a nonzero result
    odd = np.where(exponent % 2 != 0, self, np.ones((), self.dtype))
    left = np.where(np.abs(self) == 1, odd, np.zeros((), self.dtype))
    return np.where(fraction, left, np.power(self, np.where(fraction, np.zeros((), exponent.dtype), exponent)))


pow_scalar: Op = Op(
    "pow(self, *, exponent)",
    grad_fn="PowBackward0",
    formula="self**exponent",
    forward=_power,
    rules=(
        Rule(
            "self",
            "g * exponent * self**(exponent - 1)",
            lambda g, self, exponent: g * 0 if exponent == 0 else g * (exponent * _less_one(self, exponent)),
        ),
    ),
    in_place=True,
    public=False,
    torch="pow",
    examples=lambda: [
        *[Example((normal(3),), {"exponent": n}) for n in (2, 0, 1, 3)],
        *[Example((positive(2, 3),), {"exponent": n}) for n in (0.5, -1, -2.0)],
    ],
)
pow_tensor: Op = Op(
    "pow(self, exponent)",
    grad_fn="PowBackward1",
    formula="self**exponent",
    forward=only("uif", "pow", _powers),
    rules=(
        Rule(
            "self",
            "g * exponent * self**(exponent - 1)",
            lambda g, self, exponent: where_op(exponent == 0, zeros(g, ()), g * exponent * self ** (exponent - 1)),
        ),
        Rule("exponent", "g * result * log(self)", lambda g, self, exponent, result: _by(g, self, exponent, result)),
    ),
    promotes=True,
    in_place=True,
    public=False,
    torch="pow",
    examples=lambda: [Example((positive(3), normal(3)), {}), Example((positive(2, 1), normal(3)), {})],
)
pow_number: Op = Op(
    "pow(self, exponent)",
    grad_fn="PowBackward2",
    formula="self**exponent",
    forward=in_rows(pow_tensor.forward),
    pointwise=False,
    rules=(
        Rule("exponent", "g * result * log(self)", lambda g, self, exponent, result: _by(g, self, exponent, result)),
    ),
    promotes=True,
    public=False,
    examples=lambda: [Example((positive(), normal(3)), {})],
)

hypot: Op = Op(
    "hypot(self, other)",
    grad_fn="HypotBackward0",
    formula="sqrt(self**2 + other**2)",
    forward=only("f", "hypot_cpu", np.hypot),
    rules=(
        Rule("self", "g * self / result", lambda g, self, result: g * (self / result)),
        Rule("other", "g * other / result", lambda g, other, result: g * (other / result)),
    ),
    promotes=True,
    in_place=True,
    examples=lambda: [Example((normal(2, 3), normal(3)), {}), Example((normal(), normal()), {})],
)


def _doubled(self: Array, other: Array) -> Any:
    return self * np.exp2(other).astype(self.dtype, copy=False)


ldexp: Op = Op(
    "ldexp(self, other)",
    grad_fn="LdexpBackward0",
    formula="self * 2**other",
    forward=_doubled,
    rules=(
        Rule("self", "g * 2**other", lambda g, other: g * exp2(other)),
        Rule("other", "g * result * ln 2", lambda g, result: g * (result * LN2)),
    ),
    promotes="float",
    in_place=True,
    overlap="once",
    examples=lambda: [Example((normal(2, 3), normal(3)), {}), Example((normal(), normal()), {})],
)

derive_all(sqrt, rsqrt, reciprocal)
derive(hypot, numbers=False)


@front("ldexp")
def ldexp_front(input: Tensor, other: Tensor) -> Tensor:
    """`input` * 2 to the power `other`."""
    result: Tensor = apply(ldexp, _exponents(input, other))
    if input.is_floating_point() and not other.is_floating_point() and input.numel() and result.shape != input.shape:
        # PyTorch writes it into a tensor with the shape of `input`.
        warn(messages.OUT_RESIZED.format(before=list(input.shape), after=list(result.shape)))
    return result


@front("ldexp_", function=False)
def ldexp_in_place(self: Tensor, other: Tensor) -> Tensor:
    """Multiplies by 2 to the power `other` in place."""
    return apply_in_place(ldexp, _exponents(self, other), {})


def _exponents(self: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
    operands = checked(ldexp, self, 1), checked(ldexp, other, 2)
    kinds = [t._array.dtype.kind for t in operands]
    refuse_unless(kinds[0] != "f" or kinds[1] != "b", "ldexp_cpu_exp", other._array)
    return operands


@front("pow")
def pow_front(input: Tensor | Number, exponent: Tensor | Number) -> Tensor:
    """`input` to the power `exponent`; one of the two may be a number."""
    if isinstance(exponent, Tensor) and isinstance(input, NUMBERS):
        return rpow(exponent, input)
    return _raised(apply, checked(pow_tensor, input, 1), exponent)


@front("pow_", "__ipow__", function=False)
def pow_in_place(self: Tensor, exponent: Tensor | Number) -> Tensor:
    """Raises to the power `exponent` in place."""
    return _raised(apply_in_place, self, exponent)


@front("__pow__", function=False)
def pow_operator(self: Tensor, exponent: Tensor | Number) -> Tensor:
    """``self ** exponent``."""
    if not isinstance(exponent, (Tensor, *NUMBERS)):
        return NotImplemented
    return _raised(apply, self, exponent)


@front("__rpow__", function=False)
def rpow(self: Tensor, base: Number) -> Tensor:
    """A number to the power of a tensor."""
    if not isinstance(base, NUMBERS):
        return NotImplemented
    result: Tensor = apply(pow_number, (number(base, self._array), self))
    return result


@front("square")
def square(input: Tensor) -> Tensor:
    """`input` * `input`, as the power 2 like in PyTorch."""
    return _raised(apply, checked(pow_scalar, input, 1), 2)


@front("square_", function=False)
def square_in_place(self: Tensor) -> Tensor:
    """Squares in place."""
    return _raised(apply_in_place, self, 2)


@front("float_power")
def float_power(input: Tensor | Number, exponent: Tensor | Number) -> Tensor:
    """`input` to the power `exponent`, in float64."""
    wide = [v.to(dtypes.float64) if isinstance(v, Tensor) else float(v) for v in (input, exponent)]
    return pow_front(*wide)


def _raised(run: Runner, self: Tensor, exponent: Tensor | Number) -> Tensor:
    if isinstance(exponent, Tensor):
        by_tensor: Tensor = run(pow_tensor, (self, exponent), {})
        return by_tensor
    result: Tensor = run(pow_scalar, (self,), {"exponent": exponent})
    return result


# ----------------------------------------------------------------------------------------------------------------------
# Trigonometric and hyperbolic functions, and their inverses.


def _inside(*shape: int) -> Array:
    """Return numbers in the domain of the inverse functions."""
    return uniform_array(-0.9, 0.9, *shape)


def _beyond(*shape: int) -> Array:
    return uniform_array(1.1, 3.0, *shape)


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
    """Return the rule for one input of `atan2`: 0 at the origin, where the angle is undefined."""

    def vjp(g: Any, self: Any, other: Any) -> Any:
        square = self * self + other * other
        factor = other if part == "self" else -self
        return g * (factor * where_op(square == 0, zeros(square, ()), 1 / square))

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


# ----------------------------------------------------------------------------------------------------------------------
# Error and gamma functions.


def _bell(self: Any) -> Any:
    return 2 / math.sqrt(pi) * exp(-(self * self))


def _trigamma(self: Array) -> Any:
    """Computed as in PyTorch: six steps of the recurrence, then the first terms of the series."""
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
    return uniform_array(-0.9, 0.9, *shape)


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
    lambda self: np.copysign(scipy_special("erfinv")(self), self),
    "g * sqrt(pi) / 2 * exp(erfinv(self)**2)",
    lambda g, self: g * (math.sqrt(pi) / 2 * exp(erfinv(self) * erfinv(self))),
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
    """The `n`-th derivative of `digamma`. Raises RuntimeError for a negative `n`."""
    _check_order(n)
    result: Tensor = apply(polygamma_op, (input,), {"n": n})
    return result


@front("polygamma", function=False)
def polygamma_method(self: Tensor, n: int) -> Tensor:
    """The `n`-th derivative of `digamma`. Raises RuntimeError for a negative `n`."""
    return polygamma(n, self)


@front("polygamma_", function=False)
def polygamma_in_place(self: Tensor, n: int) -> Tensor:
    """`polygamma`, in place."""
    _check_order(n)
    return apply_in_place(polygamma_op, (self,), {"n": n})


def _check_order(n: int) -> None:
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")

"""Powers: of tensors and numbers, by tensors and numbers; roots and reciprocals."""

from __future__ import annotations

from typing import Any

import numpy as np

from gviz.engine import dtypes
from gviz.engine.apply import apply, promoted, zeros
from gviz.engine.op import Example, Op, Rule
from gviz.engine.ops.comparison import where_op
from gviz.engine.ops.examples import normal, positive
from gviz.engine.ops.exponential import LN2, exp2, log
from gviz.engine.ops.kernels import in_rows, only, refuse_unless
from gviz.engine.ops.unary import on, smooth
from gviz.engine.surface import Number, Runner, checked, derive, derive_all, front, number
from gviz.engine.tensor import Tensor
from gviz.engine.views import apply_in_place
from gviz.values import Array

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
    """The gradient of an exponent; where the base is 0 nothing changes, though its logarithm is infinite."""
    return g * where_op((self == 0) & (exponent >= 0), zeros(g, ()), result * log(self))


def _power(self: Array, exponent: Number) -> Any:
    if self.dtype.kind != "f" and not isinstance(exponent, float) and exponent < 0:
        raise RuntimeError("Integers to negative integer powers are not allowed.")
    base, by = promoted((self, np.array(exponent, dtypes.scalar_dtype(exponent, self.dtype))), True)
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
    fraction = exponent < 0  # of integers, rounded towards 0: only 1 and -1 have one that is left
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
    return result


@front("ldexp_", function=False)
def ldexp_in_place(self: Tensor, other: Tensor) -> Tensor:
    """Multiply by 2 to the power `other` in place."""
    return apply_in_place(ldexp, _exponents(self, other), {})


def _exponents(self: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
    operands = checked(ldexp, self, 1), checked(ldexp, other, 2)
    kinds = [t._array.dtype.kind for t in operands]
    refuse_unless(kinds[0] != "f" or kinds[1] != "b", "ldexp_cpu_exp", other._array)
    return operands


@front("pow")
def pow_front(input: Tensor | Number, exponent: Tensor | Number) -> Tensor:
    """`input` to the power `exponent`; one of the two may be a number."""
    if isinstance(exponent, Tensor) and not isinstance(input, Tensor):
        return rpow(exponent, input)
    return _raised(apply, checked(pow_tensor, input, 1), exponent)


@front("pow_", "__ipow__", function=False)
def pow_in_place(self: Tensor, exponent: Tensor | Number) -> Tensor:
    """Raise to the power `exponent` in place."""
    return _raised(apply_in_place, self, exponent)


@front("__pow__", function=False)
def pow_operator(self: Tensor, exponent: Tensor | Number) -> Any:
    """``self ** exponent``."""
    if not isinstance(exponent, (Tensor, bool, int, float, np.number)):
        return NotImplemented
    return _raised(apply, self, exponent)


@front("__rpow__", function=False)
def rpow(self: Tensor, base: Number) -> Tensor:
    """A number to the power of a tensor."""
    result: Tensor = apply(pow_number, (number(base, self._array), self))
    return result


@front("square")
def square(input: Tensor) -> Tensor:
    """`input` * `input`, as PyTorch does it: the power 2."""
    return _raised(apply, checked(pow_scalar, input, 1), 2)


@front("square_", function=False)
def square_in_place(self: Tensor) -> Tensor:
    """Square in place."""
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

"""Sums, products, powers: what operators do."""

from __future__ import annotations

import operator as operators
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gviz.engine import messages
from gviz.engine.apply import apply
from gviz.engine.methods import Methods
from gviz.engine.op import Example, Op, Rule
from gviz.engine.ops.examples import normal, positive
from gviz.engine.ops.pointwise import reciprocal
from gviz.engine.surface import Number, derive, derive_all, front, in_place, operand, operator, reflected
from gviz.engine.tensor import Tensor
from gviz.engine.views import apply_in_place
from gviz.values import Array

Runner = Callable[[Op, Sequence[Tensor], dict[str, Any]], Any]


def _pairs() -> Sequence[Example]:
    return [
        Example((normal(3), normal(3)), {}),
        Example((normal(2, 3), normal(3)), {}),
        Example((normal(2, 1), normal(1, 3)), {}),
        Example((normal(), normal()), {}),
        Example((normal(0, 3), normal(3)), {}),
    ]


def _divisions() -> Sequence[Example]:
    return [Example((normal(2, 3), positive(3)), {}), Example((normal(), positive(2)), {})]


def _no_derivative(g: Any) -> Any:
    raise RuntimeError(messages.NOT_IMPLEMENTED.format(name="floor_divide"))


add: Op = Op(
    "add(self, other)",
    grad_fn="AddBackward0",
    formula="self + other",
    forward=operators.add,
    rules=(Rule("self", "g", lambda g: g), Rule("other", "g", lambda g: g)),
    promotes=True,
    in_place=True,
    examples=_pairs,
)
sub: Op = Op(
    "sub(self, other)",
    grad_fn="SubBackward0",
    formula="self - other",
    forward=operators.sub,
    rules=(Rule("self", "g", lambda g: g), Rule("other", "-g", lambda g: -g)),
    promotes=True,
    in_place=True,
    examples=_pairs,
)
rsub: Op = Op(
    "rsub(self, other)",
    grad_fn="RsubBackward0",
    formula="other - self",
    forward=lambda self, other: np.subtract(other, self),
    rules=(Rule("self", "-g", lambda g: -g), Rule("other", "g", lambda g: g)),
    promotes=True,
    examples=_pairs,
)
rsub_number: Op = Op(
    "rsub(self, other)",
    grad_fn="RsubBackward1",
    formula="other - self",
    forward=rsub.forward,
    rules=(Rule("self", "-g", lambda g: -g),),  # a number has no gradient
    promotes=True,
    public=False,
    examples=_pairs,
)
mul: Op = Op(
    "mul(self, other)",
    grad_fn="MulBackward0",
    formula="self * other",
    forward=operators.mul,
    rules=(
        Rule("self", "g * other", lambda g, other: g * other),
        Rule("other", "g * self", lambda g, self: g * self),
    ),
    promotes=True,
    in_place=True,
    examples=_pairs,
)
div: Op = Op(
    "div(self, other)",
    grad_fn="DivBackward0",
    formula="self / other",
    forward=operators.truediv,
    rules=(
        Rule("self", "g / other", lambda g, other: g / other),
        Rule("other", "-g * self / other**2", lambda g, self, other: -g * (self / other) / other),
    ),
    promotes="float",
    in_place=True,
    examples=_divisions,
)
neg: Op = Op(
    "neg(self)",
    grad_fn="NegBackward0",
    formula="-self",
    forward=operators.neg,
    rules=(Rule("self", "-g", lambda g: -g),),
    in_place=True,
    examples=lambda: [Example((normal(2, 3),), {})],
)
floor_divide: Op = Op(
    "floor_divide(self, other)",
    grad_fn="NotImplemented",
    formula="floor(self / other)",
    forward=np.floor_divide,
    rules=(Rule("self", "none", _no_derivative), Rule("other", "none", _no_derivative)),
    promotes=True,
)
whole_quotient: Op = Op(
    "div(self, other)",
    grad_fn="",  # its derivative is zero
    formula="floor(self / other)",
    forward=np.floor_divide,
    promotes=True,
    public=False,
)
remainder: Op = Op(
    "remainder(self, other)",
    grad_fn="RemainderBackward1",
    formula="self - floor(self / other) * other",
    forward=np.remainder,
    rules=(
        Rule("self", "g", lambda g: g),
        Rule("other", "-g * floor(self / other)", lambda g, self, other: -g * whole_quotient(self, other)),
    ),
    promotes=True,
    in_place=True,
    examples=_divisions,
)
remainder_number: Op = Op(
    "remainder(self, other)",
    grad_fn="RemainderBackward0",
    formula=remainder.formula,
    forward=np.remainder,
    rules=(Rule("self", "g", lambda g: g),),  # a number has no gradient
    promotes=True,
    public=False,
    examples=lambda: [Example((normal(2, 3), positive()), {})],
)
add_scaled: Op = Op(
    "add(self, other, *, alpha=1)",
    grad_fn="AddBackward0",
    formula="self + alpha * other",
    forward=lambda self, other, alpha: _add_scaled(self, other, alpha),
    rules=(Rule("self", "g", lambda g: g), Rule("other", "g * alpha", lambda g, alpha: g * alpha)),
    promotes=True,
    in_place=True,
    public=False,
    examples=lambda: [Example((normal(2, 3), normal(3)), {"alpha": 2.5})],
)
sub_scaled: Op = Op(
    "sub(self, other, *, alpha=1)",
    grad_fn="SubBackward0",
    formula="self - alpha * other",
    forward=lambda self, other, alpha: _add_scaled(self, other, -alpha),
    rules=(Rule("self", "g", lambda g: g), Rule("other", "-g * alpha", lambda g, alpha: -g * alpha)),
    promotes=True,
    in_place=True,
    public=False,
    examples=lambda: [Example((normal(2, 3), normal(3)), {"alpha": 2.5})],
)

derive(mul, "multiply")
derive(div, "true_divide", "divide")
derive(neg, "negative")
derive_all(floor_divide, remainder)


@front("add")
def add_front(self: Tensor, other: Tensor | Number, *, alpha: Number = 1) -> Tensor:
    """`self` + `alpha` * `other`."""
    return _scaled(apply, add, self, other, alpha)


@front("add_", function=False)
def add_in_place(self: Tensor, other: Tensor | Number, *, alpha: Number = 1) -> Tensor:
    """Add `alpha` * `other` in place."""
    return _scaled(apply_in_place, add, self, other, alpha)


@front("sub", "subtract")
def sub_front(self: Tensor, other: Tensor | Number, *, alpha: Number = 1) -> Tensor:
    """`self` - `alpha` * `other`."""
    return _scaled(apply, sub, self, other, alpha)


@front("sub_", "subtract_", function=False)
def sub_in_place(self: Tensor, other: Tensor | Number, *, alpha: Number = 1) -> Tensor:
    """Subtract `alpha` * `other` in place."""
    return _scaled(apply_in_place, sub, self, other, alpha)


@front("rsub", method=False)
def rsub_front(self: Tensor, other: Tensor | Number, *, alpha: Number = 1) -> Tensor:
    """`other` - `alpha` * `self`."""
    scaled = self if alpha == 1 else self * alpha
    result: Tensor = apply(rsub if isinstance(other, Tensor) else rsub_number, (scaled, operand(rsub, other, scaled)))
    return result


@front("__rtruediv__", function=False)
def rtruediv(self: Tensor, other: Number) -> Tensor:
    """A number divided by a tensor: its reciprocal times the number, as PyTorch does it."""
    result: Tensor = reciprocal(self) * other
    return result


def _add_scaled(self: Array, other: Array, alpha: Number) -> Array:
    """`self` + `alpha` * `other`, rounded once in float32, as the fused instruction PyTorch uses."""
    if self.dtype == other.dtype == np.float32:
        wide = np.multiply(other, float(np.float32(alpha)), dtype=np.float64)
        return np.add(self, wide).astype(np.float32)
    return np.add(self, np.multiply(alpha, other, dtype=other.dtype))


def _scaled(run: Runner, op: Op, self: Tensor, other: Tensor | Number, alpha: Number) -> Tensor:
    operands = (self, operand(op, other, self))
    if alpha == 1:
        result: Tensor = run(op, operands, {})
    else:
        result = run(add_scaled if op is add else sub_scaled, operands, {"alpha": alpha})
    return result


for name, op in (("add", add), ("sub", sub), ("mul", mul), ("truediv", div), ("floordiv", floor_divide)):
    front(f"__{name}__", function=False)(operator(op))
front("__mod__", function=False)(operator(remainder, remainder_number))
for name, op in (("radd", add), ("rmul", mul)):
    front(f"__{name}__", function=False)(operator(op))  # commutes: the number takes the second place, as in PyTorch
front("__rsub__", function=False)(operator(rsub_number))
front("__rfloordiv__", function=False)(reflected(floor_divide))
front("__iadd__", function=False)(in_place(add))
front("__isub__", function=False)(in_place(sub))
front("__imul__", function=False)(in_place(mul))
front("__itruediv__", function=False)(in_place(div))
front("__neg__", function=False)(Methods.neg)
front("__pos__", function=False)(lambda self: self)

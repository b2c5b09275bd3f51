"""Sums, differences, products."""

from __future__ import annotations

import operator as operators
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gviz.engine.apply import apply
from gviz.engine.dtypes import promote
from gviz.engine.op import Example, Op, Rule
from gviz.engine.ops.examples import normal
from gviz.engine.surface import Number, Runner, checked, derive, front, in_place, operand, operator
from gviz.engine.tensor import Tensor
from gviz.engine.views import apply_in_place
from gviz.values import Array

BOOL = np.dtype(np.bool_)
BOTH_BOOLEAN = (
    "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` operator "
    "instead."
)
ONE_BOOLEAN = (
    "{what}, the `-` operator, {how} a bool tensor is not supported. If you are trying to invert a mask, use the `~` "
    "or `logical_not()` operator instead."
)


def _pairs() -> Sequence[Example]:
    return [
        Example((normal(3), normal(3)), {}),
        Example((normal(2, 3), normal(3)), {}),
        Example((normal(2, 1), normal(1, 3)), {}),
        Example((normal(), normal()), {}),
        Example((normal(0, 3), normal(3)), {}),
    ]


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
neg: Op = Op(
    "neg(self)",
    grad_fn="NegBackward0",
    formula="-self",
    forward=operators.neg,
    rules=(Rule("self", "-g", lambda g: -g),),
    in_place=True,
    examples=lambda: [Example((normal(2, 3),), {})],
)
positive: Op = Op(
    "positive(self)",
    grad_fn="",
    formula="self",
    forward=lambda self: self.view(),
    memory="alias",
    public=False,
)


def _scaled_op(name: str, grad_fn: str, formula: str, forward: Callable[..., Any], sign: int) -> Op:
    rule = "g * alpha" if sign > 0 else "-g * alpha"
    return Op(
        f"{name}(self, other, *, alpha)",
        grad_fn=grad_fn,
        formula=formula,
        forward=forward,
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

derive(mul, "multiply", number_first=True)


@front("neg", "negative", "__neg__")
def neg_front(input: Tensor) -> Tensor:
    """-`input`. RuntimeError for booleans."""
    result: Tensor = apply(neg, (_negatable(checked(neg, input, 1)),))
    return result


@front("neg_", "negative_", function=False)
def neg_in_place(self: Tensor) -> Tensor:
    """Negate in place."""
    return apply_in_place(neg, (_negatable(self),), {})


@front("positive", "__pos__")
def positive_front(input: Tensor) -> Tensor:
    """`input` itself. RuntimeError for booleans."""
    if checked(positive, input, 1)._array.dtype is BOOL:
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return input


@front("add")
def add_front(input: Tensor | Number, other: Tensor | Number, *, alpha: Number = 1) -> Tensor:
    """`input` + `alpha` * `other`."""
    return _scaled(apply, add, add_scaled, _first(add, input, other), other, alpha)


@front("add_", "__iadd__", function=False)
def add_in_place(self: Tensor, other: Tensor | Number, *, alpha: Number = 1) -> Tensor:
    """Add `alpha` * `other` in place."""
    return _scaled(apply_in_place, add, add_scaled, self, other, alpha)


@front("sub", "subtract")
def sub_front(input: Tensor | Number, other: Tensor | Number, *, alpha: Number = 1) -> Tensor:
    """`input` - `alpha` * `other`. RuntimeError for booleans."""
    first = _first(sub, input, other)
    _refuse_booleans(first, other)
    return _scaled(apply, sub, sub_scaled, first, other, alpha)


@front("sub_", "subtract_", "__isub__", function=False)
def sub_in_place(self: Tensor, other: Tensor | Number, *, alpha: Number = 1) -> Tensor:
    """Subtract `alpha` * `other` in place."""
    _refuse_booleans(self, other)
    return _scaled(apply_in_place, sub, sub_scaled, self, other, alpha)


@front("rsub", method=False)
def rsub_front(input: Tensor, other: Tensor | Number, *, alpha: Number = 1) -> Tensor:
    """`other` - `alpha` * `input`."""
    _refuse_booleans(checked(rsub, input, 1), other)
    if isinstance(other, Tensor):
        return _scaled(apply, rsub, rsub_scaled, input, other, alpha)
    return _scaled(apply, rsub_number, rsub_number_scaled, input, other, alpha)


@front("__sub__", function=False)
def minus(self: Tensor, other: Tensor | Number) -> Any:
    """``self - other``."""
    if self._array.dtype is BOOL or other is True or other is False or _is_boolean(other):
        _refuse_booleans(self, other)
    return _minus(self, other)


@front("__rsub__", function=False)
def minus_from(self: Tensor, other: Number) -> Any:
    """``other - self`` for a number."""
    if self._array.dtype is BOOL or other is True or other is False:
        _refuse_booleans(self, other)
    return _minus_from(self, other)


_minus, _minus_from = operator(sub), operator(rsub_number)


def _is_boolean(value: object) -> bool:
    return isinstance(value, Tensor) and value._array.dtype is BOOL


def _refuse_booleans(self: Tensor, other: Any) -> None:
    """RuntimeError, in PyTorch's words, where one of two operands is boolean: it cannot be subtracted."""
    booleans = [_is_boolean(self), _is_boolean(other) or isinstance(other, bool)]
    if any(booleans):
        raise RuntimeError(BOTH_BOOLEAN if all(booleans) else ONE_BOOLEAN.format(what="Subtraction", how="with"))


def _negatable(self: Tensor) -> Tensor:
    if self._array.dtype is BOOL:
        raise RuntimeError(ONE_BOOLEAN.format(what="Negation", how="on"))
    return self


def _first(op: Op, input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """The first operand, which may be a number if the second is a tensor."""
    return operand(op, input, other, 1) if isinstance(other, Tensor) else checked(op, input, 1)


def _plus(self: Array, other: Array, alpha: Number) -> Array:
    """`self` + `alpha` * `other`, rounded once, as the fused instruction PyTorch uses."""
    if self.dtype.kind != "f":
        whole: Array = np.add(self, np.multiply(self.dtype.type(alpha), other))
        return whole
    if self.dtype == np.float64:
        return _fused(self, other, alpha)
    wide = np.multiply(other, float(self.dtype.type(alpha)), dtype=np.float64)
    return np.add(self, wide).astype(self.dtype)


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


def _scaled(run: Runner, op: Op, scaled: Op, self: Tensor, other: Tensor | Number, alpha: Number) -> Tensor:
    operands = (self, operand(op, other, self))
    if alpha.__class__ is int and alpha == 1:
        result: Tensor = run(op, operands, {})
        return result
    _check_alpha(op, operands, alpha)
    result = run(scaled, operands, {"alpha": alpha})
    return result


def _check_alpha(op: Op, operands: Sequence[Tensor], alpha: object) -> None:
    if not isinstance(alpha, (bool, int, float, np.number)):
        raise TypeError(f"{op.name}(): argument 'alpha' must be Number, not {type(alpha).__name__}")
    kind = promote([t._array for t in operands]).kind
    if isinstance(alpha, bool) and kind != "b":
        raise RuntimeError("Boolean alpha only supported for Boolean results.")
    if isinstance(alpha, float) and kind != "f":
        raise RuntimeError("For integral input tensors, argument alpha must not be a floating point number.")


for name, op in (("add", add), ("mul", mul), ("radd", add), ("rmul", mul)):
    # A sum and a product commute: a number takes the second place, as in PyTorch.
    front(f"__{name}__", function=False)(operator(op))
front("__imul__", function=False)(in_place(mul))

"""Sums, differences, products."""

from __future__ import annotations

import operator as operators
from collections.abc import Sequence
from typing import Any

import numpy as np

from gviz.engine.apply import apply
from gviz.engine.op import Example, Op, Rule
from gviz.engine.ops.examples import normal
from gviz.engine.ops.scaled_sums import add_scaled, check_alpha, rsub_number_scaled, rsub_scaled, sub_scaled
from gviz.engine.surface import Number, Runner, checked, derive, front, in_place, operand, operator
from gviz.engine.tensor import Tensor
from gviz.engine.views import apply_in_place

BOOL = np.dtype(np.bool_)
BOTH_BOOLEAN = (
    "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` operator "
    "instead."
)
ONE_BOOLEAN = (
    "{what}, the `-` operator, {how} a bool tensor is not supported. If you are trying to invert a mask, use the `~` "
    "or `logical_not()` operator instead."
)


class Sum(Op):
    """A sum or difference without ``alpha=``, which a node shows as 1."""

    def shown(self) -> dict[str, property]:
        return super().shown() | {"alpha": property(lambda node: 1)}


def _pairs() -> Sequence[Example]:
    return [
        Example((normal(3), normal(3)), {}),
        Example((normal(2, 3), normal(3)), {}),
        Example((normal(2, 1), normal(1, 3)), {}),
        Example((normal(), normal()), {}),
        Example((normal(0, 3), normal(3)), {}),
    ]


add: Op = Sum(
    "add(self, other)",
    grad_fn="AddBackward0",
    formula="self + other",
    forward=operators.add,
    rules=(Rule("self", "g", lambda g: g), Rule("other", "g", lambda g: g)),
    promotes=True,
    in_place=True,
    examples=_pairs,
)
sub: Op = Sum(
    "sub(self, other)",
    grad_fn="SubBackward0",
    formula="self - other",
    forward=operators.sub,
    rules=(Rule("self", "g", lambda g: g), Rule("other", "-g", lambda g: -g)),
    promotes=True,
    in_place=True,
    examples=_pairs,
)
rsub: Op = Sum(
    "rsub(self, other)",
    grad_fn="RsubBackward0",
    formula="other - self",
    forward=lambda self, other: np.subtract(other, self),
    rules=(Rule("self", "-g", lambda g: -g), Rule("other", "g", lambda g: g)),
    promotes=True,
    examples=_pairs,
)
rsub_number: Op = Sum(
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


def _scaled(run: Runner, op: Op, scaled: Op, self: Tensor, other: Tensor | Number, alpha: Number) -> Tensor:
    operands = (self, operand(op, other, self))
    if alpha.__class__ is int and alpha == 1:
        result: Tensor = run(op, operands, {})
        return result
    check_alpha(op, operands, alpha)
    result = run(scaled, operands, {"alpha": alpha})
    return result


for name, op in (("add", add), ("mul", mul), ("radd", add), ("rmul", mul)):
    # A sum and a product commute: a number takes the second place, as in PyTorch.
    front(f"__{name}__", function=False)(operator(op))
front("__imul__", function=False)(in_place(mul))

"""Pointwise arithmetic: sums, products, quotients, remainders, fused steps, rounding, signs.

An operator with a Python number is a separate operation if it is one in PyTorch: its node has one edge.
"""

from __future__ import annotations

import operator as operators
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gviz.engine import messages
from gviz.engine.dtypes import promote
from gviz.engine.functions_and_methods import (
    NUMBERS,
    Number,
    Runner,
    checked,
    derive,
    derive_all,
    front,
    in_place,
    operand,
    operator,
)
from gviz.engine.op import Example, Op, Rule, apply, zero_gradient, zeros
from gviz.engine.ops._declaration import Overloads, on, stepwise
from gviz.engine.ops._examples import normal, positive, spaced
from gviz.engine.ops._kernels import check_broadcast, only
from gviz.engine.ops.comparison import isfinite, where_op
from gviz.engine.ops.elementary_functions import reciprocal
from gviz.engine.pointwise_blocks import scratch
from gviz.engine.tensor import Tensor
from gviz.engine.views import apply_in_place
from gviz.values.value import Array

# ----------------------------------------------------------------------------------------------------------------------
# Arithmetic with numbers inside PyTorch's composite functions: nodes with one edge.


def _by_number(name: str, grad_fn: str, formula: str, forward: Callable[..., Any], rule: Rule) -> Op:
    """Return an op on a floating-point tensor; integers are converted to floating first."""
    return Op(
        f"{name}(self, *, other)",
        grad_fn=grad_fn,
        formula=formula,
        forward=forward,
        rules=(rule,),
        promotes="float",
        in_place=True,
        public=False,
        examples=lambda: [Example((normal(2, 3),), {"other": 2.5})],
    )


plus_number = _by_number(
    "add", "AddBackward1", "self + other", lambda self, other: self + other, Rule("self", "g", lambda g: g)
)
minus_number = _by_number(
    "sub", "SubBackward1", "self - other", lambda self, other: self - other, Rule("self", "g", lambda g: g)
)
times_number = _by_number(
    "mul",
    "MulBackward1",
    "self * other",
    lambda self, other: self * other,
    Rule("self", "g * other", lambda g, other: g * other),
)
over_number = _by_number(
    "div",
    "DivBackward1",
    "self / other",
    lambda self, other: self / other,
    Rule("self", "g / other", lambda g, other: g / other),
)


# ----------------------------------------------------------------------------------------------------------------------
# Sums whose second operand is scaled: ``add(alpha=)`` and similar functions.


def _scaled_op(name: str, grad_fn: str, formula: str, forward: Callable[..., Any], sign: int) -> Op:
    rule = "g * alpha" if sign > 0 else "-g * alpha"
    return Op(
        f"{name}(self, other, *, alpha)",
        grad_fn=grad_fn,
        formula=formula,
        forward=forward,
        write_block=lambda self, other, alpha: _plus_block(self, other, sign * alpha),
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


def _plus(self: Array, other: Array, alpha: Number) -> Array:
    """`self` + `alpha` * `other`, rounded once, like the fused instruction that PyTorch uses."""
    if self.dtype.kind != "f":
        whole: Array = np.add(self, np.multiply(self.dtype.type(alpha), other))
        return whole
    if self.dtype == np.float64:
        return _fused(self, other, alpha)
    # Converting first is faster than `dtype=np.float64`, for which NumPy uses buffers.
    wide = np.multiply(other.astype(np.float64), float(self.dtype.type(alpha)))
    return np.add(self.astype(np.float64), wide).astype(self.dtype)


def _plus_block(self: Array, other: Array, alpha: Number) -> None:
    if self.dtype == np.float64:
        self[...] = _fused(self, other, alpha)
        return
    wide, own = scratch(self.size, np.float64)
    np.copyto(wide, other)
    np.multiply(wide, float(self.dtype.type(alpha)), out=wide)
    np.copyto(own, self)
    np.add(own, wide, out=own)
    np.copyto(self, own, casting="same_kind")


def _fused(self: Array, other: Array, alpha: Number) -> Array:
    """`_plus` in float64: the exact error of the product (Dekker) and that of the sum are added to the sum."""
    product = other * alpha
    high, rest = _halves(other)
    high_alpha, rest_alpha = _halves(np.float64(alpha))
    lost = ((high * high_alpha - product) + high * rest_alpha + rest * high_alpha) + rest * rest_alpha
    total = self + product
    back = total - self
    missed = (self - (total - back)) + (product - back) + lost
    exact: Array = np.where(np.isfinite(missed) & (missed != 0), total + missed, total)  # a sum of -0 stays -0
    return exact


def _halves(value: Any) -> tuple[Any, Any]:
    """Split a float64 into a sum of two numbers with half the digits each (Veltkamp)."""
    shifted = value * 134217729.0  # 2**27 + 1
    high = shifted - (shifted - value)
    return high, value - high


def check_alpha(op: Op, operands: Sequence[Tensor], alpha: object) -> None:
    """Raises TypeError or RuntimeError, with PyTorch's text, for an alpha that does not match the operands."""
    if not isinstance(alpha, (bool, int, float, np.number)):
        raise TypeError(f"{op.name}(): argument 'alpha' must be Number, not {type(alpha).__name__}")
    kind = promote([t._array for t in operands]).kind
    if isinstance(alpha, bool) and kind != "b":
        raise RuntimeError("Boolean alpha only supported for Boolean results.")
    if isinstance(alpha, float) and kind != "f":
        raise RuntimeError("For integral input tensors, argument alpha must not be a floating point number.")


# ----------------------------------------------------------------------------------------------------------------------
# Sums, differences, products.


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
    """A sum or difference without ``alpha``, which a node shows as 1."""

    def saved_properties(self) -> dict[str, property]:
        return super().saved_properties() | {"alpha": property(lambda node: 1)}


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
    pointwise=True,
    examples=lambda: [Example((normal(2, 3),), {})],
)
unary_plus: Op = Op(
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
    """-`input`. Raises RuntimeError for booleans."""
    result: Tensor = apply(neg, (_negatable(checked(neg, input, 1)),))
    return result


@front("neg_", "negative_", function=False)
def neg_in_place(self: Tensor) -> Tensor:
    """Negates in place."""
    return apply_in_place(neg, (_negatable(self),), {})


@front("positive", "__pos__")
def positive_front(input: Tensor) -> Tensor:
    """Returns `input`. Raises RuntimeError for booleans."""
    if checked(unary_plus, input, 1)._array.dtype is BOOL:
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return input


@front("add")
def add_front(input: Tensor | Number, other: Tensor | Number, *, alpha: Number = 1) -> Tensor:
    """`input` + `alpha` * `other`."""
    return _scaled(apply, add, add_scaled, _first(add, input, other), other, alpha)


@front("add_", "__iadd__", function=False)
def add_in_place(self: Tensor, other: Tensor | Number, *, alpha: Number = 1) -> Tensor:
    """Adds `alpha` * `other` in place."""
    return _scaled(apply_in_place, add, add_scaled, self, other, alpha)


@front("sub", "subtract")
def sub_front(input: Tensor | Number, other: Tensor | Number, alpha: Number = 1) -> Tensor:
    """`input` - `alpha` * `other`. Raises RuntimeError for booleans."""
    first = _first(sub, input, other)
    _refuse_booleans(first, other)
    return _scaled(apply, sub, sub_scaled, first, other, alpha)


@front("sub_", "subtract_", "__isub__", function=False)
def sub_in_place(self: Tensor, other: Tensor | Number, alpha: Number = 1) -> Tensor:
    """Subtracts `alpha` * `other` in place."""
    _refuse_booleans(self, other)
    return _scaled(apply_in_place, sub, sub_scaled, self, other, alpha)


@front("rsub", method=False)
def rsub_front(input: Tensor, other: Tensor | Number, alpha: Number = 1) -> Tensor:
    """`other` - `alpha` * `input`."""
    _refuse_booleans(checked(rsub, input, 1), other)
    if isinstance(other, Tensor):
        return _scaled(apply, rsub, rsub_scaled, input, other, alpha)
    return _scaled(apply, rsub_number, rsub_number_scaled, input, other, alpha)


@front("__sub__", function=False)
def minus(self: Tensor, other: Tensor | Number) -> Tensor:
    """``self - other``."""
    if self._array.dtype is BOOL or other is True or other is False or _is_boolean(other):
        _refuse_booleans(self, other)
    return _minus(self, other)


@front("__rsub__", function=False)
def minus_from(self: Tensor, other: Number) -> Tensor:
    """``other - self`` for a number."""
    if self._array.dtype is BOOL or other is True or other is False:
        _refuse_booleans(self, other)
    return _minus_from(self, other)


_minus, _minus_from = operator(sub), operator(rsub_number)


def _is_boolean(value: object) -> bool:
    return isinstance(value, Tensor) and value._array.dtype is BOOL


def _refuse_booleans(self: Tensor, other: Any) -> None:
    """Raise RuntimeError, with PyTorch's text, if an operand of a subtraction is boolean."""
    booleans = [_is_boolean(self), _is_boolean(other) or isinstance(other, bool)]
    if any(booleans):
        raise RuntimeError(BOTH_BOOLEAN if all(booleans) else ONE_BOOLEAN.format(what="Subtraction", how="with"))


def _negatable(self: Tensor) -> Tensor:
    if self._array.dtype is BOOL:
        raise RuntimeError(ONE_BOOLEAN.format(what="Negation", how="on"))
    return self


def _first(op: Op, input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """Return the first operand, which may be a number if the second is a tensor."""
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
    # A sum and a product commute: a number becomes the second operand, as in PyTorch.
    front(f"__{name}__", function=False)(operator(op))
front("__imul__", function=False)(in_place(mul))


# ----------------------------------------------------------------------------------------------------------------------
# Quotients and remainders.


def _quotient_examples() -> Sequence[Example]:
    return [Example((normal(2, 3), positive(3)), {}), Example((normal(), positive(2)), {})]


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
    examples=_quotient_examples,
)


def _by_whole(kernel: str, divide: Callable[..., Any]) -> Callable[..., Any]:
    """`divide` with an error for integers divided by zero."""

    def forward(self: Array, other: Array) -> Any:
        if other.dtype.kind != "f" and not np.all(other) and np.broadcast(self, other).size:
            raise RuntimeError("ZeroDivisionError")
        return divide(self, other)

    return only("uif", kernel, forward)


def _floored(self: Array, other: Array) -> Any:
    return np.floor_divide(self, other)


def _truncated(self: Array, other: Array) -> Any:
    if self.dtype.kind == "f":
        return np.trunc(self / other)
    quotient = np.floor_divide(self, other)
    return quotient + ((quotient < 0) & (quotient * other != self))


WHOLE = {
    "floor": _by_whole("div_floor_cpu", _floored),
    "trunc": _by_whole("div_trunc_cpu", _truncated),
}


def _quotient(self: Array, other: Array, rounding_mode: str | None) -> Any:
    return np.true_divide(self, other) if rounding_mode is None else WHOLE[rounding_mode](self, other)


def _by_dividend(g: Any, other: Any, rounding_mode: str | None) -> Any:
    return g / other if rounding_mode is None else zero_gradient(g)


def _by_divisor(g: Any, self: Any, other: Any, rounding_mode: str | None) -> Any:
    return div.rules[1].vjp(g, self, other) if rounding_mode is None else zero_gradient(g)


def _rounded_quotient(promotes: Any, *examples: str | None) -> Op:
    return Op(
        "div(self, other, *, rounding_mode)",
        grad_fn="DivBackward2",
        formula="self / other, rounded as rounding_mode says",
        forward=_quotient,
        rules=(
            Rule("self", "g / other, 0 if rounded", _by_dividend),
            Rule("other", "-g * self / other**2, 0 if rounded", _by_divisor),
        ),
        promotes=promotes,
        in_place=True,
        public=False,
        torch="div",
        examples=lambda: [Example((normal(2, 3) * 5, positive(3)), {"rounding_mode": mode}) for mode in examples],
    )


rounded, unrounded = _rounded_quotient(True, "floor", "trunc"), _rounded_quotient("float", None)


def _no_derivative_of(name: str) -> Callable[[Any], Any]:
    def vjp(g: Any) -> Any:
        raise RuntimeError(messages.NOT_IMPLEMENTED.format(name=name))

    return vjp


def _floor_divide(*slots: str) -> Op:
    return Op(
        "floor_divide(self, other)",
        grad_fn="NotImplemented",
        formula="floor(self / other)",
        forward=WHOLE["floor"],
        rules=[Rule(slot, "none", _no_derivative_of("floor_divide")) for slot in slots],
        promotes=True,
        in_place=True,
        public=False,
        torch="floor_divide",
        examples=_quotient_examples,
    )


floor_divide, floor_divide_number = _floor_divide("self", "other"), _floor_divide("self")
number_floor_divided = _floor_divide("other")


def _left_over(name: str, grad_fn: str, forward: Callable[..., Any], mode: str, *slots: str) -> Op:
    """``remainder`` or ``fmod``: the remainder of a division rounded by `mode`."""
    rules = (
        Rule("self", "g", lambda g: g),
        Rule(
            "other",
            f"-g * {mode}(self / other)",
            lambda g, self, other: -g * rounded(self, other, rounding_mode=mode),
        ),
    )
    return Op(
        f"{name}(self, other)",
        grad_fn=grad_fn,
        formula=f"self - {mode}(self / other) * other",
        forward=_by_whole(f"{name}_cpu", forward),
        rules=[rule for rule in rules if rule.slot in slots],
        promotes=True,
        in_place=True,
        public=False,
        torch=name if len(slots) == 2 else "",
        examples=_quotient_examples,
    )


def _remainder(self: Array, other: Array) -> Any:
    """The remainder with the sign of the divisor; a remainder of 0 has the sign of the dividend, unlike NumPy's."""
    left: Any = np.fmod(self, other)
    return np.where((left != 0) & ((other < 0) != (left < 0)), left + other, left)


remainder = _left_over("remainder", "RemainderBackward1", _remainder, "floor", "self", "other")
remainder_number = _left_over("remainder", "RemainderBackward0", _remainder, "floor", "self")
fmod = _left_over("fmod", "FmodBackward1", np.fmod, "trunc", "self", "other")
fmod_number = _left_over("fmod", "FmodBackward0", np.fmod, "trunc", "self")
number_remainder: Op = Op(
    "remainder(self, other)",
    grad_fn="NotImplemented",
    formula=remainder.formula,
    forward=remainder.forward,
    rules=(Rule("other", "none", _no_derivative_of("remainder")),),
    promotes=True,
    public=False,
)

for name, overloads in (
    ("mod", Overloads(remainder, remainder_number, number_remainder)),
    ("floordiv", Overloads(floor_divide, floor_divide_number, number_floor_divided)),
):
    overloads.offer()
    overloads.offer_operator(name)
Overloads(fmod, fmod_number).offer()


@front("div", "divide")
def div_front(input: Tensor | Number, other: Tensor | Number, *, rounding_mode: str | bool | None = False) -> Tensor:
    """`input` / `other`; rounded down or towards 0 with a `rounding_mode` of ``floor`` or ``trunc``."""
    first = operand(div, input, other, 1) if isinstance(other, Tensor) else checked(div, input, 1)
    return _divided(apply, first, other, rounding_mode)


@front("div_", "divide_", function=False)
def div_in_place(self: Tensor, other: Tensor | Number, *, rounding_mode: str | bool | None = False) -> Tensor:
    """Divides in place."""
    return _divided(apply_in_place, self, other, rounding_mode)


@front("true_divide")
def true_divide(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """`input` / `other`."""
    return div_front(input, other)


@front("true_divide_", "__itruediv__", function=False)
def true_divide_in_place(self: Tensor, other: Tensor | Number) -> Tensor:
    """Divides in place."""
    return div_in_place(self, other)


@front("__rtruediv__", function=False)
def divided_by(self: Tensor, other: Number) -> Tensor:
    """A number divided by a tensor: its reciprocal times the number, as in PyTorch."""
    if not isinstance(other, (*NUMBERS, np.ndarray)):
        return NotImplemented
    result: Tensor = reciprocal(self) * other
    return result


def _divided(run: Runner, self: Tensor, other: Tensor | Number, rounding_mode: str | bool | None) -> Tensor:
    operands = (self, operand(div, other, self))
    if rounding_mode is False:  # omitted, which makes another node than None
        result: Tensor = run(div, operands, {})
        return result
    if rounding_mode not in (None, *WHOLE):
        raise RuntimeError(
            f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'"
        )
    result = run(unrounded if rounding_mode is None else rounded, operands, {"rounding_mode": rounding_mode})
    return result


front("__truediv__", function=False)(operator(div))


# ----------------------------------------------------------------------------------------------------------------------
# Several steps of arithmetic in one operation.


def _triples(attrs: dict[str, Any]) -> Sequence[Example]:
    return [Example((normal(2, 3), normal(3), positive(2, 1)), attrs), Example((normal(), normal(), positive()), attrs)]


def _addcmul(self: Array, tensor1: Array, tensor2: Array, value: Number) -> Any:
    check_broadcast(self, tensor1, tensor2)
    return self + self.dtype.type(value) * tensor1 * tensor2


def _addcdiv(self: Array, tensor1: Array, tensor2: Array, value: Number) -> Any:
    check_broadcast(self, tensor1, tensor2)
    return self + self.dtype.type(value) * tensor1 / tensor2


def _addcmul_block(self: Array, tensor1: Array, tensor2: Array, value: Number) -> None:
    product, _ = scratch(self.size, self.dtype)
    np.multiply(tensor1, self.dtype.type(value), out=product)
    np.multiply(product, tensor2, out=product)
    np.add(self, product, out=self)


def _addcdiv_block(self: Array, tensor1: Array, tensor2: Array, value: Number) -> None:
    quotient, _ = scratch(self.size, self.dtype)
    np.multiply(tensor1, self.dtype.type(value), out=quotient)
    np.divide(quotient, tensor2, out=quotient)
    np.add(self, quotient, out=self)


INTEGER_ADDCDIV = (
    "Integer division with addcdiv is no longer supported, and in a future  release addcdiv will perform a true "
    "division of tensor1 and tensor2. The historic addcdiv behavior can be implemented as (input + value * "
    "torch.trunc(tensor1 / tensor2)).to(input.dtype) for integer inputs and as (input + value * tensor1 / tensor2) "
    "for float inputs. The future addcdiv behavior is just the latter implementation: (input + value * tensor1 / "
    "tensor2), for all dtypes."
)
addcmul: Op = Op(
    "addcmul(self, tensor1, tensor2, *, value=1)",
    grad_fn="AddcmulBackward0",
    formula="self + value * tensor1 * tensor2",
    pointwise=True,
    forward=only("uif", "addcmul_cpu_out", _addcmul),
    write_block=_addcmul_block,
    rules=(
        Rule("self", "g", lambda g: g),
        Rule("tensor1", "g * tensor2 * value", lambda g, tensor2, value: g * (tensor2 * value)),
        Rule("tensor2", "g * tensor1 * value", lambda g, tensor1, value: g * (tensor1 * value)),
    ),
    promotes=True,
    in_place=True,
    examples=lambda: _triples({"value": 2.5}),
)
addcdiv: Op = Op(
    "addcdiv(self, tensor1, tensor2, *, value=1)",
    grad_fn="AddcdivBackward0",
    formula="self + value * tensor1 / tensor2",
    pointwise=True,
    forward=_addcdiv,
    write_block=_addcdiv_block,
    rules=(
        Rule("self", "g", lambda g: g),
        Rule("tensor1", "g * value / tensor2", lambda g, tensor2, value: g * (value / tensor2)),
        Rule(
            "tensor2",
            "-g * value * tensor1 / tensor2**2",
            lambda g, tensor1, tensor2, value: -g * (value * tensor1 / (tensor2 * tensor2)),
        ),
    ),
    promotes=True,
    in_place=True,
    examples=lambda: _triples({"value": 2.5}),
)


def _between(self: Array, end: Array, weight: Any) -> Any:
    """Interpolates from whichever end is closer, as PyTorch does."""
    if isinstance(weight, np.ndarray) and weight.dtype != self.dtype:
        weight = weight.astype(self.dtype)
    check_broadcast(self, end, *([weight] if isinstance(weight, np.ndarray) else []))
    share = self.dtype.type(weight) if not isinstance(weight, np.ndarray) else weight
    near = np.abs(share) < 0.5
    if near.ndim == 0:
        return self + share * (end - self) if near else end - (end - self) * (1 - share)
    return np.where(near, self + share * (end - self), end - (end - self) * (1 - share))


def _between_block(self: Array, end: Array, weight: Number) -> None:
    share, (part, _) = self.dtype.type(weight), scratch(self.size, self.dtype)
    np.subtract(end, self, out=part)
    if np.abs(share) < 0.5:
        np.multiply(part, share, out=part)
        np.add(self, part, out=self)
    else:
        np.multiply(part, 1 - share, out=part)
        np.subtract(end, part, out=self)


lerp_number: Op = Op(
    "lerp(self, end, *, weight)",
    grad_fn="LerpBackward0",
    formula="self + weight * (end - self)",
    pointwise=True,
    forward=only("f", "lerp_kernel_scalar", _between),
    write_block=_between_block,
    rules=(
        Rule("self", "g * (1 - weight)", lambda g, weight: g * (1 - weight)),
        Rule("end", "g * weight", lambda g, weight: g * weight),
    ),
    in_place=True,
    public=False,
    torch="lerp",
    examples=lambda: [Example((normal(2, 3), normal(3)), {"weight": w}) for w in (0.25, 0.75)],
)
lerp: Op = Op(
    "lerp(self, end, weight)",
    grad_fn="LerpBackward1",
    formula="self + weight * (end - self)",
    pointwise=True,
    forward=only("f", "lerp_kernel_tensor", _between),
    rules=(
        Rule("self", "g * (1 - weight)", lambda g, weight: g * (1 - weight)),
        Rule("end", "g * weight", lambda g, weight: g * weight),
        Rule("weight", "g * (end - self)", lambda g, self, end: g * (end - self)),
    ),
    in_place=True,
    public=False,
    torch="lerp",
    examples=lambda: _triples({}),
)

derive(addcmul, numbers=False)


@front("addcdiv")
def addcdiv_front(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Number = 1) -> Tensor:
    """``input + value * tensor1 / tensor2``."""
    return _addcdiv_of(apply, input, tensor1, tensor2, value)


@front("addcdiv_", function=False)
def addcdiv_in_place(self: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Number = 1) -> Tensor:
    """Adds ``value * tensor1 / tensor2`` in place."""
    return _addcdiv_of(apply_in_place, self, tensor1, tensor2, value)


def _addcdiv_of(run: Runner, self: Tensor, tensor1: Tensor, tensor2: Tensor, value: Number) -> Tensor:
    operands = tuple([checked(addcdiv, tensor, n) for n, tensor in enumerate((self, tensor1, tensor2), 1)])
    if not (tensor1.dtype.is_floating_point or tensor2.dtype.is_floating_point):
        raise RuntimeError(INTEGER_ADDCDIV)
    result: Tensor = run(addcdiv, operands, {"value": value})
    return result


@front("lerp")
def lerp_front(input: Tensor, end: Tensor, weight: Tensor | Number) -> Tensor:
    """Interpolates linearly from `input` to `end` by `weight`, a number or a tensor."""
    return _lerp(apply, input, end, weight)


@front("lerp_", function=False)
def lerp_in_place(self: Tensor, end: Tensor, weight: Tensor | Number) -> Tensor:
    """Interpolates to `end` by `weight` in place."""
    return _lerp(apply_in_place, self, end, weight)


def _lerp(run: Runner, self: Tensor, end: Tensor, weight: Tensor | Number) -> Tensor:
    operands = (checked(lerp, self, 1), checked(lerp, end, 2))
    others = [("end", end), *([("weight", weight)] if isinstance(weight, Tensor) and weight.ndim else [])]
    for name, other in others:  # before memory and kernel, as PyTorch does
        if other.dtype is not self.dtype:
            kinds = f"expected dtype {self.dtype.cpp_name} for `{name}` but got dtype {other.dtype.cpp_name}"
            raise RuntimeError(kinds)
    if isinstance(weight, Tensor):
        result: Tensor = run(lerp, (*operands, weight), {})
        return result
    result = run(lerp_number, operands, {"weight": weight})
    return result


# ----------------------------------------------------------------------------------------------------------------------
# Rounding to whole numbers, and their fractional parts.


def _of_floats(kernel: str, function: Callable[[Array], Any]) -> Callable[..., Any]:
    """`function` applied to floating numbers; integers are returned as they are."""
    return only("uif", kernel, lambda self: function(self) if self.dtype.kind == "f" else self.copy())


floor = stepwise("floor", "FloorBackward0", "self, rounded down", _of_floats("floor_vml_cpu", np.floor))
ceil = stepwise("ceil", "CeilBackward0", "self, rounded up", _of_floats("ceil_vml_cpu", np.ceil))
trunc = stepwise("trunc", "TruncBackward0", "self without its fraction", _of_floats("trunc_vml_cpu", np.trunc))
round_whole = stepwise(
    "round", "RoundBackward0", "self, rounded to a whole number, halves to even", _of_floats("round_vml_cpu", np.rint)
)


def _to_decimals(self: Array, decimals: int) -> Any:
    wide = self.astype(np.float32) if self.dtype == np.float16 else self
    scale = wide.dtype.type(10.0 ** abs(decimals))
    rounded = np.rint(wide * scale) / scale if decimals > 0 else np.rint(wide / scale) * scale
    return rounded.astype(self.dtype, copy=False)


round_decimals: Op = Op(
    "round(self, *, decimals)",
    grad_fn="RoundBackward1",
    formula="self, rounded to decimals",
    forward=only("f", "round_cpu", _to_decimals),
    rules=(Rule("self", "0", zero_gradient),),
    in_place=True,
    pointwise=True,
    public=False,
    examples=lambda: [Example((spaced(2, 3) * 1.01,), {"decimals": d}) for d in (1, -1)],
)
frac: Op = Op(
    "frac(self)",
    grad_fn="FracBackward0",
    formula="the fraction of self",
    forward=only("f", "frac_cpu", lambda self: self - np.trunc(self)),
    rules=(Rule("self", "g", lambda g: g),),
    in_place=True,
    pointwise=True,
    examples=on(lambda *shape: spaced(*shape) * 1.01),
)

derive_all(floor, ceil, frac)
derive(trunc, "fix")


@front("round")
def round_front(input: Tensor, *, decimals: int = 0) -> Tensor:
    """`input` rounded to `decimals` decimal places, halves to the even digit."""
    return _round(apply, input, decimals)


@front("round_", function=False)
def round_in_place(self: Tensor, *, decimals: int = 0) -> Tensor:
    """Rounds in place."""
    return _round(apply_in_place, self, decimals)


def _round(run: Runner, self: Tensor, decimals: int) -> Tensor:
    attrs = {"decimals": decimals} if decimals else {}
    result: Tensor = run(round_decimals if decimals else round_whole, (self,), attrs)
    return result


# ----------------------------------------------------------------------------------------------------------------------
# Signs of numbers, and nan.


def _sign(self: Array) -> Any:
    """-1, 0 or 1; 0 for nan."""
    if self.dtype.kind == "b":
        return self.copy()
    return np.greater(self, 0).astype(self.dtype) - np.less(self, 0).astype(self.dtype)


sign = stepwise("sign", "SignBackward0", "sign of self", _sign)
sgn: Op = Op(
    "sgn(self)",
    grad_fn="SgnBackward0",
    formula="sign of self",
    pointwise=True,
    forward=_sign,
    rules=(Rule("self", "0", lambda g, self, result: zero_gradient(g)),),  # only for complex numbers
    in_place=True,
    public=False,
    examples=on(spaced),
)
absolute: Op = Op(
    "abs(self)",
    grad_fn="AbsBackward0",
    formula="|self|",
    pointwise=True,
    forward=only("uif", "abs_cpu", np.abs),
    rules=(Rule("self", "g * sign(self)", lambda g, self: g * sign(self)),),
    in_place=True,
    examples=on(spaced),
)


def _as_signed(g: Any, self: Any, result: Any) -> Any:
    return g * where_op(self == 0, zeros(g, ()), result / self)


def _copysign(grad_fn: str, *rules: Rule) -> Op:
    return Op(
        "copysign(self, other)",
        grad_fn=grad_fn,
        formula="|self| with the sign of other",
        forward=np.copysign,
        rules=(Rule("self", "g with the sign it gave self, 0 where self is 0", _as_signed), *rules),
        promotes="float",
        public=False,
        examples=lambda: [Example((spaced(2, 3), spaced(3)), {})],
    )


copysign = _copysign("CopysignBackward0", Rule("other", "0", zero_gradient))
copysign_number = _copysign("CopysignBackward1")


def _nan_to_num(self: Array, nan: float | None, posinf: float | None, neginf: float | None) -> Any:
    if self.dtype.kind != "f":
        return self.copy()
    return np.nan_to_num(self, nan=0.0 if nan is None else nan, posinf=posinf, neginf=neginf)


nan_to_num: Op = Op(
    "nan_to_num(self, *, nan=None, posinf=None, neginf=None)",
    grad_fn="NanToNumBackward0",
    formula="self, with nan and infinities replaced",
    pointwise=True,
    forward=_nan_to_num,
    rules=(Rule("self", "g where self is finite, else 0", lambda g, self: where_op(isfinite(self), g, zeros(g, ()))),),
    in_place=True,
    examples=lambda: [Example((spaced(2, 3),), {"nan": 1.5, "posinf": None, "neginf": None})],
)
signbit: Op = Op(
    "signbit(self)",
    grad_fn="",
    formula="self has a minus",
    pointwise=True,
    forward=lambda self: np.signbit(self) if self.dtype.kind == "f" else np.less(self, 0),
)


def _no_derivative_of_heaviside(g: Any) -> Any:
    raise RuntimeError("derivative for aten::heaviside is not implemented")


def _heaviside(self: Array, values: Array) -> Any:
    if self.dtype != values.dtype:
        raise RuntimeError("heaviside is not yet implemented for tensors with different dtypes.")
    check_broadcast(self, values)
    return np.where(self == 0, values, (self > 0).astype(self.dtype))


heaviside: Op = Op(
    "heaviside(self, values)",
    grad_fn="NotImplemented",
    formula="0 below 0, values at 0, 1 above",
    pointwise=True,
    forward=_heaviside,
    rules=(Rule("self", "none", _no_derivative_of_heaviside), Rule("values", "none", _no_derivative_of_heaviside)),
    in_place=True,
    examples=lambda: [Example((spaced(2, 3), positive(3)), {})],
)

derive_all(sign, sgn, nan_to_num, signbit)
derive(absolute, "absolute")
derive(heaviside, numbers=False)
Overloads(copysign, copysign_number).offer()
front("__abs__", function=False)(Tensor.abs)

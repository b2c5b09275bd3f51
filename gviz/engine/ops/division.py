"""Quotients and remainders."""

from __future__ import annotations

import operator as operators
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gviz.engine import messages
from gviz.engine.apply import apply
from gviz.engine.op import Example, Op, Rule
from gviz.engine.ops.examples import normal, positive
from gviz.engine.ops.kernels import only
from gviz.engine.ops.overloads import Overloads
from gviz.engine.ops.powers import reciprocal
from gviz.engine.ops.unary import nothing
from gviz.engine.surface import Number, Runner, checked, front, operand, operator
from gviz.engine.tensor import Tensor
from gviz.engine.views import apply_in_place
from gviz.values import Array


def _pairs() -> Sequence[Example]:
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
    examples=_pairs,
)


def _by_whole(kernel: str, divide: Callable[..., Any]) -> Callable[..., Any]:
    """`divide`, which raises for integers divided by zero."""

    def forward(self: Array, other: Array) -> Any:
        if other.dtype.kind != "f" and not np.all(other):
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
    return g / other if rounding_mode is None else nothing(g)


def _by_divisor(g: Any, self: Any, other: Any, rounding_mode: str | None) -> Any:
    return div.rules[1].vjp(g, self, other) if rounding_mode is None else nothing(g)


def _rounded(promotes: Any, *examples: str | None) -> Op:
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


rounded, unrounded = _rounded(True, "floor", "trunc"), _rounded("float", None)


def _unknown(name: str) -> Callable[[Any], Any]:
    def vjp(g: Any) -> Any:
        raise RuntimeError(messages.NOT_IMPLEMENTED.format(name=name))

    return vjp


def _floor_divide(*slots: str) -> Op:
    return Op(
        "floor_divide(self, other)",
        grad_fn="NotImplemented",
        formula="floor(self / other)",
        forward=WHOLE["floor"],
        rules=[Rule(slot, "none", _unknown("floor_divide")) for slot in slots],
        promotes=True,
        in_place=True,
        public=False,
        torch="floor_divide",
        examples=_pairs,
    )


floor_divide, floor_divide_number = _floor_divide("self", "other"), _floor_divide("self")
number_floor_divided = _floor_divide("other")


def _left_over(name: str, grad_fn: str, forward: Callable[..., Any], mode: str, *slots: str) -> Op:
    """``remainder`` or ``fmod``: what is left after a division that was rounded as `mode` says."""
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
        examples=_pairs,
    )


remainder = _left_over("remainder", "RemainderBackward1", np.remainder, "floor", "self", "other")
remainder_number = _left_over("remainder", "RemainderBackward0", np.remainder, "floor", "self")
fmod = _left_over("fmod", "FmodBackward1", np.fmod, "trunc", "self", "other")
fmod_number = _left_over("fmod", "FmodBackward0", np.fmod, "trunc", "self")
number_remainder: Op = Op(
    "remainder(self, other)",
    grad_fn="NotImplemented",
    formula=remainder.formula,
    forward=remainder.forward,
    rules=(Rule("other", "none", _unknown("remainder")),),
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
    """Divide in place."""
    return _divided(apply_in_place, self, other, rounding_mode)


@front("true_divide")
def true_divide(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """`input` / `other`."""
    return div_front(input, other)


@front("true_divide_", "__itruediv__", function=False)
def true_divide_in_place(self: Tensor, other: Tensor | Number) -> Tensor:
    """Divide in place."""
    return div_in_place(self, other)


@front("__rtruediv__", function=False)
def divided_by(self: Tensor, other: Number) -> Tensor:
    """A number divided by a tensor: its reciprocal times the number, as PyTorch does it."""
    result: Tensor = reciprocal(self) * other
    return result


def _divided(run: Runner, self: Tensor, other: Tensor | Number, rounding_mode: str | bool | None) -> Tensor:
    operands = (self, operand(div, other, self))
    if rounding_mode is False:  # not given, which makes another node than None does
        result: Tensor = run(div, operands, {})
        return result
    if rounding_mode not in (None, *WHOLE):
        raise RuntimeError(
            f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'"
        )
    result = run(unrounded if rounding_mode is None else rounded, operands, {"rounding_mode": rounding_mode})
    return result


front("__truediv__", function=False)(operator(div))

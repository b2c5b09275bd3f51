"""Short forms of declarations: functions of one tensor, operators with a number, functions with an in-place variant."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from gviz.engine.functions_and_methods import NUMBERS, Number, checked, front, number
from gviz.engine.op import Attrs, Example, Op, Rule, apply, zero_gradient
from gviz.engine.ops._examples import spaced
from gviz.engine.tensor import Tensor
from gviz.engine.views import apply_in_place
from gviz.values.value import Array

# ----------------------------------------------------------------------------------------------------------------------
# Short declarations for pointwise functions of one tensor.


Examples = Callable[[], Sequence[Example]]


def on(*arrays: Callable[..., Array]) -> Examples:
    """Examples of one tensor each, in two shapes, drawn from each of the generators."""
    return lambda: [Example((make(*shape),), {}) for make in arrays for shape in ((), (2, 3))]


def smooth(
    name: str, grad_fn: str, forward: Callable[..., Any], derivative: str, vjp: Callable[..., Any], examples: Examples
) -> Op:
    """Declares a differentiable function, also in place; integers are converted to floating numbers first."""
    return Op(
        f"{name}(self)",
        grad_fn=grad_fn,
        formula=f"{name}(self)",
        forward=forward,
        rules=(Rule("self", derivative, vjp),),
        promotes="float",
        in_place=True,
        examples=examples,
    )


def stepwise(name: str, grad_fn: str, formula: str, forward: Callable[..., Any]) -> Op:
    """Declares a piecewise constant function, also in place; its gradient is zero."""
    return Op(
        f"{name}(self)",
        grad_fn=grad_fn,
        formula=formula,
        forward=forward,
        rules=(Rule("self", "0", zero_gradient),),
        in_place=True,
        pointwise=True,
        examples=on(spaced),
    )


# ----------------------------------------------------------------------------------------------------------------------
# One name for several ops: of two tensors, of a tensor and a number, of a number and a tensor.


@dataclass(frozen=True, slots=True)
class Overloads:
    """The ops that share a name; without `of_number` the left operand must be a tensor."""

    of_tensors: Op
    by_number: Op
    of_number: Op | None = None

    def offer(self, *aliases: str, in_place: bool = True) -> None:
        """Makes them public as a function and a method, also in place."""

        def function(input: Tensor | Number, other: Tensor | Number) -> Tensor:
            result: Tensor = apply(*self.chosen(input, other))
            return result

        def method(self_: Tensor, other: Tensor | Number) -> Tensor:
            return apply_in_place(*self.chosen(self_, other), {})

        names = (self.of_tensors.name, *aliases)
        function.__name__ = function.__qualname__ = names[0]
        front(*names)(function)
        if in_place:
            method.__name__ = method.__qualname__ = names[0] + "_"
            front(*(name + "_" for name in names), function=False)(method)

    def offer_operator(self, name: str) -> None:
        """Makes them the operator called `name`, also for a number on the left, and in place."""

        def operator(self_: Tensor, other: object) -> Any:
            return apply(*self.chosen(self_, other)) if isinstance(other, (Tensor, *NUMBERS)) else NotImplemented

        def reflected(self_: Tensor, other: object) -> Any:
            return apply(*self.chosen(other, self_)) if isinstance(other, NUMBERS) else NotImplemented

        def in_place(self_: Tensor, other: object) -> Any:
            if not isinstance(other, (Tensor, *NUMBERS)):
                return NotImplemented
            return apply_in_place(*self.chosen(self_, other), {})

        for prefix, method in (("", operator), ("r", reflected), ("i", in_place)):
            front(f"__{prefix}{name}__", function=False)(method)

    def chosen(self, input: Any, other: Any) -> tuple[Op, tuple[Tensor, Tensor]]:
        """The op for two operands, and these as tensors. Raises TypeError if no op accepts them."""
        if isinstance(other, Tensor):
            if self.of_number is not None and isinstance(input, NUMBERS):
                return self.of_number, (number(input, other._array), other)
            return self.of_tensors, (checked(self.of_tensors, input, 1), other)
        tensor = checked(self.of_tensors, input, 1)
        if not isinstance(other, NUMBERS):
            checked(self.of_tensors, other, 2)
        return self.by_number, (tensor, number(other, tensor._array))


# ----------------------------------------------------------------------------------------------------------------------
# Defines a function and its in-place method with common preparation of their arguments.


Prepared = tuple[Op, Sequence[Tensor], Attrs] | tuple[Op, Sequence[Tensor], Attrs, Callable[[], None]]
"""The op, its tensors, its attributes; and a check of values, which PyTorch makes after that of overlapping memory."""
Prepare = Callable[..., Prepared]


def with_in_place_method(*names: str, before: Callable[..., None] | None = None) -> Callable[[Prepare], Prepare]:
    """Makes a prepared op public as ``torch.<name>``, ``Tensor.<name>`` and ``Tensor.<name>_``.

    Where PyTorch checks arguments in another order or in other words in place, `before` does so.
    """

    def offer(prepare: Prepare) -> Prepare:
        front(*names)(_running(prepare, _apply, names[0]))
        in_place = _running(prepare, apply_in_place, names[0] + "_", before)
        front(*[name + "_" for name in names], function=False)(in_place)
        return prepare

    return offer


def _apply(op: Op, tensors: Sequence[Tensor], attrs: Attrs, check: Callable[[], None] | None = None) -> Any:
    if check is not None:
        check()
    return apply(op, tensors, attrs)


def _running(
    prepare: Prepare, run: Callable[..., Any], name: str, before: Callable[..., None] | None = None
) -> Callable[..., Tensor]:
    def function(*args: Any, **kwargs: Any) -> Tensor:
        if before is not None:
            before(*args, **kwargs)
        result: Tensor = run(*prepare(*args, **kwargs))
        return result

    function.__name__, function.__doc__ = name, prepare.__doc__
    signature = inspect.signature(prepare).replace(return_annotation="Tensor")
    function.__signature__ = signature  # type: ignore[attr-defined]  # every function may have one
    return function

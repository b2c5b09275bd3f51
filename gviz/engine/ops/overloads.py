"""One name for several ops: of two tensors, of a tensor and a number, of a number and a tensor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gviz.engine.apply import apply
from gviz.engine.op import Op
from gviz.engine.surface import Number, checked, front, number
from gviz.engine.tensor import Tensor
from gviz.engine.views import apply_in_place

NUMBERS = (bool, int, float, np.number)


@dataclass(frozen=True, slots=True)
class Overloads:
    """The ops that share a name; without `of_number` the left operand must be a tensor."""

    of_tensors: Op
    by_number: Op
    of_number: Op | None = None

    def offer(self, *aliases: str, in_place: bool = True) -> None:
        """Make them a function and a method, in place too."""

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
        """Make them the operator called `name`, also for a number on the left, and in place."""

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
        """The op for two operands, and these as tensors. TypeError if they are not fit for any."""
        if isinstance(other, Tensor):
            if self.of_number is not None and isinstance(input, NUMBERS):
                return self.of_number, (number(input, other._array), other)
            return self.of_tensors, (checked(self.of_tensors, input, 1), other)
        tensor = checked(self.of_tensors, input, 1)
        if not isinstance(other, NUMBERS):
            checked(self.of_tensors, other, 2)
        return self.by_number, (tensor, number(other, tensor._array))

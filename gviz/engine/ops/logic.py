"""Logic of truth values, and of the bits of integers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gviz.engine.apply import apply
from gviz.engine.op import Op
from gviz.engine.ops.kernels import Forward, only, refuse_unless
from gviz.engine.surface import derive, derive_all, front, in_place, operator, reflected
from gviz.engine.tensor import Tensor
from gviz.values import Array

logical_not: Op = Op("logical_not(self)", grad_fn="", formula="not self", forward=np.logical_not, in_place=True)


def _logical(name: str, word: str, forward: Callable[..., Any]) -> Op:
    return Op(
        f"logical_{name}(self, other)",
        grad_fn="",
        formula=f"self {word} other",
        forward=forward,
        promotes=True,
        in_place=True,
    )


logical_and = _logical("and", "and", np.logical_and)
logical_or = _logical("or", "or", np.logical_or)
logical_xor = _logical("xor", "or else", np.logical_xor)

bitwise_not: Op = Op(
    "bitwise_not(self)", grad_fn="", formula="~self", forward=only("bui", "bitwise_not_cpu", np.invert), in_place=True
)


def _bitwise(name: str, sign: str, forward: Forward) -> Op:
    return Op(
        f"bitwise_{name}(self, other)",
        grad_fn="",
        formula=f"self {sign} other",
        forward=forward,
        promotes=True,
        in_place=True,
    )


def _shift(kernel: str, forward: Callable[[Array, Array, Array], Any]) -> Forward:
    def shifted(self: Array, other: Array) -> Any:
        refuse_unless(self.dtype.kind in "ui", kernel, self)
        beyond = np.less(other, 0) | np.greater_equal(other, self.dtype.itemsize * 8)
        return forward(self, np.where(beyond, np.zeros((), other.dtype), other), beyond)

    return shifted


def _right(self: Array, other: Array, beyond: Array) -> Any:
    return np.where(beyond, np.less(self, 0) * np.array(-1).astype(self.dtype), np.right_shift(self, other))


bitwise_and = _bitwise("and", "&", only("bui", "bitwise_and_cpu", np.bitwise_and))
bitwise_or = _bitwise("or", "|", only("bui", "bitwise_or_cpu", np.bitwise_or))
bitwise_xor = _bitwise("xor", "^", only("bui", "bitwise_xor_cpu", np.bitwise_xor))
bitwise_left_shift = _bitwise(
    "left_shift",
    "<<",
    _shift("lshift_cpu", lambda a, b, beyond: np.where(beyond, np.zeros((), a.dtype), np.left_shift(a, b))),
)
bitwise_right_shift = _bitwise("right_shift", ">>", _shift("rshift_cpu", _right))

derive_all(logical_not, bitwise_not)
derive_all(logical_and, logical_or, logical_xor, numbers=False)
OPERATORS = {
    "and": bitwise_and,
    "or": bitwise_or,
    "xor": bitwise_xor,
    "lshift": bitwise_left_shift,
    "rshift": bitwise_right_shift,
}
for name, op in OPERATORS.items():
    derive(op, number_first=True)
    front(f"__{name}__", function=False)(operator(op))
    front(f"__r{name}__", function=False)(reflected(op))
    front(f"__i{name}__", function=False)(in_place(op))


@front("__invert__", function=False)
def invert(self: Tensor) -> Tensor:
    """``~self``. TypeError for floating numbers, which have no bits."""
    if self._array.dtype.kind == "f":
        raise TypeError("~ (operator.invert) is only implemented on integer and Boolean-type tensors")
    result: Tensor = apply(bitwise_not, (self,))
    return result

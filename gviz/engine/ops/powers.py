"""Powers: of tensors and numbers, by tensors and numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from gviz.engine.apply import apply, zeros
from gviz.engine.op import Example, Op, Rule
from gviz.engine.ops.arithmetic import Runner
from gviz.engine.ops.comparison import where_op
from gviz.engine.ops.examples import normal, positive
from gviz.engine.ops.pointwise import log
from gviz.engine.surface import Number, front, number
from gviz.engine.tensor import Tensor
from gviz.engine.views import apply_in_place


def _by(g: Any, self: Any, exponent: Any, result: Any) -> Any:
    """The gradient of an exponent; where the base is 0 nothing changes, though its logarithm is infinite."""
    return where_op((self == 0) & (exponent >= 0), zeros(g, ()), g * (result * log(self)))


pow_scalar: Op = Op(
    "pow(self, *, exponent)",
    grad_fn="PowBackward0",
    formula="self**exponent",
    forward=lambda self, exponent: np.power(self, exponent),
    rules=(
        Rule(
            "self",
            "g * exponent * self**(exponent - 1)",
            lambda g, self, exponent: g * 0 if exponent == 0 else g * (exponent * self ** (exponent - 1)),
        ),
    ),
    in_place=True,
    public=False,
    examples=lambda: [Example((normal(3),), {"exponent": 2}), Example((positive(2, 3),), {"exponent": 0.5})],
)
pow_tensor: Op = Op(
    "pow(self, exponent)",
    grad_fn="PowBackward1",
    formula="self**exponent",
    forward=np.power,
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
    examples=lambda: [Example((positive(3), normal(3)), {}), Example((positive(2, 1), normal(3)), {})],
)

pow_number: Op = Op(
    "pow(self, exponent)",
    grad_fn="PowBackward2",
    formula="self**exponent",
    forward=np.power,
    rules=(
        Rule("exponent", "g * result * log(self)", lambda g, self, exponent, result: _by(g, self, exponent, result)),
    ),
    promotes=True,
    public=False,
    examples=lambda: [Example((positive(), normal(3)), {})],
)


@front("pow", "__pow__")
def pow_front(self: Tensor, exponent: Tensor | Number) -> Tensor:
    """`self` to the power `exponent`."""
    return _power(apply, self, exponent)


@front("pow_", "__ipow__", function=False)
def pow_in_place(self: Tensor, exponent: Tensor | Number) -> Tensor:
    """Raise to the power `exponent` in place."""
    return _power(apply_in_place, self, exponent)


@front("__rpow__", function=False)
def rpow(self: Tensor, base: Number) -> Tensor:
    """A number to the power of a tensor."""
    result: Tensor = apply(pow_number, (number(base, self._array), self))
    return result


def _power(run: Runner, self: Tensor, exponent: Tensor | Number) -> Tensor:
    tensors = (self, exponent) if isinstance(exponent, Tensor) else (self,)
    by_tensor = len(tensors) == 2
    result: Tensor = run(pow_tensor if by_tensor else pow_scalar, tensors, {} if by_tensor else {"exponent": exponent})
    return result

"""Several steps of arithmetic in one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gviz.engine import dtypes
from gviz.engine.apply import apply
from gviz.engine.blocks import scratch
from gviz.engine.op import Example, Op, Rule
from gviz.engine.ops.examples import normal, positive
from gviz.engine.ops.kernels import check_broadcast, only
from gviz.engine.surface import Number, Runner, checked, derive, front
from gviz.engine.tensor import Tensor
from gviz.engine.views import apply_in_place
from gviz.values import Array


def _triples(attrs: dict[str, Any]) -> Sequence[Example]:
    return [Example((normal(2, 3), normal(3), positive(2, 1)), attrs), Example((normal(), normal(), positive()), attrs)]


def _addcmul(self: Array, tensor1: Array, tensor2: Array, value: Number) -> Any:
    check_broadcast(self, tensor1, tensor2)
    return self + self.dtype.type(value) * tensor1 * tensor2


def _addcdiv(self: Array, tensor1: Array, tensor2: Array, value: Number) -> Any:
    if self.dtype.kind != "f":
        raise RuntimeError(INTEGER_ADDCDIV)
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
    """From whichever end is nearer, as PyTorch has it."""
    if self.dtype != end.dtype:
        raise RuntimeError(f"expected dtype {_spelled(self)} for `end` but got dtype {_spelled(end)}")
    if isinstance(weight, np.ndarray) and weight.dtype != self.dtype and not weight.ndim:
        weight = weight.astype(self.dtype)
    if isinstance(weight, np.ndarray) and weight.dtype != self.dtype:
        raise RuntimeError(f"expected dtype {_spelled(self)} for `weight` but got dtype {_spelled(weight)}")
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


def _spelled(array: Array) -> str:
    return dtypes.of(array).cpp_name


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
derive(addcdiv, numbers=False)


@front("lerp")
def lerp_front(input: Tensor, end: Tensor, weight: Tensor | Number) -> Tensor:
    """From `input` to `end` by `weight`, a number or a tensor."""
    return _lerp(apply, input, end, weight)


@front("lerp_", function=False)
def lerp_in_place(self: Tensor, end: Tensor, weight: Tensor | Number) -> Tensor:
    """Go to `end` by `weight` in place."""
    return _lerp(apply_in_place, self, end, weight)


def _lerp(run: Runner, self: Tensor, end: Tensor, weight: Tensor | Number) -> Tensor:
    operands = (checked(lerp, self, 1), checked(lerp, end, 2))
    if isinstance(weight, Tensor):
        result: Tensor = run(lerp, (*operands, weight), {})
        return result
    result = run(lerp_number, operands, {"weight": weight})
    return result

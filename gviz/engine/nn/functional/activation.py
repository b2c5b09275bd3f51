"""Activations of ``torch.nn.functional``, with their in-place forms."""

from __future__ import annotations

from typing import Any

import numpy as np

from gviz.engine.apply import apply
from gviz.engine.op import Op
from gviz.engine.ops import activations, exponential_units, smooth_activations
from gviz.engine.ops.activations import hardtanh_bounds
from gviz.engine.ops.shape import normal_dims, run
from gviz.engine.random import uniform
from gviz.engine.surface import front
from gviz.engine.tensor import Tensor, new_tensor
from gviz.engine.views import apply_in_place

__all__ = [
    "celu",
    "celu_",
    "elu",
    "elu_",
    "gelu",
    "glu",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "hardtanh_",
    "leaky_relu",
    "leaky_relu_",
    "logsigmoid",
    "mish",
    "prelu",
    "relu",
    "relu6",
    "relu_",
    "rrelu",
    "rrelu_",
    "selu",
    "selu_",
    "sigmoid",
    "silu",
    "softplus",
    "softshrink",
    "softsign",
    "tanh",
    "tanhshrink",
    "threshold",
    "threshold_",
]


def _either(op: Op, written: Op, input: Tensor, inplace: bool, **attrs: Any) -> Tensor:
    """Run `op`, or let `written` write to `input`."""
    result: Tensor = apply_in_place(written, (input,), attrs) if inplace else apply(op, (input,), attrs)
    return result


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """`input` with zero in place of what is below zero."""
    return input.relu_() if inplace else input.relu()


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """`input`, at least 0, at most 6."""
    return hardtanh(input, 0.0, 6.0, inplace)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """`input`, at least `min_val`, at most `max_val`."""
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    low, high = hardtanh_bounds(input, min_val, max_val)
    return _either(activations.hardtanh, activations.hardtanh, input, inplace, min_val=low, max_val=high)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """`input`, times `negative_slope` where below zero."""
    op, written = activations.leaky_relu, activations.leaky_relu_written
    return _either(op, written, input, inplace, negative_slope=negative_slope)


@front("prelu")
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """`input`, times `weight` (one for all, or one per channel) where below zero."""
    if weight.ndim > 1:
        raise RuntimeError(f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {weight.ndim}")
    if input.dtype is not weight.dtype:
        kinds = f"{input.dtype.tensor_type} and {weight.dtype.tensor_type}"
        raise RuntimeError(f"prelu: Type promoting not supported. Got {kinds}")
    if weight.numel() != 1:
        _check_channels(input, weight)
    if weight.ndim != input.ndim and weight.ndim:
        weight = weight.view(*[weight.numel() if d == (input.ndim > 1) else 1 for d in range(input.ndim)])
    return run(activations.prelu_kernel, input, weight)


def _check_channels(input: Tensor, weight: Tensor) -> None:
    if not input.ndim:
        raise RuntimeError("Not allow zero-dim input tensor.")
    channels = input.shape[1] if input.ndim > 1 else 1
    if channels != weight.numel():
        raise RuntimeError(
            "Mismatch of parameter numbers and input channel size. "
            f"Found parameter numbers = {weight.numel()} and channel size = {channels}."
        )


@front("rrelu", method=False)
def rrelu(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, inplace: bool = False
) -> Tensor:
    """`input`, where below zero times a slope between two bounds: random if `training`, else the mean one."""
    if not lower <= upper:
        raise RuntimeError("Lower bound should be less than or equal to the upper bound")
    array = input._array
    noise = np.zeros(array.shape, array.dtype)
    if training and array.dtype.kind == "f":
        noise = np.where(array <= 0, uniform(lower, upper, array.shape, array.dtype), np.ones((), array.dtype))
    attrs = {"lower": lower, "upper": upper, "training": training}
    if inplace:
        return apply_in_place(activations.rrelu_written, (input, new_tensor(noise)), attrs)
    return run(activations.rrelu, input, new_tensor(noise), **attrs)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """`input`, below zero ``alpha * (exp(input) - 1)``."""
    return _either(
        exponential_units.elu, exponential_units.elu_written, input, inplace, alpha=alpha, scale=1, input_scale=1
    )


@front("selu", method=False)
def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """`elu` with the constants that keep mean and variance."""
    attrs = {"alpha": SELU_ALPHA, "scale": SELU_SCALE, "input_scale": 1}
    return _either(exponential_units.elu, exponential_units.elu_written, input, inplace, **attrs)


SELU_ALPHA, SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


@front("celu", method=False)
def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """`input`, below zero ``alpha * (exp(input / alpha) - 1)``."""
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return _either(exponential_units.celu, exponential_units.celu_written, input, inplace, alpha=alpha)


@front("threshold", method=False)
def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """`input` where it is above `threshold`, else `value`."""
    attrs = {"threshold": threshold, "value": value}
    return _either(activations.threshold, activations.threshold_written, input, inplace, **attrs)


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """`input` times the probability that a standard normal number is below it."""
    if approximate not in ("none", "tanh"):
        raise RuntimeError("approximate argument must be either none or tanh.")
    return run(smooth_activations.gelu, input, approximate=approximate)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """``input * sigmoid(input)``."""
    return _either(smooth_activations.silu, smooth_activations.silu, input, inplace)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """``input * tanh(softplus(input))``."""
    return _either(smooth_activations.mish, smooth_activations.mish, input, inplace)


def softplus(input: Tensor, beta: float = 1, threshold: float = 20) -> Tensor:
    """``log(1 + exp(beta * input)) / beta``, a smooth relu."""
    return run(smooth_activations.softplus, input, beta=beta, threshold=threshold)


def softsign(input: Tensor) -> Tensor:
    """``input / (1 + |input|)``."""
    return input / (input.abs() + 1)


@front("hardshrink")
def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """`input` outside ``-lambd`` and ``lambd``, else 0."""
    return run(activations.hardshrink, input, lambd=lambd)


def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """`input`, nearer to zero by `lambd`; zero between ``-lambd`` and ``lambd``."""
    kind = input.dtype
    if kind.is_floating_point and not lambd >= 0:
        largest = float(np.finfo(kind.numpy).max)
        raise RuntimeError(
            f"lambda must be in range [0, {largest:g}] for input dtype {kind.tensor_type}, but found {lambd:g}"
        )
    return run(activations.softshrink, input, lambd=lambd)


def tanhshrink(input: Tensor) -> Tensor:
    """``input - tanh(input)``."""
    return input - input.tanh()


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """``(input + 3) / 6``, at least 0, at most 1."""
    return _either(activations.hardsigmoid, activations.hardsigmoid, input, inplace)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """``input * hardsigmoid(input)``."""
    return _either(activations.hardswish, activations.hardswish, input, inplace)


def logsigmoid(input: Tensor) -> Tensor:
    """The logarithm of the sigmoid."""
    return run(smooth_activations.log_sigmoid, input)


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """The first half of `input` along `dim`, times the sigmoid of the second."""
    if not input.ndim:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    (axis,) = normal_dims(dim, input.ndim)
    if input.shape[axis] % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {axis} is size {input.shape[axis]}")
    return run(smooth_activations.glu, input, dim=axis)


def sigmoid(input: Tensor) -> Tensor:
    """``1 / (1 + exp(-input))``."""
    return input.sigmoid()


def tanh(input: Tensor) -> Tensor:
    """The hyperbolic tangent."""
    return input.tanh()


def _written(function: Any) -> Any:
    """The in-place form, ``name_``."""

    def in_place(input: Tensor, *args: Any, **attrs: Any) -> Tensor:
        result: Tensor = function(input, *args, **attrs, inplace=True)
        return result

    in_place.__name__ = function.__name__ + "_"
    in_place.__doc__ = f"`{function.__name__}`, in place."
    return in_place


relu_, hardtanh_, leaky_relu_, rrelu_ = map(_written, (relu, hardtanh, leaky_relu, rrelu))
elu_, selu_, celu_, threshold_ = map(_written, (elu, selu, celu, threshold))

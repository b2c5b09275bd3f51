"""Activations, as functions and as modules: piecewise (ReLU and similar), smooth (GELU, SiLU, …), and softmax.

A function with an `inplace` option has a variant ``name_`` that always writes to its input. If the derivative needs
what the in-place variant overwrites, that variant is an operation of its own, ``…_written``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gviz.engine import creation
from gviz.engine.arguments import integer
from gviz.engine.dtypes import dtype as DType
from gviz.engine.functions_and_methods import front
from gviz.engine.nn import functional as F
from gviz.engine.nn import init
from gviz.engine.nn._families_by_dimension import named
from gviz.engine.nn.module import Module
from gviz.engine.nn.parameter import begin, empty
from gviz.engine.op import Op, apply
from gviz.engine.ops import activations
from gviz.engine.ops.activations import hardtanh_bounds, log_softmax_front, softmax_front
from gviz.engine.ops.shape import normal_dims, run
from gviz.engine.random import uniform
from gviz.engine.tensor import Tensor, new_tensor
from gviz.engine.views import apply_in_place
from gviz.source.call_stack import warn

SELU_ALPHA, SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


class InPlace(Module):
    """A module that may overwrite its input."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def extra_repr(self) -> str:
        """Whether it overwrites its input."""
        return _options("", self.inplace)


class ReLU(InPlace):
    """The input, with negative values set to zero."""

    def forward(self, input: Tensor) -> Tensor:
        """Applies the activation."""
        return F.relu(input, inplace=self.inplace)


class LeakyReLU(InPlace):
    """The input, with negative values multiplied by `negative_slope`."""

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.negative_slope = negative_slope

    def forward(self, input: Tensor) -> Tensor:
        """Applies the activation."""
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        """The slope."""
        return _options(f"negative_slope={self.negative_slope}", self.inplace)


class PReLU(Module):
    """The input, with negative values multiplied by a learned slope: one for all channels, or one per channel."""

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: DType | None = None
    ) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = empty(num_parameters, device=device, dtype=dtype)
        begin(self)

    def reset_parameters(self) -> None:
        """Initializes the slope."""
        init.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        """Applies the activation."""
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        """The number of slopes."""
        return f"num_parameters={self.num_parameters}"


class RReLU(InPlace):
    """The input, with negative values multiplied by a random slope; in evaluation, by the mean slope."""

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.lower = lower
        self.upper = upper

    def forward(self, input: Tensor) -> Tensor:
        """Applies the activation."""
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        """The bounds of the slope."""
        return _options(f"lower={self.lower}, upper={self.upper}", self.inplace)


class Hardtanh(InPlace):
    """The input, limited to the range of two bounds."""

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.min_val = min_val
        self.max_val = max_val
        if max_val <= min_val:
            raise AssertionError(f"max_val ({max_val}) must be greater than min_val ({min_val})")

    def forward(self, input: Tensor) -> Tensor:
        """Applies the activation."""
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        """The bounds."""
        return _options(f"min_val={self.min_val}, max_val={self.max_val}", self.inplace)


class ReLU6(Hardtanh):
    """The input, limited to the range from 0 to 6."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self) -> str:
        """Whether it overwrites its input."""
        return _options("", self.inplace)


class Hardsigmoid(InPlace):
    """A piecewise linear approximation of the sigmoid."""

    def forward(self, input: Tensor) -> Tensor:
        """Applies the activation."""
        return F.hardsigmoid(input, self.inplace)

    def extra_repr(self) -> str:
        """Returns an empty string."""
        return ""


class Hardswish(InPlace):
    """The input times its `Hardsigmoid`."""

    def forward(self, input: Tensor) -> Tensor:
        """Applies the activation."""
        return F.hardswish(input, self.inplace)

    def extra_repr(self) -> str:
        """Returns an empty string."""
        return ""


class Threshold(InPlace):
    """The input where it is above `threshold`, otherwise `value`."""

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.threshold = threshold
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        """Applies the activation."""
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self) -> str:
        """Threshold and value."""
        return _options(f"threshold={self.threshold}, value={self.value}", self.inplace)


class Hardshrink(Module):
    """The input, with values within `lambd` of zero set to zero."""

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        """Applies the activation."""
        return F.hardshrink(input, self.lambd)

    def extra_repr(self) -> str:
        """The distance from zero."""
        return f"{self.lambd}"


class Softshrink(Hardshrink):
    """The input, moved towards zero by `lambd`; zero within `lambd` of it."""

    def forward(self, input: Tensor) -> Tensor:
        """Applies the activation."""
        return F.softshrink(input, self.lambd)


class GLU(Module):
    """One half of the input times the sigmoid of the other half."""

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        """Applies the activation."""
        return F.glu(input, self.dim)

    def extra_repr(self) -> str:
        """The dimension of the halves."""
        return f"dim={self.dim}"


class Tanh(Module):
    """The hyperbolic tangent."""

    def forward(self, input: Tensor) -> Tensor:
        """Applies the activation."""
        return F.tanh(input)


class Sigmoid(Module):
    """``1 / (1 + exp(-x))``."""

    def forward(self, input: Tensor) -> Tensor:
        """Applies the activation."""
        return F.sigmoid(input)


class LogSigmoid(Module):
    """The logarithm of the sigmoid."""

    def forward(self, input: Tensor) -> Tensor:
        """Applies the activation."""
        return F.logsigmoid(input)


class Softsign(Module):
    """``x / (1 + |x|)``."""

    def forward(self, input: Tensor) -> Tensor:
        """Applies the activation."""
        return F.softsign(input)


class Tanhshrink(Module):
    """The input minus its hyperbolic tangent."""

    def forward(self, input: Tensor) -> Tensor:
        """Applies the activation."""
        return F.tanhshrink(input)


class Softplus(Module):
    """``log(1 + exp(beta * x)) / beta``: a smooth `ReLU`."""

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Tensor) -> Tensor:
        """Applies the activation."""
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        """The options."""
        return f"beta={self.beta}, threshold={self.threshold}"


class GELU(Module):
    """The input times the probability that a standard normal number is below it."""

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        """Applies the activation."""
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        """The approximation."""
        return f"approximate={self.approximate!r}"


class SiLU(InPlace):
    """The input times its sigmoid."""

    def forward(self, input: Tensor) -> Tensor:
        """Applies the activation."""
        return F.silu(input, inplace=self.inplace)


class Mish(InPlace):
    """The input times the hyperbolic tangent of its softplus."""

    def forward(self, input: Tensor) -> Tensor:
        """Applies the activation."""
        return F.mish(input, inplace=self.inplace)


class SELU(InPlace):
    """An `ELU` scaled so that mean and variance stay the same from layer to layer."""

    def forward(self, input: Tensor) -> Tensor:
        """Applies the activation."""
        return F.selu(input, self.inplace)


class ELU(InPlace):
    """The input, with ``alpha * (exp(x) - 1)`` for negative values."""

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.alpha = alpha

    def forward(self, input: Tensor) -> Tensor:
        """Applies the activation."""
        return F.elu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        """The scale of the negative part."""
        return _options(f"alpha={self.alpha}", self.inplace)


class CELU(ELU):
    """The input, with ``alpha * (exp(x / alpha) - 1)`` for negative values."""

    def forward(self, input: Tensor) -> Tensor:
        """Applies the activation."""
        return F.celu(input, self.alpha, self.inplace)


class Softmax(Module):
    """Positive numbers that sum to 1 along `dim`."""

    dim: int | None

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        """Applies the activation."""
        return F.softmax(input, self.dim)

    def extra_repr(self) -> str:
        """The dimension."""
        return f"dim={self.dim}"


class Softmin(Softmax):
    """The softmax of the negative input."""

    def forward(self, input: Tensor) -> Tensor:
        """Applies the activation."""
        return F.softmin(input, self.dim)


class LogSoftmax(Softmax):
    """The logarithm of the softmax."""

    def forward(self, input: Tensor) -> Tensor:
        """Applies the activation."""
        return F.log_softmax(input, self.dim)


class Softmax2d(Module):
    """Softmax over the channels, for every pixel of an image."""

    def forward(self, input: Tensor) -> Tensor:
        """Applies the activation."""
        if input.dim() not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead")
        return F.softmax(input, -3)


def _either(op: Op, written: Op, input: Tensor, inplace: bool, **attrs: Any) -> Tensor:
    """Run `op`, or `written` in place on `input`."""
    result: Tensor = apply_in_place(written, (input,), attrs) if inplace else apply(op, (input,), attrs)
    return result


@F._declare
def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """`input`, with negative values set to zero."""
    return input.relu_() if inplace else input.relu()


@F._declare
def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """`input`, limited to the range from 0 to 6."""
    return hardtanh(input, 0.0, 6.0, inplace)


@F._declare
def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """`input`, limited to the range from `min_val` to `max_val`."""
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    low, high = hardtanh_bounds(input, min_val, max_val)
    return _either(activations.hardtanh, activations.hardtanh, input, inplace, min_val=low, max_val=high)


@F._declare
def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """`input`, with negative values multiplied by `negative_slope`."""
    op, written = activations.leaky_relu, activations.leaky_relu_written
    return _either(op, written, input, inplace, negative_slope=negative_slope)


@F._declare
@front("prelu")
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """`input`, with negative values multiplied by `weight` (one for all, or one per channel)."""
    if weight.ndim > 1:
        raise RuntimeError(f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {weight.ndim}")
    if input.dtype is not weight.dtype:
        kinds = f"{input.dtype.tensor_type} and {weight.dtype.tensor_type}"
        raise RuntimeError(f"prelu: Type promoting not supported. Got {kinds}")
    if weight.numel() != 1:
        if not input.ndim:
            raise RuntimeError("Not allow zero-dim input tensor.")
        channels = input.shape[1] if input.ndim > 1 else 1
        if channels != weight.numel():
            raise RuntimeError(
                "Mismatch of parameter numbers and input channel size. "
                f"Found parameter numbers = {weight.numel()} and channel size = {channels}."
            )
    if weight.ndim != input.ndim and weight.ndim:
        weight = weight.view([weight.numel() if d == (input.ndim > 1) else 1 for d in range(input.ndim)])
    return run(activations.prelu_kernel, input, weight)


@F._declare
@front("rrelu", method=False)
def rrelu(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, inplace: bool = False
) -> Tensor:
    """`input`, with negative values multiplied by a slope between two bounds: random if `training`, else the mean."""
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


@F._declare
def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """`input`, with ``alpha * (exp(input) - 1)`` for negative values."""
    return _either(activations.elu, activations.elu_written, input, inplace, alpha=alpha, scale=1, input_scale=1)


@F._declare
@front("selu", method=False)
def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """`elu` with the constants that preserve mean and variance."""
    attrs = {"alpha": SELU_ALPHA, "scale": SELU_SCALE, "input_scale": 1}
    return _either(activations.elu, activations.elu_written, input, inplace, **attrs)


@F._declare
@front("celu", method=False)
def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """`input`, with ``alpha * (exp(input / alpha) - 1)`` for negative values."""
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return _either(activations.celu, activations.celu_written, input, inplace, alpha=alpha)


@F._declare
@front("threshold", method=False)
def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """`input` where it is above `threshold`, otherwise `value`."""
    attrs = {"threshold": threshold, "value": value}
    return _either(activations.threshold, activations.threshold_written, input, inplace, **attrs)


@F._declare
def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """`input` times the probability that a standard normal number is below it."""
    if approximate not in ("none", "tanh"):
        raise RuntimeError("approximate argument must be either none or tanh.")
    return run(activations.gelu, input, approximate=approximate)


@F._declare
def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """``input * sigmoid(input)``."""
    return _either(activations.silu, activations.silu, input, inplace)


@F._declare
def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """``input * tanh(softplus(input))``."""
    return _either(activations.mish, activations.mish, input, inplace)


@F._declare
def softplus(input: Tensor, beta: float = 1, threshold: float = 20) -> Tensor:
    """``log(1 + exp(beta * input)) / beta``, a smooth relu."""
    return run(activations.softplus, input, beta=beta, threshold=threshold)


@F._declare
def softsign(input: Tensor) -> Tensor:
    """``input / (1 + |input|)``."""
    return input / (input.abs() + 1)


@F._declare
@front("hardshrink")
def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """`input`, with values from ``-lambd`` to ``lambd`` set to zero."""
    return run(activations.hardshrink, input, lambd=lambd)


@F._declare
def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """`input`, moved towards zero by `lambd`; zero from ``-lambd`` to ``lambd``."""
    kind = input.dtype
    if kind.is_floating_point and not lambd >= 0:
        largest = float(np.finfo(kind.numpy).max)
        raise RuntimeError(
            f"lambda must be in range [0, {largest:g}] for input dtype {kind.tensor_type}, but found {lambd:g}"
        )
    return run(activations.softshrink, input, lambd=lambd)


@F._declare
def tanhshrink(input: Tensor) -> Tensor:
    """``input - tanh(input)``."""
    return input - input.tanh()


@F._declare
def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """``(input + 3) / 6``, limited to the range from 0 to 1."""
    return _either(activations.hardsigmoid, activations.hardsigmoid, input, inplace)


@F._declare
def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """``input * hardsigmoid(input)``."""
    return _either(activations.hardswish, activations.hardswish, input, inplace)


@F._declare
def logsigmoid(input: Tensor) -> Tensor:
    """The logarithm of the sigmoid."""
    return run(activations.log_sigmoid, input)


@F._declare
def glu(input: Tensor, dim: int = -1) -> Tensor:
    """The first half of `input` along `dim`, times the sigmoid of the second."""
    if not input.ndim:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    (axis,) = normal_dims(dim, input.ndim)
    if input.shape[axis] % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {axis} is size {input.shape[axis]}")
    return run(activations.glu, input, dim=axis)


@F._declare
def sigmoid(input: Tensor) -> Tensor:
    """``1 / (1 + exp(-input))``."""
    return input.sigmoid()


@F._declare
def tanh(input: Tensor) -> Tensor:
    """The hyperbolic tangent."""
    return input.tanh()


def _in_place(function: Any) -> Any:
    """Return the in-place variant of an activation, ``name_``."""

    @F._declare
    @named(function.__name__ + "_", f"`{function.__name__}`, in place.")
    def in_place(input: Tensor, *args: Any, **attrs: Any) -> Tensor:
        result: Tensor = function(input, *args, **attrs, inplace=True)
        return result

    return in_place


relu_, hardtanh_, leaky_relu_, rrelu_ = map(_in_place, (relu, hardtanh, leaky_relu, rrelu))
elu_, selu_, celu_, threshold_ = map(_in_place, (elu, selu, celu, threshold))


@F._declare
def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None) -> Tensor:
    """The exponential of `input`, divided by its sum along `dim`."""
    return softmax_front(input, _softmax_dim("softmax", dim, input), dtype)


@F._declare
def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None) -> Tensor:
    """The logarithm of `softmax`, computed in one operation."""
    return log_softmax_front(input, _softmax_dim("log_softmax", dim, input), dtype)


@F._declare
def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None) -> Tensor:
    """`softmax` of ``-input``."""
    return softmax_front(-input, _softmax_dim("softmin", dim, input), dtype)


def _softmax_dim(name: str, dim: int | None, input: Tensor) -> int:
    """Return the dimension of a softmax; without `dim`, the one PyTorch assumes, with a warning."""
    if dim is not None:
        return integer(name.replace("softmin", "softmax"), dim, "dim", 1)  # softmin calls softmax
    warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
    )
    return 0 if input.ndim in (0, 1, 3) else 1


@F._declare
def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """A sample of the Gumbel-softmax distribution; with `hard` it is one-hot, with the gradient of the soft sample."""
    if eps != 1e-10:
        warn("`eps` parameter is deprecated and has no effect.")
    gumbels = -creation.empty_like(logits).exponential_().log()
    soft = softmax_front((logits + gumbels) / tau, dim)
    if not hard:
        return soft
    index = soft.max(dim, keepdim=True)[1]
    one_hot = creation.zeros_like(logits).scatter_(dim, index, 1.0)
    return one_hot - soft.detach() + soft


def _options(text: str, inplace: bool) -> str:
    """Return a module's options for its ``repr``, including ``inplace`` if set."""
    return ", ".join([part for part in (text, "inplace=True" if inplace else "") if part])

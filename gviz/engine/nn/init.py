"""``torch.nn.init``: initializes parameters in place without recording. Each function returns the tensor."""

from __future__ import annotations

from math import ceil, erf, prod, sqrt
from typing import Any

import numpy as np

from gviz.engine import random
from gviz.engine.modes import no_grad
from gviz.engine.nn.deprecated_names import deprecated_name
from gviz.engine.nn.parameter import set_first
from gviz.engine.ops.copying import copy
from gviz.engine.ops.strided import overlaps_itself
from gviz.engine.random import Generator
from gviz.engine.tensor import Tensor, new_tensor
from gviz.engine.unsupported_names import lookup_in
from gviz.engine.views import apply_in_place
from gviz.source.call_stack import warn
from gviz.values.value import Array

_GAINS = {"sigmoid": 1.0, "tanh": 5.0 / 3, "relu": sqrt(2.0), "selu": 3.0 / 4}
_LINEAR = ("linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d")


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor that compensates for the shrinking of its input by a nonlinearity."""
    if nonlinearity == "leaky_relu":
        if param is not None and (isinstance(param, bool) or not isinstance(param, (int, float))):
            raise ValueError(f"negative_slope {param} not a valid number")
        return sqrt(2.0 / (1 + (0.01 if param is None else param) ** 2))
    if nonlinearity in _LINEAR:
        return 1.0
    if nonlinearity not in _GAINS:
        raise ValueError(f"Unsupported nonlinearity {nonlinearity}")
    return _GAINS[nonlinearity]


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Draws from the uniform distribution between `a` and `b`."""
    array = tensor._array
    if getattr(tensor, "_unborn", False):
        set_first(tensor, random.uniform(a, b, array.shape, array.dtype, generator))
        return tensor
    with no_grad():
        return tensor.uniform_(a, b, generator=generator)


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Draws from the normal distribution."""
    array = tensor._array
    if getattr(tensor, "_unborn", False):
        set_first(tensor, random.normal(mean, std, array.shape, array.dtype, generator))
        return tensor
    with no_grad():
        return tensor.normal_(mean, std, generator=generator)


def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Generator | None = None,
) -> Tensor:
    """Draws from the normal distribution, truncated to the range from `a` to `b`."""
    if mean < a - 2 * std or mean > b + 2 * std:
        warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of values may be "
            "incorrect.",
        )
    low, high = (erf((bound - mean) / std / sqrt(2.0)) for bound in (a, b))
    with no_grad():
        tensor.uniform_(low, high, generator=generator)
        tensor.erfinv_().mul_(std * sqrt(2.0)).add_(mean)
        return tensor.clamp_(min=a, max=b)


def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fills with `val`."""
    if set_first(tensor, np.asarray(val)):
        return tensor
    with no_grad():
        return tensor.fill_(val)


def zeros_(tensor: Tensor) -> Tensor:
    """Fills with zeros."""
    if set_first(tensor, np.asarray(0)):
        return tensor
    with no_grad():
        return tensor.zero_()


def ones_(tensor: Tensor) -> Tensor:
    """Fills with ones."""
    return constant_(tensor, 1.0)


def eye_(tensor: Tensor) -> Tensor:
    """Ones on the diagonal of a matrix, zeros elsewhere."""
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    array = tensor._array
    if not overlaps_itself(array):
        return _write(tensor, np.eye(*array.shape))
    places = sum(np.ix_(*[np.arange(n) * step for n, step in zip(array.shape, array.strides, strict=True)]))
    values = np.isin(places, np.diagonal(places))  # in an expanded tensor, the diagonal's ones appear elsewhere, too
    with no_grad():
        return apply_in_place(copy, (tensor, new_tensor(values.astype(array.dtype))), {}, rule="free")


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """The weight of a convolution that returns its input, for as many channels as possible."""
    shape = tensor._array.shape
    if len(shape) not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    if shape[0] % groups:
        raise ValueError("dim 0 must be divisible by groups")
    per_group = shape[0] // groups
    centre = [length // 2 for length in shape[2:]]
    with no_grad():
        tensor.zero_()
        for group in range(groups):
            for channel in range(min(per_group, shape[1])):
                tensor[(group * per_group + channel, channel, *centre)] = 1
    return tensor


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Uniform, such that variances are preserved forward and backward (Glorot and Bengio, 2010)."""
    bound = sqrt(3.0) * gain * sqrt(2.0 / sum(_calculate_fan_in_and_fan_out(tensor)))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Normal, such that variances are preserved forward and backward (Glorot and Bengio, 2010)."""
    return normal_(tensor, 0.0, gain * sqrt(2.0 / sum(_calculate_fan_in_and_fan_out(tensor))), generator)


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Uniform, designed for rectifiers (He and others, 2015)."""
    if _is_nothing(tensor):
        return tensor
    bound = sqrt(3.0) * calculate_gain(nonlinearity, a) / sqrt(_fan(tensor, mode))
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Normal, designed for rectifiers (He and others, 2015)."""
    if _is_nothing(tensor):
        return tensor
    return normal_(tensor, 0.0, calculate_gain(nonlinearity, a) / sqrt(_fan(tensor, mode)), generator)


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Generator | None = None) -> Tensor:
    """A (semi-)orthogonal matrix (Saxe and others, 2013); all dimensions after the first are flattened."""
    shape = tensor._array.shape
    if len(shape) < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if not tensor._array.size:
        return tensor
    drawn = random.normal(0, 1, (shape[0], prod(shape[1:])), np.dtype("f8"), generator)
    wide = drawn.shape[0] < drawn.shape[1]
    q, r = np.linalg.qr(drawn.T if wide else drawn)
    q = q * np.sign(np.diag(r))
    _write(tensor, (q.T if wide else q).reshape(shape))
    with no_grad():
        return tensor.mul_(gain)


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Generator | None = None) -> Tensor:
    """Normal, with a fraction of each column set to zero (Martens, 2010)."""
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, columns = tensor._array.shape
    values = random.normal(0, std, (rows, columns), tensor._array.dtype, generator)
    for column in range(columns):
        values[random.stream_of(generator).permutation(rows)[: ceil(sparsity * rows)], column] = 0
    return _write(tensor, values)


def _is_nothing(tensor: Tensor) -> bool:
    if 0 not in tensor._array.shape:
        return False
    warn("Initializing zero-element tensors is a no-op")
    return True


def _fan(tensor: Tensor, mode: str) -> int:
    modes = ["fan_in", "fan_out"]
    if mode.lower() not in modes:
        raise ValueError(f"Mode {mode.lower()} not supported, please use one of {modes}")
    return _calculate_fan_in_and_fan_out(tensor)[modes.index(mode.lower())]


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    """Return the fan-in and fan-out of a weight of this shape."""
    shape = tensor._array.shape
    if len(shape) < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    receptive = prod(shape[2:])
    return shape[1] * receptive, shape[0] * receptive


def _write(tensor: Tensor, values: Array) -> Tensor:
    if set_first(tensor, values):
        return tensor
    written: Any = new_tensor(values.astype(tensor._array.dtype))
    with no_grad():
        return tensor.copy_(written)


uniform = deprecated_name(uniform_, "nn.init")
normal = deprecated_name(normal_, "nn.init")
constant = deprecated_name(constant_, "nn.init")
eye = deprecated_name(eye_, "nn.init")
dirac = deprecated_name(dirac_, "nn.init")
xavier_uniform = deprecated_name(xavier_uniform_, "nn.init")
xavier_normal = deprecated_name(xavier_normal_, "nn.init")
kaiming_uniform = deprecated_name(kaiming_uniform_, "nn.init")
kaiming_normal = deprecated_name(kaiming_normal_, "nn.init")
orthogonal = deprecated_name(orthogonal_, "nn.init")
sparse = deprecated_name(sparse_, "nn.init")

__getattr__ = lookup_in(__name__)

"""First values for parameters: each function writes in place, outside the graph, and returns its tensor."""

from __future__ import annotations

from math import sqrt

from gviz.engine import random
from gviz.engine.modes import no_grad
from gviz.engine.tensor import Tensor, new_tensor
from gviz.values import Array

_GAINS = {"linear": 1.0, "identity": 1.0, "sigmoid": 1.0, "tanh": 5.0 / 3, "relu": sqrt(2.0)}


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """How much a nonlinearity shrinks its input, to be made up for."""
    if nonlinearity == "leaky_relu":
        return sqrt(2.0 / (1 + (0.01 if param is None else param) ** 2))
    if nonlinearity not in _GAINS:
        raise ValueError(f"Unsupported nonlinearity {nonlinearity}")
    return _GAINS[nonlinearity]


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0) -> Tensor:
    """Uniform between `a` and `b`."""
    return _write(tensor, random.uniform(a, b, tuple(tensor.shape), tensor._array.dtype))


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0) -> Tensor:
    """Normal."""
    return _write(tensor, random.normal(mean, std, tuple(tensor.shape), tensor._array.dtype))


def constant_(tensor: Tensor, val: float) -> Tensor:
    """`val` everywhere."""
    with no_grad():
        return tensor.fill_(val)


def zeros_(tensor: Tensor) -> Tensor:
    """Zero everywhere."""
    return constant_(tensor, 0.0)


def ones_(tensor: Tensor) -> Tensor:
    """One everywhere."""
    return constant_(tensor, 1.0)


def xavier_uniform_(tensor: Tensor, gain: float = 1.0) -> Tensor:
    """Uniform, so that variances stay equal forward and backward (Glorot and Bengio, 2010)."""
    bound = gain * sqrt(6.0 / sum(_fans(tensor)))
    return uniform_(tensor, -bound, bound)


def xavier_normal_(tensor: Tensor, gain: float = 1.0) -> Tensor:
    """Normal, so that variances stay equal forward and backward (Glorot and Bengio, 2010)."""
    return normal_(tensor, 0.0, gain * sqrt(2.0 / sum(_fans(tensor))))


def kaiming_uniform_(tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu") -> Tensor:
    """Uniform, made for rectifiers (He and others, 2015)."""
    bound = sqrt(3.0) * calculate_gain(nonlinearity, a) / sqrt(_fan(tensor, mode))
    return uniform_(tensor, -bound, bound)


def kaiming_normal_(tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu") -> Tensor:
    """Normal, made for rectifiers (He and others, 2015)."""
    return normal_(tensor, 0.0, calculate_gain(nonlinearity, a) / sqrt(_fan(tensor, mode)))


def _fan(tensor: Tensor, mode: str) -> int:
    return _fans(tensor)[("fan_in", "fan_out").index(mode)]


def _fans(tensor: Tensor) -> tuple[int, int]:
    """How many inputs and outputs a weight of this shape connects."""
    if tensor.ndim < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    receptive = tensor[0, 0].numel() if tensor.ndim > 2 else 1
    return tensor.shape[1] * receptive, tensor.shape[0] * receptive


def _write(tensor: Tensor, values: Array) -> Tensor:
    with no_grad():
        return tensor.copy_(new_tensor(values.astype(tensor._array.dtype)))

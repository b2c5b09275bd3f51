"""Normalizations of ``torch.nn.functional``: what arguments mean, and what is refused."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from gviz.engine.modes import no_grad
from gviz.engine.nn.functional.pooling import avg_pool2d, avg_pool3d
from gviz.engine.nn.functional.reducing import refuse_tracked
from gviz.engine.op import Op
from gviz.engine.ops import normalization, scalars
from gviz.engine.ops.padding import pad
from gviz.engine.surface import front
from gviz.engine.tensor import Tensor
from gviz.engine.views import apply_in_place

__all__ = [
    "batch_norm",
    "group_norm",
    "instance_norm",
    "layer_norm",
    "local_response_norm",
    "normalize",
    "rms_norm",
]


def _first(op: Op, *tensors: Tensor | None, **attrs: Any) -> tuple[Tensor, Tensor, Tensor]:
    results: tuple[Tensor, Tensor, Tensor] = op(*tensors, **attrs)
    return results


def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-05,
) -> Tensor:
    """`input` with mean 0 and variance 1 over its last dimensions, then scaled and shifted."""
    shape = _shape("layer_norm", normalized_shape)
    _check_last(input, shape, "*, ", weight=weight, bias=bias)
    _check_kinds(input, weight, bias)
    return _first(normalization.layer_norm, input, weight, bias, normalized_shape=shape, eps=eps)[0]


@front("layer_norm", method=False)
def torch_layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-05,
    cudnn_enable: bool = True,
) -> Tensor:
    """`layer_norm`; the last argument is about other devices."""
    return layer_norm(input, normalized_shape, weight, bias, eps)


@front("rms_norm", method=False)
def rms_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """`input` divided by the root of its mean square over its last dimensions, then scaled."""
    shape = _shape("rms_norm", normalized_shape)
    _check_last(input, shape, "*", weight=weight)
    small = float(np.finfo(input._array.dtype).eps) if eps is None else eps
    dims = tuple(range(input.ndim - len(shape), input.ndim))
    mean = apply_in_place(scalars.plus, (input.pow(2).mean(dims, keepdim=True),), {"other": small})
    result = input * mean.rsqrt()
    return result if weight is None else result * weight


def _shape(name: str, normalized_shape: Any) -> tuple[int, ...]:
    if isinstance(normalized_shape, int):
        raise TypeError(f"{name}(): argument 'normalized_shape' (position 2) must be tuple of ints, not int")
    shape = tuple(normalized_shape)
    if not shape:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got "
            "normalized_shape = []"
        )
    return shape


def _check_last(input: Tensor, shape: tuple[int, ...], star: str, **parameters: Tensor | None) -> None:
    for name, parameter in parameters.items():
        if parameter is not None and tuple(parameter.shape) != shape:
            raise RuntimeError(
                f"Expected {name} to be of same shape as normalized_shape, but got {name} of shape "
                f"{list(parameter.shape)} and normalized_shape = {list(shape)}"
            )
    if tuple(input.shape[-len(shape) :]) != shape:
        expected = star + ", ".join(map(str, shape))
        raise RuntimeError(
            f"Given normalized_shape={list(shape)}, expected input with shape [{expected}], but got input of size"
            f"{list(input.shape)}"
        )


def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-05
) -> Tensor:
    """`input` with mean 0 and variance 1 per group of channels, then scaled and shifted per channel."""
    if input.ndim < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.ndim}")
    batch, channels = input.shape[:2]
    _check_varied([batch * channels // num_groups, num_groups, *input.shape[2:]], input)
    for name, parameter in (("weight", weight), ("bias", bias)):
        if parameter is not None and tuple(parameter.shape) != (channels,):
            raise RuntimeError(
                f"Expected {name} to be a vector of size equal to the number of channels in input, but got {name} of "
                f"shape {list(parameter.shape)} and input of shape {list(input.shape)}"
            )
    if channels % num_groups:
        raise RuntimeError(
            "Expected number of channels in input to be divisible by num_groups, but got input of shape "
            f"{list(input.shape)} and num_groups={num_groups}"
        )
    _check_kinds(input, weight, bias)
    attrs = {"N": batch, "C": channels, "HxW": prod(input.shape[2:]), "group": num_groups, "eps": eps}
    return _first(normalization.group_norm, input, weight, bias, **attrs)[0]


@front("group_norm", method=False)
def torch_group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-05,
    cudnn_enabled: bool = True,
) -> Tensor:
    """`group_norm`; the last argument is about other devices."""
    return group_norm(input, num_groups, weight, bias, eps)


def _check_varied(size: Sequence[int], input: Tensor) -> None:
    """ValueError where a channel has one value only, which has no variance."""
    if size[0] * prod(size[2:]) == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {list(size)}")


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-05,
) -> Tensor:
    """`input` with mean 0 and variance 1 per channel: of the batch if `training`, which is then remembered a little."""
    if training and input.shape[0] * prod(input.shape[2:]) == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {input.shape}")
    return torch_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)


def _check_kinds(input: Tensor, *parameters: Tensor | None) -> None:
    """RuntimeError, in PyTorch's words, for parameters of another dtype than the input's."""
    other = [t.dtype.name for t in parameters if t is not None and t.dtype is not input.dtype]
    if other and input.dtype.is_floating_point:
        share = "all inputs must share same datatype."
        raise RuntimeError(
            f"mixed dtype (CPU): {share if other[0] == 'float32' else 'expect parameter to have scalar type of Float'}"
        )


@front("batch_norm", method=False)
def torch_batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = True,
) -> Tensor:
    """`batch_norm` with its arguments in another order; the last one is about other devices."""
    _check_batch(input, weight, bias, running_mean, running_var, training)
    refuse_tracked("native_batch_norm", running_mean=running_mean, running_var=running_var)
    tensors = (input, weight, bias, running_mean, running_var)
    result, mean, inverse = _first(normalization.batch_norm, *tensors, training=training, eps=eps)
    if training and running_mean is not None and running_var is not None and input.numel():
        _remember(running_mean, running_var, mean, inverse, input.numel() // input.shape[1], momentum, eps)
    return result


def _remember(
    running_mean: Tensor, running_var: Tensor, mean: Tensor, inverse: Tensor, count: int, momentum: float, eps: float
) -> None:
    """Move the running statistics towards those of a batch; PyTorch, too, leaves their versions as they are."""
    with no_grad():
        apply_in_place(normalization.move_mean, (running_mean.data, mean), {"momentum": momentum})
        attrs = {"momentum": momentum, "count": count, "eps": eps}
        apply_in_place(normalization.move_variance, (running_var.data, inverse), attrs)


def _check_batch(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
) -> None:
    channels = input.shape[1] if input.ndim > 1 else 0
    running = {"running_mean": running_mean, "running_var": running_var}
    for name, tensor in (*running.items(), ("weight", weight), ("bias", bias)):
        if tensor is None and name in running and not training:
            raise RuntimeError(f"{name} must be defined in evaluation mode")
        if tensor is not None and tensor.numel() != channels:
            raise RuntimeError(f"{name} should contain {channels} elements not {tensor.numel()}")
    if (running_mean is None) is not (running_var is None):
        raise ValueError("running_mean and running_var must either both be None or neither be None")
    others = [t for t in (weight, bias, running_mean, running_var) if t is not None]
    if input.dtype.is_floating_point and any(t.dtype is not input.dtype for t in others):
        raise RuntimeError("mixed dtype (CPU): all inputs must share same datatype.")


def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-05,
) -> Tensor:
    """`input` with mean 0 and variance 1 per channel of each example, then scaled and shifted per channel."""
    if use_input_stats and prod(input.shape[2:]) == 1:
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {input.shape}")
    if not use_input_stats and (running_mean is None or running_var is None):
        raise RuntimeError("Expected running_mean and running_var to be defined when use_input_stats is false")
    batch, channels = input.shape[:2]
    weight, bias, mean, variance = [_each(t, batch) for t in (weight, bias, running_mean, running_var)]
    joined = input.contiguous().view(1, batch * channels, *input.shape[2:])
    result = torch_batch_norm(joined, weight, bias, mean, variance, use_input_stats, momentum, eps)
    for running, repeated in ((running_mean, mean), (running_var, variance)):
        if running is not None and repeated is not None and use_input_stats:
            running.copy_(repeated.view(batch, channels).mean(0))
    return result.view(*input.shape)


def _each(parameter: Tensor | None, batch: int) -> Tensor | None:
    """One per channel of each example."""
    return None if parameter is None else parameter.repeat(batch)


def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """`input` divided by a power of the mean square of `size` neighbouring channels."""
    if input.ndim < 3:
        raise ValueError(
            f"Expected 3D or higher dimensionality                          input (got {input.ndim} dimensions)"
        )
    if not input.numel():
        return input
    around = (size // 2, (size - 1) // 2)
    squares = input.mul(input)
    if input.ndim == 3:
        mean = avg_pool2d(pad(squares.unsqueeze(1), (0, 0, *around)), (size, 1), stride=1).squeeze(1)
    else:
        volume = squares.view(input.shape[0], 1, input.shape[1], input.shape[2], -1)
        mean = avg_pool3d(pad(volume, (0, 0, 0, 0, *around)), (size, 1, 1), stride=1).squeeze(1).view(*input.shape)
    return input / mean.mul(alpha).add(k).pow(beta)


def normalize(
    input: Tensor, p: float = 2.0, dim: int | tuple[int, ...] = 1, eps: float = 1e-12, out: Any = None
) -> Tensor:
    """`input` divided by its norm over `dim`."""
    return input / input.norm(p, dim, keepdim=True).clamp_min(eps).expand_as(input)

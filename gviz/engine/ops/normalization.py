"""Normalization: layer, group and batch norm, with the statistics as further outputs.

Mean and inverse standard deviation (``result1``, ``result2``) are differentiable like any output, so that a rule that
uses them is valid for every order.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from gviz.engine.memory_format import contiguous_format, suggested
from gviz.engine.op import Example, Op, Rule
from gviz.engine.ops._examples import normal, positive
from gviz.engine.ops._kernels import all_in_rows, only
from gviz.engine.ops.elementary_functions import rsqrt
from gviz.engine.ops.reductions import sum_dim
from gviz.engine.ops.shape import in_shape
from gviz.values.value import Array

Shape = tuple[int, ...]
OUTPUTS = ("result", "result1", "result2")


def _normalized(self: Array, dims: Shape, eps: float) -> tuple[Array, Array, Array]:
    """`self` with mean 0 and variance 1 over `dims`; the mean, and the inverse standard deviation."""
    centred, mean, variance = _centred(self, dims, eps)
    inverse = 1 / np.sqrt(variance + eps)
    centred *= inverse
    return centred, mean, inverse


def _centred(self: Array, dims: Shape, eps: float) -> tuple[Array, Array, Array]:
    """`self` with mean 0 over `dims`; the mean, and the variance.

    Without `eps`, the mean of equal elements is exact, so that their variance is 0.
    """
    count = prod([self.shape[d] for d in dims])
    if not count:
        empty = np.zeros([1 if d in dims else n for d, n in enumerate(self.shape)], self.dtype)
        return self.copy(), empty, empty + self.dtype.type(np.nan)
    mean = np.add.reduce(self, axis=dims, keepdims=True) / count
    if not eps:
        least, most = (step.reduce(self, axis=dims, keepdims=True) for step in (np.minimum, np.maximum))
        mean = np.where(least == most, most, mean)
    centred = self - mean
    return centred, mean, np.add.reduce(np.square(centred), axis=dims, keepdims=True) / count


def _scaled(normalized: Array, weight: Array | None, bias: Array | None) -> Array:
    if weight is not None:
        normalized *= weight
    if bias is not None:
        normalized += bias
    return normalized


def _through(g: Any, normalized: Any, inverse: Any, stats: Sequence[Any], dims: Shape) -> Any:
    """Return the gradient of a tensor normalized over `dims`, from `g` and the gradients `stats` of its statistics."""
    count = max(prod([g.shape[d] for d in dims]), 1)
    slope = inverse * sum_dim(g * normalized, dim=dims, keepdim=True) + stats[1] * (inverse * inverse)
    shift = inverse * sum_dim(g, dim=dims, keepdim=True) - stats[0]
    return g * inverse - normalized * (slope / count) - shift / count


def _layer_dims(shape: Shape, normalized_shape: Shape) -> Shape:
    return tuple(range(len(shape) - len(normalized_shape), len(shape)))


def _layer_norm(
    input: Array, weight: Array | None, bias: Array | None, normalized_shape: Shape, eps: float
) -> tuple[Array, Array, Array]:
    result, mean, inverse = _normalized(input, _layer_dims(input.shape, normalized_shape), eps)
    return _scaled(result, weight, bias), mean, inverse


def _through_layer_input(
    grads: Sequence[Any], input: Any, weight: Any, result1: Any, result2: Any, normalized_shape: Shape
) -> Any:
    g, *stats = grads
    dims = _layer_dims(input.shape, normalized_shape)
    return _through(g if weight is None else g * weight, (input - result1) * result2, result2, stats, dims)


layer_norm: Op = Op(
    "native_layer_norm(input, weight?, bias?, *, normalized_shape, eps)",
    grad_fn="NativeLayerNormBackward0",
    formula="(input - mean) / sqrt(variance + eps) * weight + bias",
    forward=all_in_rows(only("f", "LayerNormKernelImpl", _layer_norm)),
    rules=(
        Rule("input", "g * weight / deviation, less its mean and its projection on result", _through_layer_input),
        Rule(
            "weight",
            "g * (input - mean) / deviation",
            lambda grads, input, result1, result2: grads[0] * ((input - result1) * result2),
        ),
        Rule("bias", "g", lambda grads: grads[0]),
    ),
    outputs=OUTPUTS,
    public=False,
    examples=lambda: [
        Example((normal(2, 3, 4), positive(4), normal(4)), {"normalized_shape": (4,), "eps": 1e-5}),
        Example((normal(2, 3, 2), None, None), {"normalized_shape": (3, 2), "eps": 0.1}),
    ],
)


def _per_channel(values: Any, ndim: int) -> Any:
    """Return one number per channel, in a shape that broadcasts with an input of `ndim` dimensions."""
    return None if values is None else in_shape(values, (1, values.shape[0], *[1] * (ndim - 2)))


def _per_group(values: Any, shape: Shape, group: int) -> Any:
    """``(batch, groups)`` as ``(batch, groups, 1)``, next to an input in groups."""
    return in_shape(values, (shape[0], group, 1))


def _in_groups(tensor: Any, shape: Shape, group: int) -> Any:
    return in_shape(tensor, (shape[0], group, prod(shape[1:]) // group))


def _group_norm(
    input: Array, weight: Array | None, bias: Array | None, N: int, C: int, HxW: int, group: int, eps: float
) -> tuple[Array, Array, Array]:
    result, mean, inverse = _normalized(np.ascontiguousarray(input).reshape(N, group, C // group * HxW), (2,), eps)
    scaled = _scaled(result.reshape(input.shape), _per_channel(weight, input.ndim), _per_channel(bias, input.ndim))
    return scaled, mean.reshape(N, group), inverse.reshape(N, group)


def _group_normalized(input: Any, result1: Any, result2: Any, group: int) -> tuple[Any, Any]:
    inverse = _per_group(result2, input.shape, group)
    return (_in_groups(input, input.shape, group) - _per_group(result1, input.shape, group)) * inverse, inverse


def _through_group_input(grads: Sequence[Any], input: Any, weight: Any, result1: Any, result2: Any, group: int) -> Any:
    g = grads[0] if weight is None else grads[0] * _per_channel(weight, input.ndim)
    stats = [_per_group(grad, input.shape, group) for grad in grads[1:]]
    normalized, inverse = _group_normalized(input, result1, result2, group)
    return in_shape(_through(_in_groups(g, input.shape, group), normalized, inverse, stats, (2,)), input.shape)


def _through_group_weight(grads: Sequence[Any], input: Any, result1: Any, result2: Any, group: int) -> Any:
    normalized, _ = _group_normalized(input, result1, result2, group)
    return _over_channels(grads[0] * in_shape(normalized, input.shape))


def _over_channels(g: Any) -> Any:
    """Sum over everything but the channels."""
    return sum_dim(g, dim=(0, *range(2, g.ndim)), keepdim=False)


group_norm: Op = Op(
    "native_group_norm(input, weight?, bias?, *, N, C, HxW, group, eps)",
    grad_fn="NativeGroupNormBackward0",
    formula="(input - mean) / sqrt(variance + eps) per group, * weight + bias",
    forward=only("f", "GroupNormKernelImpl", _group_norm),
    rules=(
        Rule("input", "g * weight / deviation, less its mean and its projection on result", _through_group_input),
        Rule("weight", "g * (input - mean) / deviation, summed per channel", _through_group_weight),
        Rule("bias", "g, summed per channel", lambda grads: _over_channels(grads[0])),
    ),
    outputs=OUTPUTS,
    public=False,
    examples=lambda: [
        Example((normal(2, 4, 3), positive(4), normal(4)), {"N": 2, "C": 4, "HxW": 3, "group": 2, "eps": 1e-5}),
        Example((normal(1, 3, 2, 2), None, None), {"N": 1, "C": 3, "HxW": 4, "group": 1, "eps": 0.1}),
    ],
)


def _batch_dims(ndim: int) -> Shape:
    return (0, *range(2, ndim))


def _batch_norm(
    input: Array,
    weight: Array | None,
    bias: Array | None,
    running_mean: Array | None,
    running_var: Array | None,
    training: bool,
    eps: float,
) -> tuple[Array, Array, Array]:
    if training:
        result, mean, variance = _centred(input, _batch_dims(input.ndim), eps)
        inverse = 1 / np.sqrt(variance + eps)
        if not eps:
            inverse[variance == 0] = 0
        result *= inverse
        mean, inverse = mean.reshape(-1), inverse.reshape(-1)
    else:
        assert running_mean is not None
        assert running_var is not None
        scale = 1 / np.sqrt(running_var + eps)
        result = (input - _per_channel(running_mean, input.ndim)) * _per_channel(scale, input.ndim)
        mean = inverse = np.zeros(0, input.dtype)
    result = _scaled(result, _per_channel(weight, input.ndim), _per_channel(bias, input.ndim))
    if suggested(input) is contiguous_format:
        result = np.asarray(result, order="C")
    return result, mean, inverse


def _statistics(
    running_mean: Any, running_var: Any, result1: Any, result2: Any, training: bool, eps: float
) -> tuple[Any, Any]:
    """Mean and inverse deviation per channel: those of the batch, or the running ones."""
    return (result1, result2) if training else (running_mean, rsqrt(running_var + eps))


def _through_batch_input(
    grads: Sequence[Any],
    input: Any,
    weight: Any,
    running_mean: Any,
    running_var: Any,
    result1: Any,
    result2: Any,
    training: bool,
    eps: float,
) -> Any:
    ndim = input.ndim
    mean, inverse = _statistics(running_mean, running_var, result1, result2, training, eps)
    mean, inverse = _per_channel(mean, ndim), _per_channel(inverse, ndim)
    g = grads[0] if weight is None else grads[0] * _per_channel(weight, ndim)
    if not training:
        return g * inverse
    stats = [_per_channel(grad, ndim) for grad in grads[1:]]
    return _through(g, (input - mean) * inverse, inverse, stats, _batch_dims(ndim))


def _through_batch_weight(
    grads: Sequence[Any],
    input: Any,
    running_mean: Any,
    running_var: Any,
    result1: Any,
    result2: Any,
    training: bool,
    eps: float,
) -> Any:
    stats = _statistics(running_mean, running_var, result1, result2, training, eps)
    mean, inverse = [_per_channel(values, input.ndim) for values in stats]
    return _over_channels(grads[0] * ((input - mean) * inverse))


batch_norm: Op = Op(
    "native_batch_norm(input, weight?, bias?, running_mean?, running_var?, *, training, eps)",
    grad_fn="NativeBatchNormBackward0",
    formula="(input - mean) / sqrt(variance + eps) per channel, * weight + bias",
    forward=only("f", "batch_norm", _batch_norm),
    rules=(
        Rule("input", "g * weight / deviation, less its mean and its projection on result", _through_batch_input),
        Rule("weight", "g * (input - mean) / deviation, summed per channel", _through_batch_weight),
        Rule("bias", "g, summed per channel", lambda grads: _over_channels(grads[0])),
    ),
    outputs=OUTPUTS,
    public=False,
    examples=lambda: [
        Example((normal(3, 2, 4), positive(2), normal(2), None, None), {"training": True, "eps": 1e-5}),
        Example((normal(3, 2), None, None, normal(2), positive(2)), {"training": True, "eps": 0.1}),
        Example((normal(3, 2, 2), positive(2), normal(2), normal(2), positive(2)), {"training": False, "eps": 1e-5}),
    ],
)


def _moved_mean(self: Array, mean: Array, momentum: float) -> Array:
    return self * (1 - momentum) + np.asarray(mean * momentum, self.dtype)


def _moved_variance(self: Array, inverse: Array, momentum: float, count: int, eps: float) -> Array:
    if not eps:
        inverse = np.where(inverse == 0, np.inf, inverse)  # 0 stands for a variance of 0 in batch norm
    inverse = inverse.astype(np.float64)
    variance = (inverse**-2 - eps) * _unbiased(count)
    return self * (1 - momentum) + np.asarray(variance * momentum, self.dtype)


def _unbiased(count: int) -> float:
    return count / max(count - 1, 1)


move_mean: Op = Op(
    "running_mean(self, mean, *, momentum)",
    grad_fn="RunningMeanBackward0",
    formula="self * (1 - momentum) + mean * momentum",
    forward=_moved_mean,
    rules=(
        Rule("self", "g * (1 - momentum)", lambda g, momentum: g * (1 - momentum)),
        Rule("mean", "g * momentum", lambda g, momentum: g * momentum),
    ),
    public=False,
    examples=lambda: [Example((normal(3), normal(3)), {"momentum": 0.1})],
)
move_variance: Op = Op(
    "running_var(self, inverse, *, momentum, count, eps)",
    grad_fn="RunningVarBackward0",
    formula="self * (1 - momentum) + (1 / inverse**2 - eps) * count / (count - 1) * momentum",
    forward=_moved_variance,
    rules=(
        Rule("self", "g * (1 - momentum)", lambda g, momentum: g * (1 - momentum)),
        Rule(
            "inverse",
            "g * -2 / inverse**3 * count / (count - 1) * momentum",
            lambda g, inverse, momentum, count: g * inverse**-3 * (-2 * _unbiased(count) * momentum),
        ),
    ),
    public=False,
    examples=lambda: [Example((positive(3), positive(3)), {"momentum": 0.1, "count": 4, "eps": 1e-5})],
)

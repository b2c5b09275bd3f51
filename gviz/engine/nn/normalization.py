"""Normalizations, as functions and as modules: batch, instance, layer, group, RMS and local response.

All but the last two subtract a mean and divide by a standard deviation. These are computed over a channel of the whole
batch (batch), a channel of one example (instance), a group of channels of one example (group), or the last dimensions
(layer). Batch and instance normalization can also keep running statistics, for evaluation.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any, ClassVar

import numpy as np

from gviz.engine import dtypes, messages
from gviz.engine.dtypes import dtype as DType
from gviz.engine.functions_and_methods import front
from gviz.engine.modes import no_grad
from gviz.engine.nn import functional as F
from gviz.engine.nn import init
from gviz.engine.nn._families_by_dimension import refuse_tracked
from gviz.engine.nn.module import Module
from gviz.engine.nn.parameter import Parameter, begin, buffer, empty
from gviz.engine.nn.pooling import avg_pool2d, avg_pool3d
from gviz.engine.op import Op
from gviz.engine.ops import normalization
from gviz.engine.ops._kernels import refuse_unless
from gviz.engine.ops.arithmetic import plus_number
from gviz.engine.ops.images import pad
from gviz.engine.tensor import Tensor, count_writes, new_tensor
from gviz.engine.views import apply_in_place
from gviz.source.call_stack import warn


class _RunningNorm(Module):
    """Base class with weights, and running statistics of past batches."""

    _version = 2
    dims: ClassVar[tuple[int, ...]]
    weight: Parameter | None
    bias: Parameter | None
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: DType | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        for name, is_learned in (("weight", affine), ("bias", affine and bias)):
            self.register_parameter(name, empty(num_features, device=device, dtype=dtype) if is_learned else None)
        tracked = track_running_stats
        self.register_buffer("running_mean", buffer(np.zeros(num_features), dtype) if tracked else None)
        self.register_buffer("running_var", buffer(np.ones(num_features), dtype) if tracked else None)
        self.register_buffer("num_batches_tracked", new_tensor(np.zeros((), dtypes.int64.numpy)) if tracked else None)
        for statistic in (self.running_mean, self.running_var, self.num_batches_tracked):
            if statistic is not None:
                count_writes(statistic, 1)  # PyTorch resets the new tensors, and messages show that version
        if affine or type(self).reset_parameters is not _RunningNorm.reset_parameters:
            begin(self)

    def reset_running_stats(self) -> None:
        """Resets the running statistics to mean 0 and variance 1."""
        if self.track_running_stats:  # AttributeError without statistics, as in PyTorch
            self.running_mean.zero_()  # type: ignore[union-attr]
            self.running_var.fill_(1)  # type: ignore[union-attr]
            self.num_batches_tracked.zero_()  # type: ignore[union-attr]

    def reset_parameters(self) -> None:
        """Resets the weights and the running statistics."""
        if self.weight is None or not self.weight._unborn:
            self.reset_running_stats()
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() not in self.dims:
            expected = " or ".join([f"{dim}D" for dim in self.dims])
            raise ValueError(f"expected {expected} input (got {input.dim()}D input)")

    def extra_repr(self) -> str:
        """The size and options."""
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, local_metadata: dict[str, Any], *rest: Any
    ) -> None:
        version = local_metadata.get("version")
        if self.num_batches_tracked is not None and (version is None or version < 2):
            state_dict.setdefault(prefix + "num_batches_tracked", self.num_batches_tracked)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)


class _BatchNorm(_RunningNorm):
    """Base class of batch normalization for inputs with one of `dims` dimensions."""

    def forward(self, input: Tensor) -> Tensor:
        """Normalizes: by the batch during training, by the running statistics in evaluation."""
        self._check_input_dim(input)
        factor = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:
                factor = 1.0 / float(self.num_batches_tracked)
        by_batch = self.training or (self.running_mean is None and self.running_var is None)
        known = not self.training or self.track_running_stats
        mean, var = (self.running_mean, self.running_var) if known else (None, None)
        return F.batch_norm(input, mean, var, self.weight, self.bias, by_batch, factor, self.eps)


class BatchNorm1d(_BatchNorm):
    """Batch normalization of vectors or sequences."""

    dims = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Batch normalization of images."""

    dims = (4,)


class BatchNorm3d(_BatchNorm):
    """Batch normalization of volumes."""

    dims = (5,)


class _InstanceNorm(_RunningNorm):
    """Base class of instance normalization for inputs with `dims` dimensions, without and with a batch."""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: DType | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def forward(self, input: Tensor) -> Tensor:
        """Normalizes each instance separately."""
        self._check_input_dim(input)
        without_batch = self.dims[0]
        channels = input.dim() - without_batch
        if input.shape[channels] != self.num_features:
            self._complain(channels, input.shape[channels])
        if input.dim() == without_batch:
            return self._normalized(input.unsqueeze(0)).squeeze(0)
        return self._normalized(input)

    def _complain(self, dim: int, size: int) -> None:
        if self.affine:
            raise ValueError(
                f"expected input's size at dim={dim} to match num_features ({self.num_features}), but got: {size}."
            )
        warn(
            f"input's size at dim={dim} does not match num_features. You can silence this warning by not passing in "
            "num_features, which is not used because affine=False",
        )

    def _normalized(self, input: Tensor) -> Tensor:
        by_instance = self.training or not self.track_running_stats
        factor = 0.0 if self.momentum is None else self.momentum
        statistics = (self.running_mean, self.running_var)
        return F.instance_norm(input, *statistics, self.weight, self.bias, by_instance, factor, self.eps)


class InstanceNorm1d(_InstanceNorm):
    """Instance normalization of sequences."""

    dims = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Instance normalization of images."""

    dims = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """Instance normalization of volumes."""

    dims = (4, 5)


class _Affine(Module):
    """Base class with a weight initialized to ones and a bias initialized to zeros; either may be absent."""

    weight: Parameter | None
    bias: Parameter | None

    def reset_parameters(self) -> None:
        """Initializes the weights."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)


class LayerNorm(_Affine):
    """Normalizes to mean 0 and variance 1 over the last dimensions."""

    def __init__(
        self,
        normalized_shape: int | Iterable[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _dims_of(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        for name, is_learned in (("weight", elementwise_affine), ("bias", elementwise_affine and bias)):
            parameter = empty(*self.normalized_shape, device=device, dtype=dtype) if is_learned else None
            self.register_parameter(name, parameter)
        begin(self)

    def forward(self, input: Tensor) -> Tensor:
        """Normalizes the input."""
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """The shape and options."""
        options = f"eps={self.eps}, elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"
        return f"{self.normalized_shape}, {options}"


class RMSNorm(Module):
    """Normalizes to a root mean square of 1 over the last dimensions."""

    weight: Parameter | None

    def __init__(
        self,
        normalized_shape: int | Iterable[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _dims_of(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        parameter = empty(*self.normalized_shape, device=device, dtype=dtype) if elementwise_affine else None
        self.register_parameter("weight", parameter)
        begin(self)

    def reset_parameters(self) -> None:
        """Initializes the weight."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        """Normalizes the input."""
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        """The shape and options."""
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(_Affine):
    """Normalizes to mean 0 and variance 1 over each group of channels."""

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: DType | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_channels % num_groups:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        for name, is_learned in (("weight", affine), ("bias", affine and bias)):
            self.register_parameter(name, empty(num_channels, device=device, dtype=dtype) if is_learned else None)
        begin(self)

    def forward(self, input: Tensor) -> Tensor:
        """Normalizes the input."""
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """The sizes and options."""
        options = f"eps={self.eps}, affine={self.affine}, bias={self.bias is not None}"
        return f"{self.num_groups}, {self.num_channels}, {options}"


class LocalResponseNorm(Module):
    """Divides each channel by a power of the mean square of its neighbours."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        """Normalizes the input."""
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        """The options."""
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


def _dims_of(shape: int | Iterable[int]) -> tuple[int, ...]:
    return tuple(shape) if isinstance(shape, Iterable) else (shape,)


def _first(op: Op, *tensors: Tensor | None, **attrs: Any) -> tuple[Tensor, Tensor, Tensor]:
    results: tuple[Tensor, Tensor, Tensor] = op(*tensors, **attrs)
    return results


@F._declare
def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-05,
) -> Tensor:
    """`input` normalized to mean 0 and variance 1 over its last dimensions, then scaled and shifted."""
    shape = _normalized_shape("layer_norm", normalized_shape)
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
    """`layer_norm`; the last argument is for other devices."""
    return layer_norm(input, normalized_shape, weight, bias, eps)


@F._declare
@front("rms_norm", method=False)
def rms_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """`input` divided by the root of its mean square over its last dimensions, then scaled."""
    shape = _normalized_shape("rms_norm", normalized_shape)
    _check_last(input, shape, "*", weight=weight)
    refuse_unless(input._array.dtype.kind == "f", "rms_norm", input._array)
    if weight is not None and weight.dtype is not input.dtype:
        messages.warn_once(
            f"Mismatch dtype between input and weight: input dtype = {input.dtype.cpp_name}, weight dtype = "
            f"{weight.dtype.cpp_name}, Cannot dispatch to fused implementation."
        )
    wide = input.float() if input._array.dtype == np.float16 else input
    small = float(np.finfo(wide._array.dtype).eps) if eps is None else eps
    dims = tuple(range(input.ndim - len(shape), input.ndim))
    mean = apply_in_place(plus_number, (wide.pow(2).mean(dims, keepdim=True),), {"other": small})
    result = wide * mean.rsqrt()
    return (result if weight is None else result * weight).to(input.dtype).contiguous()


def _normalized_shape(name: str, normalized_shape: Any) -> tuple[int, ...]:
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


@F._declare
def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-05
) -> Tensor:
    """`input` normalized to mean 0 and variance 1 per group of channels, then scaled and shifted per channel."""
    if input.ndim < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.ndim}")
    batch, channels = input.shape[:2]
    size = [batch * channels // num_groups, num_groups, *input.shape[2:]]
    if size[0] * prod(size[2:]) == 1:  # a group of one value has no variance
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {size}")
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
    """`group_norm`; the last argument is for other devices."""
    return group_norm(input, num_groups, weight, bias, eps)


@F._declare
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
    """`input` normalized per channel by the statistics of the batch if `training`, else by the running ones.

    In training, the running statistics move towards those of the batch by `momentum`.
    """
    if training and input.shape[0] * prod(input.shape[2:]) == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {input.shape}")
    if training and eps <= 0:
        raise ValueError(f"batch_norm eps must be positive during training, but got {eps}")
    if eps < 0:
        raise ValueError(f"batch_norm eps must be non-negative, but got {eps}")
    return torch_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)


def _check_kinds(input: Tensor, *parameters: Tensor | None) -> None:
    """Raise RuntimeError, with PyTorch's text, for parameters of another dtype than the input's."""
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
    """`batch_norm` with its arguments in another order; the last one is for other devices."""
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
    refuse_tracked("native_batch_norm", running_mean=running_mean, running_var=running_var)
    tensors = (input, weight, bias, running_mean, running_var)
    result, mean, inverse = _first(normalization.batch_norm, *tensors, training=training, eps=eps)
    if training and running_mean is not None and running_var is not None and input.numel():
        count = input.numel() // input.shape[1]
        with no_grad():  # through `data`: PyTorch does not bump the versions of the running statistics either
            apply_in_place(normalization.move_mean, (running_mean.data, mean), {"momentum": momentum})
            attrs = {"momentum": momentum, "count": count, "eps": eps}
            apply_in_place(normalization.move_variance, (running_var.data, inverse), attrs)
    return result


@F._declare
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
    """`input` normalized to mean 0 and variance 1 per channel of each example, then scaled and shifted per channel."""
    if use_input_stats and prod(input.shape[2:]) == 1:
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {input.shape}")
    if not use_input_stats and (running_mean is None or running_var is None):
        raise RuntimeError("Expected running_mean and running_var to be defined when use_input_stats is false")
    batch, channels = input.shape[:2]
    weight, bias = _repeated(weight, batch), _repeated(bias, batch)
    mean, variance = [
        None if running is None else running.to(input.dtype).repeat(batch) for running in (running_mean, running_var)
    ]
    joined = input.contiguous().view(1, batch * channels, *input.shape[2:])
    result = torch_batch_norm(joined, weight, bias, mean, variance, use_input_stats, momentum, eps)
    for running, repeated in ((running_mean, mean), (running_var, variance)):
        if running is not None and repeated is not None and use_input_stats:
            running.copy_(repeated.view(batch, channels).mean(0))
    return result.view(input.shape)


def _repeated(parameter: Tensor | None, batch: int) -> Tensor | None:
    """Return a parameter per channel, repeated for each example."""
    return None if parameter is None else parameter.repeat(batch)


@F._declare
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
        mean = avg_pool3d(pad(volume, (0, 0, 0, 0, *around)), (size, 1, 1), stride=1).squeeze(1).view(input.shape)
    return input / mean.mul(alpha).add(k).pow(beta)


@F._declare
def normalize(
    input: Tensor, p: float = 2.0, dim: int | tuple[int, ...] = 1, eps: float = 1e-12, out: Any = None
) -> Tensor:
    """`input` divided by its norm over `dim`."""
    return input / input.norm(p, dim, keepdim=True).clamp_min(eps).expand_as(input)

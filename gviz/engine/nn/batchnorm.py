"""Normalization by what a batch, or an instance of it, has in each channel; with statistics of the past."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from gviz.engine import dtypes
from gviz.engine.dtypes import dtype as DType
from gviz.engine.nn import functional, init
from gviz.engine.nn.fresh import begin, buffer, empty
from gviz.engine.nn.module import Module
from gviz.engine.nn.parameter import Parameter
from gviz.engine.tensor import Tensor, new_tensor
from gviz.site import warn


class _Norm(Module):
    """Weights, and running statistics."""

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
        for name, wanted in (("weight", affine), ("bias", affine and bias)):
            self.register_parameter(name, empty(num_features, device=device, dtype=dtype) if wanted else None)
        tracked = track_running_stats
        self.register_buffer("running_mean", buffer(np.zeros(num_features), dtype) if tracked else None)
        self.register_buffer("running_var", buffer(np.ones(num_features), dtype) if tracked else None)
        self.register_buffer("num_batches_tracked", _no_batches() if tracked else None)
        for statistic in (self.running_mean, self.running_var, self.num_batches_tracked):
            if statistic is not None:
                statistic._counter[0] = 1  # PyTorch resets what it has just made, and messages count that
        begin(self)

    def reset_running_stats(self) -> None:
        """Forget the statistics of the past."""
        if self.track_running_stats:  # an AttributeError where there are none, as in PyTorch
            self.running_mean.zero_()  # type: ignore[union-attr]
            self.running_var.fill_(1)  # type: ignore[union-attr]
            self.num_batches_tracked.zero_()  # type: ignore[union-attr]

    def reset_parameters(self) -> None:
        """Give the weights their first values, and forget the statistics."""
        if self.weight is not None and not self.weight._unborn:
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
        """Its size and options."""
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


def _no_batches() -> Tensor:
    return new_tensor(np.zeros((), dtypes.int64.numpy))


class _BatchNorm(_Norm):
    def forward(self, input: Tensor) -> Tensor:
        """Normalize: by the batch while training, by the running statistics afterwards."""
        self._check_input_dim(input)
        factor = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:
                factor = 1.0 / float(self.num_batches_tracked)
        by_batch = self.training or (self.running_mean is None and self.running_var is None)
        known = not self.training or self.track_running_stats
        mean, var = (self.running_mean, self.running_var) if known else (None, None)
        return functional.batch_norm(input, mean, var, self.weight, self.bias, by_batch, factor, self.eps)


class BatchNorm1d(_BatchNorm):
    """Batch normalization of vectors or sequences."""

    dims = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Batch normalization of pictures."""

    dims = (4,)


class BatchNorm3d(_BatchNorm):
    """Batch normalization of volumes."""

    dims = (5,)


class _InstanceNorm(_Norm):
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
        """Normalize each instance by itself."""
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
        return functional.instance_norm(input, *statistics, self.weight, self.bias, by_instance, factor, self.eps)


class InstanceNorm1d(_InstanceNorm):
    """Instance normalization of sequences."""

    dims = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Instance normalization of pictures."""

    dims = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """Instance normalization of volumes."""

    dims = (4, 5)

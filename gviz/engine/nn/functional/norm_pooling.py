"""Pooling by norms of ``torch.nn.functional``: the root of a mean of powers."""

from __future__ import annotations

from gviz.engine.nn.functional.pooling import Sizes, avg_pool1d, avg_pool2d, avg_pool3d, sizes_of
from gviz.engine.tensor import Tensor

__all__ = ["lp_pool1d", "lp_pool2d", "lp_pool3d"]


def lp_pool1d(
    input: Tensor, norm_type: float, kernel_size: int, stride: Sizes | None = None, ceil_mode: bool = False
) -> Tensor:
    """The norm under each window of the last dimension."""
    mean = avg_pool1d(input.pow(norm_type), kernel_size, stride, 0, ceil_mode)
    return _root(mean, norm_type, kernel_size)


def lp_pool2d(
    input: Tensor, norm_type: float, kernel_size: Sizes, stride: Sizes | None = None, ceil_mode: bool = False
) -> Tensor:
    """The norm under each window of the last two dimensions."""
    height, width = sizes_of("lp_pool2d", "kernel_size", kernel_size, 2)
    return _root(avg_pool2d(input.pow(norm_type), kernel_size, stride, 0, ceil_mode), norm_type, height * width)


def lp_pool3d(
    input: Tensor, norm_type: float, kernel_size: Sizes, stride: Sizes | None = None, ceil_mode: bool = False
) -> Tensor:
    """The norm under each window of the last three dimensions."""
    depth, height, width = sizes_of("lp_pool3d", "kernel_size", kernel_size, 3)
    mean = avg_pool3d(input.pow(norm_type), kernel_size, stride, 0, ceil_mode)
    return _root(mean, norm_type, depth * height * width)


def _root(mean: Tensor, norm_type: float, count: int) -> Tensor:
    return (mean.sign() * mean.abs().relu()).mul(count).pow(1.0 / norm_type)

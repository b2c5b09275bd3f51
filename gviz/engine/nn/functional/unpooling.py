"""Unpooling of ``torch.nn.functional``: the largest elements back where they were found."""

from __future__ import annotations

from collections.abc import Sequence

from gviz.engine.nn.functional.pooling import Shape, Sizes, sizes_of, stride_of
from gviz.engine.ops.shape import run
from gviz.engine.ops.unpooling import unpool
from gviz.engine.tensor import Tensor

__all__ = [
    "max_unpool1d",
    "max_unpool2d",
    "max_unpool3d",
]


def _unpool(
    dims: int,
    input: Tensor,
    indices: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None,
    padding: Sizes,
    output_size: Sequence[int] | None,
) -> Tensor:
    name = f"max_unpool{dims}d"
    kernel = sizes_of(name, "kernel_size", kernel_size, dims)
    steps, edges = stride_of(name, stride, kernel), sizes_of(name, "padding", padding, dims)
    counts = input.shape[input.ndim - dims :]
    size = tuple([(n - 1) * s - 2 * p + k for n, k, s, p in zip(counts, kernel, steps, edges, strict=True)])
    if output_size is not None:
        size = _chosen_size(tuple(output_size)[-dims:], size, steps)
    if input.shape != indices.shape:
        raise RuntimeError(
            f"Expected shape of indices to be same as that of the input tensor ({list(input.shape)}) but got indices "
            f"tensor with shape: {list(indices.shape)}"
        )
    _check_indices(indices, size)
    return run(unpool[dims], input, indices, size=size)


def _chosen_size(wanted: Shape, default: Shape, stride: Shape) -> Shape:
    for d, (n, own, s) in enumerate(zip(wanted, default, stride, strict=True)):
        if not own - s < n < own + s:
            raise ValueError(f'invalid output_size "{wanted}" (dim {d} must be between {own - s} and {own + s})')
    return wanted


def _check_indices(indices: Tensor, size: Shape) -> None:
    array, volume = indices._array, 1
    for n in size:
        volume *= n
    bad = array[(array < 0) | (array >= volume)]
    if bad.size:
        sizes = "x".join(map(str, size))
        raise RuntimeError(f"Found an invalid max index: {bad[0]} (output volumes are of size {sizes})")


def max_unpool1d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """The largest elements back where `max_pool1d` found them, zeros elsewhere."""
    return _unpool(1, input, indices, kernel_size, stride, padding, output_size)


def max_unpool2d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """The largest elements back where `max_pool2d` found them, zeros elsewhere."""
    return _unpool(2, input, indices, kernel_size, stride, padding, output_size)


def max_unpool3d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """The largest elements back where `max_pool3d` found them, zeros elsewhere."""
    return _unpool(3, input, indices, kernel_size, stride, padding, output_size)

"""Adaptive pooling of ``torch.nn.functional``: what arguments mean, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gviz.engine.ops import adaptive_pooling
from gviz.engine.ops.shape import run
from gviz.engine.surface import front
from gviz.engine.tensor import Tensor

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool1d_with_indices",
    "adaptive_max_pool2d",
    "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d",
    "adaptive_max_pool3d_with_indices",
]

Parts = int | None | Sequence[int | None]
Shape = tuple[int, ...]


def _checked(name: str, dims: int, input: Tensor, output_size: Parts, colon: str = "") -> Shape:
    """The number of parts along each dimension; None keeps a dimension as it is."""
    given = (output_size,) * dims if isinstance(output_size, int) or output_size is None else tuple(output_size)
    if len(given) != dims:
        raise RuntimeError(f"{name}: output_size must be {dims}")
    if input.ndim not in (dims + 1, dims + 2):
        raise RuntimeError(f"{name}(): Expected {dims + 1}D or {dims + 2}D tensor, but got{colon} {list(input.shape)}")
    parts = tuple([own if n is None else n for n, own in zip(given, input.shape[-dims:], strict=True)])
    if any(n < 0 for n in parts):
        said = ", ".join(map(str, parts))
        raise RuntimeError(
            f"{name}: elements of output_size must be greater than or equal to 0 but received {{{said}}}"
        )
    for dim in range(input.ndim - dims, input.ndim):
        if not input.shape[dim]:
            raise RuntimeError(
                f"{name}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes "
                f"{list(input.shape)} with dimension {dim} being empty"
            )
    return parts


@front("adaptive_avg_pool1d", method=False)
def adaptive_avg_pool1d(input: Tensor, output_size: Parts) -> Tensor:
    """The mean of each of `output_size` parts of the last dimension."""
    (parts,) = _checked("adaptive_avg_pool1d", 1, input, output_size)
    return adaptive_avg_pool2d(input.unsqueeze(-2), (1, parts)).squeeze(-2)


def adaptive_avg_pool2d(input: Tensor, output_size: Parts) -> Tensor:
    """The mean of each part, of `output_size` parts along the last two dimensions."""
    return _mean(2, input, output_size)


def adaptive_avg_pool3d(input: Tensor, output_size: Parts) -> Tensor:
    """The mean of each part, of `output_size` parts along the last three dimensions."""
    return _mean(3, input, output_size)


def _mean(dims: int, input: Tensor, output_size: Parts) -> Tensor:
    parts = _checked(f"adaptive_avg_pool{dims}d", dims, input, output_size)
    if all(n == 1 for n in parts):
        return input.mean(tuple(range(-1, -dims - 1, -1)), keepdim=True)
    return run(adaptive_pooling.avg_pools[dims], input, output_size=parts)


def adaptive_max_pool1d_with_indices(
    input: Tensor, output_size: Parts, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """The largest of each part of the last dimension, and where it is."""
    (parts,) = _checked("adaptive_max_pool1d", 1, input, output_size, ":")
    values, indices = adaptive_max_pool2d_with_indices(input.unsqueeze(-2), (1, parts))
    return values.squeeze(-2), indices.squeeze(-2)


def adaptive_max_pool2d_with_indices(
    input: Tensor, output_size: Parts, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """The largest of each part of the last two dimensions, and where it is."""
    return _largest(2, input, output_size)


def adaptive_max_pool3d_with_indices(
    input: Tensor, output_size: Parts, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """The largest of each part of the last three dimensions, and where it is."""
    return _largest(3, input, output_size)


def _largest(dims: int, input: Tensor, output_size: Parts) -> tuple[Tensor, Tensor]:
    parts = _checked(f"adaptive_max_pool{dims}d", dims, input, output_size, ":")
    values, indices = adaptive_pooling.max_pools[dims](input, output_size=parts)
    return values, indices


def _values_of(name: str, with_indices: Callable[..., tuple[Tensor, Tensor]]) -> Callable[..., Any]:
    def adaptive_max_pool(input: Tensor, output_size: Parts, return_indices: bool = False) -> Any:
        found = with_indices(input, output_size)
        return found if return_indices else found[0]

    adaptive_max_pool.__name__ = adaptive_max_pool.__qualname__ = name
    adaptive_max_pool.__doc__ = "The largest of each part; with `return_indices` also where it is."
    return adaptive_max_pool


adaptive_max_pool1d = _values_of("adaptive_max_pool1d", adaptive_max_pool1d_with_indices)
adaptive_max_pool2d = _values_of("adaptive_max_pool2d", adaptive_max_pool2d_with_indices)
adaptive_max_pool3d = _values_of("adaptive_max_pool3d", adaptive_max_pool3d_with_indices)
front("adaptive_max_pool1d", method=False)(adaptive_max_pool1d_with_indices)

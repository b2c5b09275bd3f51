"""Another shape, as a module."""

from __future__ import annotations

from gviz.engine.nn.module import Module
from gviz.engine.tensor import Tensor


class Flatten(Module):
    """Dimensions `start_dim` to `end_dim` as one; the first, of the samples, stays by default."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Tensor) -> Tensor:
        """Flatten it."""
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        """Which dimensions."""
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """One dimension as several."""

    def __init__(self, dim: int, unflattened_size: tuple[int, ...] | list[int]) -> None:
        super().__init__()
        _require_sizes(unflattened_size)
        self.dim = dim
        self.unflattened_size = unflattened_size

    def forward(self, input: Tensor) -> Tensor:
        """Unflatten it."""
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        """Which dimension, and its sizes."""
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"


def _require_sizes(given: object) -> None:
    if not isinstance(given, (tuple, list)):
        raise TypeError(f"unflattened_size must be a tuple of ints, but found type {type(given).__name__}")
    for position, size in enumerate(given):
        if not isinstance(size, int):
            raise TypeError(
                f"unflattened_size must be tuple of ints, but found element of type {type(size).__name__} at pos "
                f"{position}"
            )

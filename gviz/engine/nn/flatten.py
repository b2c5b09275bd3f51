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

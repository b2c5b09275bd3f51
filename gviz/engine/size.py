"""The shape of a tensor, as PyTorch shows it."""

from __future__ import annotations

from math import prod


class Size(tuple[int, ...]):
    """A tuple of dimensions that prints as ``torch.Size([2, 3])``."""

    __slots__ = ()

    def numel(self) -> int:
        """The number of elements."""
        return prod(self)

    def __repr__(self) -> str:
        return f"torch.Size({list(self)})"

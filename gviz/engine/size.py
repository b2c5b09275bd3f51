"""The shape of a tensor, printed as in PyTorch."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from operator import index
from typing import Any, SupportsIndex


class Size(tuple[int, ...]):
    """A tuple of dimensions that prints as ``torch.Size([2, 3])``."""

    __module__ = "torch"
    __slots__ = ()

    def __new__(cls, sizes: Iterable[Any] = ()) -> Size:
        """The sizes, which must be integers."""
        return super().__new__(cls, [_checked(n, position) for position, n in enumerate(sizes)])

    def numel(self) -> int:
        """The number of elements."""
        return prod(self)

    def __repr__(self) -> str:
        return f"torch.Size({list(self)})"

    def __add__(self, other: Any) -> Size:
        return Size(tuple(self) + tuple(other))

    def __radd__(self, other: tuple[int, ...]) -> Size:
        return Size(other + tuple(self))

    def __mul__(self, times: SupportsIndex) -> Size:
        return Size(tuple(self) * times)

    __rmul__ = __mul__

    def __getitem__(self, key: Any) -> Any:
        part = super().__getitem__(key)
        return Size(part) if isinstance(key, slice) else part

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (tuple(self),)


def _restored(sizes: tuple[int, ...]) -> Size:
    return Size(sizes)


def _checked(n: object, position: int) -> int:
    if isinstance(n, (float, str)) or not hasattr(n, "__index__"):
        kind = type(n).__name__
        raise TypeError(f"torch.Size() takes an iterable of 'int' (item {position} is '{kind}')")
    return index(n)

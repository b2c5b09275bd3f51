"""Broadcasting of shapes: the check, PyTorch's error text, and the sum that undoes it."""

from __future__ import annotations

from typing import Any

import numpy as np

from gviz.engine import messages

Shape = tuple[int, ...]


def reducible(wide: Shape, narrow: Shape) -> bool:
    """Whether `narrow` broadcasts to `wide`."""
    extra = len(wide) - len(narrow)
    return extra >= 0 and all(n in (1, w) for n, w in zip(narrow, wide[extra:], strict=True))


def summed_dims(wide: Shape, narrow: Shape) -> tuple[Shape, Shape]:
    """The dimensions that were added in front of `narrow`, and its own dimensions of size 1 that were repeated."""
    extra = len(wide) - len(narrow)
    return tuple(range(extra)), tuple(d for d, n in enumerate(narrow) if n == 1 != wide[extra + d])


def sum_to(array: Any, shape: Shape) -> Any:
    """Sums a broadcast array back to `shape`."""
    in_front, repeated = summed_dims(array.shape, shape)
    if in_front:
        array = np.add.reduce(array, axis=in_front)
    return np.add.reduce(array, axis=repeated, keepdims=True) if repeated else array


def broadcast_error(a: tuple[int, ...], b: tuple[int, ...]) -> str:
    """PyTorch's error text for two shapes that do not broadcast."""
    width = max(len(a), len(b))
    wide_a, wide_b = (1,) * (width - len(a)) + a, (1,) * (width - len(b)) + b
    for dim in reversed(range(width)):
        if wide_a[dim] != wide_b[dim] and 1 not in (wide_a[dim], wide_b[dim]):
            return messages.BROADCAST.format(a=wide_a[dim], b=wide_b[dim], dim=dim)
    return messages.BROADCAST.format(a=a, b=b, dim=0)

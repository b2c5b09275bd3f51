"""What was broadcast forward is summed backward."""

from __future__ import annotations

from typing import Any

import numpy as np

from gviz.engine import dtypes, messages
from gviz.engine.node import Edge, Grad, Node
from gviz.engine.tensor import Tensor

Shape = tuple[int, ...]


def conformed(part: Grad, node: Node, slot: int, edge: Edge) -> Grad:
    """A gradient in the shape and dtype of what it belongs to: what was broadcast forward is summed backward."""
    shape, kind = edge[0].outputs[edge[1]]
    if isinstance(part, Tensor):
        array = part._array
        if array.shape != shape:
            part = (
                part.sum_to_size(shape) if reducible(array.shape, shape) else _invalid(node, slot, array.shape, shape)
            )
        return part if array.dtype == kind else part.to(dtypes.of_numpy(kind))
    if part.shape != shape:
        part = sum_to(part, shape) if reducible(part.shape, shape) else _invalid(node, slot, part.shape, shape)
    return part if part.dtype == kind else part.astype(kind)


def in_form(seed: Tensor, edge: Edge) -> Tensor:
    """A gradient given by the program in the dtype of what it belongs to."""
    _, kind = edge[0].outputs[edge[1]]
    return seed if seed._array.dtype == kind else seed.to(dtypes.of_numpy(kind))


def reducible(wide: Shape, narrow: Shape) -> bool:
    """Whether `narrow` broadcasts to `wide`."""
    extra = len(wide) - len(narrow)
    return extra >= 0 and all(n in (1, w) for n, w in zip(narrow, wide[extra:], strict=True))


def _invalid(node: Node, slot: int, got: Shape, expected: Shape) -> Grad:
    text = messages.INVALID_GRADIENT.format(name=node.name(), index=slot, got=list(got), expected=list(expected))
    raise RuntimeError(text)


def summed_dims(wide: Shape, narrow: Shape) -> tuple[Shape, Shape]:
    """Which dimensions were put in front of `narrow`, and which of its own, of size 1, were repeated."""
    extra = len(wide) - len(narrow)
    return tuple(range(extra)), tuple(d for d, n in enumerate(narrow) if n == 1 != wide[extra + d])


def sum_to(array: Any, shape: Shape) -> Any:
    """Sum a broadcast array back to `shape`."""
    in_front, repeated = summed_dims(array.shape, shape)
    if in_front:
        array = np.add.reduce(array, axis=in_front)
    return np.add.reduce(array, axis=repeated, keepdims=True) if repeated else array


def broadcast_error(a: tuple[int, ...], b: tuple[int, ...]) -> str:
    """PyTorch's words for two shapes that do not broadcast."""
    width = max(len(a), len(b))
    wide_a, wide_b = (1,) * (width - len(a)) + a, (1,) * (width - len(b)) + b
    for dim in reversed(range(width)):
        if wide_a[dim] != wide_b[dim] and 1 not in (wide_a[dim], wide_b[dim]):
            return messages.BROADCAST.format(a=wide_a[dim], b=wide_b[dim], dim=dim)
    return messages.BROADCAST.format(a=a, b=b, dim=0)

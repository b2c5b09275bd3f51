"""Neighbouring dimensions made one, one made several, and missing ones added."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from gviz.engine.ops.memory import contiguous
from gviz.engine.ops.shape import normal_dims, reshape, sizes_of, unsqueeze, view
from gviz.engine.surface import front
from gviz.engine.tensor import Tensor
from gviz.engine.wanting import several


@front("flatten")
def flatten(self: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Dimensions `start_dim` to `end_dim` as one."""
    start, end = normal_dims((start_dim, end_dim), self.ndim)
    if start > end:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if not self.ndim:
        return reshape(self, 1)
    if start == end:
        return self
    return reshape(self, *self.shape[:start], prod(self.shape[start : end + 1]), *self.shape[end + 1 :])


@front("ravel")
def ravel(self: Tensor) -> Tensor:
    """All dimensions as one."""
    return view(contiguous(self), -1)


@front("unflatten")
def unflatten(self: Tensor, dim: int, sizes: Sequence[int]) -> Tensor:
    """A view with `dim` as several dimensions, of which one size may be -1."""
    if not isinstance(dim, int):
        raise TypeError(f"unflatten(): argument 'dim' (position 1) must be int, not {type(dim).__name__}")
    if not self.ndim:
        raise RuntimeError(
            f"unflatten got an unexpected error:\nDimension specified as {dim} but tensor has no dimensions"
        )
    (axis,) = normal_dims(dim, self.ndim)
    wanted = list(sizes_of((tuple(sizes),)))
    if not wanted:
        raise RuntimeError("unflatten: sizes must be non-empty")
    length, known = self.shape[axis], prod(n for n in wanted if n != -1)
    fits = length % known == 0 if -1 in wanted and known else known == length
    if not fits:
        raise RuntimeError(
            f"unflatten: Provided sizes {wanted} don't multiply up to the size of dim {axis} ({length}) in the input "
            "tensor"
        )
    parts = [length // known if n == -1 and known else max(n, 0) for n in wanted]
    return view(self, *self.shape[:axis], *parts, *self.shape[axis + 1 :])


def _each(make: Any, tensors: tuple[Any, ...]) -> Any:
    """`make` of the one tensor given, or of each of several or of a list."""
    if len(tensors) == 1 and isinstance(tensors[0], Tensor):
        return make(tensors[0])
    return tuple([make(tensor) for tensor in several(tensors)])


def at_least_1d(self: Tensor) -> Tensor:
    """A number as a vector of one."""
    return self if self.ndim else reshape(self, 1)


def at_least_2d(self: Tensor) -> Tensor:
    """A vector as a matrix of one row."""
    return self if self.ndim > 1 else unsqueeze(self, 0) if self.ndim else reshape(self, 1, 1)


def at_least_3d(self: Tensor) -> Tensor:
    """A matrix as one of single entries, a vector as the one row of such a matrix."""
    if self.ndim > 2:
        return self
    if self.ndim == 2:
        return unsqueeze(self, -1)
    return unsqueeze(unsqueeze(self, 0), -1) if self.ndim else reshape(self, 1, 1, 1)


@front("atleast_1d", method=False)
def atleast_1d(*tensors: Any) -> Any:
    """Each tensor with at least one dimension."""
    return _each(at_least_1d, tensors)


@front("atleast_2d", method=False)
def atleast_2d(*tensors: Any) -> Any:
    """Each tensor with at least two dimensions."""
    return _each(at_least_2d, tensors)


@front("atleast_3d", method=False)
def atleast_3d(*tensors: Any) -> Any:
    """Each tensor with at least three dimensions."""
    return _each(at_least_3d, tensors)

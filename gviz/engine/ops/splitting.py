"""Tensors cut into parts, which are views."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gviz.engine.apply import apply
from gviz.engine.arguments import combination, integer, whole_numbers
from gviz.engine.op import Example, Op, Rule
from gviz.engine.ops.examples import normal
from gviz.engine.ops.joining import cat_op, stack_op
from gviz.engine.ops.selecting import at, sliced
from gviz.engine.ops.shape import normal_dims
from gviz.engine.surface import front
from gviz.engine.tensor import Tensor
from gviz.values import Array

unbind_op: Op = Op(
    "unbind(self, *, dim=0)",
    grad_fn="UnbindBackward0",
    formula="the slices of self along dim",
    forward=lambda self, dim: [self[at(dim, i)] for i in range(self.shape[dim])],
    rules=(Rule("self", "gradients stacked along dim", lambda grads, dim: stack_op(*grads, dim=dim)),),
    outputs=("results...",),
    memory="view",
    public=False,
    torch="unbind",
    examples=lambda: [Example((normal(2, 3),), {"dim": 0})],
)
split_op: Op = Op(
    "split_with_sizes(self, *, split_sizes, dim=0)",
    grad_fn="SplitWithSizesBackward0",
    formula="self cut along dim",
    forward=lambda self, split_sizes, dim: _cut(self, np.cumsum(split_sizes).tolist(), dim),
    rules=(Rule("self", "gradients joined along dim", lambda grads, dim: cat_op(*grads, dim=dim)),),
    outputs=("results...",),
    memory="view",
    public=False,
    torch="split_with_sizes",
    examples=lambda: [Example((normal(5, 2),), {"split_sizes": (2, 3), "dim": 0})],
)
split_even: Op = Op(
    "split(self, *, split_size, dim=0)",
    grad_fn="SplitBackward0",
    formula="self cut along dim",
    forward=lambda self, split_size, dim: _cut(self, _ends(self.shape[dim], split_size), dim),
    rules=(Rule("self", "gradients joined along dim", lambda grads, dim: cat_op(*grads, dim=dim)),),
    outputs=("results...",),
    memory="view",
    public=False,
    torch="Tensor.split",
    examples=lambda: [Example((normal(5, 2),), {"split_size": 2, "dim": 0})],
)


def _ends(length: int, size: int) -> list[int]:
    """Where parts of `size` end; an empty dimension is one part."""
    return [*range(size, length, size), length] if size else [length]


def _cut(self: Array, ends: list[int], dim: int) -> list[Array]:
    return [self[at(dim, slice(start, end))] for start, end in zip([0, *ends], ends, strict=False)]


@front("unbind")
def unbind(self: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """The slices along `dim`, as views."""
    (axis,) = normal_dims(dim, self.ndim)
    if not self.ndim:
        raise IndexError(f"Dimension specified as {axis} but tensor has no dimensions")
    result: tuple[Tensor, ...] = apply(unbind_op, (self,), {"dim": axis})
    return result


@front("split")
def split(
    self: Tensor, split_size_or_sections: Any = None, dim: int = 0, *, split_size: int | None = None
) -> tuple[Tensor, ...]:
    """Parts of the given size or sizes along `dim`, as views."""
    sizes = split_size_or_sections if split_size is None else split_size
    if isinstance(sizes, Tensor) and sizes.numel() == 1:
        sizes = int(sizes)
    if not isinstance(sizes, int):
        return split_with_sizes(self, sizes, dim)
    if not self.ndim:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    if sizes < 0:
        raise RuntimeError(f"split expects split_size be non-negative, but got split_size={sizes}")
    (axis,) = normal_dims(dim, self.ndim)
    if not sizes and self.shape[axis]:
        raise RuntimeError(
            "split_size can only be 0 if dimension size is 0, but got dimension size of " + str(self.shape[axis])
        )
    result: tuple[Tensor, ...] = apply(split_even, (self,), {"split_size": sizes, "dim": axis})
    return result


@front("split_with_sizes")
def split_with_sizes(self: Tensor, split_sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Parts of the given sizes along `dim`, as views."""
    split_sizes = whole_numbers("split_with_sizes", "split_sizes", _one(split_sizes), 2)
    if not self.ndim:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    (axis,) = normal_dims(dim, self.ndim)
    if any(size < 0 for size in split_sizes):
        raise RuntimeError(
            f"split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes="
            f"{list(split_sizes)}"
        )
    if sum(split_sizes) != self.shape[axis]:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {self.shape[axis]} (input tensor's size at "
            f"dimension {dim}), but got split_sizes={list(split_sizes)}"
        )
    result: tuple[Tensor, ...] = apply(split_op, (self,), {"split_sizes": tuple(split_sizes), "dim": axis})
    return result


def _one(sizes: Any) -> Any:
    return list(sizes) if isinstance(sizes, (tuple, list)) else sizes


@front("chunk")
def chunk(self: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """At most `chunks` parts of equal size along `dim`, as views; the last may be smaller."""
    if not self.ndim:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    chunks = integer("chunk", chunks, "chunks", 2)
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    (axis,) = normal_dims(dim, self.ndim)
    size = -(-self.shape[axis] // chunks)
    return split(self, size, axis) if size else split_with_sizes(self, [0] * chunks, axis)


@front("tensor_split")
def tensor_split(
    self: Tensor, indices_or_sections: Any = None, dim: int = 0, *, indices: Any = None, sections: Any = None
) -> tuple[Tensor, ...]:
    """As many parts as said, their sizes at most one apart, or cut before the given indices; views."""
    wanted: Any = next((v for v in (indices_or_sections, indices, sections) if v is not None), None)
    _check_cuts("tensor_split", self, wanted)
    if not self.ndim:
        raise RuntimeError("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
    (axis,) = normal_dims(dim, self.ndim)
    length = self.shape[axis]
    if isinstance(wanted, Tensor):
        wanted = wanted.tolist()
    if isinstance(wanted, int):
        if wanted <= 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {wanted}")
        small, larger = divmod(length, wanted)
        ends = np.cumsum([small + 1] * larger + [small] * (wanted - larger)).tolist()
        return tuple([sliced(self, axis, start, end) for start, end in zip([0, *ends], ends, strict=False)])
    bounds = [slice(start, end).indices(length) for start, end in zip([0, *wanted], [*wanted, length], strict=True)]
    return tuple([sliced(self, axis, start, end) for start, end, _ in bounds])


def _check_cuts(name: str, self: Tensor, wanted: Any) -> None:
    """Refuse what is neither a number of parts nor the places between them."""
    if isinstance(wanted, Tensor):
        what = f"{name} expected tensor_indices_or_sections to"
        if wanted.dtype.name != "int64":
            raise RuntimeError(f"{what} have dtype of long, but got {wanted.dtype.tensor_type}")
        if wanted.ndim > 1:
            raise RuntimeError(
                f"{what} be a zero-dimensional or one-dimensional tensor, but got a tensor with {wanted.ndim} dims"
            )
        return
    places = wanted if isinstance(wanted, (tuple, list)) else (wanted,)
    if not all(hasattr(place, "__index__") for place in places):
        raise combination(name, (self, wanted) if wanted is not None else (self,), {}, *_CUTS)


_CUTS = (
    "Tensor input, tuple of ints indices, int dim = 0",
    "Tensor input, Tensor tensor_indices_or_sections, int dim = 0",
    "Tensor input, int sections, int dim = 0",
)


def _split_along(self: Tensor, wanted: int | Sequence[int], axis: int, name: str) -> tuple[Tensor, ...]:
    _check_cuts(name, self, wanted)
    if isinstance(wanted, int) and (not wanted or self.shape[axis] % wanted):
        raise RuntimeError(
            f"torch.{name} attempted to split along dimension {axis}, but the size of the dimension "
            f"{self.shape[axis]} is not divisible by the split_size {wanted}!"
        )
    return tensor_split(self, wanted, axis)


def _along(name: str, needed: int, axis: int) -> None:
    """Offer ``torch.<name>``, which splits along `axis` tensors of at least `needed` dimensions."""

    def split_along(self: Tensor, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
        if self.ndim < needed:
            raise RuntimeError(
                f"torch.{name} requires a tensor with at least {needed} dimension, but got a tensor with {self.ndim} "
                "dimensions!"
            )
        return _split_along(self, indices_or_sections, min(axis, self.ndim - 1), name)

    split_along.__name__ = name
    split_along.__doc__ = f"`tensor_split` along dimension {axis}, whose size the number of parts must divide."
    front(name)(split_along)


_along("hsplit", 1, 1)
_along("vsplit", 2, 0)
_along("dsplit", 3, 2)

"""The same elements several times: expanded views, and copies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gviz.engine.apply import broadcast_error
from gviz.engine.op import Example, Op, Rule
from gviz.engine.ops.examples import normal
from gviz.engine.ops.memory import clone_in_order
from gviz.engine.ops.selecting import index_select
from gviz.engine.ops.shape import expand, in_shape, normal_dims, run, sizes_of, unsqueeze, view
from gviz.engine.size import Size
from gviz.engine.surface import front
from gviz.engine.tensor import Tensor, new_tensor
from gviz.engine.wanting import several
from gviz.values import Array

Shape = tuple[int, ...]


def _unrepeated(g: Any, sizes: Shape, repeats: Shape) -> Any:
    """A gradient summed over the repetitions: they become dimensions of their own, each before its own elements."""
    own = (1,) * (len(repeats) - len(sizes)) + sizes
    parts = in_shape(g, tuple(n for pair in zip(repeats, own, strict=True) for n in pair))
    return in_shape(sum_repeats(parts), sizes)


sum_repeats: Op = Op(
    "sum_repeats(self)",
    grad_fn="SumBackward1",
    formula="self summed over every other dimension",
    forward=lambda self: self.sum(axis=tuple(range(0, self.ndim, 2))),
    rules=(
        Rule(
            "self",
            "g for every repetition",
            lambda g, self_sym_sizes: expand(
                in_shape(g, tuple(n if d % 2 else 1 for d, n in enumerate(self_sym_sizes))), size=self_sym_sizes
            ),
        ),
    ),
    public=False,
    examples=lambda: [Example((normal(2, 3, 2, 1),), {})],
)
repeat_op: Op = Op(
    "repeat(self, *, repeats)",
    grad_fn="RepeatBackward0",
    formula="self repeats times along each dimension",
    forward=lambda self, repeats: np.tile(self, repeats),
    rules=(
        Rule(
            "self",
            "g summed over the repetitions",
            lambda g, self_sym_sizes, repeats: _unrepeated(g, self_sym_sizes, repeats),
        ),
    ),
    public=False,
    torch="Tensor.repeat",
    examples=lambda: [
        Example((normal(2, 3),), {"repeats": (2, 1, 2)}),
        Example((normal(),), {"repeats": (3,)}),
        Example((normal(2),), {"repeats": (0,)}),
    ],
)


@front("expand", function=False)
def expand_front(self: Tensor, *sizes: Any, size: Any = None, implicit: bool = False) -> Tensor:
    """A view with dimensions of size 1 repeated to `size`; -1 keeps a dimension."""
    return run(expand, self, size=sizes_of(sizes if size is None else (size,)))


@front("expand_as", function=False)
def expand_as(self: Tensor, other: Tensor) -> Tensor:
    """A view repeated to the shape of `other`."""
    return run(expand, self, size=tuple(other.shape))


@front("broadcast_to")
def broadcast_to(self: Tensor, *size: Any) -> Tensor:
    """A view repeated to `size`."""
    return run(expand, self, size=sizes_of(size))


@front("broadcast_tensors", method=False)
def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    """Each tensor expanded to the shape that all broadcast to."""
    listed = several(tensors)
    shape = common_shape(*[tensor.shape for tensor in listed])
    return tuple([t if t.shape == shape else run(expand, t, size=shape) for t in listed])


def common_shape(*shapes: Shape) -> Shape:
    """The shape that tensors broadcast to. RuntimeError, in PyTorch's words for two of them, if there is none."""
    common: Shape = ()
    for shape in shapes:
        try:
            common = np.broadcast_shapes(common, tuple(shape))
        except ValueError:
            raise RuntimeError(broadcast_error(common, tuple(shape))) from None
    return common


@front("broadcast_shapes", method=False)
def broadcast_shapes(*shapes: int | Sequence[int]) -> Size:
    """The shape that all broadcast to. RuntimeError, in PyTorch's words, if there is none."""
    common: list[int] = []
    for i, given in enumerate(shapes):
        shape = (given,) if isinstance(given, int) else tuple(given)
        common = [1] * (len(shape) - len(common)) + common
        for dim in range(-1, -1 - len(shape), -1):
            if shape[dim] not in (1, common[dim]) and common[dim] != 1:
                raise RuntimeError(
                    f"Attempting to broadcast a dimension of length {shape[dim]} at {dim}! Mismatching argument at "
                    f"index {i} had {shape}; but expected shape should be broadcastable to {common}"
                )
            common[dim] = shape[dim] if common[dim] == 1 else common[dim]
    return Size(common)


@front("repeat", function=False)
def repeat(self: Tensor, *sizes: Any, repeats: Any = None) -> Tensor:
    """A copy with this tensor `repeats` times along each dimension."""
    times = sizes_of(sizes if repeats is None else (repeats,))
    if len(times) < self.ndim:
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
    result = [n * r for n, r in zip((1,) * (len(times) - self.ndim) + tuple(self.shape), times, strict=True)]
    for n in result:
        if n < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {n}: {result}")
    return run(repeat_op, self, repeats=times)


@front("tile")
def tile(self: Tensor, *sizes: Any, dims: Any = None) -> Tensor:
    """`repeat`, with leading dimensions repeated once where `dims` has too few."""
    times = sizes_of(sizes if dims is None else (dims,))
    return repeat(self, *(1,) * (self.ndim - len(times)), *times)


@front("repeat_interleave")
def repeat_interleave(
    self: Tensor, repeats: int | Tensor | None = None, dim: int | None = None, *, output_size: int | None = None
) -> Tensor:
    """Each element of `dim` (of all, without it) `repeats` times, one after the other; a number or one per element."""
    if repeats is None:
        return new_tensor(np.repeat(np.arange(len(self._array)), _counts(self)))
    if dim is None:
        self, dim = view(self, -1) if self._array.flags.c_contiguous else self.flatten(), 0
    (axis,) = normal_dims(dim, self.ndim)
    if isinstance(repeats, Tensor):
        return _repeated_by(self, repeats, axis)
    if repeats < 0:
        raise RuntimeError("Repeats must be non-negative")
    lead, length, rest = self.shape[:axis], self.shape[axis], self.shape[axis + 1 :]
    wide = run(expand, unsqueeze(self, axis + 1), size=(*lead, length, repeats, *rest))
    return view(run(clone_in_order, wide), *lead, length * repeats, *rest)


def _repeated_by(self: Tensor, repeats: Tensor, axis: int) -> Tensor:
    counts, length = _counts(repeats), self.shape[axis]
    if repeats.ndim > 1:
        raise RuntimeError("repeats must be 0-dim or 1-dim tensor")
    if counts.size not in (1, length):
        raise RuntimeError(
            "repeats must have the same size as input along dim, but got repeats.size(0) = "
            f"{counts.size} and input.size({axis}) = {length}"
        )
    places = np.repeat(np.arange(length), counts if repeats.ndim else int(counts))
    return index_select(self, axis, new_tensor(places))


def _counts(repeats: Tensor) -> Array:
    repeats._read("array")
    if repeats.dtype.name not in ("int32", "int64"):
        raise NotImplementedError(f"\"repeat_interleave_cpu\" not implemented for '{repeats.dtype.tensor_type}'")
    if (repeats._array < 0).any():
        raise RuntimeError("repeats can not be negative")
    return repeats._array

"""Tensors cut into parts, which are views, and parts joined."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gviz.engine.apply import apply
from gviz.engine.op import Example, Op, Rule
from gviz.engine.ops.examples import normal
from gviz.engine.ops.shape import normal_dims
from gviz.engine.surface import front
from gviz.engine.tensor import Tensor
from gviz.values import Array

unbind_op: Op = Op(
    "unbind(self, *, dim=0)",
    grad_fn="UnbindBackward0",
    formula="the slices of self along dim",
    forward=lambda self, dim: [_take(self, dim, i) for i in range(self.shape[dim])],
    rules=(Rule("self", "gradients stacked along dim", lambda grads, dim: stack_op(*grads, dim=dim)),),
    outputs=("results...",),
    memory="view",
    public=False,
    examples=lambda: [Example((normal(2, 3),), {"dim": 0})],
)
split_op: Op = Op(
    "split_with_sizes(self, *, split_sizes, dim=0)",
    grad_fn="SplitWithSizesBackward0",
    formula="self cut along dim",
    forward=lambda self, split_sizes, dim: np.split(self, np.cumsum(split_sizes)[:-1], dim),
    rules=(Rule("self", "gradients joined along dim", lambda grads, dim: cat_op(*grads, dim=dim)),),
    outputs=("results...",),
    memory="view",
    public=False,
    examples=lambda: [Example((normal(5, 2),), {"split_sizes": (2, 3), "dim": 0})],
)
split_even: Op = Op(
    "split(self, *, split_size, dim=0)",
    grad_fn="SplitBackward0",
    formula="self cut along dim",
    forward=lambda self, split_size, dim: np.split(self, range(split_size, self.shape[dim], split_size), dim),
    rules=(Rule("self", "gradients joined along dim", lambda grads, dim: cat_op(*grads, dim=dim)),),
    outputs=("results...",),
    memory="view",
    public=False,
    examples=lambda: [Example((normal(5, 2),), {"split_size": 2, "dim": 0})],
)
cat_op: Op = Op(
    "cat(tensors..., *, dim=0)",
    grad_fn="CatBackward0",
    formula="tensors joined along dim",
    forward=lambda *tensors, dim: np.concatenate(tensors, dim),
    rules=(
        Rule(
            "tensors...",
            "each its part of g",
            lambda g, sizes, dim: split_op(g, split_sizes=tuple(s[dim] for s in sizes), dim=dim),
        ),
    ),
    promotes=True,
    public=False,
    examples=lambda: [Example((normal(2, 3), normal(1, 3)), {"dim": 0})],
)
stack_op: Op = Op(
    "stack(tensors..., *, dim=0)",
    grad_fn="StackBackward0",
    formula="tensors side by side along a new dim",
    forward=lambda *tensors, dim: np.stack(tensors, dim),
    rules=(Rule("tensors...", "each its slice of g", lambda g, dim: unbind_op(g, dim=dim)),),
    promotes=True,
    public=False,
    examples=lambda: [Example((normal(3), normal(3)), {"dim": 1})],
)


def _take(self: Array, dim: int, index: int) -> Array:
    return self[(slice(None),) * dim + (index, ...)]


@front("unbind")
def unbind(self: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """The slices along `dim`, as views."""
    if not self.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    result: tuple[Tensor, ...] = apply(unbind_op, (self,), {"dim": normal_dims(dim, self.ndim)[0]})
    return result


@front("split")
def split(self: Tensor, split_size_or_sections: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Parts of the given sizes along `dim`, as views."""
    if not self.ndim:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    (axis,) = normal_dims(dim, self.ndim)
    length = self.shape[axis]
    sizes = split_size_or_sections
    if isinstance(sizes, int):
        result: tuple[Tensor, ...] = apply(split_even, (self,), {"split_size": sizes, "dim": axis})
        return result
    if sum(sizes) != length:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {length} (input tensor's size at dimension "
            f"{axis}), but got split_sizes={list(sizes)}"
        )
    result = apply(split_op, (self,), {"split_sizes": tuple(sizes), "dim": axis})
    return result


@front("chunk")
def chunk(self: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """At most `chunks` parts of equal size along `dim`, as views; the last may be smaller."""
    (axis,) = normal_dims(dim, self.ndim)
    return split(self, max(-(-self.shape[axis] // chunks), 1), axis)


@front("cat", "concat", method=False)
def cat(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Tensors joined along `dim`."""
    if not tensors:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    axis = normal_dims(dim, tensors[0].ndim)[0]
    _check_sizes(tensors, axis)
    result: Tensor = apply(cat_op, tuple(tensors), {"dim": axis})
    return result


@front("stack", method=False)
def stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Tensors of one shape side by side along a new dimension."""
    if not tensors:
        raise RuntimeError("stack expects a non-empty TensorList")
    first = tensors[0].shape
    for i, tensor in enumerate(tensors):
        if tensor.shape != first:
            shapes = f"{list(first)} at entry 0 and {list(tensor.shape)} at entry {i}"
            raise RuntimeError(f"stack expects each tensor to be equal size, but got {shapes}")
    (axis,) = normal_dims(dim, tensors[0].ndim + 1)
    result: Tensor = apply(stack_op, tuple(tensors), {"dim": axis})
    return result


def _check_sizes(tensors: Sequence[Tensor], axis: int) -> None:
    """RuntimeError, in PyTorch's words, for tensors that do not fit together."""
    first = tensors[0].shape
    for i, tensor in enumerate(tensors):
        if not tensor.ndim:
            raise RuntimeError(f"zero-dimensional tensor (at position {i}) cannot be concatenated")
    for i, tensor in enumerate(tensors):
        if tensor.ndim != len(first):
            dims = f"got {len(first)} and {tensor.ndim}"
            raise RuntimeError(f"Tensors must have same number of dimensions: {dims}")
        for d, (expected, size) in enumerate(zip(first, tensor.shape, strict=True)):
            if d != axis and size != expected:
                raise RuntimeError(
                    f"Sizes of tensors must match except in dimension {axis}. Expected size {expected} but got size "
                    f"{size} for tensor number {i} in the list."
                )

"""Tensors joined into one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gviz.engine import dtypes
from gviz.engine.apply import apply
from gviz.engine.op import Example, Op, Rule
from gviz.engine.ops.examples import normal
from gviz.engine.ops.flattening import at_least_1d, at_least_2d, at_least_3d
from gviz.engine.ops.kernels import in_rows
from gviz.engine.ops.selecting import at, narrow
from gviz.engine.ops.shape import in_shape, normal_dims, reshape
from gviz.engine.surface import front
from gviz.engine.tensor import Tensor, new_tensor
from gviz.engine.wanting import all_tensors
from gviz.values import Array

Shape = tuple[int, ...]
_LEGACY: Shape = (0,)
"""The shape of an empty vector, which joins with anything and changes nothing."""


def _parts(g: Any, sizes: Sequence[Shape], dim: int) -> list[Any]:
    parts, start = [], 0
    for shape in sizes:
        end = start if shape == _LEGACY else start + shape[dim]
        part = narrow(g, dim=dim, start=start, end=end, step=1)
        parts.append(in_shape(part, shape) if shape == _LEGACY else part)
        start = end
    return parts


def _block_parts(g: Any, sizes: Sequence[Shape]) -> list[Any]:
    parts, row, column = [], 0, 0
    for shape in sizes:
        height, width = _as_matrix(shape)
        strip = narrow(g, dim=0, start=row, end=row + height, step=1)
        parts.append(in_shape(narrow(strip, dim=1, start=column, end=column + width, step=1), shape))
        row, column = row + height, column + width
    return parts


def _as_matrix(shape: Shape) -> tuple[int, int]:
    height, width = (1, 1, *shape)[-2:]
    return height, width


cat_op: Op = Op(
    "cat(tensors..., *, dim=0)",
    grad_fn="CatBackward0",
    formula="tensors joined along dim",
    forward=lambda *tensors, dim: _joined(tensors, dim),
    rules=(Rule("tensors...", "each its part of g", lambda g, sizes, dim: _parts(g, sizes, dim)),),
    promotes=True,
    public=False,
    torch="cat",
    examples=lambda: [
        Example((normal(2, 3), normal(1, 3)), {"dim": 0}),
        Example((normal(0), normal(2, 3), normal(2, 1)), {"dim": 1}),
    ],
)
stack_op: Op = Op(
    "stack(tensors..., *, dim=0)",
    grad_fn="StackBackward0",
    formula="tensors side by side along a new dim",
    forward=in_rows(lambda *tensors, dim: np.stack(tensors, dim)),
    rules=(Rule("tensors...", "each its slice of g", lambda g, sizes, dim: _slices(g, len(sizes), dim)),),
    promotes=True,
    public=False,
    torch="stack",
    examples=lambda: [Example((normal(3), normal(3)), {"dim": 1})],
)
block_diag_op: Op = Op(
    "block_diag(tensors...)",
    grad_fn="BlockDiagBackward0",
    formula="tensors down the diagonal, 0 elsewhere",
    forward=lambda *tensors: _down_the_diagonal(tensors),
    rules=(Rule("tensors...", "each its block of g", lambda g, sizes: _block_parts(g, sizes)),),
    promotes=True,
    public=False,
    examples=lambda: [Example((normal(2, 3), normal(), normal(2)), {})],
)


def _slices(g: Any, count: int, dim: int) -> list[Any]:
    if isinstance(g, Tensor):
        return list(g.unbind(dim))
    return [g[at(dim, i)] for i in range(count)]


def _joined(tensors: Sequence[Array], dim: int) -> Array:
    kept = [tensor for tensor in tensors if tensor.shape != _LEGACY]
    return np.asarray(np.concatenate(kept or tensors, dim), order="C")


def _down_the_diagonal(tensors: Sequence[Array]) -> Array:
    blocks = [tensor.reshape(_as_matrix(tensor.shape)) for tensor in tensors]
    result = np.zeros((sum(b.shape[0] for b in blocks), sum(b.shape[1] for b in blocks)), blocks[0].dtype)
    row = column = 0
    for block in blocks:
        height, width = block.shape
        result[row : row + height, column : column + width] = block
        row, column = row + height, column + width
    return result


@front("cat", "concat", "concatenate", method=False)
def cat(tensors: Sequence[Tensor], dim: int = 0, *, axis: int | None = None) -> Tensor:
    """Tensors joined along `dim`."""
    _check_list("cat", tensors)
    if not tensors:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    for i, tensor in enumerate(tensors):
        if not tensor.ndim:
            raise RuntimeError(f"zero-dimensional tensor (at position {i}) cannot be concatenated")
    like = next((tensor for tensor in tensors if tensor.shape != _LEGACY), tensors[0])
    (along,) = normal_dims(dim if axis is None else axis, like.ndim)
    _check_sizes(tensors, like.shape, along)
    result: Tensor = apply(cat_op, tuple(tensors), {"dim": along})
    return result


@front("stack", method=False)
def stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Tensors of one shape side by side along a new dimension."""
    _check_list("stack", tensors)
    if not tensors:
        raise RuntimeError("stack expects a non-empty TensorList")
    first = tensors[0].shape
    (axis,) = normal_dims(dim, tensors[0].ndim + 1)
    for i, tensor in enumerate(tensors):
        if tensor.shape != first:
            shapes = f"{list(first)} at entry 0 and {list(tensor.shape)} at entry {i}"
            raise RuntimeError(f"stack expects each tensor to be equal size, but got {shapes}")
    result: Tensor = apply(stack_op, tuple(tensors), {"dim": axis})
    return result


def _check_list(name: str, tensors: object) -> None:
    """TypeError, in PyTorch's words, for what is not a list of tensors."""
    if not isinstance(tensors, (tuple, list)):
        kind = type(tensors).__name__
        raise TypeError(f"{name}(): argument 'tensors' (position 1) must be tuple of Tensors, not {kind}")
    all_tensors(tensors)


def _check_sizes(tensors: Sequence[Tensor], like: Shape, axis: int) -> None:
    """RuntimeError, in PyTorch's words, for tensors that do not fit together."""
    for i, tensor in enumerate(tensors):
        if tensor.shape == _LEGACY:
            continue
        if tensor.ndim != len(like):
            raise RuntimeError(f"Tensors must have same number of dimensions: got {len(like)} and {tensor.ndim}")
        for d, (expected, size) in enumerate(zip(like, tensor.shape, strict=True)):
            if d != axis and size != expected:
                raise RuntimeError(
                    f"Sizes of tensors must match except in dimension {axis}. Expected size {expected} but got size "
                    f"{size} for tensor number {i} in the list."
                )


def _stacker(name: str, *aliases: str, prepare: Callable[[Tensor], Tensor], dim: int | None, doc: str) -> None:
    """Offer a ``torch.<name>`` that prepares each tensor and joins them, along dimension 1 or 0 if `dim` is None."""

    def stacked(tensors: Sequence[Tensor]) -> Tensor:
        _check_list(name, tensors)
        if not tensors:
            raise RuntimeError(f"{name} expects a non-empty TensorList")
        prepared = [prepare(tensor) for tensor in tensors]
        return cat(prepared, min(1, prepared[0].ndim - 1) if dim is None else dim)

    stacked.__name__, stacked.__doc__ = name, doc
    front(name, *aliases, method=False)(stacked)


def _as_column(self: Tensor) -> Tensor:
    return self if self.ndim > 1 else reshape(self, self.numel(), 1)


_stacker("hstack", prepare=at_least_1d, dim=None, doc="Tensors joined column-wise.")
_stacker("vstack", "row_stack", prepare=at_least_2d, dim=0, doc="Tensors joined row-wise, vectors as rows.")
_stacker("dstack", prepare=at_least_3d, dim=2, doc="Tensors joined along their third dimension.")
_stacker("column_stack", prepare=_as_column, dim=1, doc="Tensors joined column-wise, vectors as columns.")


@front("block_diag", method=False)
def block_diag(*tensors: Tensor) -> Tensor:
    """Matrices, rows and numbers down the diagonal of one matrix."""
    if not tensors:
        return new_tensor(np.zeros((1, 0), dtypes.get_default_dtype().numpy))
    all_tensors(tensors)
    for i, tensor in enumerate(tensors):
        if tensor.ndim > 2:
            raise RuntimeError(
                "torch.block_diag: Input tensors must have 2 or fewer dimensions. "
                f"Input {i} has {tensor.ndim} dimensions"
            )
    result: Tensor = apply(block_diag_op, tuple(tensors))
    return result

"""A copy of a tensor with another as one part of it: what writing to a view does, without writing."""

from __future__ import annotations

import numpy as np

from gviz.engine.apply import zeros
from gviz.engine.op import Example, Op, Rule
from gviz.engine.ops.examples import normal
from gviz.engine.ops.selecting import at, narrow, select
from gviz.engine.ops.shape import normal_dims, run
from gviz.engine.surface import front
from gviz.engine.tensor import Tensor
from gviz.values import Array


def _with_part(self: Array, src: Array, dim: int, where: int | slice) -> Array:
    result = np.array(self)
    result[at(dim, where)] = src
    return result


select_scatter_op: Op = Op(
    "select_scatter(self, src, *, dim, index)",
    grad_fn="SelectScatterBackward0",
    formula="self with src as entry index of dim",
    forward=lambda self, src, dim, index: _with_part(self, src, dim, index),
    rules=(
        Rule(
            "self",
            "g, 0 at entry index",
            lambda g, src_sym_sizes, dim, index: select_scatter_op(g, zeros(g, src_sym_sizes), dim=dim, index=index),
        ),
        Rule("src", "g at entry index", lambda g, dim, index: select(g, dim=dim, index=index)),
    ),
    public=False,
    torch="select_scatter",
    examples=lambda: [Example((normal(2, 3), normal(2)), {"dim": 1, "index": 2})],
)
slice_scatter_op: Op = Op(
    "slice_scatter(self, src, *, dim=0, start, end, step=1)",
    grad_fn="SliceScatterBackward0",
    formula="self with src in start:end:step of dim",
    forward=lambda self, src, dim, start, end, step: _with_part(self, src, dim, slice(start, end, step)),
    rules=(
        Rule(
            "self",
            "g, 0 in start:end:step",
            lambda g, src_sym_sizes, dim, start, end, step: slice_scatter_op(
                g, zeros(g, src_sym_sizes), dim=dim, start=start, end=end, step=step
            ),
        ),
        Rule(
            "src",
            "g in start:end:step",
            lambda g, dim, start, end, step: narrow(g, dim=dim, start=start, end=end, step=step),
        ),
    ),
    public=False,
    torch="slice_scatter",
    examples=lambda: [Example((normal(2, 5), normal(2, 2)), {"dim": 1, "start": 0, "end": 4, "step": 2})],
)


def _check_part(src: Tensor, expected: tuple[int, ...]) -> None:
    if src._array.shape != expected:
        raise RuntimeError(
            "expected src to have a size equal to the slice of self. src size = "
            f"{list(src.shape)}, slice size = {list(expected)}"
        )


@front("select_scatter")
def select_scatter(self: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """A copy with `src` as entry `index` of a dimension."""
    (axis,) = normal_dims(dim, self.ndim)
    length = self.shape[axis]
    if not -length <= index < length:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(self.shape)} at dimension {axis}"
        )
    _check_part(src, self._array[at(axis, index)].shape)
    return run(select_scatter_op, self, src, dim=axis, index=index % length)


@front("slice_scatter")
def slice_scatter(
    self: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """A copy with `src` as a stretch of a dimension."""
    (axis,) = normal_dims(dim, self.ndim)
    first, last, _ = slice(start, end, step).indices(self.shape[axis])
    _check_part(src, self._array[at(axis, slice(first, last, step))].shape)
    return run(slice_scatter_op, self, src, dim=axis, start=first, end=max(first, last), step=step)

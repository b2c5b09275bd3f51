"""Diagonals and triangles of matrices: views, copies with zeros elsewhere, sums, and indices."""

from __future__ import annotations

from typing import Any

import numpy as np

from gviz.engine.dtypes import dtype as DType
from gviz.engine.functions_and_methods import Number, front
from gviz.engine.memory_format import strides_of
from gviz.engine.op import Example, Op, Rule, zeros
from gviz.engine.ops._declaration import Prepared, with_in_place_method
from gviz.engine.ops._examples import normal
from gviz.engine.ops._kernels import in_rows, refuse_unless
from gviz.engine.ops.copying import contiguous, fill_
from gviz.engine.ops.shape import as_strided, normal_dims, offset_of, run
from gviz.engine.tensor import Tensor, new_tensor
from gviz.values.value import Array

# ----------------------------------------------------------------------------------------------------------------------
# Triangles of matrices: the elements with zeros elsewhere, and their indices.


tril_op: Op = Op(
    "tril(self, *, diagonal=0)",
    grad_fn="TrilBackward0",
    formula="self, 0 above a diagonal",
    forward=in_rows(lambda self, diagonal: np.tril(self, diagonal)),
    rules=(Rule("self", "g, 0 above a diagonal", lambda g, diagonal: tril_op(g, diagonal=diagonal)),),
    public=False,
    torch="tril",
    overlap="free",
    examples=lambda: [Example((normal(3, 4),), {"diagonal": 1}), Example((normal(2, 3, 2),), {"diagonal": -1})],
)
triu_op: Op = Op(
    "triu(self, *, diagonal=0)",
    grad_fn="TriuBackward0",
    formula="self, 0 below a diagonal",
    forward=in_rows(lambda self, diagonal: np.triu(self, diagonal)),
    rules=(Rule("self", "g, 0 below a diagonal", lambda g, diagonal: triu_op(g, diagonal=diagonal)),),
    public=False,
    torch="triu",
    overlap="free",
    examples=lambda: [Example((normal(3, 4),), {"diagonal": -1})],
)


def _check_matrix(name: str, self: Tensor) -> None:
    if self.ndim < 2:
        raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")


@with_in_place_method("tril")
def tril(self: Tensor, diagonal: int = 0) -> Prepared:
    """The lower triangle of matrices, 0 above a diagonal."""
    _check_matrix("tril", self)
    return tril_op, (self,), {"diagonal": int(diagonal)}


@with_in_place_method("triu")
def triu(self: Tensor, diagonal: int = 0) -> Prepared:
    """The upper triangle of matrices, 0 below a diagonal."""
    _check_matrix("triu", self)
    return triu_op, (self,), {"diagonal": int(diagonal)}


def _indices(name: str, pick: Any) -> None:
    """Define ``torch.<name>``: the row and column numbers of a triangle."""

    def indices(row: int, col: int, offset: int = 0, *, dtype: DType | None = None, device: Any = None) -> Tensor:
        for side, n in (("row", row), ("col", col)):
            if n < 0:
                raise RuntimeError(f"{side} must be non-negative, got{n}")
        rows = np.stack(pick(row, offset, col)) if row and col else np.zeros((2, 0), np.int64)
        return new_tensor(rows.astype(np.int64 if dtype is None else dtype.numpy))

    indices.__name__, indices.__doc__ = name, "The row and column numbers of a triangle of a matrix."
    front(name, method=False)(indices)


_indices("tril_indices", np.tril_indices)
_indices("triu_indices", np.triu_indices)


# ----------------------------------------------------------------------------------------------------------------------
# Diagonals of matrices: views, matrices made from them, sums.


Shape = tuple[int, ...]


def _diagonal(self: Array, offset: int, dim1: int, dim2: int) -> Array:
    view = self.diagonal(offset, dim1, dim2)
    if view.size:
        view.flags.writeable = self.flags.writeable
    return view if view.size else view.copy()


def _placed(self: Array, sizes: Shape, offset: int, dim1: int, dim2: int) -> Array:
    result = np.zeros(sizes, self.dtype)
    _diagonal(result, offset, dim1, dim2)[...] = self
    return result


def _replaced(self: Array, src: Array, offset: int, dim1: int, dim2: int) -> Array:
    result = np.array(self)
    _diagonal(result, offset, dim1, dim2)[...] = src
    return result


_back = Rule(
    "self",
    "g on the diagonal, 0 elsewhere",
    lambda g, self_sym_sizes, offset, dim1, dim2: diagonal_place(
        g, sizes=self_sym_sizes, offset=offset, dim1=dim1, dim2=dim2
    ),
)
diagonal_op: Op = Op(
    "diagonal(self, *, offset=0, dim1=0, dim2=1)",
    grad_fn="DiagonalBackward0",
    formula="the diagonal of self in the plane of dim1 and dim2",
    forward=_diagonal,
    rules=(_back,),
    memory="view",
    public=False,
    torch="diagonal",
    examples=lambda: [
        Example((normal(3, 3),), {"offset": 0, "dim1": 0, "dim2": 1}),
        Example((normal(2, 3, 4),), {"offset": -1, "dim1": 2, "dim2": 0}),
    ],
)
diagonal_copy: Op = Op(
    "diagonal_copy(self, *, offset=0, dim1=0, dim2=1)",
    grad_fn="DiagonalBackward0_copy",
    formula="a copy of the diagonal of self",
    forward=lambda self, offset, dim1, dim2: _diagonal(self, offset, dim1, dim2).copy(),
    rules=(_back,),
    public=False,
    torch="diagonal_copy",
    examples=lambda: [Example((normal(3, 4),), {"offset": 1, "dim1": 0, "dim2": 1})],
)
diagonal_place: Op = Op(
    "diagonal_backward(self, *, sizes, offset, dim1, dim2)",
    grad_fn="DiagonalBackwardBackward0",
    formula="self on the diagonal, 0 elsewhere",
    forward=_placed,
    rules=(
        Rule(
            "self",
            "the diagonal of g",
            lambda g, offset, dim1, dim2: diagonal_op(g, offset=offset, dim1=dim1, dim2=dim2),
        ),
    ),
    public=False,
    examples=lambda: [Example((normal(2),), {"sizes": (2, 3), "offset": 1, "dim1": 0, "dim2": 1})],
)
diag_embed_op: Op = Op(
    "diag_embed(self, *, offset=0, dim1=-2, dim2=-1)",
    grad_fn="DiagEmbedBackward0",
    formula="self on the diagonals of matrices, 0 elsewhere",
    forward=lambda self, offset, dim1, dim2: _embedded(self, offset, dim1, dim2),
    rules=(
        Rule(
            "self",
            "the diagonals of g",
            lambda g, offset, dim1, dim2: diagonal_op(g, offset=offset, dim1=dim1, dim2=dim2),
        ),
    ),
    public=False,
    torch="diag_embed",
    examples=lambda: [
        Example((normal(2, 3),), {"offset": 0, "dim1": 1, "dim2": 2}),
        Example((normal(2, 3),), {"offset": -1, "dim1": 2, "dim2": 0}),
    ],
)
diagonal_scatter_op: Op = Op(
    "diagonal_scatter(self, src, *, offset=0, dim1=0, dim2=1)",
    grad_fn="DiagonalScatterBackward0",
    formula="self with src as its diagonal",
    forward=_replaced,
    rules=(
        Rule(
            "self",
            "g, 0 on the diagonal",
            lambda g, src_sym_sizes, offset, dim1, dim2: diagonal_scatter_op(
                g, zeros(g, src_sym_sizes), offset=offset, dim1=dim1, dim2=dim2
            ),
        ),
        Rule(
            "src",
            "the diagonal of g",
            lambda g, offset, dim1, dim2: diagonal_op(g, offset=offset, dim1=dim1, dim2=dim2),
        ),
    ),
    public=False,
    torch="diagonal_scatter",
    examples=lambda: [Example((normal(2, 3), normal(2)), {"offset": 0, "dim1": 0, "dim2": 1})],
)
trace_op: Op = Op(
    "trace(self)",
    grad_fn="TraceBackward0",
    formula="the sum of the diagonal of self",
    forward=lambda self: np.trace(self, dtype=np.int64 if self.dtype.kind in "bui" else None),
    rules=(
        Rule(
            "self",
            "g on the diagonal, 0 elsewhere",
            lambda g, self_sym_sizes: _traced_back(g, self_sym_sizes),
        ),
    ),
    public=False,
    torch="trace",
    examples=lambda: [Example((normal(3, 3),), {}), Example((normal(2, 3),), {})],
)


def _traced_back(g: Any, sizes: Shape) -> Any:
    ones = zeros(g, (min(sizes),)) + 1
    return diagonal_place(g * ones, sizes=sizes, offset=0, dim1=0, dim2=1)


def _embedded(self: Array, offset: int, dim1: int, dim2: int) -> Array:
    length = self.shape[-1] + abs(offset)
    sizes = list(self.shape[:-1])
    for dim in sorted((dim1, dim2)):
        sizes.insert(dim, length)
    return _placed(self, tuple(sizes), offset, dim1, dim2)


def _plane(self: Tensor, dim1: int, dim2: int, more: int = 0) -> tuple[int, int]:
    first, second = normal_dims((dim1, dim2), self.ndim + more)
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return first, second


@front("diagonal")
def diagonal(self: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """The diagonal of two dimensions, as a view; it becomes the last dimension."""
    first, second = _plane(self, dim1, dim2)
    return run(diagonal_op, self, offset=offset, dim1=first, dim2=second)


@front("diag_embed")
def diag_embed(self: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Matrices with the last dimension on their diagonals."""
    first, second = _plane(self, dim1, dim2, 1)
    return run(diag_embed_op, self, offset=offset, dim1=first, dim2=second)


@front("diag")
def diag(self: Tensor, diagonal: int = 0) -> Tensor:
    """A matrix with a vector on its diagonal; or the diagonal of a matrix, as a copy."""
    if self.ndim not in (1, 2):
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {self.ndim}D")
    if self.ndim == 1:
        return diag_embed(self, diagonal)
    return run(diagonal_copy, self, offset=diagonal, dim1=0, dim2=1)


@front("diagflat")
def diagflat(self: Tensor, offset: int = 0) -> Tensor:
    """A matrix with all elements on its diagonal."""
    return diag_embed(contiguous(self).view(-1), offset)


@front("diagonal_copy", method=False)
def diagonal_copy_front(self: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """A copy of the diagonal of two dimensions."""
    first, second = _plane(self, dim1, dim2)
    return run(diagonal_copy, self, offset=offset, dim1=first, dim2=second)


@front("diagonal_scatter")
def diagonal_scatter(self: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """A copy with `src` as its diagonal."""
    first, second = _plane(self, dim1, dim2)
    expected = self._array.diagonal(offset, first, second).shape
    if src._array.shape != expected:
        raise RuntimeError(
            "expected src to have a size equal to the slice of self. src size = "
            f"{list(src.shape)}, slice size = {list(expected)}"
        )
    return run(diagonal_scatter_op, self, src, offset=offset, dim1=first, dim2=second)


@front("trace")
def trace(self: Tensor) -> Tensor:
    """The sum of the diagonal of a matrix."""
    if self.ndim != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {self.ndim}")
    refuse_unless(self._array.dtype.kind != "b", "trace", self._array)
    return run(trace_op, self)


@front("fill_diagonal_", function=False)
def fill_diagonal_(self: Tensor, fill_value: Number, wrap: bool = False) -> Tensor:
    """Writes a number to the main diagonal; with `wrap` it continues below the end of a tall matrix."""
    if self.ndim < 2:
        raise RuntimeError("dimensions must larger than 1")
    if self.ndim > 2 and len(set(self.shape)) > 1:
        raise RuntimeError("all dimensions of input must be of equal length")
    height, width = self.shape[0], self.shape[1]
    strides = strides_of(self._array)
    size, step, start = min(height, width), sum(strides), offset_of(self._array)
    fill_(as_strided(self, (size,), (step,), start), fill_value)
    if self.ndim == 2 and wrap and height > width + 1:
        left = -(-self.numel() // (width + 1)) - size
        fill_(as_strided(self, (left,), (step,), start + strides[0] * (width + 1)), fill_value)
    return self

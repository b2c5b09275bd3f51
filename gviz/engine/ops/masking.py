"""Elements chosen by a mask: filled, selected, written; and where a tensor is not zero."""

from __future__ import annotations

from typing import Any

import numpy as np

from gviz.engine.apply import apply, broadcast_error
from gviz.engine.arguments import fitting
from gviz.engine.op import Example, Op, Rule
from gviz.engine.ops.comparison import where_op
from gviz.engine.ops.examples import normal
from gviz.engine.ops.kernels import in_rows
from gviz.engine.ops.shape import run, unsqueeze
from gviz.engine.ops.variants import Prepared, in_both_ways
from gviz.engine.surface import Number, front
from gviz.engine.tensor import Tensor
from gviz.values import Array

Shape = tuple[int, ...]
_MASK = np.array([[True, False, True], [False, False, True]])


def _filled(self: Array, mask: Array, value: Any) -> Array:
    return np.where(mask, np.asarray(value).astype(self.dtype), self)


fill_where: Op = Op(
    "masked_fill(self, mask, *, value)",
    grad_fn="MaskedFillBackward0",
    formula="self, value where mask",
    forward=in_rows(_filled),
    rules=(Rule("self", "g, 0 where mask", lambda g, mask: fill_where(g, mask, value=0)),),
    public=False,
    torch="masked_fill",
    overlap="masked",
    examples=lambda: [Example((normal(2, 3), _MASK), {"value": 1.5}), Example((normal(3), _MASK), {"value": 0})],
)
fill_where_with: Op = Op(
    "masked_fill(self, mask, value)",
    grad_fn="MaskedFillBackward1",
    formula="self, value where mask",
    forward=in_rows(_filled),
    rules=(
        Rule("self", "g, 0 where mask", lambda g, mask: fill_where(g, mask, value=0)),
        Rule("value", "g where mask, summed", lambda g, mask: where_op(mask, g, g * 0)),  # the engine sums
    ),
    public=False,
    torch="masked_fill",
    overlap="masked",
    examples=lambda: [Example((normal(2, 3), _MASK, normal()), {})],
)
select_where: Op = Op(
    "masked_select(self, mask)",
    grad_fn="MaskedSelectBackward0",
    formula="the elements of self where mask",
    forward=lambda self, mask: _selected(self, mask),
    rules=(
        Rule(
            "self",
            "g where mask, 0 elsewhere",
            lambda g, self, mask: unselected(g, mask, size=np.broadcast_shapes(self.shape, mask.shape)),
        ),
    ),
    public=False,
    torch="masked_select",
    examples=lambda: [Example((normal(2, 3), _MASK), {}), Example((normal(3), _MASK), {})],
)
unselected: Op = Op(
    "masked_select_backward(self, mask, *, size)",
    grad_fn="MaskedScatterBackward0",
    formula="0 with self where mask",
    forward=lambda self, mask, size: _unselected(self, mask, size),
    rules=(Rule("self", "g where mask", lambda g, mask: select_where(g, mask)),),
    public=False,
    examples=lambda: [Example((normal(3), _MASK), {"size": (2, 3)})],
)
scatter_where: Op = Op(
    "masked_scatter(self, mask, source)",
    grad_fn="MaskedScatterBackward0",
    formula="self, the elements of source in their order where mask",
    forward=lambda self, mask, source: _scattered(self, mask, source),
    rules=(
        Rule("self", "g, 0 where mask", lambda g, mask: fill_where(g, mask, value=0)),
        Rule(
            "source",
            "g where mask, in its order, then 0",
            lambda g, mask, source_sym_sizes: scattered_back(g, mask, sizes=source_sym_sizes),
        ),
    ),
    public=False,
    torch="masked_scatter",
    overlap="once",
    examples=lambda: [Example((normal(2, 3), _MASK, normal(2, 2)), {})],
)
scattered_back: Op = Op(
    "masked_scatter_backward(self, mask, *, sizes)",
    grad_fn="MaskedScatterBackwardBackward0",
    formula="the elements of self where mask, then 0",
    forward=lambda self, mask, sizes: _in_order(_selected(self, mask), sizes),
    rules=(
        Rule(
            "self",
            "g, in its order, where mask",
            lambda g, self, mask: scatter_where(self * 0, mask, g),
        ),
    ),
    public=False,
    examples=lambda: [Example((normal(2, 3), _MASK), {"sizes": (2, 2)})],
)
nonzero_op: Op = Op(
    "nonzero(self)",
    grad_fn="",
    formula="the positions where self is not 0",
    forward=lambda self: np.argwhere(self) if self.ndim else np.zeros((int(bool(self)), 0), np.int64),
    public=False,
    torch="nonzero",
)


def _selected(self: Array, mask: Array) -> Array:
    wide, chosen = np.broadcast_arrays(self, mask)
    selected: Array = wide[chosen]
    return selected


def _unselected(self: Array, mask: Array, size: Shape) -> Array:
    result = np.zeros(size, self.dtype)
    result[np.broadcast_to(mask, size)] = self
    return result


def _scattered(self: Array, mask: Array, source: Array) -> Array:
    wide, chosen = np.broadcast_arrays(self, mask)
    result = wide.copy()
    count = int(np.count_nonzero(chosen))
    if count > source.size:
        raise RuntimeError("Number of elements of source < number of ones in mask")
    result[chosen] = source.reshape(-1)[:count]
    return result


def _in_order(elements: Array, sizes: Shape) -> Array:
    result = np.zeros(sizes, elements.dtype)
    result.reshape(-1)[: elements.size] = elements
    return result


def _check_fit(self: Tensor, mask: Tensor) -> None:
    try:
        np.broadcast_shapes(self._array.shape, mask._array.shape)
    except ValueError:
        raise RuntimeError(broadcast_error(self._array.shape, mask._array.shape)) from None


@in_both_ways("masked_fill")
def masked_fill(self: Tensor, mask: Tensor, value: Tensor | Number) -> Prepared:
    """`value` where `mask` holds."""
    if isinstance(value, Tensor) and value.ndim:
        raise RuntimeError(
            f"masked_fill_ only supports a 0-dimensional value tensor, but got tensor with {value.ndim} dimension(s)."
        )
    _check_fit_of_mask("masked_fill_", self, mask)
    if isinstance(value, Tensor):
        return fill_where_with, (self, mask, value), {}
    return fill_where, (self, mask), {"value": fitting(value, self.dtype)}


def _check_fit_of_mask(name: str, self: Tensor, mask: Tensor) -> None:
    _check_fit(mask, self)
    if mask.dtype.name != "bool":
        raise RuntimeError(f"{name} only supports boolean masks, but got mask with dtype {mask.dtype.cpp_name}")


@front("masked_select")
def masked_select(self: Tensor, mask: Tensor) -> Tensor:
    """The elements where `mask` holds, as a vector."""
    if mask.dtype.name != "bool":
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    _check_fit(mask, self)
    return run(select_where, self, mask)


@in_both_ways("masked_scatter")
def masked_scatter(self: Tensor, mask: Tensor, source: Tensor) -> Prepared:
    """The elements of `source`, in their order, where `mask` holds."""
    if source.dtype is not self.dtype:
        raise RuntimeError(
            "masked_scatter: expected self and source to have same dtypes but got"
            f"{self.dtype.tensor_type} and {source.dtype.tensor_type}"
        )
    _check_fit(mask, self)
    if mask.dtype.name != "bool":
        kind = mask.dtype.tensor_type
        raise RuntimeError(f"masked_scatter_ only supports boolean masks, but got mask with dtype {kind}")
    return scatter_where, (self, mask, source), {}


@front("nonzero")
def nonzero(input: Tensor, *, as_tuple: bool = False) -> Any:
    """The positions of what is not 0: one row each, or one vector for each dimension."""
    if not as_tuple:
        return apply(nonzero_op, (input,))
    return run(nonzero_op, input if input.ndim else unsqueeze(input, 0)).unbind(1)


@front("argwhere")
def argwhere(input: Tensor) -> Tensor:
    """The positions of what is not 0, one row each."""
    return run(nonzero_op, input)

"""``x[...]`` and ``x[...] = value``: views where numbers and slices select, copies where tensors do."""

from __future__ import annotations

from operator import index as as_index
from typing import Any

import numpy as np

from gviz.engine import messages
from gviz.engine.apply import apply, zeros
from gviz.engine.op import Example, Op, Rule
from gviz.engine.ops.examples import normal
from gviz.engine.ops.memory import copy_, fill_
from gviz.engine.ops.shape import alias, normal_dims
from gviz.engine.surface import front, number
from gviz.engine.tensor import Tensor, new_tensor
from gviz.engine.views import apply_in_place
from gviz.values import Array

Shape = tuple[int, ...]


def _place(g: Array, sizes: Shape, where: Any) -> Array:
    result = np.zeros(sizes, g.dtype)
    result[where] = g
    return result


def _axis(dim: int, index: Any) -> tuple[Any, ...]:
    return (*(slice(None),) * dim, index, ...)


select: Op = Op(
    "select(self, *, dim, index)",
    grad_fn="SelectBackward0",
    formula="self, entry index of dimension dim",
    forward=lambda self, dim, index: self[_axis(dim, index)],
    rules=(
        Rule(
            "self",
            "g at entry index, 0 elsewhere",
            lambda g, self_sym_sizes, dim, index: select_place(g, sizes=self_sym_sizes, dim=dim, index=index),
        ),
    ),
    memory="view",
    public=False,
    examples=lambda: [Example((normal(2, 3),), {"dim": 1, "index": 2})],
)
select_place: Op = Op(
    "select_backward(self, *, sizes, dim, index)",
    grad_fn="SelectBackwardBackward0",
    forward=lambda self, sizes, dim, index: _place(self, sizes, _axis(dim, index)),
    rules=(Rule("self", "g at index", lambda g, dim, index: select(g, dim=dim, index=index)),),
    public=False,
    examples=lambda: [Example((normal(2),), {"sizes": (2, 3), "dim": 1, "index": 2})],
)
narrow: Op = Op(
    "slice(self, *, dim, start, end, step)",
    grad_fn="SliceBackward0",
    formula="self[start:end:step] of dim",
    forward=lambda self, dim, start, end, step: self[_axis(dim, slice(start, end, step))],
    rules=(
        Rule(
            "self",
            "g in start:end:step, 0 elsewhere",
            lambda g, self_sym_sizes, dim, start, end, step: narrow_place(
                g, sizes=self_sym_sizes, dim=dim, start=start, end=end, step=step
            ),
        ),
    ),
    memory="view",
    public=False,
    examples=lambda: [Example((normal(5, 2),), {"dim": 0, "start": 1, "end": 4, "step": 2})],
)
narrow_place: Op = Op(
    "slice_backward(self, *, sizes, dim, start, end, step)",
    grad_fn="SliceBackwardBackward0",
    forward=lambda self, sizes, dim, start, end, step: _place(self, sizes, _axis(dim, slice(start, end, step))),
    rules=(
        Rule(
            "self",
            "g in start:end:step",
            lambda g, dim, start, end, step: narrow(g, dim=dim, start=start, end=end, step=step),
        ),
    ),
    public=False,
    examples=lambda: [Example((normal(2, 2),), {"sizes": (5, 2), "dim": 0, "start": 1, "end": 4, "step": 2})],
)
take: Op = Op(
    "index(self, index)",
    grad_fn="IndexBackward0",
    formula="self at the positions index",
    forward=lambda self, index: self.reshape(-1)[index],
    rules=(
        Rule(
            "self",
            "g added at index, 0 elsewhere",
            lambda g, index, self_sym_sizes: put_back(g, index, sizes=self_sym_sizes),
        ),
    ),
    public=False,
    examples=lambda: [Example((normal(2, 3), np.array([[0, 5], [5, 2]])), {})],
)
put_back: Op = Op(
    "index_backward(self, index, *, sizes)",
    grad_fn="IndexBackwardBackward0",
    forward=lambda self, index, sizes: _added(self, index, sizes),
    rules=(Rule("self", "g at the positions index", lambda g, index: take(g, index)),),
    public=False,
    examples=lambda: [Example((normal(2, 2), np.array([[0, 5], [5, 2]])), {"sizes": (2, 3)})],
)
put: Op = Op(
    "index_put(self, index, values)",
    grad_fn="IndexPutBackward0",
    formula="self with values at the positions index",
    forward=lambda self, index, values: _put(self, index, values),
    rules=(
        Rule("self", "g, 0 at index", lambda g, index: put(g, index, zeros(g, ()))),
        Rule("values", "g at index", lambda g, index: take(g, index)),
    ),
    public=False,
    examples=lambda: [Example((normal(2, 3), np.array([0, 4]), normal(2)), {})],
)


def _added(g: Array, index: Array, sizes: Shape) -> Array:
    result = np.zeros(sizes, g.dtype)
    np.add.at(result.reshape(-1), index, g)
    return result


def _put(self: Array, index: Array, values: Array) -> Array:
    result = self.copy()
    result.reshape(-1)[index] = values
    return result


@front("__getitem__", function=False)
def getitem(self: Tensor, key: Any) -> Tensor:
    """``self[key]``: a view for numbers, slices, None and ``...``; a copy for lists, tensors and masks."""
    keys = key if isinstance(key, tuple) else (key,)
    if any(_is_advanced(k) for k in keys):
        result: Tensor = apply(take, (self, _positions(self, keys)))
        return result
    if isinstance(key, slice) and self.ndim:  # a lone slice is always a view of its own, in PyTorch too
        return _slice(self, 0, *key.indices(len(self)))
    view = _basic(self, keys)
    if view is not self:
        return view
    result = apply(alias, (self,))
    return result


@front("__setitem__", function=False)
def setitem(self: Tensor, key: Any, value: Any) -> None:
    """``self[key] = value``: written through a view, or at the positions that lists, tensors and masks select."""
    keys = key if isinstance(key, tuple) else (key,)
    if any(_is_advanced(k) for k in keys):
        values = value if isinstance(value, Tensor) else number(value, self._array)
        apply_in_place(put, (self, _positions(self, keys), values), {})
        return
    target = _basic(self, keys)
    written = value if isinstance(value, Tensor) else number(value, self._array)
    if target.ndim and not written.ndim:
        fill_(target, written)
        return
    if written.shape != target.shape:  # as two recorded views, in PyTorch too
        kept = next((d for d, n in enumerate(written.shape) if n != 1), written.ndim)
        written = written.view(*written.shape[kept:]).expand(*target.shape)
    copy_(target, written)


def _is_advanced(key: Any) -> bool:
    if isinstance(key, Tensor):
        return bool(key.ndim) or key._array.dtype.kind == "b"
    return isinstance(key, (list, np.ndarray, bool))


def _positions(self: Tensor, keys: tuple[Any, ...]) -> Tensor:
    """The flat positions that lists, tensors and masks select, as a tensor. IndexError if out of range."""
    plain = tuple(k._array if isinstance(k, Tensor) else k for k in keys)
    places = np.arange(self._array.size).reshape(self._array.shape)
    try:
        positions = new_tensor(np.asarray(places[plain]))
    except IndexError as error:
        if str(error).startswith("too many indices"):
            raise IndexError(f"too many indices for tensor of dimension {self.ndim}") from None
        raise IndexError(str(error).replace("for axis", "for dimension")) from None
    if len(keys) == 1 and isinstance(keys[0], Tensor):
        positions._counter = keys[0]._counter  # writing to the index before the backward pass is an error
    return positions


def _basic(self: Tensor, keys: tuple[Any, ...]) -> Tensor:
    """Select and slice dimension by dimension, as PyTorch records it."""
    used = sum(1 for k in keys if k is not None and k is not Ellipsis)
    if not self.ndim and len(keys) == used == 1:
        slicing = isinstance(keys[0], slice)
        raise IndexError("slice() cannot be applied to a 0-dim tensor." if slicing else messages.INDEX_OF_NUMBER)
    if used > self.ndim:
        raise IndexError(f"too many indices for tensor of dimension {self.ndim}")
    if Ellipsis not in [k for k in keys if not isinstance(k, Tensor)]:
        keys = (*keys, Ellipsis)
    result, axis = self, 0
    for key in keys:
        if key is None:
            result, axis = result.unsqueeze(axis), axis + 1
        elif key is Ellipsis:
            axis += self.ndim - used
        elif isinstance(key, slice):
            result, axis = _sliced(result, axis, key), axis + 1
        else:
            result = _selected(result, axis, _whole(key), axis + self.ndim - result.ndim)
    return result


def _whole(key: Any) -> int:
    """A key that selects one element. TypeError or IndexError, in PyTorch's words, for what is none."""
    if isinstance(key, str):
        raise TypeError("new(): invalid data type 'str'")
    try:
        return as_index(key)
    except TypeError:
        raise IndexError(messages.INVALID_INDEX.format(kind=type(key).__name__)) from None


def _sliced(self: Tensor, axis: int, key: slice) -> Tensor:
    length = self.shape[axis]
    start, end, step = key.indices(length)
    return self if (start, end, step) == (0, length, 1) else _slice(self, axis, start, end, step)


def _slice(self: Tensor, axis: int, start: int, end: int, step: int) -> Tensor:
    if step < 0:
        raise ValueError("step must be greater than zero")
    result: Tensor = apply(narrow, (self,), {"dim": axis, "start": start, "end": max(end, start), "step": step})
    return result


@front("narrow")
def narrow_front(self: Tensor, dim: int, start: int, length: int) -> Tensor:
    """The `length` elements of `dim` from `start` on, as a view."""
    (axis,) = normal_dims(dim, self.ndim)
    return _slice(self, axis, start, start + length, 1)


def _selected(self: Tensor, axis: int, index: int, place: int) -> Tensor:
    length = self.shape[axis]
    if not -length <= index < length:
        raise IndexError(f"index {index} is out of bounds for dimension {place} with size {length}")
    result: Tensor = apply(select, (self,), {"dim": axis, "index": index % length})
    return result

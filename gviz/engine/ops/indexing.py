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
from gviz.engine.ops.selecting import narrow, select
from gviz.engine.ops.shape import alias
from gviz.engine.surface import front, number
from gviz.engine.tensor import Tensor, new_tensor
from gviz.engine.views import apply_in_place
from gviz.values import Array

Shape = tuple[int, ...]

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
    if isinstance(key, slice) and self.ndim:  # a lone slice is always a view of its own, in PyTorch too
        return _slice(self, 0, *key.indices(len(self)))
    view, chosen = _viewed(self, key if isinstance(key, tuple) else (key,))
    if view is not self and not chosen:
        return view
    result: Tensor = apply(take, (view, _positions(view, chosen))) if chosen else apply(alias, (self,))
    return result


@front("__setitem__", function=False)
def setitem(self: Tensor, key: Any, value: Any) -> None:
    """``self[key] = value``: written through a view, or at the positions that lists, tensors and masks select."""
    if key is False:
        return  # nothing is selected; PyTorch makes no node for it
    target, chosen = _viewed(self, key if isinstance(key, tuple) else (key,))
    written = value if isinstance(value, Tensor) else number(value, self._array)
    if chosen:
        apply_in_place(put, (target, _positions(target, chosen), written), {})
        return
    if target.ndim and not written.ndim:
        fill_(target, written)
        return
    if written.shape != target.shape:  # as two recorded views, in PyTorch too
        kept = next((d for d, n in enumerate(written.shape) if n != 1), written.ndim)
        written = written.view(*written.shape[kept:]).expand(*target.shape)
    copy_(target, written)


def _is_advanced(key: Any) -> bool:
    if isinstance(key, (Tensor, np.ndarray)):
        return bool(key.ndim) or _plain(key).dtype.kind == "b"
    return isinstance(key, (list, bool))


def _plain(key: Any) -> Any:
    return key._array if isinstance(key, Tensor) else key


def _width(key: Any) -> int:
    """How many dimensions a key speaks of: a mask of all it has, None and ``...`` of none."""
    if key is None or key is Ellipsis:
        return 0
    if not _is_advanced(key):
        return 1
    mask = np.asarray(_plain(key))
    return mask.ndim if mask.dtype.kind == "b" else 1


def _positions(self: Tensor, chosen: tuple[Any, ...]) -> Tensor:
    """The flat positions that lists, tensors and masks select, as a tensor. IndexError if out of range."""
    places = np.arange(self._array.size).reshape(self._array.shape)
    try:
        positions = new_tensor(np.asarray(places[tuple(_plain(key) for key in chosen)]))
    except IndexError as error:
        raise IndexError(_numbered(str(error), chosen)) from None
    tensors = [key for key in chosen if isinstance(key, Tensor)]
    if len(tensors) == 1:
        positions._counter = tensors[0]._counter  # writing to the index before the backward pass is an error
    return positions


def _numbered(text: str, chosen: tuple[Any, ...]) -> str:
    """numpy's words in PyTorch's, which number only the dimensions that lists, tensors and masks speak of."""
    indexed = [_is_advanced(key) for key in chosen for _ in range(max(_width(key), 1))]
    for axis in range(len(indexed)):
        text = text.replace(f"for axis {axis} with", f"for dimension {sum(indexed[:axis])} with")
    return text


def _viewed(self: Tensor, keys: tuple[Any, ...]) -> tuple[Tensor, tuple[Any, ...]]:
    """Select and slice dimension by dimension, as PyTorch records it; lists, tensors and masks are left to do after.

    They come back with whole slices between them, so that each stands at its dimension of the view; empty for none.
    """
    used = sum(_width(key) for key in keys)
    _check_count(self, keys, used)
    if not any(key is Ellipsis for key in keys):
        keys = (*keys, Ellipsis)
    result, left = self, list[Any]()
    axis = 0
    for key in keys:
        if key is None or (_is_advanced(key) and not _width(key)):  # True and False, too, make a dimension
            result = result.unsqueeze(axis)
            left.append(slice(None) if key is None else np.array([bool(key)]))
        elif key is Ellipsis:
            left += [slice(None)] * (self.ndim - used)
        elif _is_advanced(key):
            left.append(key)
        elif isinstance(key, slice):
            result = _sliced(result, axis, key)
            left.append(slice(None))
        else:
            result = _selected(result, axis, _whole(key), axis + self.ndim - result.ndim)
        axis = sum(max(_width(place), 1) for place in left)
    return result, tuple(left) if any(map(_is_advanced, left)) else ()


def _check_count(self: Tensor, keys: tuple[Any, ...], used: int) -> None:
    if used > self.ndim:
        if not self.ndim and len(keys) == 1 and not _is_advanced(keys[0]):
            slicing = isinstance(keys[0], slice)
            raise IndexError("slice() cannot be applied to a 0-dim tensor." if slicing else messages.INDEX_OF_NUMBER)
        raise IndexError(f"too many indices for tensor of dimension {self.ndim}")


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


def _selected(self: Tensor, axis: int, index: int, place: int) -> Tensor:
    length = self.shape[axis]
    if not -length <= index < length:
        raise IndexError(f"index {index} is out of bounds for dimension {place} with size {length}")
    result: Tensor = apply(select, (self,), {"dim": axis, "index": index % length})
    return result

"""``x[...]`` and ``x[...] = value``: views where numbers and slices select, copies where tensors do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import index as as_index
from typing import Any, NoReturn

import numpy as np

from gviz.engine import messages
from gviz.engine.apply import apply
from gviz.engine.arguments import fitting, typename
from gviz.engine.ops.memory import copy_, fill_
from gviz.engine.ops.picking import PLACES, index_op, index_put_op, key_of
from gviz.engine.ops.selecting import select, sliced
from gviz.engine.ops.shape import alias, run
from gviz.engine.surface import front, number
from gviz.engine.tensor import Tensor, new_tensor
from gviz.engine.views import apply_in_place, check_writable
from gviz.site import warn

Indices = Sequence[Tensor | None]
_DTYPES = ("int64", "bool", "int32", "uint8")


class ByteMask(Tensor):
    """A mask that was given as bytes: it still selects, with a warning."""

    __slots__ = ()


def _warn_of_bytes(indices: Indices) -> None:
    if any(isinstance(index, ByteMask) for index in indices):
        warn(messages.BYTE_INDEX)


@front("__getitem__", function=False)
def getitem(self: Tensor, key: Any) -> Tensor:
    """``self[key]``: a view for numbers, slices, None and ``...``; a copy for lists, tensors and masks."""
    if key.__class__ is int and self._array.ndim:  # as below, without looking for what else a key may be
        return _selected(self, 0, key, 0)
    if isinstance(key, slice) and self.ndim:  # a lone slice is always a view of its own, in PyTorch too
        return _slice(self, 0, key)
    view, indices = _viewed(self, _keys(key))
    if indices:
        return picked(view, indices)
    return run(alias, self) if view is self else view


@front("__setitem__", function=False)
def setitem(self: Tensor, key: Any, value: Any) -> None:
    """``self[key] = value``: written through a view, or at the positions that lists, tensors and masks select."""
    if key is False:
        return  # nothing is selected; PyTorch makes no node for it
    if not isinstance(value, (Tensor, bool, int, float, np.integer)):
        kind = "numpy." if isinstance(value, (np.ndarray, np.generic)) else ""
        raise TypeError(f"can't assign a {kind}{type(value).__name__} to a torch.{self.dtype.tensor_type}Tensor")
    target, indices = _viewed(self, (None,) if key is True else _keys(key))
    written = value if isinstance(value, Tensor) else _element(value, self)
    if indices:
        put_in_place(target, indices, _without_leading_ones(written), accumulate=False)
    elif target.ndim and not written.ndim:
        fill_(target, written)
    else:
        copy_(target, _fitted(written, target))


def _element(value: Any, self: Tensor) -> Tensor:
    """A number as an element of `self`, whatever is lost by it."""
    element = number(fitting(value, self.dtype), self._array)
    element._array = element._array.astype(self._array.dtype, copy=False)
    return element


def _fitted(value: Tensor, target: Tensor) -> Tensor:
    """`value` in the shape of `target`, through the views that PyTorch records, too."""
    if value.shape == target.shape:
        return value
    kept = next((d for d, n in enumerate(value.shape) if n != 1), value.ndim)
    fitted: Tensor = value.view(value.shape[kept:])
    return fitted if fitted.shape == target.shape else fitted.expand(target.shape)


def _without_leading_ones(value: Tensor) -> Tensor:
    kept = next((d for d, n in enumerate(value.shape) if n != 1), value.ndim)
    short: Tensor = value.view(value.shape[kept:]) if kept else value
    return short


def picked(self: Tensor, indices: Indices) -> Tensor:
    """The elements at index tensors, one (or None) for each dimension."""
    _warn_of_bytes(indices)
    result: Tensor = _diagnosed(self, indices, lambda: apply(*index_op.present((self, *_slots(indices)))))
    return result


def put_in_place(self: Tensor, indices: Indices, values: Tensor, *, accumulate: bool) -> Tensor:
    """Write `values` at index tensors, or add them."""
    check_writable(self, values)
    run = partial(apply_in_place, rule="masked") if _is_fill(indices, values, accumulate) else apply_in_place
    return _put(self, indices, values, run, accumulate)


def _put(self: Tensor, indices: Indices, values: Tensor, run: Callable[..., Tensor], accumulate: bool) -> Tensor:
    if _is_fill(indices, values, accumulate):
        place, mask = next((place, index) for place, index in enumerate(indices) if index is not None)
        _check_mask(self, mask, place)
        if isinstance(mask, ByteMask):
            raise RuntimeError("masked_fill_ only supports boolean masks, but got mask with dtype unsigned char")
        values = values.to(self.dtype)  # PyTorch fills with an element of any dtype
    else:
        _warn_of_bytes(indices)
    if values.dtype is not self.dtype:
        raise RuntimeError(
            "Index put requires the source and destination dtypes match, got "
            f"{self.dtype.tensor_type} for the destination and {values.dtype.tensor_type} for the source."
        )
    op, tensors = index_put_op.present((self, values, *_slots(indices)))
    result: Tensor = _diagnosed(self, indices, lambda: run(op, tensors, {"accumulate": accumulate}), values)
    return result


def _is_fill(indices: Indices, values: Tensor, accumulate: bool) -> bool:
    """Whether a write is a ``masked_fill_`` in PyTorch: one element, written where a single mask says."""
    given = [index for index in indices if index is not None]
    return values._array.size == 1 and not accumulate and len(given) == 1 and given[0].dtype.name == "bool"


def _slots(indices: Indices) -> list[Tensor | None]:
    if len(indices) > PLACES:
        raise RuntimeError(f"the built-in engine indexes at most the first {PLACES} dimensions by tensors")
    return [*indices, *[None] * (PLACES - len(indices))]


def _diagnosed(self: Tensor, indices: Indices, call: Callable[[], Any], values: Tensor | None = None) -> Any:
    """What `call` gives; numpy's complaint about indices in PyTorch's words, which costs nothing where all is well."""
    try:
        return call()
    except IndexError as error:
        _complain(self, indices, error)
    except (RuntimeError, TypeError) as error:
        if values is None or not str(error).startswith(_OF_SHAPES):
            raise
        if np.may_share_memory(self._array, values._array):
            raise RuntimeError(messages.OVERLAPPING_READ) from None
        shape = np.empty(self.shape, bool)[key_of([None if t is None else t._array for t in indices])].shape
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {list(values.shape)} cannot be broadcast to indexing result of "
            f"shape {list(shape)}"
        ) from None


_OF_SHAPES = ("shape mismatch", "operands could not", "could not broadcast", "NumPy boolean array indexing assignment")
"""How numpy's complaints begin that values have another shape than the places they go to."""


def _complain(self: Tensor, indices: Indices, error: IndexError) -> NoReturn:
    """IndexError, in PyTorch's words, for indices that do not fit `self`."""
    dim, shapes, places = 0, list[list[int]](), list[tuple[Tensor, int]]()
    for index in indices:
        if index is None:
            dim += 1
        elif index.dtype.name == "bool":
            _check_mask(self, index, dim)
            shapes += [[int(index._array.sum())]] * index.ndim
            places += [(new_tensor(part), dim + d) for d, part in enumerate(index._array.nonzero())]
            dim += index.ndim
        else:
            shapes.append(list(index.shape))
            places.append((index, dim))
            dim += 1
    for at, (index, dim) in enumerate(places):
        length = self.shape[dim]
        for position in index._array.reshape(-1).tolist():
            if not -length <= position < length:
                raise IndexError(f"index {position} is out of bounds for dimension {at} with size {length}") from None
    listed = ", ".join(map(str, shapes))
    raise IndexError(
        f"shape mismatch: indexing tensors could not be broadcast together with shapes {listed}"
    ) from error


def _check_mask(self: Tensor, mask: Tensor, dim: int) -> None:
    for d, n in enumerate(mask.shape):
        if n != self.shape[dim + d]:
            raise IndexError(
                f"The shape of the mask {list(mask.shape)} at index {d} does not match the shape of the indexed tensor "
                f"{list(self.shape)} at index {dim + d}"
            ) from None


def _keys(key: Any) -> tuple[Any, ...]:
    """The parts of a key: lists, ranges, arrays and masks as tensors, the rest as it is."""
    parts = key if isinstance(key, tuple) else (key,)
    if _holds_keys(key):
        warn(messages.LIST_OF_KEYS)
        parts = key
    return tuple([_as_tensor(part) for part in parts])


def _holds_keys(key: Any) -> bool:
    """Whether a list is not a list of positions but one of keys."""
    nested = (list, tuple, slice, Tensor, type(None), type(...))
    return isinstance(key, list) and any(isinstance(item, nested) for item in key)


def _as_tensor(key: Any) -> Any:
    if isinstance(key, Tensor):
        return _checked(key)
    if isinstance(key, (list, tuple, range)) or (isinstance(key, np.ndarray) and key.ndim):
        array = key if isinstance(key, np.ndarray) else np.asarray(_plain(key))
        if array.dtype.kind == "U":
            raise TypeError("new(): invalid data type 'str'")
        if array.dtype.kind == "f":
            array = array.astype(np.int64)
        return _checked(new_tensor(array))
    return bool(key) if isinstance(key, np.ndarray) and key.dtype.kind == "b" else key


def _checked(index: Tensor) -> Tensor:
    """A tensor fit to index with. IndexError, in PyTorch's words, for one that is not."""
    if index.dtype.name not in _DTYPES and (index.ndim or index.dtype.is_floating_point):
        raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
    if index.dtype.name != "uint8":
        return index
    index._read("array")
    return new_tensor(index._array.astype(bool), ByteMask)


def _plain(key: Any) -> Any:
    if isinstance(key, (list, tuple)):
        return [_plain(item) for item in key]
    return key.tolist() if isinstance(key, Tensor) else key


def _is_flag(key: Any) -> bool:
    """True and False, which make a dimension of their own."""
    return isinstance(key, bool) or (isinstance(key, Tensor) and not key.ndim and key.dtype.name == "bool")


def _is_index(key: Any) -> bool:
    return isinstance(key, Tensor) and bool(key.ndim)


def _width(key: Any) -> int:
    """How many dimensions a key speaks of: a mask of all it has, None and ``...`` of none."""
    if key is None or key is Ellipsis or _is_flag(key):
        return 0
    return key.ndim if _is_index(key) and key.dtype.name == "bool" else 1


def _viewed(self: Tensor, keys: tuple[Any, ...]) -> tuple[Tensor, Indices]:
    """Select and slice dimension by dimension, as PyTorch records it; lists, tensors and masks are left to do after.

    They come back with None between them, so that each stands at its dimension of the view; empty if there are none.
    """
    used = sum(map(_width, keys))
    _check_count(self, keys, used)
    result, indices = self, list[Tensor | None]()
    axis = 0
    for place, key in enumerate(keys):
        if key is None or _is_flag(key):
            result = result.unsqueeze(axis)
            indices.append(None if key is None else new_tensor(np.array([bool(key)])))
        elif key is Ellipsis:
            indices += [None] * (self.ndim - used)
            used = self.ndim  # a second one stands for nothing
        elif _is_index(key):
            indices.append(key)
        elif isinstance(key, slice):
            result = _sliced(result, axis, key)
            indices.append(None)
        else:
            result = _selected(result, axis, _whole(key), place)
        axis = sum(1 if index is None else max(_width(index), 1) for index in indices)
    while indices and indices[-1] is None:
        indices.pop()
    return result, indices


def _check_count(self: Tensor, keys: tuple[Any, ...], used: int) -> None:
    if used > self.ndim:
        if not self.ndim and len(keys) == 1 and not _is_index(keys[0]):
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
        raise IndexError(messages.INVALID_INDEX.format(kind=typename(key))) from None


def _sliced(self: Tensor, axis: int, key: slice) -> Tensor:
    length = self.shape[axis]
    whole = key.indices(length) == (0, length, 1) and (key.start is None or key.start >= 0)
    return self if whole else _slice(self, axis, key)  # a start counted from the end is a view even of everything


def _slice(self: Tensor, axis: int, key: slice) -> Tensor:
    start, end, step = key.indices(self.shape[axis])
    if step < 0:
        raise ValueError("step must be greater than zero")
    return sliced(self, axis, start, end, step)


def _selected(self: Tensor, axis: int, index: int, place: int) -> Tensor:
    length = self.shape[axis]
    if not -length <= index < length:
        raise IndexError(f"index {index} is out of bounds for dimension {place} with size {length}")
    return run(select, self, dim=axis, index=index % length)


def _index_list(name: str, indices: Any) -> tuple[Tensor, ...]:
    if not isinstance(indices, (tuple, list)):
        kind = type(indices).__name__
        raise TypeError(f"{name}(): argument 'indices' (position 1) must be tuple of Tensors, not {kind}")
    for i, index in enumerate(indices):
        if not isinstance(index, Tensor):
            raise TypeError(f"expected Tensor as element {i} in argument 0, but got {type(index).__name__}")
    return tuple([_checked(index) for index in indices])


@front("index_put")
def index_put(self: Tensor, indices: Sequence[Tensor], values: Tensor, accumulate: bool = False) -> Tensor:
    """A copy with `values` written at index tensors, or added there."""
    return _put(self, _index_list("index_put", indices), values, apply, accumulate)


@front("index_put_", function=False)
def index_put_(self: Tensor, indices: Sequence[Tensor], values: Tensor, accumulate: bool = False) -> Tensor:
    """Write `values` at index tensors, or add them there."""
    return put_in_place(self, _index_list("index_put_", indices), values, accumulate=accumulate)

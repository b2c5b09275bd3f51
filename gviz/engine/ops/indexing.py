"""``x[...]`` and parts of tensors: one entry, a slice, an index tensor, a mask.

Numbers and slices give views (`select`, `narrow`); index tensors and masks give copies.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from copy import copy
from functools import partial
from inspect import Parameter
from operator import index as as_index
from typing import Any, NoReturn

import numpy as np

from gviz.engine import messages
from gviz.engine.arguments import typename
from gviz.engine.array_storage import address_of
from gviz.engine.broadcasting import broadcast_error
from gviz.engine.creation import warn_of_read_only
from gviz.engine.functions_and_methods import Number, checked, front, number
from gviz.engine.memory_format import copied
from gviz.engine.node import Node
from gviz.engine.number_conversion import fitting
from gviz.engine.op import Example, Op, Rule, apply, compute, zeros
from gviz.engine.ops._declaration import Prepared, with_in_place_method
from gviz.engine.ops._examples import normal
from gviz.engine.ops._kernels import added, added_rows, in_rows
from gviz.engine.ops.comparison import where_op
from gviz.engine.ops.copying import copy_, fill_
from gviz.engine.ops.shape import alias, expanded, normal_dims, run, unsqueeze
from gviz.engine.tensor import Tensor, new_tensor
from gviz.engine.views import apply_in_place, check_writable
from gviz.source.call_stack import warn
from gviz.values.value import Array

# ----------------------------------------------------------------------------------------------------------------------
# Parts of one dimension: an entry or a slice, which are views, or the entries at an index.


Shape = tuple[int, ...]


def _place(g: Array, sizes: Shape, where: Any) -> Array:
    result = np.zeros(sizes, g.dtype)
    result[where] = g
    return result


def at(dim: int, index: Any) -> tuple[Any, ...]:
    """NumPy's index for `index` at dimension `dim` and everything in the other dimensions."""
    return (*(slice(None),) * dim, index, ...)


select: Op = Op(
    "select(self, *, dim, index)",
    grad_fn="SelectBackward0",
    formula="self, entry index of dim",
    forward=lambda self, dim, index: self[at(dim, index)],
    rules=(
        Rule(
            "self",
            "g at entry index, 0 elsewhere",
            lambda g, self_sym_sizes, dim, index: select_place(g, sizes=self_sym_sizes, dim=dim, index=index),
        ),
    ),
    memory="view",
    public=False,
    torch="select",
    examples=lambda: [Example((normal(2, 3),), {"dim": 1, "index": 2})],
)
select_place: Op = Op(
    "select_backward(self, *, sizes, dim, index)",
    grad_fn="SelectBackwardBackward0",
    forward=lambda self, sizes, dim, index: _place(self, sizes, at(dim, index)),
    rules=(Rule("self", "g at index", lambda g, dim, index: select(g, dim=dim, index=index)),),
    public=False,
    examples=lambda: [Example((normal(2),), {"sizes": (2, 3), "dim": 1, "index": 2})],
)
narrow: Op = Op(
    "slice(self, *, dim, start, end, step)",
    grad_fn="SliceBackward0",
    formula="self[start:end:step] of dim",
    forward=lambda self, dim, start, end, step: self[at(dim, slice(start, end, step))],
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
    forward=lambda self, sizes, dim, start, end, step: _place(self, sizes, at(dim, slice(start, end, step))),
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
index_select_op: Op = Op(
    "index_select(self, index, *, dim)",
    grad_fn="IndexSelectBackward0",
    formula="the entries index of dim of self",
    forward=lambda self, index, dim: self.take(index.reshape(-1), dim) if self.ndim else self.copy(),
    rules=(
        Rule(
            "self",
            "g added at the entries index",
            lambda g, index, self_sym_sizes, dim: entries_placed(g, index, sizes=self_sym_sizes, dim=dim),
        ),
    ),
    public=False,
    torch="index_select",
    examples=lambda: [
        Example((normal(3, 2), np.array([2, 0, 2])), {"dim": 0}),
        Example((normal(2, 3, 20), np.array([1, 1])), {"dim": 1}),
        Example((normal(), np.array([0])), {"dim": 0}),
        Example((normal(3, 2), np.zeros(0, np.int64)), {"dim": 0}),
    ],
)
entries_placed: Op = Op(
    "index_select_backward(self, index, *, sizes, dim)",
    grad_fn="IndexAddBackward0",
    formula="0 with self added at the entries index of dim",
    forward=lambda self, index, sizes, dim: _entries_placed(self, index, sizes, dim),
    rules=(Rule("self", "the entries index of g", lambda g, index, dim: index_select_op(g, index, dim=dim)),),
    public=False,
    examples=lambda: [Example((normal(3, 2), np.array([2, 0, 2])), {"sizes": (3, 2), "dim": 0})],
)


def _entries_placed(self: Array, index: Array, sizes: Shape, dim: int) -> Array:
    if not sizes:
        return self.reshape(())
    rows = added_rows(sizes[dim], np.reshape(index, -1), np.moveaxis(self, dim, 0))
    return np.ascontiguousarray(np.moveaxis(rows, 0, dim))


@front("select")
def select_front(self: Tensor, dim: int, index: int) -> Tensor:
    """Entry `index` of a dimension, as a view."""
    if not self.ndim:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    (axis,) = normal_dims(dim, self.ndim)
    length = self.shape[axis]
    if not -length <= index < length:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(self.shape)} at dimension {axis}"
        )
    return run(select, self, dim=axis, index=int(index) % length)


def sliced(self: Tensor, axis: int, start: int, end: int, step: int = 1) -> Tensor:
    """A slice of one dimension, as a view."""
    return run(narrow, self, dim=axis, start=start, end=max(end, start), step=step)


@front("narrow")
def narrow_front(self: Tensor, dim: int, start: int | Tensor, length: int) -> Tensor:
    """The `length` elements of `dim` from `start` on, as a view."""
    if not self.ndim:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    (axis,) = normal_dims(dim, self.ndim)
    first, size = int(start), self.shape[axis]
    if not -size <= first <= size:
        raise IndexError(f"start out of range (expected to be in range of [{-size}, {size}], but got {first})")
    first += size if first < 0 else 0
    if first + length > size:
        raise RuntimeError(f"start ({first}) + length ({length}) exceeds dimension size ({size}).")
    return sliced(self, axis, first, first + length)


@front("index_select")
def index_select(self: Tensor, dim: int, index: Tensor) -> Tensor:
    """The entries of `dim` at `index`, as a copy."""
    (axis,) = normal_dims(dim, self.ndim)
    if checked(index_select_op, index, 2).ndim > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    if index.dtype.name not in ("int32", "int64"):
        raise RuntimeError("index_select(): Expected dtype int32 or int64 for index")
    array = index._array
    if not self.ndim and array.size != 1:
        raise RuntimeError("index_select(): Index to scalar can have only 1 value, got " + f"{array.size} value(s)")
    length = self.shape[axis] if self.ndim else 1
    nowhere = self.ndim > 1 and not self._array.size
    if nowhere and array.size and not length:
        raise RuntimeError("index_select(): self indexing axis dim should be positive")
    if array.size and not (array.min() >= 0 and array.max() < length):
        if axis == 1 or nowhere:  # PyTorch uses another kernel for these
            outside = next(i for i in array.reshape(-1).tolist() if not 0 <= i < length)
            raise RuntimeError(f"INDICES element is out of DATA bounds, id={outside} axis_dim={length}")
        raise IndexError("index out of range in self")
    return run(index_select_op, self, index, dim=axis)


# ----------------------------------------------------------------------------------------------------------------------
# Elements picked and written by index tensors and masks, as in NumPy's advanced indexing.
#
# Each index tensor belongs to one dimension (a mask to as many as it has); a dimension without one is kept whole.


Indices = Sequence[Any]

PLACES = 8
"""The number of dimensions of a tensor that index tensors can index."""
_SLOTS = ", ".join(f"index{place}?" for place in range(PLACES))


class IndexOp(Op):
    """An operation with an optional index tensor for each dimension; a node shows them as ``_saved_indices``."""

    def saved_properties(self) -> dict[str, property]:
        return super().saved_properties() | {"indices": property(self._indices)}

    def _indices(self, node: Node) -> tuple[Any, ...]:
        tensors = node.saved_tensors()
        by_place = {int(slot[5:]): tensors[i] for i, slot in enumerate(self.saved_names) if slot.startswith("index")}
        return tuple([by_place.get(place) for place in range(max(by_place) + 1)])


def key_of(indices: Indices) -> tuple[Any, ...]:
    """NumPy's index for index arrays by dimension; None keeps a dimension whole."""
    last = max(place for place, index in enumerate(indices) if index is not None)
    return tuple([slice(None) if index is None else index for index in indices[: last + 1]])


def _key_into(shape: Shape, indices: Indices) -> tuple[Any, ...]:
    """Return the index into an array of `shape`. PyTorch ignores the numbers if the tensor has no elements."""
    key = key_of(indices)
    return key if all(shape) else _anywhere(key)


def _anywhere(key: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return an index of the same shape that is in bounds of every dimension that has an element."""
    return tuple(
        [np.zeros_like(part) if isinstance(part, np.ndarray) and part.dtype.kind != "b" else part for part in key]
    )


def _picked(self: Array, *indices: Any) -> Array:
    key = _key_into(self.shape, indices)
    if len(key) == 1 and key[0].dtype.kind != "b":
        taken: Array = self.take(key[0], 0)  # several times as fast as self[key]
        return taken
    picked: Array = self[key]
    return np.asarray(picked, order="C") if len(key) > 1 or self.flags.c_contiguous else picked


def _put_back(self: Array, *indices: Any, sizes: Shape) -> Array:
    key = _key_into(sizes, indices)
    if len(key) == 1 and key[0].dtype.kind != "b":
        rows = self.reshape(key[0].size, *sizes[1:])
        return added_rows(sizes[0], key[0].reshape(-1) % max(sizes[0], 1), rows)
    if len(key) == 1:
        result = np.zeros(sizes, self.dtype)
        result[key] = self
        return result
    places = np.arange(int(np.prod(sizes))).reshape(sizes)[key]
    return added(int(np.prod(sizes)), places.reshape(-1), self.reshape(-1)).reshape(sizes)


def _put(self: Array, values: Array, *indices: Any, accumulate: bool) -> Array:
    key = _key_into(self.shape, indices)
    result = self.copy() if self.flags.c_contiguous else copied(self)
    if not accumulate:
        result[key] = values
        return result
    places = np.arange(result.size).reshape(result.shape)[key]
    wide = np.broadcast_to(values, places.shape)
    result += added(result.size, places.reshape(-1), wide.reshape(-1)).reshape(result.shape)
    return result


def _with_indices(vjp: Callable[..., Any]) -> Callable[..., Any]:
    """Convert a rule of ``g``, the indices as one tuple, and attributes to one with a parameter for each index."""
    first, _, *attrs = inspect.signature(vjp).parameters.values()
    names = [Parameter(f"index{place}", Parameter.POSITIONAL_OR_KEYWORD) for place in range(PLACES)]

    def spread(g: Any, *arguments: Any, **attrs: Any) -> Any:
        return vjp(g, arguments[:PLACES], *arguments[PLACES:], **attrs)

    spread.__signature__ = inspect.Signature([first, *names, *attrs])  # type: ignore[attr-defined]
    return spread


def _added_back(g: Any, indices: Indices, self_sym_sizes: Shape) -> Any:
    return put_back(g, *indices, sizes=self_sym_sizes)


def _rest(g: Any, indices: Indices, accumulate: bool) -> Any:
    return g if accumulate else index_put_op(g, zeros(g, ()), *indices, accumulate=False)


def _at(*indices: Any) -> tuple[Any, ...]:
    """Return the index arrays of an example, with None for dimensions without one."""
    return (*indices, *(None,) * (PLACES - len(indices)))


_ROWS = np.array([[0, 1], [1, 1]])
_MASK = np.array([[True, False, True], [False, False, True]])

index_op = IndexOp(
    f"index(self, {_SLOTS})",
    grad_fn="IndexBackward0",
    formula="self at the indices",
    forward=_picked,
    rules=(Rule("self", "g added at the indices, 0 elsewhere", _with_indices(_added_back)),),
    public=False,
    examples=lambda: [
        Example((normal(2, 3), *_at(_ROWS)), {}),
        Example((normal(2, 3), *_at(_MASK)), {}),
        Example((normal(2, 3), *_at(None, np.array([2, -1, 2]))), {}),
        Example((normal(2, 2, 3), *_at(np.array([1, 0, 1]), None, np.array([2, 0, 2]))), {}),
    ],
)
put_back = IndexOp(
    f"index_backward(self, {_SLOTS}, *, sizes)",
    grad_fn="IndexBackwardBackward0",
    formula="0 with self added at the indices",
    forward=_put_back,
    rules=(Rule("self", "g at the indices", _with_indices(lambda g, indices: index_op(g, *indices))),),
    public=False,
    examples=lambda: [
        Example((normal(2, 2, 3), *_at(_ROWS)), {"sizes": (2, 3)}),
        Example((normal(3, 2), *_at(np.array([1, 0, 1]), None, np.array([2, 0, 2]))), {"sizes": (2, 2, 3)}),
    ],
)
index_put_op = IndexOp(
    f"index_put(self, values, {_SLOTS}, *, accumulate=False)",
    grad_fn="IndexPutBackward0",
    formula="self with values at the indices",
    forward=_put,
    rules=(
        Rule("self", "g, 0 at the indices unless accumulated", _with_indices(_rest)),
        Rule("values", "g at the indices", _with_indices(lambda g, indices: index_op(g, *indices))),
    ),
    public=False,
    overlap="indexed",
    examples=lambda: [
        Example((normal(2, 3), normal(2), *_at(np.array([0, 1]), np.array([1, 1]))), {"accumulate": False}),
        Example((normal(2, 3), normal(3), *_at(np.array([1, 1]))), {"accumulate": True}),
        Example((normal(2, 3), normal(), *_at(_MASK)), {"accumulate": False}),
    ],
)


# ----------------------------------------------------------------------------------------------------------------------
# ``x[...]`` and ``x[...] = value``: views for numbers and slices, copies for tensors.


TensorIndices = Sequence[Tensor | None]
_DTYPES = ("int64", "bool", "int32", "uint8")


class ByteMask(Tensor):
    """A mask of bytes, which still works but warns."""

    __slots__ = ()


def _warn_of_bytes(indices: TensorIndices) -> None:
    for index in indices:
        if isinstance(index, ByteMask):
            warn(messages.BYTE_INDEX)


@front("__getitem__", function=False)
def getitem(self: Tensor, key: Any) -> Tensor:
    """``self[key]``: a view for numbers, slices, None and ``...``; a copy for lists, tensors and masks."""
    if key.__class__ is int and self._array.ndim:  # the common case, without checking for other kinds of keys
        return _selected(self, 0, key, 0)
    if isinstance(key, slice) and self.ndim:  # a single slice is always a view of its own, in PyTorch too
        return _slice(self, 0, key)
    view, indices = _viewed(self, _keys(key))
    if indices:
        return picked(view, indices)
    return run(alias, self) if view is self else view


@front("__setitem__", function=False)
def setitem(self: Tensor, key: Any, value: Any) -> None:
    """``self[key] = value``: writes through a view, or at the elements selected by lists, tensors and masks."""
    if key is False:
        return  # nothing is selected, and PyTorch makes no node for it
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
    """Return a number as an element of `self`, even if the conversion loses information."""
    element = number(fitting(value, self.dtype), self._array)
    element._array = element._array.astype(self._array.dtype, copy=False)
    return element


def _fitted(value: Tensor, target: Tensor) -> Tensor:
    """`value` in the shape of `target`, through the views that PyTorch also records."""
    if value.shape == target.shape:
        return value
    leading = next((d for d, n in enumerate(value.shape) if n != 1), value.ndim)
    fitted: Tensor = value.view(value.shape[leading:])
    return fitted if fitted.shape == target.shape else fitted.expand(target.shape)


def _without_leading_ones(value: Tensor) -> Tensor:
    leading = next((d for d, n in enumerate(value.shape) if n != 1), value.ndim)
    short: Tensor = value.view(value.shape[leading:]) if leading else value
    return short


def picked(self: Tensor, indices: TensorIndices) -> Tensor:
    """The elements at index tensors, one (or None) for each dimension."""
    _warn_of_bytes(indices)
    result: Tensor = _diagnosed(self, indices, lambda: apply(*index_op.present((self, *_slots(indices)))))
    return result


def put_in_place(self: Tensor, indices: TensorIndices, values: Tensor, *, accumulate: bool) -> Tensor:
    """Writes `values` at index tensors, or adds them."""
    check_writable(self, values)
    run = partial(apply_in_place, rule="masked") if _is_fill(indices, values, accumulate) else apply_in_place
    return _assign(self, indices, values, run, accumulate)


def _assign(
    self: Tensor, indices: TensorIndices, values: Tensor, run: Callable[..., Tensor], accumulate: bool
) -> Tensor:
    if _is_fill(indices, values, accumulate):
        place, mask = next((place, index) for place, index in enumerate(indices) if index is not None)
        _check_mask(self, mask, place)
        if isinstance(mask, ByteMask):
            raise RuntimeError("masked_fill_ only supports boolean masks, but got mask with dtype unsigned char")
        values = values.to(self.dtype)  # PyTorch fills with an element of any dtype
    else:
        _warn_of_bytes(indices)
    if values.dtype is not self.dtype:
        _check_fit_at(self, indices, values)
        raise RuntimeError(
            "Index put requires the source and destination dtypes match, got "
            f"{self.dtype.tensor_type} for the destination and {values.dtype.tensor_type} for the source."
        )
    op, tensors = index_put_op.present((self, values, *_slots(indices)))
    result: Tensor = _diagnosed(self, indices, lambda: run(op, tensors, {"accumulate": accumulate}), values)
    return result


_NO_ELEMENTS = "index is out of bounds for dimension with size 0"


def _check_fit_at(self: Tensor, indices: TensorIndices, values: Tensor) -> None:
    """Raises RuntimeError, with PyTorch's text, for values that do not broadcast to the elements at `indices`.

    Raises IndexError for an index into a dimension without elements; other indices are not checked yet.
    """
    op, tensors = index_put_op.present((self, values.to(self.dtype), *_slots(indices)))
    try:
        _diagnosed(self, indices, lambda: compute(op, tensors, {"accumulate": False}), values)
    except IndexError as error:
        if str(error) == _NO_ELEMENTS:
            raise


def _is_fill(indices: TensorIndices, values: Tensor, accumulate: bool) -> bool:
    """Return whether a write is a ``masked_fill_`` in PyTorch: one element, written at a single mask."""
    used = [index for index in indices if index is not None]
    return values._array.size == 1 and not accumulate and len(used) == 1 and used[0].dtype.name == "bool"


def _slots(indices: TensorIndices) -> list[Tensor | None]:
    if len(indices) > PLACES:
        raise RuntimeError(f"the built-in engine indexes at most the first {PLACES} dimensions by tensors")
    return [*indices, *[None] * (PLACES - len(indices))]


def _diagnosed(self: Tensor, indices: TensorIndices, call: Callable[[], Any], values: Tensor | None = None) -> Any:
    """Call `call`; if NumPy raises an error about indices, raises PyTorch's instead.

    Costs nothing without an error.
    """
    try:
        return call()
    except IndexError as error:
        _complain(self, indices, error)
    except (RuntimeError, TypeError) as error:
        if values is None or not str(error).startswith(_OF_SHAPES):
            raise
        key = _anywhere(key_of([None if t is None else t._array for t in indices]))
        try:
            shape = np.empty(self.shape, bool)[key].shape
        except IndexError as of_size_0:
            _complain(self, indices, of_size_0)
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {list(values.shape)} cannot be broadcast to indexing result of "
            f"shape {list(shape)}"
        ) from None


_OF_SHAPES = ("shape mismatch", "operands could not", "could not broadcast", "NumPy boolean array indexing assignment")
"""The start of NumPy's errors for values whose shape differs from that of the indexed elements."""


def _complain(self: Tensor, indices: TensorIndices, error: IndexError) -> NoReturn:
    """Raise IndexError, with PyTorch's text, for indices that do not match `self`."""
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
    if any(index._array.size and not self.shape[dim] for index, dim in places):
        raise IndexError(_NO_ELEMENTS) from None
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
    """Return the parts of a key, with lists, ranges, arrays and masks converted to tensors."""
    parts = key if isinstance(key, tuple) else (key,)
    if _holds_keys(key):
        warn(messages.LIST_OF_KEYS)
        parts = key
    return tuple([_as_tensor(part) for part in parts])


def _holds_keys(key: Any) -> bool:
    """Return whether a list is a list of keys rather than of positions."""
    nested = (list, tuple, slice, Tensor, type(None), type(...))
    return isinstance(key, list) and any(isinstance(item, nested) for item in key)


def _as_tensor(key: Any) -> Any:
    if isinstance(key, Tensor):
        return _checked(key)
    warn_of_read_only(key)
    if isinstance(key, (list, tuple, range)) or (isinstance(key, np.ndarray) and key.ndim):
        array = key if isinstance(key, np.ndarray) else np.asarray(_plain(key))
        if array.dtype.kind == "U":
            raise TypeError("new(): invalid data type 'str'")
        if array.dtype.kind == "f":
            array = array.astype(np.int64)
        return _checked(new_tensor(array))
    return bool(key) if isinstance(key, np.ndarray) and key.dtype.kind == "b" else key


def _checked(index: Tensor) -> Tensor:
    """Return a tensor usable as an index. Raises IndexError, with PyTorch's text, for any other."""
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
    """Return whether a key is True or False, which add a dimension."""
    return isinstance(key, bool) or (isinstance(key, Tensor) and not key.ndim and key.dtype.name == "bool")


def _is_index(key: Any) -> bool:
    return isinstance(key, Tensor) and bool(key.ndim)


def _width(key: Any) -> int:
    """Return the number of dimensions that a key indexes: all of a mask's, none for None and ``...``."""
    if key is None or key is Ellipsis or _is_flag(key):
        return 0
    return key.ndim if _is_index(key) and key.dtype.name == "bool" else 1


def _viewed(self: Tensor, keys: tuple[Any, ...]) -> tuple[Tensor, TensorIndices]:
    """Select and slice dimension by dimension, as PyTorch records it; return index tensors for later.

    They are returned with None between them, so that each is at its dimension of the view; empty if there are none.
    """
    used = sum(map(_width, keys))
    _check_count(self, keys, used)
    result, indices = self, list[Tensor | None]()
    axis = 0
    for place, key in enumerate(keys):
        if key is None or _is_flag(key):
            result = result.unsqueeze(axis)
            indices.append(None if key is None else new_tensor(np.zeros(int(bool(key)), np.int64)))
        elif key is Ellipsis:
            indices += [None] * (self.ndim - used)
            used = self.ndim  # a second one has no effect
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
    """Return a key that selects one element. Raises TypeError or IndexError, with PyTorch's text, for an
    invalid one.
    """
    if isinstance(key, str):
        raise TypeError("new(): invalid data type 'str'")
    try:
        return as_index(key)
    except TypeError:
        raise IndexError(messages.INVALID_INDEX.format(kind=typename(key))) from None


def _sliced(self: Tensor, axis: int, key: slice) -> Tensor:
    length = self.shape[axis]
    start, stop = key.start, key.stop
    with_inputs = (start is None or as_index(start) == 0) and (stop is None or as_index(stop) >= length)
    whole = with_inputs and key.indices(length) == (0, length, 1)
    return self if whole else _slice(self, axis, key)  # a start other than 0 makes a view even of everything


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


def _index_list(name: str, self: Tensor, indices: Any) -> tuple[Tensor, ...]:
    if not isinstance(indices, (tuple, list)):
        kind = type(indices).__name__
        raise TypeError(f"{name}(): argument 'indices' (position 1) must be tuple of Tensors, not {kind}")
    for i, index in enumerate(indices):
        if not isinstance(index, Tensor):
            raise TypeError(f"expected Tensor as element {i} in argument 0, but got {type(index).__name__}")
    checked = tuple([_checked(index) for index in indices])
    count = sum(index.ndim if index.dtype.name == "bool" else 1 for index in checked)
    if count > self.ndim:
        raise IndexError(f"too many indices for tensor of dimension {self.ndim} (got {count})")
    return checked


@front("index_put")
def index_put(self: Tensor, indices: Sequence[Tensor], values: Tensor, accumulate: bool = False) -> Tensor:
    """A copy with `values` written or added at index tensors."""
    return _assign(self, _index_list("index_put", self, indices), values, apply, accumulate)


@front("index_put_", function=False)
def index_put_(self: Tensor, indices: Sequence[Tensor], values: Tensor, accumulate: bool = False) -> Tensor:
    """Writes `values` at index tensors, or adds them there."""
    return put_in_place(self, _index_list("index_put_", self, indices), values, accumulate=accumulate)


# ----------------------------------------------------------------------------------------------------------------------
# Elements selected by a mask: filled, read, written; and the indices of nonzero elements.


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
    forward=lambda self, mask: _masked_elements(self, mask),
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
    forward=lambda self, mask, sizes: _in_order(_masked_elements(self, mask), sizes),
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


def _masked_elements(self: Array, mask: Array) -> Array:
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


def _as_read(self: Array, mask: Array, source: Array) -> Array:
    """The elements of `source`, each as it is when it is read: after those before it were written to `self`."""
    if not source.flags.c_contiguous:  # PyTorch copies it
        return source
    read, start = source.reshape(-1).copy(), address_of(source)
    written = np.argwhere(np.broadcast_to(mask, self.shape)) @ np.array(self.strides, np.int64) + address_of(self)
    for element, address in enumerate(written[: read.size].tolist()):
        place, between = divmod(address - start, source.itemsize)
        if not between and element < place < read.size:
            read[place] = read[element]
    return read


def _reading_itself(op: Op) -> Op:
    """The write in place of a source in the memory that is written: the end of it is read when that has begun."""
    variant = copy(op)  # not in the registry, because it is the same operation
    variant.forward = lambda self, mask, source: _scattered(self, mask, _as_read(self, mask, source))
    variant._compile()
    return variant


_scatter_where_reading_itself = _reading_itself(scatter_where)


def _in_order(elements: Array, sizes: Shape) -> Array:
    result = np.zeros(sizes, elements.dtype)
    result.reshape(-1)[: elements.size] = elements
    return result


def _check_fit(self: Tensor, mask: Tensor) -> None:
    try:
        np.broadcast_shapes(self._array.shape, mask._array.shape)
    except ValueError:
        raise RuntimeError(broadcast_error(self._array.shape, mask._array.shape)) from None


def _check_filled(self: Tensor, mask: Tensor, value: Tensor | Number) -> None:
    if isinstance(mask, Tensor) and not (isinstance(value, Tensor) and value.ndim):
        _check_booleans("masked_fill_", mask)
        _check_fit(self, mask)


@with_in_place_method("masked_fill", before=_check_filled)
def masked_fill(self: Tensor, mask: Tensor, value: Tensor | Number) -> Prepared:
    """Writes `value` where `mask` holds."""
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
    _check_booleans(name, mask)


def _check_booleans(name: str, mask: Tensor) -> None:
    if mask.dtype.name != "bool":
        raise RuntimeError(f"{name} only supports boolean masks, but got mask with dtype {mask.dtype.cpp_name}")


@front("masked_select")
def masked_select(self: Tensor, mask: Tensor) -> Tensor:
    """The elements where `mask` holds, as a vector."""
    if mask.dtype.name != "bool":
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    _check_fit(mask, self)
    return run(select_where, self, mask)


@front("masked_scatter")
def masked_scatter(self: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """Writes the elements of `source`, in their order, where `mask` holds."""
    _check_scattered(self, mask, source)
    return run(scatter_where, self, mask, source)


@front("masked_scatter_", function=False)
def masked_scatter_in_place(self: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """Writes the elements of `source`, in their order, where `mask` holds."""
    expanded(mask._array, self._array.shape)
    op = _scatter_where_reading_itself if np.may_share_memory(self._array, source._array) else scatter_where
    return apply_in_place(op, (self, mask, source), {}, lambda: _check_scattered(self, mask, source))


def _check_scattered(self: Tensor, mask: Tensor, source: Tensor) -> None:
    if source.dtype is not self.dtype:
        raise RuntimeError(
            "masked_scatter: expected self and source to have same dtypes but got"
            f"{self.dtype.tensor_type} and {source.dtype.tensor_type}"
        )
    _check_fit(mask, self)
    if mask.dtype.name != "bool":
        kind = mask.dtype.tensor_type
        raise RuntimeError(f"masked_scatter_ only supports boolean masks, but got mask with dtype {kind}")


@front("nonzero")
def nonzero(input: Tensor, *, as_tuple: bool = False) -> Any:
    """The indices of nonzero elements: one per row, or one vector for each dimension."""
    if not as_tuple:
        return apply(nonzero_op, (input,))
    return run(nonzero_op, input if input.ndim else unsqueeze(input, 0)).unbind(1)


@front("argwhere")
def argwhere(input: Tensor) -> Tensor:
    """The indices of nonzero elements, one per row."""
    return run(nonzero_op, input)

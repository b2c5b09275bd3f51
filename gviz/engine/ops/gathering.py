"""Elements read from and written to indexed positions: ``gather``, ``scatter``, ``index_add``, ``put_``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from gviz.engine import messages
from gviz.engine.broadcasting import broadcast_error
from gviz.engine.functions_and_methods import Number, front
from gviz.engine.memory_format import copied, strides_of
from gviz.engine.number_conversion import fitting
from gviz.engine.op import Example, Op, Rule, apply, zeros
from gviz.engine.ops._declaration import Prepared, with_in_place_method
from gviz.engine.ops._examples import normal, positive, spaced
from gviz.engine.ops._kernels import (
    added,
    added_rows,
    check_broadcast,
    in_rows,
    laid_out_as,
    places_along,
    refuse_unless,
)
from gviz.engine.ops.comparison import where_op
from gviz.engine.ops.indexing import at, fill_where, index_select_op, narrow, select
from gviz.engine.ops.shape import expand, normal_dims, reshape, run
from gviz.engine.tensor import Tensor, new_tensor
from gviz.engine.views import check_writable
from gviz.values.value import Array

# ----------------------------------------------------------------------------------------------------------------------
# Elements picked by an index with the shape of the result: along one dimension, or in the flat tensor.


Shape = tuple[int, ...]

scatter_along: Op = Op(
    "scatter_along(self, index, *, size, dim)",
    grad_fn="ScatterAddBackward0",
    formula="0 with self added at index along dim",
    forward=lambda self, index, size, dim: _scattered(self, index, size, dim),
    rules=(Rule("self", "g at index", lambda g, index, dim: gather_op(g, index, dim=dim)),),
    public=False,
    examples=lambda: [Example((normal(2, 2), np.array([[0, 0], [2, 1]])), {"size": (2, 3), "dim": 1})],
)
gather_op: Op = Op(
    "gather(self, index, *, dim, sparse_grad=False)",
    grad_fn="GatherBackward0",
    formula="self at index along dim",
    forward=in_rows(lambda self, index, dim, sparse_grad=False: _gathered(self, index, dim)),
    rules=(
        Rule(
            "self",
            "g added at index",
            lambda g, self, index, dim: scatter_along(g, index, size=tuple(self.shape), dim=dim),
        ),
    ),
    public=False,
    torch="gather",
    examples=lambda: [
        Example((normal(2, 3), np.array([[0, 0], [2, 1]])), {"dim": 1}),
        Example((normal(3, 2), np.array([[0], [2]])), {"dim": 0}),
        Example((normal(), np.array([0, 0])), {"dim": 0}),
    ],
)
take_op: Op = Op(
    "take(self, index)",
    grad_fn="TakeBackward0",
    formula="the elements of flat self at index",
    forward=lambda self, index: np.reshape(self, -1)[index],
    rules=(Rule("self", "g added at index", lambda g, self, index: untaken(g, index, size=tuple(self.shape))),),
    public=False,
    torch="take",
    examples=lambda: [Example((normal(2, 3), np.array([[0, 5], [-1, 2]])), {})],
)
untaken: Op = Op(
    "take_backward(self, index, *, size)",
    grad_fn="PutBackward0",
    formula="0 with self added to the flat elements at index",
    forward=lambda self, index, size: _untaken(self, index, size),
    rules=(Rule("self", "g at index", lambda g, index: take_op(g, index)),),
    public=False,
    examples=lambda: [Example((normal(2, 2), np.array([[0, 5], [-1, 2]])), {"size": (2, 3)})],
)


def _gathered(self: Array, index: Array, dim: int) -> Array:
    source, places = np.atleast_1d(self, index)
    return source.reshape(-1)[places_along(places, source.shape, dim)].reshape(index.shape)


def _scattered(self: Array, index: Array, size: Shape, dim: int) -> Array:
    places = places_along(np.atleast_1d(index), size or (1,), dim)
    total = int(np.prod(size))
    return added(total, np.broadcast_to(places, np.shape(self) or (1,)).reshape(-1), np.reshape(self, -1)).reshape(size)


def _untaken(self: Array, index: Array, size: Shape) -> Array:
    total = int(np.prod(size))
    return added(total, np.reshape(index, -1) % max(total, 1), np.reshape(self, -1)).reshape(size)


def check_bounds(index: Tensor, length: int, dim: int, low: int = 0) -> None:
    """Raises RuntimeError, with PyTorch's text, for an index out of bounds."""
    array = index._array
    if array.size and (array.min() < low or array.max() >= length):
        outside = int(next(i for i in array.reshape(-1) if not low <= i < length))
        raise RuntimeError(f"index {outside} is out of bounds for dimension {dim} with size {length}")


def check_kind(name: str, index: Tensor) -> None:
    """Raises RuntimeError, with PyTorch's text, for an index that is not of integers."""
    if index.dtype.name not in ("int64", "int32"):
        raise RuntimeError(f"{name}(): Expected dtype int32/int64 for index")


@front("gather")
def gather(self: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Tensor:
    """The elements at `index` along `dim`, in the shape of `index`."""
    (axis,) = normal_dims(dim, self.ndim)
    check_kind("gather", index)
    if index._array.size:
        if max(index.ndim, 1) != max(self.ndim, 1):
            raise RuntimeError("Index tensor must have the same number of dimensions as input tensor")
        for d, (n, own) in enumerate(zip(index.shape, self.shape, strict=False)):
            if d != axis and n > own:
                raise RuntimeError(
                    f"Size does not match at dimension {d} expected index {list(index.shape)} to be no larger than "
                    f"self {list(self.shape)} apart from dimension {axis}"
                )
    check_bounds(index, self.shape[axis] if self.ndim else 1, axis)
    return run(gather_op, self, index, dim=axis, sparse_grad=sparse_grad)


def check_flat_index(name: str, self: Tensor, index: Tensor) -> None:
    """Raises PyTorch's error for an index that is not of int64, or out of bounds of the flat tensor."""
    _check_long(name, index)
    array, size = index._array, self._array.size
    if array.size and not size:
        tried = "Tried to put elements into" if name == "put_" else "tried to take from"
        raise IndexError(f"{name}(): {tried} an empty tensor")
    if array.size and (array.min() < -size or array.max() >= size):
        outside = int(next(i for i in array.reshape(-1) if not -size <= i < size))
        raise IndexError(f"out of range: tried to access index {outside} on a tensor of {size} elements.")


def _check_long(name: str, index: Tensor) -> None:
    if index.dtype.name != "int64":
        raise RuntimeError(f"{name}(): Expected a long tensor for index, but got {index.dtype.tensor_type}")


@front("take")
def take(self: Tensor, index: Tensor) -> Tensor:
    """The elements at `index` in the flat tensor, in the shape of `index`."""
    check_flat_index("take", self, index)
    result: Tensor = apply(take_op, (self, index))
    return result


@front("take_along_dim")
def take_along_dim(self: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """The elements at `indices` along `dim`, both broadcast in other dimensions; in the flat tensor without `dim`.

    Along a `dim`, indices beyond either end wrap around.
    """
    if indices.dtype.name != "int64":
        raise RuntimeError(
            f"torch.take_along_dim(): dtype of indices should be Long but got {indices.dtype.tensor_type}"
        )
    if dim is None:
        return gather(reshape(self, -1), 0, reshape(indices, -1))
    if indices.ndim != self.ndim:
        raise RuntimeError(
            "torch.take_along_dim(): input and indices should have the same number of dimensions, but got "
            f"{self.ndim} dimensions for input, and {indices.ndim} dimensions for indices"
        )
    (axis,) = normal_dims(dim, self.ndim)
    if not self.ndim:
        raise IndexError(f"Dimension specified as {axis} but tensor has no dimensions")
    shapes = [(*t.shape[:axis], 1, *t.shape[axis + 1 :]) for t in (self, indices)]
    if any(own != other and 1 not in (own, other) for own, other in zip(*shapes, strict=True)):
        raise RuntimeError(broadcast_error(*shapes))
    array, length = indices._array, self.shape[axis]
    if array.size and not length:
        raise RuntimeError("ZeroDivisionError")
    if array.size and (array.min() < 0 or array.max() >= length):
        indices = indices.remainder(length)
    return gather(_widened(self, indices, axis), axis, _widened(indices, self, axis))


def _widened(self: Tensor, other: Tensor, axis: int) -> Tensor:
    """Return a tensor repeated to the size of another, except in one dimension."""
    sizes: list[Any] = [o if n == 1 else n for n, o in zip(self.shape, other.shape, strict=True)]
    sizes[axis] = self.shape[axis]
    return run(expand, self, size=tuple(sizes))


# ----------------------------------------------------------------------------------------------------------------------
# Elements written or combined at an index of their shape: along one dimension, or in the flat tensor.


_INDEX = np.array([[0, 0], [2, 1]])
_UNIQUE = np.array([[1, 0], [2, 1]])


def _no_derivative(name: str) -> Callable[..., Any]:
    def vjp(g: Any) -> NoReturn:
        raise RuntimeError(messages.NOT_IMPLEMENTED.format(name=name))

    return vjp


def _combined(self: Array, index: Array, src: Any, dim: int, how: Callable[..., None]) -> Array:
    """Return a copy of `self` in which `how` combined the elements at flat positions with those of `src`."""
    result = np.array(self, order="C")
    own, index = np.atleast_1d(result), np.atleast_1d(index)
    if np.ndim(src):
        src = src[tuple([slice(n) for n in index.shape])].reshape(-1)
    places = places_along(index, own.shape, dim)
    how(own.reshape(-1), np.broadcast_to(places, index.shape).reshape(-1), src)
    return result


def _write(flat: Array, places: Array, src: Any) -> None:
    flat[places] = src


def _add(flat: Array, places: Array, src: Any) -> None:
    flat += added(len(flat), places, np.broadcast_to(np.asarray(src, flat.dtype), places.shape))


def _multiply(flat: Array, places: Array, src: Any) -> None:
    np.multiply.at(flat, places, src)


_REDUCE = {"add": _add, "multiply": _multiply}

scatter_op: Op = Op(
    "scatter(self, src, index, *, dim)",
    grad_fn="ScatterBackward0",
    formula="self with src at index along dim",
    forward=lambda self, src, index, dim: _combined(self, index, src, dim, _write),
    rules=(
        Rule("self", "g, 0 at index", lambda g, index, dim: scatter_value(g, index, dim=dim, value=0)),
        Rule("src", "g at index", lambda g, index, dim: gather_op(g, index, dim=dim)),
    ),
    public=False,
    torch="scatter",
    overlap="apart",
    examples=lambda: [Example((normal(2, 3), normal(2, 2), _UNIQUE), {"dim": 1})],
)
scatter_value: Op = Op(
    "scatter(self, index, *, dim, value)",
    grad_fn="ScatterBackward1",
    formula="self with value at index along dim",
    forward=lambda self, index, dim, value: _combined(self, index, value, dim, _write),
    rules=(Rule("self", "g, 0 at index", lambda g, index, dim: scatter_value(g, index, dim=dim, value=0)),),
    public=False,
    torch="scatter",
    overlap="apart",
    examples=lambda: [Example((normal(2, 3), _INDEX), {"dim": 1, "value": 1.5})],
)
scatter_combined: Op = Op(
    "scatter(self, src, index, *, dim, reduce)",
    grad_fn="NotImplemented",
    formula="self combined with src at index along dim",
    forward=lambda self, src, index, dim, reduce: _combined(self, index, src, dim, _REDUCE[reduce]),
    rules=(Rule("self", "none", _no_derivative("scatter")), Rule("src", "none", _no_derivative("scatter"))),
    public=False,
    overlap="apart",
)
scatter_value_combined: Op = Op(
    "scatter(self, index, *, dim, value, reduce)",
    grad_fn="NotImplemented",
    formula="self combined with value at index along dim",
    forward=lambda self, index, dim, value, reduce: _combined(self, index, value, dim, _REDUCE[reduce]),
    rules=(Rule("self", "none", _no_derivative("scatter")),),
    public=False,
    overlap="apart",
)
scatter_add_op: Op = Op(
    "scatter_add(self, src, index, *, dim)",
    grad_fn="ScatterAddBackward0",
    formula="self with src added at index along dim",
    forward=lambda self, src, index, dim: _combined(self, index, src, dim, _add),
    rules=(
        Rule("self", "g", lambda g: g),
        Rule("src", "g at index", lambda g, index, dim: gather_op(g, index, dim=dim)),
    ),
    public=False,
    torch="scatter_add",
    overlap="apart",
    examples=lambda: [Example((normal(2, 3), normal(2, 2), _INDEX), {"dim": 1})],
)
put_op: Op = Op(
    "put(self, index, source, *, accumulate=False)",
    grad_fn="PutBackward0",
    formula="self with source at the flat positions index",
    forward=lambda self, index, source, accumulate: _put(self, index, source, accumulate),
    rules=(
        Rule("self", "g, 0 at index unless accumulated", lambda g, index, accumulate: _unput(g, index, accumulate)),
        Rule("source", "g at index", lambda g, index, source: _as(take_op(g, index), source)),
    ),
    public=False,
    torch="put",
    overlap="apart",
    examples=lambda: [
        Example((normal(2, 3), np.array([0, -1]), normal(2)), {"accumulate": False}),
        Example((normal(2, 3), np.array([4, 4]), spaced(2)), {"accumulate": True}),
    ],
)


def _put(self: Array, index: Array, source: Array, accumulate: bool) -> Array:
    result = np.array(self, order="C")
    places = np.reshape(index, -1) % max(self.size, 1)
    (_add if accumulate else _write)(result.reshape(-1), places, np.reshape(source, -1))
    return laid_out_as(self, result)


def _unput(g: Any, index: Any, accumulate: bool) -> Any:
    return g if accumulate else put_op(g, index, zeros(g, tuple(index.shape)), accumulate=False)


def _as(g: Any, source: Any) -> Any:
    return g.reshape(source.shape)


def check_places(self: Tensor, dim: int, index: Tensor, src: Tensor | None, *, name: str) -> int:
    """`dim` counted from 0. Raises PyTorch's error for an index or source that does not match `self`."""
    (axis,) = normal_dims(dim, self.ndim)
    check_kind(name, index)
    if src is not None and src.dtype is not self.dtype:
        raise RuntimeError(f"{name}(): Expected self.dtype to be equal to src.dtype")
    if index._array.size:
        _check_shapes(self, axis, index, src)
    return axis


def bounds(self: Tensor, index: Tensor, axis: int) -> Callable[[], None]:
    """A check for an index out of bounds along a dimension. It raises RuntimeError, with PyTorch's text."""
    return lambda: check_bounds(index, self.shape[axis] if self.ndim else 1, axis)


def _refusal(message: str) -> Callable[[], NoReturn]:
    """A check that fails: PyTorch looks at the name of a reduction after it has looked for overlapping memory."""

    def refuse() -> NoReturn:
        raise RuntimeError(message)

    return refuse


def _check_shapes(self: Tensor, axis: int, index: Tensor, src: Tensor | None) -> None:
    for name, tensor in (("self", self), ("src", src)):
        if tensor is not None and max(index.ndim, 1) != max(tensor.ndim, 1):
            raise RuntimeError(f"Index tensor must have the same number of dimensions as {name} tensor")
    wide = [d for d in range(min(index.ndim, self.ndim)) if d != axis and index.shape[d] > self.shape[d]]
    beyond = src is not None and any(n > m for n, m in zip(index.shape, src.shape or (1,), strict=False))
    if wide or beyond:
        also = "" if src is None else f" and to be no larger size than src {list(src.shape)}"
        raise RuntimeError(
            f"Expected index {list(index.shape)} to be no larger than self {list(self.shape)} apart from dimension "
            f"{axis}{also}"
        )


@with_in_place_method("scatter", before=check_writable)
def scatter(
    self: Tensor,
    dim: int,
    index: Tensor,
    src: Tensor | Number | None = None,
    *,
    value: Number | None = None,
    reduce: str | None = None,
) -> Prepared:
    """Writes `src` or a number, or with `reduce` adds or multiplies it, at `index` along `dim`."""
    source = value if src is None else src
    if reduce is not None and isinstance(source, Tensor):
        messages.warn_once(messages.SCATTER_REDUCE)
    axis = check_places(self, dim, index, source if isinstance(source, Tensor) else None, name="scatter")
    known = reduce in (None, "add", "multiply")
    check = bounds(self, index, axis) if known else _refusal("reduce argument must be either add or multiply.")
    if isinstance(source, Tensor):
        if reduce is None:
            return scatter_op, (self, source, index), {"dim": axis}, check
        return scatter_combined, (self, source, index), {"dim": axis, "reduce": reduce}, check
    source = fitting(source, self.dtype)
    if reduce is None:
        return scatter_value, (self, index), {"dim": axis, "value": source}, check
    return scatter_value_combined, (self, index), {"dim": axis, "value": source, "reduce": reduce}, check


@with_in_place_method("scatter_add")
def scatter_add(self: Tensor, dim: int, index: Tensor, src: Tensor) -> Prepared:
    """Adds `src` at `index` along `dim`."""
    axis = check_places(self, dim, index, src, name="scatter")
    return scatter_add_op, (self, src, index), {"dim": axis}, bounds(self, index, axis)


@with_in_place_method("put")
def put(self: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Prepared:
    """Writes or adds `source` at `index` in the flat tensor."""
    _check_long("put_", index)
    if source.dtype is not self.dtype:
        raise RuntimeError(
            "put_(): self and source expected to have the same dtype, but got self.dtype = "
            f"{self.dtype.tensor_type} and source.dtype = {source.dtype.tensor_type}"
        )
    if index._array.size != source._array.size:
        raise IndexError(
            "put_(): Expected source and index to have the same number of elements, but got source.numel() = "
            f"{source._array.size}, index.numel() = {index._array.size}"
        )
    return put_op, (self, index, source), {"accumulate": accumulate}, lambda: check_flat_index("put_", self, index)


# ----------------------------------------------------------------------------------------------------------------------
# Entries of one dimension at an index: added to, written, filled, combined.


_ENTRY = np.array([2, 0, 2])
_UNIQUE_ENTRIES = np.array([2, 0])


def _added(self: Array, source: Array, index: Array, dim: int, alpha: Number) -> Array:
    if not self.ndim:
        return self + alpha * np.reshape(source, ())
    if not self.size:  # whatever the index
        return self.copy()
    rows = np.moveaxis(np.broadcast_to(source, _shape(self, index, dim)), dim, 0)
    total = np.moveaxis(added_rows(self.shape[dim], np.reshape(index, -1), rows), 0, dim)
    return np.add(self, total if alpha == 1 else self.dtype.type(alpha) * total, order="C")


def _in_c_order(array: Array) -> Array:
    return np.array(array, order="C")


def _written(self: Array, source: Any, index: Array, dim: int, copy: Callable[[Array], Array] = _in_c_order) -> Array:
    result = copy(self)
    if not result.ndim:
        return np.reshape(np.asarray(source, result.dtype), ())
    if result.size:  # otherwise PyTorch does not look at the index
        result[at(dim, np.reshape(index, -1))] = source
    return result


def _shape(self: Array, index: Array, dim: int) -> tuple[int, ...]:
    return (*self.shape[:dim], index.size, *self.shape[dim + 1 :])


def _entries(g: Any, source: Any, index: Any, dim: int) -> Any:
    entries = index_select_op(g, index, dim=dim)
    return entries if entries.shape == source.shape else entries.reshape(source.shape)


index_add_op: Op = Op(
    "index_add(self, source, index, *, dim, alpha=1)",
    grad_fn="IndexAddBackward0",
    formula="self with alpha * source added at the entries index of dim",
    forward=_added,
    rules=(
        Rule("self", "g", lambda g: g),
        Rule(
            "source",
            "alpha * the entries index of g",
            lambda g, source, index, dim, alpha: _entries(g, source, index, dim) * alpha,
        ),
    ),
    public=False,
    torch="index_add",
    overlap="apart",
    examples=lambda: [
        Example((normal(3, 2), normal(3, 2), _ENTRY), {"dim": 0, "alpha": 2.5}),
        Example((normal(2, 3), normal(2, 3), _ENTRY), {"dim": 1, "alpha": 1}),
    ],
)
index_copy_op: Op = Op(
    "index_copy(self, source, index, *, dim)",
    grad_fn="IndexCopyBackward0",
    formula="self with source as the entries index of dim",
    forward=_written,
    rules=(
        Rule("self", "g, 0 at the entries index", lambda g, index, dim: index_fill_op(g, index, dim=dim, value=0)),
        Rule("source", "the entries index of g", lambda g, source, index, dim: _entries(g, source, index, dim)),
    ),
    public=False,
    torch="index_copy",
    overlap="apart",
    examples=lambda: [Example((normal(2, 3), normal(2, 2), _UNIQUE_ENTRIES), {"dim": 1})],
)
index_fill_op: Op = Op(
    "index_fill(self, index, *, dim, value)",
    grad_fn="IndexFillBackward0",
    formula="self with value in the entries index of dim",
    forward=lambda self, index, dim, value: _written(self, value, index, dim, copied),
    rules=(Rule("self", "g, 0 at the entries index", lambda g, index, dim: index_fill_op(g, index, dim=dim, value=0)),),
    public=False,
    torch="index_fill",
    overlap="indexed",
    examples=lambda: [Example((normal(2, 3), _UNIQUE_ENTRIES), {"dim": 1, "value": 1.5})],
)
index_fill_with: Op = Op(
    "index_fill(self, value, index, *, dim)",
    grad_fn="IndexFillBackward1",
    formula="self with value in the entries index of dim",
    forward=lambda self, value, index, dim: _written(self, value, index, dim, copied),
    rules=(
        Rule("self", "g, 0 at the entries index", lambda g, index, dim: index_fill_op(g, index, dim=dim, value=0)),
        Rule("value", "the entries index of g, summed", lambda g, index, dim: index_select_op(g, index, dim=dim)),
    ),
    public=False,
    torch="index_fill",
    overlap="free",
    examples=lambda: [Example((normal(2, 3), normal(), _UNIQUE_ENTRIES), {"dim": 1})],
)


def _check_vector(name: str, index: Tensor) -> None:
    if index.ndim > 1:
        raise IndexError(
            f"{name}(): Index is supposed to be a vector, but got dim: {index.ndim} with type: "
            f"{index.dtype.tensor_type} and size: {list(index.shape)}"
        )


def check_entries(name: str, self: Tensor, dim: int, index: Tensor, source: Tensor) -> int:
    """The dimension, counted from 0.

    Raises RuntimeError or IndexError unless `source` matches the entries at `index`.
    """
    (axis,) = normal_dims(dim, self.ndim)
    _check_vector(name, index)
    if index.dtype.name not in ("int64", "int32"):
        raise RuntimeError(f"{name}(): Expected dtype int32/int64 for index but got: {index.dtype.tensor_type}")
    if source.dtype is not self.dtype:
        raise RuntimeError(
            f"{name}(): self ({self.dtype.tensor_type}) and source ({source.dtype.tensor_type}) must have the same "
            "scalar type"
        )
    count = source.shape[axis] if source.ndim else 1
    if index._array.size != count:
        if not source.ndim:
            raise IndexError(f"Dimension specified as {axis} but tensor has no dimensions")
        raise RuntimeError(
            f"{name}(): Number of indices ({index._array.size}) should be equal to source.size(dim): ({count}), "
            f"for dim: {axis}"
        )
    if _other_sizes(self, axis) != _other_sizes(source, axis) or (self.ndim != source.ndim):
        raise RuntimeError(
            "source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = "
            f"{list(self.shape)} source.shape = {list(source.shape)}"
        )
    return axis


@with_in_place_method("index_add")
def index_add(self: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Number = 1) -> Prepared:
    """Adds `alpha` * `source` to the entries of `dim` at `index`."""
    axis = check_entries("index_add_", self, dim, index, source)
    attrs = {"dim": axis, "alpha": alpha}
    return index_add_op, (self, source, index), attrs, lambda: _check_added_entries(self, axis, index)


def _check_added_entries(self: Tensor, axis: int, index: Tensor) -> None:
    """Raises PyTorch's error for entries out of bounds: vectors have their own, tensors without elements have none."""
    if self.ndim > 1:
        if self._array.size:
            check_bounds(index, _length(self, axis), axis)
    elif ((index._array < 0) | (index._array >= _length(self, axis))).any():
        raise IndexError("index out of range in self")


def _length(self: Tensor, axis: int) -> int:
    return self.shape[axis] if self.ndim else 1


def _check_entries_exist(what: str, self: Tensor, index: Tensor, axis: int, low: int) -> None:
    length = _length(self, axis)
    outside = [i for i in index._array.reshape(-1).tolist() if not low <= i < length]
    if outside:
        raise IndexError(f"{what}index {outside[0]} is out of bounds for dimension {axis} with size {length}")


def _other_sizes(self: Tensor, axis: int) -> list[int]:
    return [n for d, n in enumerate(self.shape) if d != axis]


def _check_not_empty(self: Array, index: Array, axis: int) -> None:
    """Raises PyTorch's error for entries of a dimension of size 0: it looks at as many of them as the index has."""
    sizes = [index.size if d == axis else n for d, n in enumerate(self.shape)]
    if not index.size or self.size or not self.ndim or 0 in sizes:
        return
    strides = [0 if d == axis else s for d, s in enumerate(strides_of(self))]
    memory = (sum((n - 1) * s for n, s in zip(sizes, strides, strict=True)) + 1) * self.itemsize
    raise RuntimeError(
        f"setStorage: sizes {sizes}, strides {strides}, storage offset 0, and itemsize {self.itemsize} requiring a "
        f"storage size of {memory} are out of bounds for storage of size 0"
    )


@with_in_place_method("index_copy")
def index_copy(self: Tensor, dim: int, index: Tensor, source: Tensor) -> Prepared:
    """Writes `source` to the entries of `dim` at `index`."""
    (axis,) = normal_dims(dim, self.ndim)
    if index.ndim > 1:
        raise IndexError(f"index_copy_(): Index should have dimension 1 or 0 (got {index.ndim})")
    if not source.ndim and index._array.size != 1:
        raise IndexError(
            f"index_copy_(): When source is scalar, index should have one element (got {index._array.size})"
        )
    if source.ndim != self.ndim and source.ndim and self.ndim:
        raise IndexError(
            "index_copy_(): When source and destination are not scalars, their dimensionality must match. "
            f"Source dimensionality ({source.ndim}), destination dimensionality ({self.ndim})"
        )
    if index.dtype.name != "int64":
        raise RuntimeError(f"index_copy_(): Expected a long tensor for index, but got {index.dtype.tensor_type}")
    if source.dtype is not self.dtype:
        raise RuntimeError(
            "index_copy_(): self and source expected to have the same dtype, but got (self) "
            f"{self.dtype.tensor_type} and (source) {source.dtype.tensor_type}"
        )
    if _other_sizes(self, axis) != _other_sizes(source, axis):
        raise RuntimeError(
            "index_copy_(): Source/destination tensor must have same slice shapes. Destination slice shape: "
            f"{' '.join(map(str, _other_sizes(self, axis)))} at dimension {axis} and source slice shape: "
            f"{' '.join(map(str, _other_sizes(source, axis)))} at dimension 0."
        )
    count = source.shape[axis] if source.ndim else 1
    if index._array.size != count:
        raise IndexError(
            f"index_copy_(): Number of indices ({index._array.size}) should be equal to source.size(dim) ({count})"
        )
    _check_not_empty(self._array, index._array, axis)

    def check() -> None:
        if self._array.size:
            _check_entries_exist("index_copy_(): ", self, index, axis, 0)

    return index_copy_op, (self, source, index), {"dim": axis}, check


@with_in_place_method("index_fill")
def index_fill(self: Tensor, dim: int, index: Tensor, value: Tensor | Number) -> Prepared:
    """Writes `value` to the entries of `dim` at `index`."""
    if isinstance(value, Tensor) and value.ndim:
        raise RuntimeError(
            f"index_fill_ only supports a 0-dimensional value tensor, but got tensor with {value.ndim} dimension(s)."
        )
    (axis,) = normal_dims(dim, self.ndim)
    if index.dtype.name != "int64":
        raise IndexError("index_fill_(): Expected dtype int64 for index.")
    if index.ndim > 1:
        raise RuntimeError("Index has to be a vector/scalar")
    _check_not_empty(self._array, index._array, axis)

    def check() -> None:
        if self._array.size:
            _check_entries_exist("", self, index, axis, -_length(self, axis))

    if isinstance(value, Tensor):
        return index_fill_with, (self, value, index), {"dim": axis}, check
    return index_fill_op, (self, index), {"dim": axis, "value": fitting(value, self.dtype)}, check


# ----------------------------------------------------------------------------------------------------------------------
# Elements combined at an index along one dimension by a reduction: sum, product, mean, maximum, minimum.


_UFUNC = {"sum": np.add, "mean": np.add, "prod": np.multiply, "amax": np.maximum, "amin": np.minimum}
_REPEATED_PLACES = np.array([[0, 0, 2], [2, 1, 2]])


def _neutral(reduce: str, kind: np.dtype[Any]) -> Any:
    if reduce in ("sum", "mean", "prod"):
        return int(reduce == "prod")
    if kind.kind == "b":
        return reduce == "amin"
    if kind.kind == "f":
        return -np.inf if reduce == "amax" else np.inf
    return np.iinfo(kind).min if reduce == "amax" else np.iinfo(kind).max


def _reduced(self: Array, src: Array, index: Array, dim: int, reduce: str, include_self: bool) -> Array:
    refuse_unless(self.dtype.kind != "b" or reduce != "mean", "scatter_gather_tensor_cpu_reduce_mean", self)
    result = np.array(self, order="C")
    own, index = np.atleast_1d(result), np.atleast_1d(index)
    flat = own.reshape(-1)
    places = np.broadcast_to(places_along(index, own.shape, dim), index.shape).reshape(-1)
    values = np.atleast_1d(src)[tuple([slice(n) for n in index.shape])].reshape(-1)
    if not include_self:
        flat[places] = _neutral(reduce, flat.dtype)
    _UFUNC[reduce].at(flat, places, values)
    if reduce == "mean":
        counts = np.bincount(places, minlength=len(flat)) + include_self
        (np.divide if flat.dtype.kind == "f" else np.floor_divide)(
            flat, np.maximum(counts, 1), out=flat, casting="unsafe"
        )
    return result


def _backward(
    g: Any, self: Any, index: Any, src: Any, result: Any, dim: int, reduce: str, include_self: bool
) -> tuple[Any, Any]:
    if reduce in ("prod", "amax", "amin"):
        check_broadcast(np.empty(src.shape, bool), np.empty(index.shape, bool))
    to_self, to_src = _BACKWARD[reduce](g, self, index, src, result, dim, include_self)
    return to_self if include_self else scatter_value(to_self, index, dim=dim, value=0), to_src


def _sum_backward(g: Any, self: Any, index: Any, src: Any, result: Any, dim: int, include: bool) -> tuple[Any, Any]:
    return g, gather_op(g, index, dim=dim)


def _mean_backward(g: Any, self: Any, index: Any, src: Any, result: Any, dim: int, include: bool) -> tuple[Any, Any]:
    nothing = zeros(g, tuple(self.shape))
    counts = scatter_add_op(nothing + int(include), zeros(g, tuple(index.shape)) + 1, index, dim=dim)
    counts = fill_where(counts, counts == 0, value=1)
    return g / counts, gather_op(g, index, dim=dim) / gather_op(counts, index, dim=dim)


def _extreme_backward(g: Any, self: Any, index: Any, src: Any, result: Any, dim: int, include: bool) -> tuple[Any, Any]:
    nothing = zeros(g, ())
    self_wins = where_op(self == result, nothing + 1, nothing)
    src_wins = where_op(src == gather_op(result, index, dim=dim), nothing + 1, nothing)
    shared = g / scatter_add_op(self_wins, src_wins, index, dim=dim)
    return self_wins * shared, src_wins * gather_op(shared, index, dim=dim)


def _product_backward(g: Any, self: Any, index: Any, src: Any, result: Any, dim: int, include: bool) -> tuple[Any, Any]:
    """As in PyTorch, the product without a factor is the product divided by it; for a zero it is computed."""

    def product(own: Any, factors: Any) -> Any:
        return scatter_reduce_op(own, factors, index, dim=dim, reduce="prod", include_self=include)

    own = fill_where(self, self == 0, value=1)
    is_zero = src == 0
    nothing = zeros(g, ())
    ones_at_zeros = where_op(is_zero, nothing + 1, nothing)
    zeros_at = scatter_add_op(zeros(g, tuple(self.shape)), ones_at_zeros, index, dim=dim)
    alone = ones_at_zeros * gather_op(zeros_at, index, dim=dim) == 1
    without = gather_op(g * product(self, fill_where(src, alone, value=1)), index, dim=dim)
    divided = gather_op(g * result, index, dim=dim) / fill_where(src, is_zero, value=1)
    return g * product(own, src) / own, where_op(alone, without, divided)


_BACKWARD = {
    "sum": _sum_backward,
    "mean": _mean_backward,
    "prod": _product_backward,
    "amax": _extreme_backward,
    "amin": _extreme_backward,
}


def _examples() -> Sequence[Example]:
    attrs = [(reduce, include) for reduce in _UFUNC for include in (True, False)]
    tensors = [positive(2, 3) if reduce == "prod" else spaced(4, 3) for reduce, _ in attrs]
    return [
        Example((t[:2], (t + 0.1)[-2:], _REPEATED_PLACES), {"dim": 1, "reduce": reduce, "include_self": include})
        for t, (reduce, include) in zip(tensors, attrs, strict=True)
    ]


scatter_reduce_op: Op = Op(
    "scatter_reduce(self, src, index, *, dim, reduce, include_self=True)",
    grad_fn="ScatterReduceBackward0",
    formula="self reduced with src at index along dim",
    forward=_reduced,
    rules=(Rule("self, src", "g by its share in result; g at index by its share in result", _backward),),
    public=False,
    torch="scatter_reduce",
    overlap="apart",
    examples=_examples,
)


def _expanded_index(index: Any, shape: tuple[int, ...], dim: int) -> Any:
    """Return an index along one dimension, expanded to one index for each element, as scatter uses it."""
    index = index._array if isinstance(index, Tensor) else index
    if not shape:
        return index.reshape(())
    return np.broadcast_to(index.reshape([-1 if d == dim else 1 for d in range(len(shape))]), shape)


def _reduced_entries(
    self: Array, source: Array, index: Array, dim: int, reduce: str, include_self: bool = True
) -> Array:
    messages.warn_once(messages.BETA.format(name="index_reduce"))
    if index.size and self.ndim > 1 and not self.shape[dim]:
        if not include_self:
            _check_not_empty(self, index, dim)
        raise IndexError(f"select(): index 0 out of range for tensor of size {list(self.shape)} at dimension {dim}")
    length = self.shape[dim] if self.ndim else 1
    if not ((index >= 0) & (index < length)).all():
        beyond = index[(index < -length) | (index >= length)]
        if not include_self and beyond.size:  # PyTorch first fills these entries
            raise IndexError(f"index {beyond[0]} is out of bounds for dimension {dim} with size {length}")
        raise IndexError("index out of range in self")
    refuse_unless(self.dtype.kind != "b" or reduce != "mean", "div_floor_cpu", self)
    return _reduced(self, source, _expanded_index(index, source.shape, dim), dim, reduce, include_self)


def _entries_backward(
    g: Any, self: Any, index: Any, source: Any, result: Any, dim: int, reduce: str, include_self: bool
) -> tuple[Any, Any]:
    places = _expanded_index(index, tuple(source.shape), dim)
    if reduce == "prod":
        messages.warn_once(messages.BETA.format(name="index_reduce"))
    whole = new_tensor(places.copy()) if isinstance(g, Tensor) else places
    return _backward(g, self, whole, source, result, dim, reduce, include_self)


index_reduce_op: Op = Op(
    "index_reduce(self, source, index, *, dim, reduce, include_self=True)",
    grad_fn="IndexReduceBackward0",
    formula="self reduced with source at the entries index of dim",
    forward=_reduced_entries,
    rules=(Rule("self, source", "g by its share in result; entries index of g by their share", _entries_backward),),
    public=False,
    torch="index_reduce",
    overlap="apart",
    examples=lambda: [
        Example((e.tensors[0], (e.tensors[0] + 0.1)[:, :2], np.array([2, 0])), e.attrs)
        for e in _examples()
        if e.attrs["reduce"] != "sum"
    ],
)


@with_in_place_method("index_reduce")
def index_reduce(
    self: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Prepared:
    """Combines `source` by prod, mean, amax or amin with the entries of `dim` at `index`."""
    if reduce == "sum" or reduce not in _UFUNC:
        raise RuntimeError(f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}.")
    axis = check_entries("index_reduce_", self, dim, index, source)
    return index_reduce_op, (self, source, index), {"dim": axis, "reduce": reduce, "include_self": include_self}


@with_in_place_method("scatter_reduce")
def scatter_reduce(
    self: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Prepared:
    """Combines `src` by sum, prod, mean, amax or amin with the elements at `index` along `dim`."""
    axis = check_places(self, dim, index, src, name="scatter")
    attrs = {"dim": axis, "reduce": reduce, "include_self": include_self}
    check = bounds(self, index, axis)
    if reduce not in _UFUNC:
        check = _refusal(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    return scatter_reduce_op, (self, src, index), attrs, check


# ----------------------------------------------------------------------------------------------------------------------
# A copy of a tensor with another one as a part of it: like writing to a view, without the write.


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
    """A copy with `src` as a slice of a dimension."""
    (axis,) = normal_dims(dim, self.ndim)
    first, last, _ = slice(start, end, step).indices(self.shape[axis])
    _check_part(src, self._array[at(axis, slice(first, last, step))].shape)
    return run(slice_scatter_op, self, src, dim=axis, start=first, end=max(first, last), step=step)

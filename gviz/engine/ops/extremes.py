"""Extremes and ranks: maxima and minima, their indices, medians, modes, quantiles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gviz.engine import dtypes
from gviz.engine.functions_and_methods import Number, checked, front, number
from gviz.engine.op import Example, Op, Rule, apply
from gviz.engine.ops._examples import spaced
from gviz.engine.ops._kernels import all_in_rows, in_rows, refuse_unless
from gviz.engine.ops._reduction_arguments import Dims, Shape, all_dims, applied, kept, numpy_names, reduced_dims
from gviz.engine.ops.comparison import maximum, minimum, where
from gviz.engine.ops.gathering import gather_op, scatter_along
from gviz.engine.ops.shape import one_dim, unsqueeze_dims
from gviz.engine.tensor import Tensor
from gviz.values.value import Array

# ----------------------------------------------------------------------------------------------------------------------
# The largest and smallest elements, of all or along dimensions, and their indices.


def at_indices(g: Any, indices: Any, self_sym_sizes: Shape, dim: int, keepdim: bool) -> Any:
    """The rule of ops that pick elements along `dim`: their gradients at the picked indices, else 0."""
    if not self_sym_sizes:
        return g
    if not keepdim:
        g, indices = unsqueeze_dims(g, dims=(dim,)), unsqueeze_dims(indices, dims=(dim,))
    return scatter_along(g, indices, size=self_sym_sizes, dim=dim)


def picking(name: str, grad_fn: str, formula: str, pick: Callable[..., Any], signature: str = "", **attrs: Any) -> Op:
    """An op that picks one element along `dim`, at the index from `pick`. Its results are ``values, indices``."""

    def forward(self: Array, dim: int, keepdim: bool, **others: Any) -> tuple[Array, Array]:
        if not self.ndim:
            return self.copy(), np.zeros((), np.int64)
        indices = np.expand_dims(pick(self, dim, **others), dim)
        values = np.take_along_axis(self, indices, dim)
        return (values, indices) if keepdim else (values.squeeze(dim), indices.squeeze(dim))

    return Op(
        f"{name}(self, *, {signature}dim, keepdim=False)",
        grad_fn=grad_fn,
        formula=formula,
        forward=all_in_rows(forward),
        rules=(Rule("self", "g at indices, else 0", at_indices),),
        outputs=("values", "indices"),
        differentiable_outputs=1,
        named=True,
        public=False,
        torch=name,
        examples=lambda: [
            Example((spaced(*shape),), {**attrs, "dim": dim, "keepdim": dim > 0})
            for shape, dim in (((2, 3), 0), ((2, 3), 1), ((), 0))
        ],
    )


max_dim = picking("max", "MaxBackward0", "max of self over dim", lambda self, dim: np.argmax(self, dim))
min_dim = picking("min", "MinBackward0", "min of self over dim", lambda self, dim: np.argmin(self, dim))


def _shared(self: Array, result: Array, dim: Shape, keepdim: bool) -> Array:
    where = self == (result if keepdim else np.expand_dims(result, dim))
    share: Array = (where / where.sum(dim, keepdims=True)).astype(self.dtype)
    return share


tied: Op = Op(
    "tied(self, result)",
    grad_fn="",
    formula="1 where self is result (a nan is a nan), shared among ties",
    forward=lambda self, result: _shared(*_comparable(self, result), tuple(range(self.ndim)), False),
    public=False,
)
tied_along: Op = Op(
    "tied(self, result, *, dim, keepdim)",
    grad_fn="",
    formula="1 where self is result, shared among ties along dim",
    forward=_shared,
    public=False,
)


def _comparable(self: Array, result: Array) -> tuple[Array, Array]:
    """Return both, converted so that nan equals nan."""
    if not np.isnan(result):
        return self, np.asarray(result)
    return np.isnan(self).astype(self.dtype), np.ones((), self.dtype)


def extreme_of_all(name: str, pick: Callable[[Array], Any], grad_fn: str) -> Op:
    """``max``, ``min`` or ``median`` of all elements; tied ones share the gradient."""
    return Op(
        f"{name}(self)",
        grad_fn=grad_fn,
        formula=f"{name} of self",
        forward=pick,
        rules=(
            Rule("self", "g where self is result, shared among ties", lambda g, self, result: g * tied(self, result)),
        ),
        public=False,
        torch=name,
        examples=lambda: [Example((spaced(2, 3),), {}), Example((spaced(),), {})],
    )


max_all = extreme_of_all("max", np.max, "MaxBackward1")
min_all = extreme_of_all("min", np.min, "MinBackward1")


def _over_dims(name: str, grad_fn: str, ufunc: np.ufunc) -> Op:
    """``amax`` or ``amin``: tied elements share the gradient."""

    def vjp(g: Any, self: Any, result: Any, dim: Shape, keepdim: bool) -> Any:
        dims = all_dims(self, dim or None)
        return kept(g, dims, keepdim) * tied_along(self, result, dim=dims, keepdim=keepdim)

    return Op(
        f"{name}(self, *, dim, keepdim=False)",
        grad_fn=grad_fn,
        formula=f"{name} of self over dim",
        forward=in_rows(
            lambda self, dim, keepdim: ufunc.reduce(self, axis=dim if dim or not self.ndim else None, keepdims=keepdim)
        ),
        rules=(Rule("self", "g where self is result, shared among ties along dim", vjp),),
        public=False,
        torch=name,
        examples=lambda: [
            Example((spaced(2, 3),), {"dim": (1,), "keepdim": True}),
            Example((spaced(2, 3),), {"dim": (), "keepdim": False}),
        ],
    )


amax, amin = _over_dims("amax", "AmaxBackward0", np.maximum), _over_dims("amin", "AminBackward0", np.minimum)


def _aminmax(self: Array, dim: int | None, keepdim: Any) -> tuple[Any, Any]:
    axis = dim if self.ndim else None
    return np.minimum.reduce(self, axis=axis, keepdims=keepdim), np.maximum.reduce(self, axis=axis, keepdims=keepdim)


def _through_both(grads: Any, self: Any, min: Any, max: Any, dim: int | None, keepdim: bool) -> Any:
    dims = tuple(range(len(self.shape))) if dim is None else (dim,) if self.shape else ()
    low, high = (
        kept(g, dims, keepdim) * tied_along(self, result, dim=dims, keepdim=keepdim)
        for g, result in zip(grads, (min, max), strict=True)
    )
    return low + high


aminmax: Op = Op(
    "aminmax(self, *, dim=None, keepdim=False)",
    grad_fn="AminmaxBackward0",
    formula="min and max of self over dim",
    forward=all_in_rows(_aminmax),
    rules=(Rule("self", "grads where self is min or max, shared among ties", _through_both),),
    outputs=("min", "max"),
    named=True,
    public=False,
    torch="aminmax",
    examples=lambda: [
        Example((spaced(2, 3),), {"dim": None, "keepdim": False}),
        Example((spaced(2, 3),), {"dim": 1, "keepdim": True}),
    ],
)


def _place(name: str, find: Callable[..., Any]) -> Op:
    return Op(
        f"{name}(self, *, dim=None, keepdim=False)",
        grad_fn="",
        formula=f"where self is {'largest' if name == 'argmax' else 'smallest'}",
        forward=in_rows(lambda self, dim, keepdim: find(self, axis=dim if self.ndim else None, keepdims=keepdim)),
        public=False,
    )


argmax_op, argmin_op = _place("argmax", np.argmax), _place("argmin", np.argmin)

NO_IDENTITY = (
    "{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the "
    "'dim' argument."
)


def check_not_empty(name: str, self: Tensor, dims: tuple[int, ...]) -> None:
    """Raises IndexError, with PyTorch's text, if one of `dims` is empty."""
    for d in dims if self.ndim else ():
        if not self.shape[d]:
            raise IndexError(f"{name}: Expected reduction dim {d} to have non-zero size.")


def _check_any(name: str, self: Tensor) -> None:
    if not self.numel():
        raise RuntimeError(NO_IDENTITY.format(name=name))


@front("max")
@numpy_names
def max_front(
    input: Tensor, dim: int | Tensor | None = None, keepdim: bool = False, *, other: Tensor | None = None
) -> Any:
    """The largest element; with `dim`, values and indices along it; with another tensor, the larger of the two."""
    return _extreme(max_all, max_dim, maximum, input, dim if other is None else other, keepdim)


@front("min")
@numpy_names
def min_front(
    input: Tensor, dim: int | Tensor | None = None, keepdim: bool = False, *, other: Tensor | None = None
) -> Any:
    """The smallest element; with `dim`, values and indices along it; with another tensor, the smaller of the two."""
    return _extreme(min_all, min_dim, minimum, input, dim if other is None else other, keepdim)


def _extreme(whole: Op, over_dim: Op, of_two: Op, self: Tensor, dim: int | Tensor | None, keepdim: bool) -> Any:
    checked(whole, self, 1)
    if isinstance(dim, Tensor):
        return apply(of_two, (self, dim))
    if dim is not None:
        return picked(over_dim, self, dim, keepdim)
    _check_any(whole.name, self)
    return apply(whole, (self,))


def picked(op: Op, self: Tensor, dim: int, keepdim: bool, **attrs: Any) -> Any:
    """Runs an op that picks an element along `dim`. Raises IndexError if there is none."""
    if not isinstance(dim, int):
        kind = type(dim).__name__
        raise TypeError(f"{op.name}() received an invalid combination of arguments - got ({kind}) for the int 'dim'")
    axis = one_dim(dim, checked(op, self, 1).ndim)
    check_not_empty(f"{op.name.removeprefix('nan')}()", self, (axis,))
    return apply(op, (self,), {**attrs, "dim": axis, "keepdim": keepdim})


@front("amax")
@numpy_names
def amax_front(input: Tensor, dim: Dims = (), keepdim: bool = False) -> Tensor:
    """The largest element, of all or over `dim`; tied ones share the gradient."""
    return _over(amax, input, dim, keepdim)


@front("amin")
@numpy_names
def amin_front(input: Tensor, dim: Dims = (), keepdim: bool = False) -> Tensor:
    """The smallest element, of all or over `dim`; tied ones share the gradient."""
    return _over(amin, input, dim, keepdim)


def _over(op: Op, self: Tensor, dim: Dims, keepdim: bool) -> Tensor:
    dims = reduced_dims(dim, checked(op, self, 1).ndim)
    if dim in (None, ()):
        _check_any(op.name, self)
    check_not_empty(f"{op.name}()", self, dims if dim is None else (dim,) if isinstance(dim, int) else tuple(dim))
    return applied(op, self, dim=() if dim is None or dim == () else dims, keepdim=keepdim)


@front("aminmax")
def aminmax_front(input: Tensor, *, dim: int | None = None, keepdim: bool = False) -> Any:
    """The smallest and the largest element, of all or along `dim`."""
    axis = None if dim is None else one_dim(dim, checked(aminmax, input, 1).ndim)
    if axis is None and not input.numel():
        raise RuntimeError(
            "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity."
        )
    check_not_empty("aminmax", input, () if axis is None else (axis,))
    return apply(aminmax, (input,), {"dim": axis, "keepdim": keepdim})


@front("argmax")
@numpy_names
def argmax_front(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """The index of the largest element."""
    return _index_of_extreme(argmax_op, input, dim, keepdim)


@front("argmin")
@numpy_names
def argmin_front(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """The index of the smallest element."""
    return _index_of_extreme(argmin_op, input, dim, keepdim)


def _index_of_extreme(op: Op, self: Tensor, dim: int | None, keepdim: bool) -> Tensor:
    if checked(op, self, 1)._array.dtype.kind == "b":
        raise RuntimeError(f"{op.name}(): does not support bool input")
    if dim is None and not self.numel():
        raise IndexError(f"{op.name}(): Expected reduction dim to be specified for input.numel() == 0.")
    axis = None if dim is None else one_dim(dim, self.ndim)
    check_not_empty(f"{op.name}()", self, () if axis is None else (axis,))
    result: Tensor = apply(op, (self,), {"dim": axis, "keepdim": keepdim})
    return result


# ----------------------------------------------------------------------------------------------------------------------
# Elements by rank: medians, the k-th smallest, the most frequent, quantiles.


def _ranked(self: Array, dim: int, rank: Any) -> Array:
    """Return the index of the element with this rank along `dim`; nan counts as largest, equal elements keep their
    order.
    """
    order = np.argsort(self, dim, kind="stable")
    place: Array = np.take_along_axis(order, np.broadcast_to(rank, _single(self, dim)), dim).squeeze(dim)
    return place


def _single(self: Array, dim: int) -> tuple[int, ...]:
    return (*self.shape[:dim], 1, *self.shape[dim + 1 :])


def _numbers(self: Array, dim: int) -> Array:
    count: Array = np.sum(~np.isnan(self), dim, keepdims=True)
    return count


def _median_place(self: Array, dim: int) -> Array:
    """Return the index of the lower median; that of the first nan if there is one."""
    refuse_unless(self.dtype.kind != "b", "median_out", self)
    count = _numbers(self, dim)
    size = self.shape[dim]
    return _ranked(self, dim, np.where(count < size, np.minimum(count, size - 1), (size - 1) // 2))


def _nanmedian_place(self: Array, dim: int) -> Array:
    refuse_unless(self.dtype.kind != "b", "median_out", self)
    return _ranked(self, dim, np.maximum(_numbers(self, dim) - 1, 0) // 2)


def _of_all(place: Any) -> Any:
    def forward(self: Array) -> Any:
        flat = self.ravel()
        if not flat.size:
            return np.array(np.nan).astype(self.dtype)
        refuse_unless(self.dtype.kind != "b", "median_cpu", self)
        return flat[place(flat, 0)]

    return forward


def _kth_place(self: Array, dim: int, k: int) -> Array:
    refuse_unless(self.dtype.kind != "b", "kthvalue_cpu", self)
    if not self.size:
        return np.zeros((*self.shape[:dim], *self.shape[dim + 1 :]), np.int64)
    return np.apply_along_axis(_selected, dim, self, k - 1)


def _selected(line: Array, rank: int) -> int:
    """Return the index of the element with this rank; among equal ones, the one that PyTorch's selection finds."""
    chosen = int(np.argsort(line, kind="stable")[rank])
    same = np.isnan(line) if line[chosen] != line[chosen] else line == line[chosen]
    return chosen if np.count_nonzero(same) == 1 else _quickselected(line.tolist(), rank)


def _quickselected(values: list[float], rank: int) -> int:
    """PyTorch's quickselect, step by step; nan counts as largest."""
    order = list(range(len(values)))

    def above(a: int, b: int) -> bool:
        x, y = values[order[a]], values[order[b]]
        return x > y or (x != x and y == y)

    def swap(a: int, b: int) -> None:
        order[a], order[b] = order[b], order[a]

    left, right = 0, len(values) - 1
    while right > left + 1:
        swap(left + (right - left) // 2, left + 1)
        for a, b in ((left + 1, right), (left, right), (left + 1, left)):
            if above(a, b):
                swap(a, b)
        i, j = left + 1, right
        while True:
            i = next(n for n in range(i + 1, len(order)) if not above(left, n))
            j = next(n for n in range(j - 1, -1, -1) if not above(n, left))
            if j < i:
                break
            swap(i, j)
        swap(left, j)
        left, right = i if j <= rank else left, j - 1 if j >= rank else right
    if right == left + 1 and above(left, right):
        swap(left, right)
    return order[rank]


def _mode_place(self: Array, dim: int) -> Array:
    """Return the last index of the most frequent element; among equally frequent ones, of the smallest."""
    if not self.size:
        return np.zeros((*self.shape[:dim], *self.shape[dim + 1 :]), np.int64)
    return np.apply_along_axis(_most_frequent, dim, self)


def _most_frequent(line: Array) -> int:
    order = np.argsort(line, kind="stable")
    ordered = line[order]
    ends = np.append(np.flatnonzero(ordered[1:] != ordered[:-1]), len(line) - 1)
    return int(order[ends[np.argmax(np.diff(ends, prepend=-1))]])


median_all = extreme_of_all("median", _of_all(_median_place), "MedianBackward0")
nanmedian_all = extreme_of_all("nanmedian", _of_all(_nanmedian_place), "NanmedianBackward0")
median_dim = picking("median", "MedianBackward1", "median of self over dim", _median_place)
nanmedian_dim = picking("nanmedian", "NanmedianBackward1", "median of the numbers of self over dim", _nanmedian_place)
mode_op = picking("mode", "ModeBackward0", "most frequent element of self over dim", _mode_place)
kthvalue_op = picking("kthvalue", "KthvalueBackward0", "k-th smallest of self over dim", _kth_place, "k, ", k=1)


@front("median")
@numpy_names
def median(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """The median, the lower one of two; with `dim`, values and indices along it."""
    if dim is None:
        return apply(median_all, (checked(median_all, input, 1),))
    return picked(median_dim, input, dim, keepdim)


@front("nanmedian")
@numpy_names
def nanmedian(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """The median of the elements that are not nan."""
    if dim is None:
        return apply(nanmedian_all, (checked(nanmedian_all, input, 1),))
    return picked(nanmedian_dim, input, dim, keepdim)


@front("mode")
@numpy_names
def mode(input: Tensor, dim: int = -1, keepdim: bool = False) -> Any:
    """The most frequent elements along `dim`, and their indices."""
    return picked(mode_op, input, dim, keepdim)


@front("kthvalue")
@numpy_names
def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    """The `k`-th smallest elements along `dim`, and their indices."""
    axis = one_dim(dim, checked(kthvalue_op, input, 1).ndim)
    size = input.shape[axis] if input.ndim else 1
    if size and not 1 <= k <= size:
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {axis}")
    return picked(kthvalue_op, input, dim, keepdim, k=k)


# ----------------------------------------------------------------------------------------------------------------------
# Quantiles: the values below which given fractions of the elements lie.


@front("quantile")
@numpy_names
def quantile(
    input: Tensor, q: Tensor | Number, dim: int | None = None, keepdim: bool = False, *, interpolation: Any = None
) -> Tensor:
    """The values below which the fractions `q` of the elements lie; between two elements they are interpolated."""
    return _quantile("quantile", input, q, dim, keepdim, interpolation or "linear")


@front("nanquantile")
@numpy_names
def nanquantile(
    input: Tensor, q: Tensor | Number, dim: int | None = None, keepdim: bool = False, *, interpolation: Any = None
) -> Tensor:
    """`quantile` of the elements that are not nan."""
    return _quantile("nanquantile", input, q, dim, keepdim, interpolation or "linear")


MODES = ("linear", "lower", "higher", "midpoint", "nearest")


def _quantile(
    name: str, self: Tensor, q: Tensor | Number, dim: int | None, keepdim: bool, interpolation: str
) -> Tensor:
    parts = q if isinstance(q, Tensor) else number(q, self._array)
    _check_quantile(self, parts, interpolation)
    axis = None if dim is None else one_dim(dim, self.ndim)
    ordered = _ordered(self, axis)
    ordered = ordered.view(*_shape(self, axis, keepdim), ordered.shape[-1] if ordered.ndim else 1)
    result = _interpolated(ordered, parts, name, interpolation)
    return result.unsqueeze_(0).transpose_(0, -1).squeeze_(-1) if parts.ndim else result.squeeze_(-1)


def _ordered(self: Tensor, axis: int | None) -> Tensor:
    """Return the elements sorted along the last dimension."""
    lines = self.flatten() if axis is None else self
    if axis is not None and axis != self.ndim - 1:
        lines = self.unsqueeze(-1).transpose(axis, -1)
    values: Tensor = lines.sort().values
    return values


def _shape(self: Tensor, axis: int | None, keepdim: bool) -> list[int]:
    """Return the shape of one quantile."""
    if axis is None or not self.ndim:
        return [1] * self.ndim if keepdim else []
    reduced = [1] if keepdim else []
    return [*self.shape[:axis], *reduced, *self.shape[axis + 1 :]]


def _check_quantile(self: Tensor, q: Tensor, interpolation: str) -> None:
    if not self.numel():
        raise RuntimeError("quantile() input tensor must be non-empty")
    if q.ndim > 1:
        raise RuntimeError("quantile() q must be a scalar or 1D tensor")
    if self.dtype not in (dtypes.float32, dtypes.float64):
        raise RuntimeError("quantile() input tensor must be either float or double dtype")
    if self.dtype is not q.dtype:
        raise RuntimeError("quantile() q tensor must be same dtype as the input tensor")
    if interpolation not in MODES:
        listed = "linear, lower, higher, midpoint or nearest"
        raise RuntimeError(f"quantile() interpolation must be one of {listed}, but got {interpolation}")
    if not np.all((q._array >= 0) & (q._array <= 1)):
        words = "values must be in the range [0, 1]" if q.ndim else f"must be in the range [0, 1] but got {q.item():g}"
        raise RuntimeError(f"quantile() q {words}")


def _interpolated(ordered: Tensor, q: Tensor, name: str, interpolation: str) -> Tensor:
    """For each line of `ordered`, the values at the ranks of the fractions `q`."""
    parts = q.detach().reshape(-1)
    nan = ordered.detach().isnan()
    if name == "nanquantile":
        ranks = parts * (nan.logical_not().sum(-1, keepdim=True) - 1)
        ranks = ranks.clamp(min=0)
    else:
        last = ordered.shape[-1] - 1
        ranks = (parts * last).expand(*ordered.shape[:-1], parts.numel())
        ranks = where(nan.any(-1, keepdim=True), float(last), ranks)
    if interpolation in ("lower", "higher", "nearest"):
        return _gathered(ordered, _whole(ranks, interpolation))
    below = _gathered(ordered, ranks)
    weights = ranks - ranks.floor() if interpolation == "linear" else ranks * 0 + 0.5
    above = _gathered(ordered, ranks.ceil())
    result: Tensor = below.lerp_(above, weights)
    return result


def _gathered(ordered: Tensor, ranks: Tensor) -> Tensor:
    result: Tensor = gather_op(ordered, ranks.long(), dim=ordered.ndim - 1)
    return result


def _whole(ranks: Tensor, how: str) -> Tensor:
    return ranks.floor() if how == "lower" else ranks.ceil() if how == "higher" else ranks.round()

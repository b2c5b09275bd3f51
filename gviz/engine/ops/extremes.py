"""The largest and smallest elements, of all or along dimensions, and where they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gviz.engine.apply import apply
from gviz.engine.op import Example, Op, Rule
from gviz.engine.ops.dims import Dims, applied, kept, numpy_names, one_dim, reduced_dims
from gviz.engine.ops.examples import spaced
from gviz.engine.ops.gathering import scatter_along
from gviz.engine.ops.kernels import all_in_rows, in_rows
from gviz.engine.ops.limits import maximum, minimum
from gviz.engine.ops.shape import unsqueeze_dims
from gviz.engine.surface import checked, front
from gviz.engine.tensor import Tensor
from gviz.values import Array

Shape = tuple[int, ...]


def at_indices(g: Any, indices: Any, self_sym_sizes: Shape, dim: int, keepdim: bool) -> Any:
    """The rule of what picks elements along `dim`: their gradients where they were, else 0."""
    if not self_sym_sizes:
        return g
    if not keepdim:
        g, indices = unsqueeze_dims(g, dims=(dim,)), unsqueeze_dims(indices, dims=(dim,))
    return scatter_along(g, indices, size=self_sym_sizes, dim=dim)


def picking(name: str, grad_fn: str, formula: str, pick: Callable[..., Any], signature: str = "", **attrs: Any) -> Op:
    """An op that picks one element along `dim`: `pick` says where it is. Its results are ``values, indices``."""

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
    """Both so that a nan equals a nan."""
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
        dims = dim or tuple(range(len(self.shape)))
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
    """IndexError, in PyTorch's words, where there is nothing along one of `dims`."""
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


def _extreme(whole: Op, along: Op, of_two: Op, self: Tensor, dim: int | Tensor | None, keepdim: bool) -> Any:
    checked(whole, self, 1)
    if isinstance(dim, Tensor):
        return apply(of_two, (self, dim))
    if dim is not None:
        return picked(along, self, dim, keepdim)
    _check_any(whole.name, self)
    return apply(whole, (self,))


def picked(op: Op, self: Tensor, dim: int, keepdim: bool, **attrs: Any) -> Any:
    """Run an op that picks an element along `dim`. IndexError if there is none."""
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
    check_not_empty(f"{op.name}()", self, (dim,) if isinstance(dim, int) else dims)
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
    """Where the largest element is."""
    return _found(argmax_op, input, dim, keepdim)


@front("argmin")
@numpy_names
def argmin_front(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Where the smallest element is."""
    return _found(argmin_op, input, dim, keepdim)


def _found(op: Op, self: Tensor, dim: int | None, keepdim: bool) -> Tensor:
    if checked(op, self, 1)._array.dtype.kind == "b":
        raise RuntimeError(f"{op.name}(): does not support bool input")
    if dim is None and not self.numel():
        raise IndexError(f"{op.name}(): Expected reduction dim to be specified for input.numel() == 0.")
    axis = None if dim is None else one_dim(dim, self.ndim)
    check_not_empty(f"{op.name}()", self, () if axis is None else (axis,))
    result: Tensor = apply(op, (self,), {"dim": axis, "keepdim": keepdim})
    return result

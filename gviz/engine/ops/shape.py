"""Other shapes of the same elements: views, which share memory, or copies."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from gviz.engine import dtypes
from gviz.engine.apply import apply
from gviz.engine.op import Example, Op, Rule
from gviz.engine.ops.examples import normal
from gviz.engine.ops.memory import contiguous
from gviz.engine.surface import attribute, front
from gviz.engine.tensor import Tensor
from gviz.values import Array

Shape = tuple[int, ...]


def normal_dims(dim: int | Sequence[int], ndim: int) -> tuple[int, ...]:
    """Dimensions counted from 0. IndexError, in PyTorch's words, for one that does not exist."""
    size = max(ndim, 1)
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    for d in dims:
        if not -size <= d < size:
            raise IndexError(f"Dimension out of range (expected to be in range of [{-size}, {size - 1}], but got {d})")
    return tuple(d % size for d in dims)


def sizes_of(args: tuple[Any, ...]) -> tuple[int, ...]:
    """The sizes given as separate arguments or as one sequence."""
    flat = args[0] if len(args) == 1 and not isinstance(args[0], int) else args
    return tuple(int(n) for n in flat)


def _filled(shape: Shape, size: int) -> Shape:
    """`shape` with its -1 worked out. RuntimeError if it does not hold `size` elements."""
    known = prod(n for n in shape if n != -1)
    if shape.count(-1) == 1 and known and size % known == 0:
        return tuple(size // known if n == -1 else n for n in shape)
    if -1 in shape or known != size:
        raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {size}")
    return shape


def expanded(self: Array, size: Shape) -> Array:
    """A view with dimensions of size 1 repeated to `size`. RuntimeError, in PyTorch's words, where that cannot be."""
    extra = len(size) - self.ndim
    if extra < 0:
        raise RuntimeError(
            f"expand({_kind(self)}{{{list(self.shape)}}}, size={list(size)}): the number of sizes provided "
            f"({len(size)}) must be greater or equal to the number of dimensions in the tensor ({self.ndim})"
        )
    target = tuple(self.shape[i - extra] if n == -1 else n for i, n in enumerate(size))
    for dim, (n, own) in enumerate(zip(target[extra:], self.shape, strict=True), extra):
        if own not in (1, n):
            raise RuntimeError(
                f"The expanded size of the tensor ({n}) must match the existing size ({own}) at non-singleton "
                f"dimension {dim}.  Target sizes: {list(target)}.  Tensor sizes: {list(self.shape)}"
            )
    view = np.broadcast_to(self, target)
    view.flags.writeable = self.flags.writeable
    return view


def _kind(array: Array) -> str:
    return f"torch.{dtypes.of(array).tensor_type}Tensor"


def _squeezed_shape(self: Array, dim: Shape) -> Shape:
    return tuple(n for d, n in enumerate(self.shape) if d not in dim or n != 1)


view_op: Op = Op(
    "view(self, *, size)",
    grad_fn="ViewBackward0",
    formula="self as size",
    forward=lambda self, size: _viewed(self, size),
    rules=(Rule("self", "g as the shape of self", lambda g, self_sym_sizes: reshaped(g, size=self_sym_sizes)),),
    memory="view",
    public=False,
    examples=lambda: [Example((normal(2, 3),), {"size": (3, 2)})],
)
reshaped: Op = Op(
    "_unsafe_view(self, *, size)",
    grad_fn="UnsafeViewBackward0",
    formula="self copied as size",
    forward=lambda self, size: np.array(self).reshape(size),
    rules=(Rule("self", "g as the shape of self", lambda g, self_sym_sizes: reshaped(g, size=self_sym_sizes)),),
    public=False,
    examples=lambda: [Example((normal(2, 3),), {"size": (3, 2)})],
)
alias: Op = Op(
    "alias(self)",
    grad_fn="AliasBackward0",
    formula="self, as a view",
    forward=lambda self: self.view(),
    rules=(Rule("self", "g", lambda g: g),),
    memory="view",
    public=False,
    examples=lambda: [Example((normal(2, 3),), {})],
)
expand: Op = Op(
    "expand(self, *, size)",
    grad_fn="ExpandBackward0",
    formula="self repeated to size",
    forward=expanded,
    rules=(Rule("self", "g summed over what was repeated", lambda g: g),),  # the engine sums what was broadcast
    memory="view",
    public=False,
    examples=lambda: [Example((normal(3, 1),), {"size": (2, 3, 4)})],
)
transpose: Op = Op(
    "transpose(self, *, dim0, dim1)",
    grad_fn="TransposeBackward0",
    formula="self with dim0 and dim1 exchanged",
    forward=lambda self, dim0, dim1: np.swapaxes(self, dim0, dim1),
    rules=(Rule("self", "g exchanged back", lambda g, dim0, dim1: transpose(g, dim0=dim0, dim1=dim1)),),
    memory="view",
    public=False,
    examples=lambda: [Example((normal(2, 3),), {"dim0": 0, "dim1": 1})],
)
t: Op = Op(
    "t(self)",
    grad_fn="TBackward0",
    formula="self transposed",
    forward=np.transpose,
    rules=(Rule("self", "g transposed", lambda g: t(g)),),
    memory="view",
    public=False,
    examples=lambda: [Example((normal(2, 3),), {})],
)
permute: Op = Op(
    "permute(self, *, dims)",
    grad_fn="PermuteBackward0",
    formula="self with its dimensions in the order dims",
    forward=lambda self, dims: np.transpose(self, dims),
    rules=(Rule("self", "g in the old order", lambda g, dims: permute(g, dims=tuple(np.argsort(dims).tolist()))),),
    memory="view",
    public=False,
    examples=lambda: [Example((normal(2, 3, 4),), {"dims": (2, 0, 1)})],
)
squeeze_all: Op = Op(
    "squeeze(self)",
    grad_fn="SqueezeBackward0",
    formula="self without dimensions of size 1",
    forward=np.squeeze,
    rules=(Rule("self", "g as the shape of self", lambda g, self_sym_sizes: reshaped(g, size=self_sym_sizes)),),
    memory="view",
    public=False,
    examples=lambda: [Example((normal(1, 3, 1),), {})],
)
squeeze_dim: Op = Op(
    "squeeze(self, *, dim)",
    grad_fn="SqueezeBackward1",
    formula="self without dim if its size is 1",
    forward=lambda self, dim: self.reshape(_squeezed_shape(self, dim)),
    rules=(Rule("self", "g as the shape of self", lambda g, self_sym_sizes: reshaped(g, size=self_sym_sizes)),),
    memory="view",
    public=False,
    examples=lambda: [Example((normal(1, 3, 1),), {"dim": (0,)})],
)
unsqueeze_op: Op = Op(
    "unsqueeze(self, *, dim)",
    grad_fn="UnsqueezeBackward0",
    formula="self with a new dimension",
    forward=lambda self, dim: np.expand_dims(self, dim),
    rules=(Rule("self", "g without it", lambda g, dim: squeeze_dim(g, dim=(dim,))),),
    memory="view",
    public=False,
    examples=lambda: [Example((normal(3),), {"dim": 1})],
)
unsqueeze_dims: Op = Op(
    "unsqueeze_dims(self, *, dims)",
    grad_fn="UnsqueezeBackward0",
    forward=lambda self, dims: np.expand_dims(self, dims),
    rules=(Rule("self", "g without them", lambda g, dims: squeeze_dim(g, dim=dims)),),
    memory="view",
    public=False,
    examples=lambda: [Example((normal(3),), {"dims": (0, 2)})],
)


def _viewed(self: Array, size: Shape) -> Array:
    view = self.reshape(size)
    if self.size and not np.shares_memory(view, self):
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
            "contiguous subspaces). Use .reshape(...) instead."
        )
    return view


@front("view", function=False)
def view(self: Tensor, *size: Any) -> Tensor:
    """The same elements in another shape, sharing memory. RuntimeError where that needs a copy."""
    result: Tensor = apply(view_op, (self,), {"size": _filled(sizes_of(size), self._array.size)})
    return result


@front("reshape")
def reshape(self: Tensor, *shape: Any) -> Tensor:
    """The same elements in another shape: a view if possible, else a copy."""
    size = _filled(sizes_of(shape), self._array.size)
    possible = not self._array.size or np.shares_memory(self._array.reshape(size), self._array)
    if possible:
        result: Tensor = apply(view_op, (self,), {"size": size})
    else:
        result = apply(reshaped, (contiguous(self),), {"size": size})
    return result


@front("flatten")
def flatten(self: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Dimensions `start_dim` to `end_dim` as one."""
    if not self.ndim:
        return reshape(self, 1)
    start, end = normal_dims((start_dim, end_dim), self.ndim)
    if start == end:
        return self
    return reshape(self, *self.shape[:start], prod(self.shape[start : end + 1]), *self.shape[end + 1 :])


@front("expand", function=False)
def expand_front(self: Tensor, *size: Any) -> Tensor:
    """A view with dimensions of size 1 repeated to `size`; -1 keeps a dimension."""
    result: Tensor = apply(expand, (self,), {"size": sizes_of(size)})
    return result


@front("expand_as", function=False)
def expand_as(self: Tensor, other: Tensor) -> Tensor:
    """A view repeated to the shape of `other`."""
    return expand_front(self, *other.shape)


@front("transpose", "swapaxes")
def transpose_front(self: Tensor, dim0: int, dim1: int) -> Tensor:
    """A view with two dimensions exchanged."""
    first, second = normal_dims((dim0, dim1), self.ndim)
    result: Tensor = apply(transpose, (self,), {"dim0": first, "dim1": second})
    return result


@front("t")
def t_front(self: Tensor) -> Tensor:
    """A matrix transposed, as a view."""
    if self.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {self.ndim}D")
    result: Tensor = apply(t, (self,))
    return result


@front("permute")
def permute_front(self: Tensor, *dims: Any) -> Tensor:
    """A view with the dimensions in another order."""
    result: Tensor = apply(permute, (self,), {"dims": normal_dims(sizes_of(dims), self.ndim)})
    return result


@front("squeeze")
def squeeze(self: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """A view without dimensions of size 1, or without `dim` if its size is 1."""
    if dim is None:
        result: Tensor = apply(squeeze_all, (self,))
    else:
        result = apply(squeeze_dim, (self,), {"dim": normal_dims(dim, self.ndim)})
    return result


@front("unsqueeze")
def unsqueeze(self: Tensor, dim: int) -> Tensor:
    """A view with a new dimension of size 1 at `dim`."""
    (axis,) = normal_dims(dim, self.ndim + 1)
    result: Tensor = apply(unsqueeze_op, (self,), {"dim": axis})
    return result


def _reversed(self: Tensor) -> Tensor:
    """A view with all dimensions in reverse order."""
    result: Tensor = apply(permute, (self,), {"dims": tuple(range(self.ndim))[::-1]})
    return result


attribute("T", _reversed)

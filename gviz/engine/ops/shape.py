"""Other shapes of the same elements in the same order: views, which share memory, or copies."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from gviz.engine import dtypes
from gviz.engine.apply import apply
from gviz.engine.dtypes import dtype as DType
from gviz.engine.op import Example, Op, Rule
from gviz.engine.ops.examples import normal
from gviz.engine.ops.memory import contiguous
from gviz.engine.surface import front
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
    flat = args[0] if len(args) == 1 and isinstance(args[0], (tuple, list)) else args
    return tuple(int(n) for n in flat)


def run(op: Op, *tensors: Tensor, **attrs: Any) -> Tensor:
    """Run an op of one output."""
    result: Tensor = apply(op, tensors, attrs)
    return result


def filled(shape: Shape, size: int) -> Shape:
    """`shape` with its -1 worked out. RuntimeError, in PyTorch's words, if it does not hold `size` elements."""
    if shape.count(-1) > 1:
        raise RuntimeError("only one dimension can be inferred")
    for i, n in enumerate(shape):
        if n < -1:
            raise RuntimeError(f"invalid shape dimension {n} at index {i} of shape {list(shape)}")
    known = prod(n for n in shape if n != -1)
    if -1 not in shape and known == size:
        return shape
    if -1 in shape and known and size % known == 0:
        return tuple(size // known if n == -1 else n for n in shape)
    if -1 in shape and not known and not size:
        raise RuntimeError(
            f"cannot reshape tensor of 0 elements into shape {list(shape)} because the unspecified dimension size -1 "
            "can be any value and is ambiguous"
        )
    raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {size}")


def expanded(self: Array, size: Shape) -> Array:
    """A view with dimensions of size 1 repeated to `size`. RuntimeError, in PyTorch's words, where that cannot be."""
    extra = len(size) - self.ndim
    if extra < 0:
        raise RuntimeError(
            f"expand(torch.{dtypes.of(self).tensor_type}Tensor{{{list(self.shape)}}}, size={list(size)}): the number "
            f"of sizes provided ({len(size)}) must be greater or equal to the number of dimensions in the tensor "
            f"({self.ndim})"
        )
    if -1 in size[:extra]:
        raise RuntimeError(
            "The expanded size of the tensor (-1) isn't allowed in a leading, non-existing dimension "
            f"{size[:extra].index(-1)}"
        )
    target = tuple([self.shape[i - extra] if n == -1 else n for i, n in enumerate(size)])
    for dim in reversed(range(extra, len(target))):
        n, own = target[dim], self.shape[dim - extra]
        if own not in (1, n) or n < 0:
            raise RuntimeError(
                f"The expanded size of the tensor ({n}) must match the existing size ({own}) at non-singleton "
                f"dimension {dim}.  Target sizes: {list(target)}.  Tensor sizes: {list(self.shape)}"
            )
    self = np.asarray(self)  # a gradient that is one number may be a numpy scalar, which nobody could write to
    if self.ndim and 1 in target:
        strided = as_strided(self, target, _expanded_strides(self, target))
        if strided.flags.writeable is self.flags.writeable:  # numpy may take what was expanded before as read-only
            return strided
    view = np.broadcast_to(self, target)
    view.flags.writeable = self.flags.writeable
    return view


def _expanded_strides(self: Array, target: Shape) -> list[int]:
    """The strides that PyTorch gives an expanded tensor; numpy has 0 for every dimension of size 1."""
    strides: list[int] = []
    new = len(target) - self.ndim
    for place in reversed(range(len(target))):
        if place >= new and self.shape[place - new] == target[place]:
            strides.append(self.strides[place - new])
        elif place < new and target[place] == 1:
            strides.append(target[place + 1] * strides[-1])
        else:
            strides.append(0)
    return strides[::-1]


def in_shape(g: Any, size: Shape) -> Any:
    """A gradient in another shape; for use inside rules."""
    return reshape(g, *size) if isinstance(g, Tensor) else g.reshape(size)


def _viewed(self: Array, size: Shape) -> Array:
    view = self.reshape(size)
    if self.size and not np.may_share_memory(view, self):
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
            "contiguous subspaces). Use .reshape(...) instead."
        )
    return view


_back = Rule("self", "g as the shape of self", lambda g, self_sym_sizes: in_shape(g, self_sym_sizes))

view_op: Op = Op(
    "view(self, *, size)",
    grad_fn="ViewBackward0",
    formula="self as size",
    forward=_viewed,
    rules=(_back,),
    memory="view",
    public=False,
    torch="Tensor.view",
    examples=lambda: [Example((normal(2, 3),), {"size": (3, 2)}), Example((normal(0),), {"size": (2, 0)})],
)
reshape_alias: Op = Op(
    "_reshape_alias(self, *, size)",
    grad_fn="ReshapeAliasBackward0",
    formula="self as size",
    forward=_viewed,
    rules=(_back,),
    memory="view",
    public=False,
    examples=lambda: [Example((normal(2, 3),), {"size": (2, 1, 3)})],
)
reshaped: Op = Op(
    "_unsafe_view(self, *, size)",
    grad_fn="UnsafeViewBackward0",
    formula="self as size",
    forward=lambda self, size: self.reshape(size),  # of a fresh array that nobody else has
    rules=(_back,),
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
    rules=(Rule("self", "g summed over what was repeated", lambda g, self_sym_sizes: g),),  # the engine sums
    memory="view",
    public=False,
    torch="Tensor.expand",
    examples=lambda: [Example((normal(3, 1),), {"size": (2, 3, 4)}), Example((normal(),), {"size": (0, 2)})],
)
squeeze_all: Op = Op(
    "squeeze(self)",
    grad_fn="SqueezeBackward0",
    formula="self without dimensions of size 1",
    forward=np.squeeze,
    rules=(_back,),
    memory="view",
    public=False,
    torch="squeeze",
    examples=lambda: [Example((normal(1, 3, 1),), {})],
)
squeeze_dim: Op = Op(
    "squeeze(self, *, dim)",
    grad_fn="SqueezeBackward1",
    formula="self without dim if its size is 1",
    forward=lambda self, dim: self.reshape(_squeezed_shape(self, (dim,))),
    rules=(_back,),
    memory="view",
    public=False,
    torch="squeeze",
    examples=lambda: [Example((normal(1, 3, 1),), {"dim": 0}), Example((normal(2),), {"dim": 0})],
)
squeeze_dims: Op = Op(
    "squeeze(self, *, dim)",
    grad_fn="SqueezeBackward2",
    formula="self without those of dim whose size is 1",
    forward=lambda self, dim: self.reshape(_squeezed_shape(self, dim)),
    rules=(_back,),
    memory="view",
    public=False,
    torch="squeeze",
    examples=lambda: [Example((normal(1, 3, 1),), {"dim": (0, 1)})],
)
unsqueeze_op: Op = Op(
    "unsqueeze(self, *, dim)",
    grad_fn="UnsqueezeBackward0",
    formula="self with a new dimension",
    forward=lambda self, dim: np.expand_dims(self, dim),
    rules=(Rule("self", "g without it", lambda g, dim: squeeze_dim(g, dim=dim)),),
    memory="view",
    public=False,
    torch="unsqueeze",
    examples=lambda: [Example((normal(3),), {"dim": 1})],
)
unsqueeze_dims: Op = Op(
    "unsqueeze_dims(self, *, dims)",
    grad_fn="UnsqueezeBackward0",
    forward=lambda self, dims: np.expand_dims(self, dims),
    rules=(Rule("self", "g without them", lambda g, dims: squeeze_dims(g, dim=tuple([d % g.ndim for d in dims]))),),
    memory="view",
    public=False,
    examples=lambda: [Example((normal(3),), {"dims": (0, 2)})],
)


def _squeezed_shape(self: Array, dim: Shape) -> Shape:
    return tuple([n for d, n in enumerate(self.shape) if d not in dim or n != 1])


@front("view", function=False)
def view(self: Tensor, *shape: Any, size: Any = None, dtype: DType | None = None) -> Tensor:
    """The same elements in another shape, or its bytes as another dtype, sharing memory."""
    wanted = dtype or (shape[0] if shape and isinstance(shape[0], DType) else None)
    if wanted is not None:
        return _as_dtype(self, wanted)
    return run(view_op, self, size=filled(sizes_of(shape if size is None else (size,)), self._array.size))


def _as_dtype(self: Tensor, dtype: DType) -> Tensor:
    """The bytes of a tensor read as another dtype. RuntimeError, in PyTorch's words, where they cannot be."""
    kinds = f"to view {self.dtype.tensor_type} as {dtype.tensor_type} (different element sizes)"
    own, size, array = self.dtype.itemsize, dtype.itemsize, self._array
    if own != size:
        if not array.ndim:
            raise RuntimeError(f"self.dim() cannot be 0 {kinds}")
        if array.size and array.strides[-1] != own:
            raise RuntimeError(f"self.stride(-1) must be 1 {kinds}, but got {array.strides[-1] // own}")
        if array.shape[-1] * own % size:
            raise RuntimeError(f"self.size(-1) must be divisible by {size // own} {kinds}, but got {array.shape[-1]}")
    return run(view_as_dtype, self, dtype=dtype.name)


view_as_dtype: Op = Op(
    "view(self, *, dtype)",
    grad_fn="",
    formula="the bytes of self as dtype",
    forward=lambda self, dtype: self.view(dtypes.named(dtype).numpy),
    memory="alias",
    public=False,
)


@front("view_as", function=False)
def view_as(self: Tensor, other: Tensor) -> Tensor:
    """A view in the shape of `other`."""
    return view(self, *other.shape)


@front("reshape")
def reshape(self: Tensor, *shape: Any) -> Tensor:
    """The same elements in another shape: a view if possible, else a copy."""
    array = self._array
    size = filled(sizes_of(shape), array.size)
    if array.flags.c_contiguous:
        return run(view_op, self, size=size)
    if not array.size or np.may_share_memory(array.reshape(size), array):
        return run(reshape_alias, self, size=size)
    return run(reshaped, contiguous(self), size=size)


@front("reshape_as", function=False)
def reshape_as(self: Tensor, other: Tensor) -> Tensor:
    """`reshape` to the shape of `other`."""
    return reshape(self, *other.shape)


@front("squeeze")
def squeeze(self: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """A view without dimensions of size 1, or without those of `dim` whose size is 1."""
    if dim is None:
        return run(squeeze_all, self)
    dims = normal_dims(dim, self.ndim)
    return run(squeeze_dim, self, dim=dims[0]) if isinstance(dim, int) else run(squeeze_dims, self, dim=dims)


@front("unsqueeze")
def unsqueeze(self: Tensor, dim: int) -> Tensor:
    """A view with a new dimension of size 1 at `dim`."""
    return run(unsqueeze_op, self, dim=normal_dims(dim, self.ndim + 1)[0])

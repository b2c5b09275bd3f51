"""Changes of shape: views, permuted dimensions, flips, windows, in-place changes of shape."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from math import prod
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided as strided_view

from gviz import emit
from gviz.engine import dtypes, instrumentation, messages, operation_watchers
from gviz.engine.argument_parser import several
from gviz.engine.arguments import missing_arguments, sizes, whole_numbers
from gviz.engine.array_storage import address_of, owner_of, resized
from gviz.engine.dtypes import dtype as DType
from gviz.engine.functions_and_methods import attribute, front
from gviz.engine.memory_format import (
    checked_format,
    contiguous_format,
    is_in,
    preserve_format,
    strides_in,
    strides_of,
    suggested,
)
from gviz.engine.memory_format import memory_format as MemoryFormat
from gviz.engine.modes import thread
from gviz.engine.node import Edge
from gviz.engine.op import Example, Op, Rule, apply
from gviz.engine.ops._examples import normal
from gviz.engine.ops._kernels import laid_out_as
from gviz.engine.ops.copying import contiguous
from gviz.engine.ops.strided import Geometry, place_part
from gviz.engine.tensor import Tensor
from gviz.engine.views import check_writable, set_in_place, view_in_place
from gviz.values.value import Array

# ----------------------------------------------------------------------------------------------------------------------
# Other shapes of the same elements in the same order: views, which share memory, or copies.


Shape = tuple[int, ...]


def normal_dims(dim: int | Sequence[int], ndim: int) -> tuple[int, ...]:
    """Dimensions counted from 0. Raises IndexError, with PyTorch's text, for one that does not exist."""
    size = max(ndim, 1)
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    for d in dims:
        if not -size <= d < size:
            raise IndexError(f"Dimension out of range (expected to be in range of [{-size}, {size - 1}], but got {d})")
    return tuple(d % size for d in dims)


def one_dim(dim: int, ndim: int) -> int:
    """One dimension, counted from 0. Raises TypeError for anything but an integer."""
    if not isinstance(dim, (int, np.integer)):
        raise TypeError(f"argument 'dim' must be int, not {type(dim).__name__}")
    return normal_dims(dim, ndim)[0]


def sizes_of(args: tuple[Any, ...]) -> tuple[int, ...]:
    """The sizes passed as separate arguments or as one sequence."""
    flat = args[0] if len(args) == 1 and isinstance(args[0], (tuple, list)) else args
    return tuple(int(n) for n in flat)


def run(op: Op, *tensors: Tensor, **attrs: Any) -> Tensor:
    """Runs an op with one output."""
    result: Tensor = apply(op, tensors, attrs)
    return result


def filled(shape: Shape, size: int) -> Shape:
    """`shape` with its -1 inferred. Raises RuntimeError, with PyTorch's text, if it does not have `size` elements."""
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
    """A view with dimensions of size 1 repeated to `size`. Raises RuntimeError, with PyTorch's text, if impossible."""
    extra = len(size) - self.ndim
    if extra < 0:
        kind = dtypes.of(self).tensor_type
        name = f"CPU{kind}Type" if kind == "Bool" else f"torch.{kind}Tensor"  # PyTorch rewrites all names but this one
        raise RuntimeError(
            f"expand({name}{{{list(self.shape)}}}, size={list(size)}): the number of sizes provided ({len(size)}) must "
            f"be greater or equal to the number of dimensions in the tensor ({self.ndim})"
        )
    target = tuple([self.shape[i - extra] if n == -1 and i >= extra else n for i, n in enumerate(size)])
    for dim in reversed(range(extra, len(target))):
        n, own = target[dim], self.shape[dim - extra]
        if own not in (1, n) or n < 0:
            raise RuntimeError(
                f"The expanded size of the tensor ({n}) must match the existing size ({own}) at non-singleton "
                f"dimension {dim}.  Target sizes: {list(size)}.  Tensor sizes: {list(self.shape)}"
            )
    if -1 in size[:extra]:
        if not self.ndim:  # PyTorch counts the elements first
            raise RuntimeError("numel: integer multiplication overflow")
        last = max(dim for dim in range(extra) if size[dim] == -1)
        raise RuntimeError(
            f"The expanded size of the tensor (-1) isn't allowed in a leading, non-existing dimension {last}"
        )
    self = np.asarray(self)  # a one-number gradient may be a NumPy scalar, which is read-only
    if self.ndim and 1 in target:
        strided = strided_view(self, target, _expanded_strides(self, target))
        if strided.flags.writeable is self.flags.writeable:  # NumPy may make an already expanded array read-only
            return strided
    view = np.broadcast_to(self, target)
    view.flags.writeable = self.flags.writeable
    return view


def _expanded_strides(self: Array, target: Shape) -> list[int]:
    """Return the strides of an expanded tensor in PyTorch; NumPy has 0 for every dimension of size 1."""
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
    """A gradient in another shape; for use in rules."""
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
    forward=lambda self, size: self.reshape(size),  # of a new array without other references
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
    """The same elements in another shape, or the same bytes in another dtype, sharing memory."""
    target = dtype or (shape[0] if shape and isinstance(shape[0], DType) else None)
    if target is not None:
        return _as_dtype(self, target)
    return run(view_op, self, size=filled(sizes_of(shape if size is None else (size,)), self._array.size))


def _as_dtype(self: Tensor, dtype: DType) -> Tensor:
    """Return the bytes of a tensor read as another dtype. Raises RuntimeError, with PyTorch's text, if impossible."""
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
def squeeze(self: Tensor, dim: int | Sequence[int] | None = None, *others: int) -> Tensor:
    """A view without dimensions of size 1, or without those of `dim` whose size is 1."""
    if dim is None:
        return run(squeeze_all, self)
    if others:
        dim = (dim, *others)  # type: ignore[arg-type]  # the parser has seen integers
    dims = normal_dims(dim, self.ndim)
    return run(squeeze_dim, self, dim=dims[0]) if isinstance(dim, int) else run(squeeze_dims, self, dim=dims)


@front("unsqueeze")
def unsqueeze(self: Tensor, dim: int) -> Tensor:
    """A view with a new dimension of size 1 at `dim`."""
    return run(unsqueeze_op, self, dim=normal_dims(dim, self.ndim + 1)[0])


# ----------------------------------------------------------------------------------------------------------------------
# The same elements with permuted dimensions, as views.


transpose: Op = Op(
    "transpose(self, *, dim0, dim1)",
    grad_fn="TransposeBackward0",
    formula="self with dim0 and dim1 exchanged",
    forward=lambda self, dim0, dim1: self.swapaxes(dim0, dim1) if self.ndim else self.view(),
    rules=(Rule("self", "g exchanged back", lambda g, dim0, dim1: transpose(g, dim0=dim0, dim1=dim1)),),
    memory="view",
    public=False,
    torch="transpose",
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
    torch="t",
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
    torch="permute",
    examples=lambda: [Example((normal(2, 3, 4),), {"dims": (2, 0, 1)}), Example((normal(),), {"dims": ()})],
)


@front("transpose", "swapaxes", "swapdims")
def transpose_front(self: Tensor, dim0: int, dim1: int) -> Tensor:
    """A view with two dimensions exchanged."""
    first, second = normal_dims((dim0, dim1), self.ndim)
    return run(transpose, self, dim0=first, dim1=second)


@front("t")
def t_front(self: Tensor) -> Tensor:
    """A matrix transposed, as a view."""
    if self.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {self.ndim}D")
    return run(t, self)


@front("permute")
def permute_front(self: Tensor, *order: Any, dims: Any = None) -> Tensor:
    """A view with permuted dimensions."""
    numbers = sizes_of(order if dims is None else (dims,))
    if len(numbers) != self.ndim:
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
            f"ordering of dimensions i.e. input.dim() = {self.ndim} is not equal to len(dims) = {len(numbers)}"
        )
    normal_order = normal_dims(numbers, self.ndim)
    if len(set(normal_order)) < len(normal_order):
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    return run(permute, self, dims=normal_order)


@front("movedim", "moveaxis")
def movedim(self: Tensor, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """A view with the dimensions `source` moved to the positions `destination`; the others keep their order."""
    sources, places = normal_dims(source, self.ndim), normal_dims(destination, self.ndim)
    if len(sources) != len(places):
        raise RuntimeError(
            "movedim: Invalid source or destination dims: source "
            f"({list(_listed(source))} dims) should contain the same number of dims as destination "
            f"({list(_listed(destination))} dims)"
        )
    for dims, name, listed_dims in ((sources, "source", source), (places, "destination", destination)):
        if len(set(dims)) < len(dims):
            raise RuntimeError(f"movedim: repeated dim in `{name}` ({list(_listed(listed_dims))})")
    if not self.ndim:
        return run(alias, self)
    order = [d for d in range(self.ndim) if d not in sources]
    for place, dim in sorted(zip(places, sources, strict=True)):
        order.insert(place, dim)
    return run(permute, self, dims=tuple(order))


def _listed(dim: int | Sequence[int]) -> Sequence[int]:
    return (dim,) if isinstance(dim, int) else dim


@front("adjoint")
def adjoint(self: Tensor) -> Tensor:
    """Transposed matrices (real numbers are their own conjugates), as a view."""
    if self.ndim == 1:
        raise RuntimeError("tensor.adjoint() is only supported on matrices or batches of matrices. Got 1-D tensor.")
    if not self.ndim:
        messages.warn_once("adjoint() is deprecated on 0-D tensors. Consider using x.conj().")
        return self
    return transpose_front(self, -2, -1)


def _reversed(self: Tensor) -> Tensor:
    """Return a view with all dimensions in reverse order."""
    if self.ndim != 2:
        messages.warn_once(_OF_NUMBER["T"] if not self.ndim else messages.REVERSED_DIMS)
    return run(permute, self, dims=tuple(range(self.ndim))[::-1])


def _matrices_transposed(name: str) -> Any:
    def read(self: Tensor) -> Tensor:
        if self.ndim == 1:
            raise RuntimeError(
                f"tensor.{name} is only supported on matrices or batches of matrices. Got {self.ndim}-D tensor."
            )
        if self.ndim:
            return transpose_front(self, -2, -1)
        messages.warn_once(_OF_NUMBER[name])
        return self

    return read


def _matrix_adjoint(self: Tensor) -> Tensor:
    if self.ndim not in (0, 2):
        batches = " For batches of matrices, consider using tensor.mH" if self.ndim > 2 else ""
        raise RuntimeError(f"tensor.H is only supported on matrices (2-D tensors). Got {self.ndim}-D tensor.{batches}")
    if self.ndim:
        return transpose_front(self, 0, 1)
    messages.warn_once(_OF_NUMBER["H"])
    return self


_IDENTITY = "Tensor.{name} is deprecated on 0-D tensors. This function is the identity in these cases."
_CONJUGATE = "Tensor.{name} is deprecated on 0-D tensors. Consider using x.conj()."
_OF_NUMBER = {name: _IDENTITY.format(name=name) for name in ("T", "mT")}
_OF_NUMBER |= {name: _CONJUGATE.format(name=name) for name in ("H", "mH")}

attribute("T", _reversed)
attribute("H", _matrix_adjoint)
attribute("mT", _matrices_transposed("mT"))
attribute("mH", _matrices_transposed("mH"))


# ----------------------------------------------------------------------------------------------------------------------
# Flattens and splits dimensions, and adds missing ones.


@front("flatten")
def flatten(self: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Flattens dimensions `start_dim` to `end_dim` into one."""
    start, end = normal_dims((start_dim, end_dim), self.ndim)
    if start > end:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if not self.ndim:
        return reshape(self, 1)
    if start == end:
        return self
    return reshape(self, *self.shape[:start], prod(self.shape[start : end + 1]), *self.shape[end + 1 :])


@front("ravel")
def ravel(self: Tensor) -> Tensor:
    """Flattens all dimensions into one."""
    return view(contiguous(self), -1)


@front("unflatten")
def unflatten(self: Tensor, dim: int, sizes: Sequence[int]) -> Tensor:
    """A view with `dim` split into several dimensions; one size may be -1."""
    if not isinstance(dim, int):
        raise TypeError(f"unflatten(): argument 'dim' (position 1) must be int, not {type(dim).__name__}")
    if not self.ndim:
        raise RuntimeError(
            f"unflatten got an unexpected error:\nDimension specified as {dim} but tensor has no dimensions"
        )
    (axis,) = normal_dims(dim, self.ndim)
    lengths = list(sizes_of((tuple(sizes),)))
    if not lengths:
        raise RuntimeError("unflatten: sizes must be non-empty")
    length, known = self.shape[axis], prod(n for n in lengths if n != -1)
    fits = length % known == 0 if -1 in lengths and known else known == length
    if not fits:
        raise RuntimeError(
            f"unflatten: Provided sizes {lengths} don't multiply up to the size of dim {axis} ({length}) in the input "
            "tensor"
        )
    parts = [length // known if n == -1 and known else max(n, 0) for n in lengths]
    return view(self, *self.shape[:axis], *parts, *self.shape[axis + 1 :])


def _each(make: Any, tensors: tuple[Any, ...]) -> Any:
    """`make` of a single tensor, or of each of several."""
    if len(tensors) == 1 and isinstance(tensors[0], Tensor):
        return make(tensors[0])
    return tuple([make(tensor) for tensor in several(tensors)])


def at_least_1d(self: Tensor) -> Tensor:
    """A 0-dimensional tensor as a vector of one element."""
    return self if self.ndim else reshape(self, 1)


def at_least_2d(self: Tensor) -> Tensor:
    """A vector as a matrix of one row."""
    return self if self.ndim > 1 else unsqueeze(self, 0) if self.ndim else reshape(self, 1, 1)


def at_least_3d(self: Tensor) -> Tensor:
    """A matrix with a last dimension of size 1; a vector as the only row of one."""
    if self.ndim > 2:
        return self
    if self.ndim == 2:
        return unsqueeze(self, -1)
    return unsqueeze(unsqueeze(self, 0), -1) if self.ndim else reshape(self, 1, 1, 1)


@front("atleast_1d", method=False)
def atleast_1d(*tensors: Any) -> Any:
    """Each tensor with at least one dimension."""
    return _each(at_least_1d, tensors)


@front("atleast_2d", method=False)
def atleast_2d(*tensors: Any) -> Any:
    """Each tensor with at least two dimensions."""
    return _each(at_least_2d, tensors)


@front("atleast_3d", method=False)
def atleast_3d(*tensors: Any) -> Any:
    """Each tensor with at least three dimensions."""
    return _each(at_least_3d, tensors)


# ----------------------------------------------------------------------------------------------------------------------
# Elements in reverse order or shifted, and planes rotated: copies.


Dims = tuple[int, ...]

flip_op: Op = Op(
    "flip(self, *, dims)",
    grad_fn="FlipBackward0",
    formula="self in reverse order along dims",
    forward=lambda self, dims: laid_out_as(self, np.flip(self, dims)),
    rules=(Rule("self", "g reversed", lambda g, dims: flip_op(g, dims=dims)),),
    public=False,
    torch="flip",
    examples=lambda: [Example((normal(2, 3),), {"dims": (0, 1)}), Example((normal(0, 3),), {"dims": (1,)})],
)
roll_op: Op = Op(
    "roll(self, *, shifts, dims)",
    grad_fn="RollBackward0",
    formula="self shifted around along dims",
    forward=lambda self, shifts, dims: _rolled(self, shifts, dims),
    rules=(
        Rule(
            "self",
            "g shifted back",
            lambda g, shifts, dims: roll_op(g, shifts=tuple([-n for n in shifts]), dims=dims),
        ),
    ),
    public=False,
    torch="roll",
    examples=lambda: [
        Example((normal(2, 3),), {"shifts": (1, 2), "dims": (0, 1)}),
        Example((normal(2, 3),), {"shifts": (2,), "dims": ()}),
    ],
)
rot90_op: Op = Op(
    "rot90(self, *, k, dims)",
    grad_fn="Rot90Backward0",
    formula="self turned k times from the first of dims to the second",
    forward=lambda self, k, dims: _turned(self, k, dims),
    rules=(Rule("self", "g turned back", lambda g, k, dims: rot90_op(g, k=-k, dims=dims)),),
    public=False,
    torch="rot90",
    examples=lambda: [Example((normal(2, 3),), {"k": 1, "dims": (0, 1)})],
)


def _turned(self: Array, k: int, dims: Dims) -> Array:
    """Return a flipped copy; for rotations by 90 or 270 degrees its dimensions are then exchanged."""
    one, other = dims
    if k % 2 == 0:
        return laid_out_as(self, np.rot90(self, k, (one, other)))
    flipped = laid_out_as(self, np.flip(self, other if k % 4 == 1 else one))
    return np.swapaxes(flipped, one, other)


def _rolled(self: Array, shifts: Dims, dims: Dims) -> Array:
    rolled: Array = np.roll(self, shifts, dims) if dims else np.roll(self, shifts[0])
    return np.asarray(rolled, order="C")


@front("flip")
def flip(self: Tensor, *order: Any, dims: Any = None) -> Tensor:
    """A copy in reverse order along `dims`."""
    if order and dims is not None:
        raise TypeError("flip() got multiple values for argument 'dims'")
    if not order and dims is None:
        raise missing_arguments("flip", ["dims"])
    numbers = whole_numbers("flip", "dims", order if dims is None else dims, 1)
    axes = normal_dims(numbers, self.ndim)
    for d in axes:
        if axes.count(d) > 1:
            raise RuntimeError(f"dim {d} appears multiple times in the list of dims")
    return run(flip_op, self, dims=axes if self.ndim else ())


@front("fliplr")
def fliplr(self: Tensor) -> Tensor:
    """A copy with the columns in reverse order."""
    if self.ndim < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return flip(self, 1)


@front("flipud")
def flipud(self: Tensor) -> Tensor:
    """A copy with the rows in reverse order."""
    if not self.ndim:
        raise RuntimeError("Input must be >= 1-d.")
    return flip(self, 0)


@front("roll")
def roll(self: Tensor, shifts: int | Sequence[int], dims: int | Sequence[int] | None = None) -> Tensor:
    """A copy shifted along `dims`, with elements wrapping around; without `dims`, as if flattened."""
    steps = (shifts,) if isinstance(shifts, int) else tuple(shifts)
    axes = () if dims is None else (dims,) if isinstance(dims, int) else tuple(dims)
    if not steps:
        raise RuntimeError("`shifts` required")
    if len(steps) != len(axes) and (axes or len(steps) > 1):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(steps)}, dims:{len(axes)}")
    if axes and not self.ndim:
        raise IndexError(f"Dimension specified as {axes[0]} but tensor has no dimensions")
    return run(roll_op, self, shifts=steps, dims=normal_dims(axes, self.ndim))


@front("rot90")
def rot90(self: Tensor, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """A copy rotated by 90 degrees, `k` times, in the plane of two `dims`."""
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if self.ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {self.ndim}")
    if dims[0] == dims[1] or abs(dims[0] - dims[1]) == self.ndim:
        raise RuntimeError(f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}")
    return run(rot90_op, self, k=k, dims=normal_dims(dims, self.ndim))


# ----------------------------------------------------------------------------------------------------------------------
# Strided views: windows that slide along a dimension, and any strides.


def _windows(self: Array, dimension: int, size: int, step: int) -> Array:
    if not self.ndim:
        return strided_view(self, (size,), (self.itemsize,))
    count = (self.shape[dimension] - size) // step + 1
    shape = (*self.shape[:dimension], count, *self.shape[dimension + 1 :], size)
    strides = list(self.strides)
    strides[dimension] *= step
    return strided_view(self, shape, (*strides, self.strides[dimension]), writeable=self.flags.writeable)


def _windows_added(self: Array, sizes: Shape, dimension: int, size: int, step: int) -> Array:
    if not sizes:
        return np.asarray(self.sum(), self.dtype)
    result = np.zeros(sizes, self.dtype)
    moved = np.moveaxis(result, dimension, 0)
    windows = np.moveaxis(self, (dimension, -1), (0, 1))
    for place in range(size):
        moved[place : place + step * (len(windows) - 1) + 1 : step] += windows[:, place]
    return result


unfold_op: Op = Op(
    "unfold(self, *, dimension, size, step)",
    grad_fn="UnfoldBackward0",
    formula="windows of size along dimension of self, step apart",
    forward=_windows,
    rules=(
        Rule(
            "self",
            "g added where the windows look",
            lambda g, self_sym_sizes, dimension, size, step: unfold_back(
                g, sizes=self_sym_sizes, dimension=dimension, size=size, step=step
            ),
        ),
    ),
    memory="view",
    public=False,
    torch="Tensor.unfold",
    examples=lambda: [
        Example((normal(5, 2),), {"dimension": 0, "size": 3, "step": 1}),
        Example((normal(2, 5),), {"dimension": 1, "size": 2, "step": 2}),
    ],
)
unfold_back: Op = Op(
    "unfold_backward(self, *, sizes, dimension, size, step)",
    grad_fn="UnfoldBackwardBackward0",
    formula="0 with self added where the windows look",
    forward=_windows_added,
    rules=(
        Rule(
            "self",
            "the windows of g",
            lambda g, dimension, size, step: unfold_op(g, dimension=dimension, size=size, step=step),
        ),
    ),
    public=False,
    examples=lambda: [Example((normal(3, 2, 3),), {"sizes": (5, 2), "dimension": 0, "size": 3, "step": 1})],
)


def _memory(self: Array) -> Array:
    """Return all the memory that an array refers to, flat."""
    return owner_of(self).ravel(order="K")


def _through(self: Array, size: Shape, stride: Shape, storage_offset: int, geometry: Geometry) -> Array:
    memory = _memory(self)
    strides = tuple([n * memory.itemsize for n in stride])
    return strided_view(memory[storage_offset:], size, strides, writeable=self.flags.writeable)


as_strided_op: Op = Op(
    "as_strided(self, *, size, stride, storage_offset, geometry)",
    grad_fn="AsStridedBackward0",
    formula="the memory of self with size and stride",
    forward=_through,
    rules=(Rule("self", "g where the view looks, 0 elsewhere", lambda g, geometry: place_part(g, geometry=geometry)),),
    memory="view",
    public=False,
    examples=lambda: [
        Example(
            (normal(2, 3),),
            {
                "size": (2, 2),
                "stride": (1, 2),
                "storage_offset": 1,
                "geometry": Geometry((2, 3), (3, 1), (2, 2), (1, 2), 1),
            },
        )
    ],
)


@front("unfold", function=False)
def unfold(self: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """All windows of `size` along a dimension, `step` apart, as a view; the window becomes the last dimension."""
    (axis,) = normal_dims(dimension, self.ndim)
    length = self.shape[axis] if self.ndim else 1
    if size > length:
        raise RuntimeError(f"maximum size for tensor at dimension {axis} is {length} but size is {size}")
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    return run(unfold_op, self, dimension=axis, size=size, step=step)


@front("as_strided")
def as_strided(self: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Tensor:
    """A view of this tensor's memory with other sizes and strides, counted in elements."""
    sizes, strides = tuple(size), tuple(stride)
    if len(sizes) != len(strides):
        raise RuntimeError("mismatch in length of strides and shape")
    if any(n < 0 for n in strides):
        raise RuntimeError(
            f"as_strided: Negative strides are not supported at the moment, got strides: {list(strides)}"
        )
    own = offset_of(self._array)
    offset = own if storage_offset is None else storage_offset
    last = 0 if 0 in sizes else sum((n - 1) * s for n, s in zip(sizes, strides, strict=True)) + 1
    item, memory = self._array.itemsize, owner_of(self._array).nbytes
    if (last + offset) * item > memory:
        raise RuntimeError(
            f"setStorage: sizes {list(sizes)}, strides {list(strides)}, storage offset {offset}, and itemsize {item} "
            f"requiring a storage size of {(last + offset) * item} are out of bounds for storage of size {memory}"
        )
    geometry = Geometry(tuple(self.shape), strides_of(self._array), sizes, strides, offset - own)
    attrs: dict[str, Any] = {"size": sizes, "stride": strides, "storage_offset": offset, "geometry": geometry}
    return run(as_strided_op, self, **attrs)


def offset_of(array: Array) -> int:
    """The number of elements in its memory before the first element of an array."""
    return (address_of(array) - address_of(owner_of(array))) // array.itemsize


# ----------------------------------------------------------------------------------------------------------------------
# In-place changes to another view of a tensor's own memory: ``t_``, ``unsqueeze_``, ``resize_`` and similar methods.


def _variant(op: Op, grad_fn: str) -> Op:
    """Return the op with the name that its node has after the tensor itself has become the view."""
    variant = copy(op)
    variant.grad_fn = grad_fn
    variant._compile()
    return variant


_T = _variant(t, "TBackward1")
_TRANSPOSE = _variant(transpose, "TransposeBackward1")
_UNSQUEEZE = _variant(unsqueeze_op, "UnsqueezeBackward1")
_SQUEEZE_ALL = _variant(squeeze_all, "SqueezeBackward3")
_SQUEEZE_DIM = _variant(squeeze_dim, "SqueezeBackward4")
_SQUEEZE_DIMS = _variant(squeeze_dims, "SqueezeBackward5")

VARIANTS = (_T, _TRANSPOSE, _UNSQUEEZE, _SQUEEZE_ALL, _SQUEEZE_DIM, _SQUEEZE_DIMS)
"""Operations that are not in the registry, because they are others under another name."""


@front("t_", function=False)
def t_(self: Tensor) -> Tensor:
    """Transposes in place."""
    check_writable(self)
    if self.ndim > 2:
        raise RuntimeError(f"t_() expects a tensor with <= 2 dimensions, but self is {self.ndim}D")
    return view_in_place(_T, self, {})


@front("transpose_", "swapaxes_", "swapdims_", function=False)
def transpose_(self: Tensor, dim0: int, dim1: int) -> Tensor:
    """Exchanges two dimensions in place."""
    first, second = normal_dims((dim0, dim1), self.ndim)
    return view_in_place(_TRANSPOSE, self, {"dim0": first, "dim1": second})


@front("unsqueeze_", function=False)
def unsqueeze_(self: Tensor, dim: int) -> Tensor:
    """Adds a dimension of size 1 at `dim` in place."""
    return view_in_place(_UNSQUEEZE, self, {"dim": normal_dims(dim, self.ndim + 1)[0]})


@front("squeeze_", function=False)
def squeeze_(self: Tensor, dim: int | Sequence[int] | None = None, *others: int) -> Tensor:
    """Removes dimensions of size 1 in place: all, or those in `dim`."""
    if dim is None:
        return view_in_place(_SQUEEZE_ALL, self, {})
    if others:
        dim = (dim, *others)  # type: ignore[arg-type]  # the parser has seen integers
    dims = normal_dims(dim, self.ndim)
    if isinstance(dim, int):
        return view_in_place(_SQUEEZE_DIM, self, {"dim": dims[0]})
    return view_in_place(_SQUEEZE_DIMS, self, {"dim": dims})


class _Set(Op):
    """Unlike for other ops without a derivative, its node keeps an edge slot for inputs that require no gradient."""

    def by_argument(self, edges: Sequence[Edge | None]) -> Sequence[Edge | None]:
        return edges


def _no_derivative(g: Any) -> Any:
    raise RuntimeError("derivative for set_ is not implemented")


set_source: Op = _Set(
    "set(self, source)",
    grad_fn="NotImplemented",
    formula="source, in its memory",
    forward=lambda self, source: source,
    rules=(Rule("self", "none", _no_derivative), Rule("source", "none", _no_derivative)),
    public=False,
)
set_nothing: Op = _Set(
    "set(self)",
    grad_fn="NotImplemented",
    formula="no elements",
    forward=lambda self: np.zeros(0, self.dtype),
    rules=(Rule("self", "none", _no_derivative),),
    public=False,
)


@front("set_", function=False)
def set_(
    self: Tensor,
    source: Tensor | None = None,
    storage_offset: int = 0,
    size: Sequence[int] | None = None,
    stride: Sequence[int] | None = None,
) -> Tensor:
    """Uses the memory of `source`: with its layout, or with an offset, a size and strides, all counted in elements.

    Without `source` the tensor becomes empty. Raises RuntimeError for another dtype, and for elements outside the
    memory.
    """
    if source is None:
        return set_in_place(set_nothing, (self,), np.zeros(0, self._array.dtype))
    if source._array.dtype != self._array.dtype:
        raise RuntimeError(
            f"Could not set tensor of type {source.dtype.cpp_name} to a tensor of type {self.dtype.cpp_name}"
        )
    array = source._array
    if size is not None:
        steps = strides_in(size, contiguous_format) if stride is None else stride
        array = as_strided(source.detach(), size, steps, storage_offset)._array
    return set_in_place(set_source, (self, source), array.view())


@front("resize_", function=False)
def resize_(self: Tensor, *size: Any, memory_format: MemoryFormat | None = None) -> Tensor:
    """Changes the shape in place; new elements are zero. Raises RuntimeError for a tensor that requires grad."""
    if self.requires_grad and not thread.inference and not self.is_inference():
        raise RuntimeError(messages.RESIZE)
    shape = sizes("resize_", size)
    order = contiguous_format if memory_format is None else checked_format("resize_", memory_format)
    if order is preserve_format:
        raise RuntimeError("Unsupported memory formatPreserve")
    strides = strides_in(shape, order)
    if shape != self._array.shape or not (memory_format is None or is_in(self._array, order)):
        _replace(self, resized(self._array, shape, strides))
        if self.is_inference() and not thread.inference:
            raise RuntimeError(messages.INFERENCE_IN_PLACE)
    return self


@front("resize_as_", function=False)
def resize_as_(self: Tensor, the_template: Tensor, *, memory_format: MemoryFormat | None = None) -> Tensor:
    """`resize_` to the shape of another tensor."""
    order = suggested(the_template._array) if memory_format is preserve_format else memory_format
    return resize_(self, the_template.shape, memory_format=order)


def _replace(tensor: Tensor, array: Array) -> None:
    channel, is_in_its_own = emit.channel, np.may_share_memory(tensor._array, array)
    if channel is not None:
        instrumentation.seen(channel, tensor)
    if operation_watchers.watchers and (recorder := operation_watchers.recorder()) is not None:
        recorder.switched(tensor, "resize_()")
    tensor._array = array
    if not tensor.is_inference():
        tensor._counter[0] += 1
    if channel is not None:
        instrumentation.moved(channel, tensor, tensor if is_in_its_own else None)

"""Joins, splits and repeats tensors: ``cat``, ``stack``, ``split``, ``expand``, ``repeat``, ``meshgrid``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations as index_combinations
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from gviz.engine import dtypes, messages
from gviz.engine.argument_parser import all_tensors, several
from gviz.engine.arguments import combination, integer, whole_numbers
from gviz.engine.broadcasting import broadcast_error
from gviz.engine.functions_and_methods import front
from gviz.engine.op import Example, Op, Rule, apply, zeros
from gviz.engine.ops._examples import normal
from gviz.engine.ops._kernels import in_rows
from gviz.engine.ops.copying import clone_in_order
from gviz.engine.ops.indexing import at, index_select, narrow, select_where, sliced
from gviz.engine.ops.shape import (
    at_least_1d,
    at_least_2d,
    at_least_3d,
    expand,
    flatten,
    in_shape,
    normal_dims,
    reshape,
    run,
    sizes_of,
    unsqueeze,
    view,
)
from gviz.engine.printing import cpp_text
from gviz.engine.size import Size
from gviz.engine.tensor import Tensor, new_tensor
from gviz.values.value import Array

# ----------------------------------------------------------------------------------------------------------------------
# Joins tensors.


Shape = tuple[int, ...]
_LEGACY: Shape = (0,)
"""The shape of an empty vector, which can be joined with anything and has no effect."""


def _parts(g: Any, sizes: Sequence[Shape], dim: int) -> list[Any]:
    parts, start = [], 0
    for shape in sizes:
        end = start if shape == _LEGACY else start + shape[dim]
        parts.append(zeros(g, shape) if shape == _LEGACY else narrow(g, dim=dim, start=start, end=end, step=1))
        start = end
    return parts


def _block_parts(g: Any, sizes: Sequence[Shape]) -> list[Any]:
    parts, row, column = [], 0, 0
    for shape in sizes:
        height, width = _as_matrix(shape)
        strip = narrow(g, dim=0, start=row, end=row + height, step=1)
        block = narrow(strip, dim=1, start=column, end=column + width, step=1)
        parts.append(zeros(g, shape) if shape == _LEGACY else in_shape(block, shape))
        row, column = row + height, column + width
    return parts


def _as_matrix(shape: Shape) -> tuple[int, int]:
    height, width = (1, 1, *shape)[-2:]
    return height, width


cat_op: Op = Op(
    "cat(tensors..., *, dim=0)",
    grad_fn="CatBackward0",
    formula="tensors joined along dim",
    forward=lambda *tensors, dim: _joined(tensors, dim),
    rules=(Rule("tensors...", "each its part of g", lambda g, sizes, dim: _parts(g, sizes, dim)),),
    promotes=True,
    public=False,
    torch="cat",
    examples=lambda: [
        Example((normal(2, 3), normal(1, 3)), {"dim": 0}),
        Example((normal(0), normal(2, 3), normal(2, 1)), {"dim": 1}),
    ],
)
stack_op: Op = Op(
    "stack(tensors..., *, dim=0)",
    grad_fn="StackBackward0",
    formula="tensors side by side along a new dim",
    forward=in_rows(lambda *tensors, dim: np.stack(tensors, dim)),
    rules=(Rule("tensors...", "each its slice of g", lambda g, sizes, dim: _slices(g, len(sizes), dim)),),
    promotes=True,
    public=False,
    torch="stack",
    examples=lambda: [Example((normal(3), normal(3)), {"dim": 1})],
)
block_diag_op: Op = Op(
    "block_diag(tensors...)",
    grad_fn="BlockDiagBackward0",
    formula="tensors down the diagonal, 0 elsewhere",
    forward=lambda *tensors: _down_the_diagonal(tensors),
    rules=(Rule("tensors...", "each its block of g", lambda g, sizes: _block_parts(g, sizes)),),
    promotes=True,
    public=False,
    examples=lambda: [Example((normal(2, 3), normal(), normal(2)), {})],
)


def _slices(g: Any, count: int, dim: int) -> list[Any]:
    if isinstance(g, Tensor):
        return list(g.unbind(dim))
    return [g[at(dim, i)] for i in range(count)]


def _joined(tensors: Sequence[Array], dim: int) -> Array:
    nonempty = [tensor for tensor in tensors if tensor.shape != _LEGACY]
    return np.asarray(np.concatenate(nonempty or tensors, dim), order="C")


def _down_the_diagonal(tensors: Sequence[Array]) -> Array:
    blocks = [tensor.reshape(_as_matrix(tensor.shape)) for tensor in tensors]
    result = np.zeros((sum(b.shape[0] for b in blocks), sum(b.shape[1] for b in blocks)), blocks[0].dtype)
    row = column = 0
    for block in blocks:
        height, width = block.shape
        result[row : row + height, column : column + width] = block
        row, column = row + height, column + width
    return result


@front("cat", "concat", "concatenate", method=False)
def cat(tensors: Sequence[Tensor], dim: int = 0, *, axis: int | None = None) -> Tensor:
    """Concatenates tensors along `dim`."""
    _check_list("cat", tensors)
    if not tensors:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    for i, tensor in enumerate(tensors):
        if not tensor.ndim:
            raise RuntimeError(f"zero-dimensional tensor (at position {i}) cannot be concatenated")
    like = next((tensor for tensor in tensors if tensor.shape != _LEGACY), None)
    if like is None:  # nothing to join, in any dimension
        nothing: Tensor = apply(cat_op, tuple(tensors), {"dim": 0})
        return nothing
    (joined_dim,) = normal_dims(dim if axis is None else axis, like.ndim)
    _check_sizes(tensors, like.shape, joined_dim)
    result: Tensor = apply(cat_op, tuple(tensors), {"dim": joined_dim})
    return result


@front("stack", method=False)
def stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Joins tensors of one shape along a new dimension."""
    _check_list("stack", tensors)
    if not tensors:
        raise RuntimeError("stack expects a non-empty TensorList")
    first = tensors[0].shape
    (axis,) = normal_dims(dim, tensors[0].ndim + 1)
    for i, tensor in enumerate(tensors):
        if tensor.shape != first:
            shapes = f"{list(first)} at entry 0 and {list(tensor.shape)} at entry {i}"
            raise RuntimeError(f"stack expects each tensor to be equal size, but got {shapes}")
    result: Tensor = apply(stack_op, tuple(tensors), {"dim": axis})
    return result


def _check_list(name: str, tensors: object) -> None:
    """Raise TypeError, with PyTorch's text, for anything but a list of tensors."""
    if not isinstance(tensors, (tuple, list)):
        kind = type(tensors).__name__
        raise TypeError(f"{name}(): argument 'tensors' (position 1) must be tuple of Tensors, not {kind}")
    all_tensors(tensors)


def _check_sizes(tensors: Sequence[Tensor], like: Shape, axis: int) -> None:
    """Raise RuntimeError, with PyTorch's text, for tensors with mismatched shapes."""
    for i, tensor in enumerate(tensors):
        if tensor.shape == _LEGACY:
            continue
        if tensor.ndim != len(like):
            raise RuntimeError(f"Tensors must have same number of dimensions: got {len(like)} and {tensor.ndim}")
        for d, (expected, size) in enumerate(zip(like, tensor.shape, strict=True)):
            if d != axis and size != expected:
                raise RuntimeError(
                    f"Sizes of tensors must match except in dimension {axis}. Expected size {expected} but got size "
                    f"{size} for tensor number {i} in the list."
                )


def _stacker(name: str, *aliases: str, prepare: Callable[[Tensor], Tensor], dim: int | None, doc: str) -> None:
    """Define a ``torch.<name>`` that prepares each tensor and joins them, along dimension 1 or 0 if `dim` is None."""

    def stacked(tensors: Sequence[Tensor]) -> Tensor:
        _check_list(name, tensors)
        if not tensors:
            raise RuntimeError(f"{name} expects a non-empty TensorList")
        prepared = [prepare(tensor) for tensor in tensors]
        return cat(prepared, min(1, prepared[0].ndim - 1) if dim is None else dim)

    stacked.__name__, stacked.__doc__ = name, doc
    front(name, *aliases, method=False)(stacked)


def _as_column(self: Tensor) -> Tensor:
    return self if self.ndim > 1 else reshape(self, self.numel(), 1)


_stacker("hstack", prepare=at_least_1d, dim=None, doc="Tensors joined column-wise.")
_stacker("vstack", "row_stack", prepare=at_least_2d, dim=0, doc="Tensors joined row-wise, vectors as rows.")
_stacker("dstack", prepare=at_least_3d, dim=2, doc="Tensors joined along their third dimension.")
_stacker("column_stack", prepare=_as_column, dim=1, doc="Tensors joined column-wise, vectors as columns.")


@front("block_diag", method=False)
def block_diag(*tensors: Tensor) -> Tensor:
    """Places matrices, rows and numbers along the diagonal of one matrix."""
    if not tensors:
        return new_tensor(np.zeros((1, 0), dtypes.get_default_dtype().numpy))
    all_tensors(tensors)
    for i, tensor in enumerate(tensors):
        if tensor.ndim > 2:
            raise RuntimeError(
                "torch.block_diag: Input tensors must have 2 or fewer dimensions. "
                f"Input {i} has {tensor.ndim} dimensions"
            )
    result: Tensor = apply(block_diag_op, tuple(tensors))
    return result


# ----------------------------------------------------------------------------------------------------------------------
# Splits tensors into parts, which are views.


unbind_op: Op = Op(
    "unbind(self, *, dim=0)",
    grad_fn="UnbindBackward0",
    formula="the slices of self along dim",
    forward=lambda self, dim: [self[at(dim, i)] for i in range(self.shape[dim])],
    rules=(Rule("self", "gradients stacked along dim", lambda grads, dim: stack_op(*grads, dim=dim)),),
    outputs=("results...",),
    memory="view",
    public=False,
    torch="unbind",
    examples=lambda: [Example((normal(2, 3),), {"dim": 0})],
)
split_op: Op = Op(
    "split_with_sizes(self, *, split_sizes, dim=0)",
    grad_fn="SplitWithSizesBackward0",
    formula="self cut along dim",
    forward=lambda self, split_sizes, dim: _cut(self, np.cumsum(split_sizes).tolist(), dim),
    rules=(Rule("self", "gradients joined along dim", lambda grads, dim: cat_op(*grads, dim=dim)),),
    outputs=("results...",),
    memory="view",
    public=False,
    torch="split_with_sizes",
    examples=lambda: [Example((normal(5, 2),), {"split_sizes": (2, 3), "dim": 0})],
)
split_even: Op = Op(
    "split(self, *, split_size, dim=0)",
    grad_fn="SplitBackward0",
    formula="self cut along dim",
    forward=lambda self, split_size, dim: _cut(self, _ends(self.shape[dim], split_size), dim),
    rules=(Rule("self", "gradients joined along dim", lambda grads, dim: cat_op(*grads, dim=dim)),),
    outputs=("results...",),
    memory="view",
    public=False,
    torch="Tensor.split",
    examples=lambda: [Example((normal(5, 2),), {"split_size": 2, "dim": 0})],
)


def _ends(length: int, size: int) -> list[int]:
    """Return the ends of parts of `size`; an empty dimension is one part."""
    return [*range(size, length, size), length] if size else [length]


def _cut(self: Array, ends: list[int], dim: int) -> list[Array]:
    return [self[at(dim, slice(start, end))] for start, end in zip([0, *ends], ends, strict=False)]


@front("unbind")
def unbind(self: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """The slices along `dim`, as views."""
    (axis,) = normal_dims(dim, self.ndim)
    if not self.ndim:
        raise IndexError(f"Dimension specified as {axis} but tensor has no dimensions")
    result: tuple[Tensor, ...] = apply(unbind_op, (self,), {"dim": axis})
    return result


@front("split")
def split(
    self: Tensor, split_size_or_sections: Any = None, dim: int = 0, *, split_size: int | None = None
) -> tuple[Tensor, ...]:
    """Parts of the given size or sizes along `dim`, as views."""
    sizes = split_size_or_sections if split_size is None else split_size
    if isinstance(sizes, Tensor) and sizes.numel() == 1:
        sizes = int(sizes)
    if not isinstance(sizes, int):
        return split_with_sizes(self, sizes, dim)
    if not self.ndim:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    if sizes < 0:
        raise RuntimeError(f"split expects split_size be non-negative, but got split_size={sizes}")
    (axis,) = normal_dims(dim, self.ndim)
    if not sizes and self.shape[axis]:
        raise RuntimeError(
            "split_size can only be 0 if dimension size is 0, but got dimension size of " + str(self.shape[axis])
        )
    result: tuple[Tensor, ...] = apply(split_even, (self,), {"split_size": sizes, "dim": axis})
    return result


@front("split_with_sizes")
def split_with_sizes(self: Tensor, split_sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Parts of the given sizes along `dim`, as views."""
    split_sizes = whole_numbers("split_with_sizes", "split_sizes", _one(split_sizes), 2)
    if not self.ndim:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    (axis,) = normal_dims(dim, self.ndim)
    if any(size < 0 for size in split_sizes):
        raise RuntimeError(
            f"split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes="
            f"{list(split_sizes)}"
        )
    if sum(split_sizes) != self.shape[axis]:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {self.shape[axis]} (input tensor's size at "
            f"dimension {dim}), but got split_sizes={list(split_sizes)}"
        )
    result: tuple[Tensor, ...] = apply(split_op, (self,), {"split_sizes": tuple(split_sizes), "dim": axis})
    return result


def _one(sizes: Any) -> Any:
    return list(sizes) if isinstance(sizes, (tuple, list)) else sizes


@front("chunk")
def chunk(self: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """At most `chunks` parts of equal size along `dim`, as views; the last may be smaller."""
    if not self.ndim:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    chunks = integer("chunk", chunks, "chunks", 2)
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    (axis,) = normal_dims(dim, self.ndim)
    size = -(-self.shape[axis] // chunks)
    return split(self, size, axis) if size else split_with_sizes(self, [0] * chunks, axis)


@front("tensor_split")
def tensor_split(
    self: Tensor, indices_or_sections: Any = None, dim: int = 0, *, indices: Any = None, sections: Any = None
) -> tuple[Tensor, ...]:
    """Splits into a number of parts, whose sizes differ by at most one, or before the given indices; views."""
    cuts: Any = next((v for v in (indices_or_sections, indices, sections) if v is not None), None)
    _check_cuts("tensor_split", self, cuts)
    if not self.ndim:
        raise RuntimeError("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
    (axis,) = normal_dims(dim, self.ndim)
    length = self.shape[axis]
    if isinstance(cuts, Tensor):
        cuts = cuts.tolist()
    if isinstance(cuts, int):
        if cuts <= 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {cuts}")
        small, larger = divmod(length, cuts)
        ends = np.cumsum([small + 1] * larger + [small] * (cuts - larger)).tolist()
        return tuple([sliced(self, axis, start, end) for start, end in zip([0, *ends], ends, strict=False)])
    bounds = [slice(start, end).indices(length) for start, end in zip([0, *cuts], [*cuts, length], strict=True)]
    return tuple([sliced(self, axis, start, end) for start, end, _ in bounds])


def _check_cuts(name: str, self: Tensor, cuts: Any) -> None:
    """Raise an error for anything but a number of parts or the indices between them."""
    if isinstance(cuts, Tensor):
        what = f"{name} expected tensor_indices_or_sections to"
        if cuts.dtype.name != "int64":
            raise RuntimeError(f"{what} have dtype of long, but got {cuts.dtype.tensor_type}")
        if cuts.ndim > 1:
            raise RuntimeError(
                f"{what} be a zero-dimensional or one-dimensional tensor, but got a tensor with {cuts.ndim} dims"
            )
        return
    places = cuts if isinstance(cuts, (tuple, list)) else (cuts,)
    if not all(hasattr(place, "__index__") for place in places):
        raise combination(name, (self, cuts) if cuts is not None else (self,), {}, *_CUTS)


_CUTS = (
    "Tensor input, tuple of ints indices, int dim = 0",
    "Tensor input, Tensor tensor_indices_or_sections, int dim = 0",
    "Tensor input, int sections, int dim = 0",
)


def _equal_split(self: Tensor, cuts: int | Sequence[int], axis: int, name: str) -> tuple[Tensor, ...]:
    _check_cuts(name, self, cuts)
    if isinstance(cuts, int) and (not cuts or self.shape[axis] % cuts):
        raise RuntimeError(
            f"torch.{name} attempted to split along dimension {axis}, but the size of the dimension "
            f"{self.shape[axis]} is not divisible by the split_size {cuts}!"
        )
    return tensor_split(self, cuts, axis)


def _define_split(name: str, needed: int, axis: int) -> None:
    """Define ``torch.<name>``, which splits tensors of at least `needed` dimensions along `axis`."""

    def split(self: Tensor, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
        if self.ndim < needed:
            raise RuntimeError(
                f"torch.{name} requires a tensor with at least {needed} dimension, but got a tensor with {self.ndim} "
                "dimensions!"
            )
        return _equal_split(self, indices_or_sections, min(axis, self.ndim - 1), name)

    split.__name__ = name
    split.__doc__ = f"`tensor_split` along dimension {axis}, whose size the number of parts must divide."
    front(name)(split)


_define_split("hsplit", 1, 1)
_define_split("vsplit", 2, 0)
_define_split("dsplit", 3, 2)


# ----------------------------------------------------------------------------------------------------------------------
# Operations of recurrent layers.


def _split(self: Array, split_size: int, dim: int) -> list[Array]:
    places = range(split_size, self.shape[dim], split_size)
    return [part.copy() for part in np.split(self, list(places), dim)]


unsafe_split: Op = Op(
    "unsafe_split(self, *, split_size, dim=0)",
    grad_fn="UnsafeSplitBackward0",
    formula="self cut along dim, each part in memory of its own",
    forward=_split,
    rules=(Rule("self", "the parts of g joined", lambda grads, dim: cat_op(*grads, dim=dim)),),
    outputs=("results...",),
    public=False,
    examples=lambda: [Example((normal(2, 6),), {"split_size": 2, "dim": 1})],
)


# ----------------------------------------------------------------------------------------------------------------------
# Repeated elements: expanded views, and copies.


def _unrepeated(g: Any, sizes: Shape, repeats: Shape) -> Any:
    """Return a gradient summed over the repetitions: each gets a dimension of its own, before that of its elements."""
    own = (1,) * (len(repeats) - len(sizes)) + sizes
    parts = in_shape(g, tuple(n for pair in zip(repeats, own, strict=True) for n in pair))
    return in_shape(sum_repeats(parts), sizes)


sum_repeats: Op = Op(
    "sum_repeats(self)",
    grad_fn="SumBackward1",
    formula="self summed over every other dimension",
    forward=lambda self: self.sum(axis=tuple(range(0, self.ndim, 2))),
    rules=(
        Rule(
            "self",
            "g for every repetition",
            lambda g, self_sym_sizes: expand(
                in_shape(g, tuple(n if d % 2 else 1 for d, n in enumerate(self_sym_sizes))), size=self_sym_sizes
            ),
        ),
    ),
    public=False,
    examples=lambda: [Example((normal(2, 3, 2, 1),), {})],
)
repeat_op: Op = Op(
    "repeat(self, *, repeats)",
    grad_fn="RepeatBackward0",
    formula="self repeats times along each dimension",
    forward=lambda self, repeats: np.asarray(np.tile(self, repeats), order="C"),
    rules=(
        Rule(
            "self",
            "g summed over the repetitions",
            lambda g, self_sym_sizes, repeats: _unrepeated(g, self_sym_sizes, repeats),
        ),
    ),
    public=False,
    torch="Tensor.repeat",
    examples=lambda: [
        Example((normal(2, 3),), {"repeats": (2, 1, 2)}),
        Example((normal(),), {"repeats": (3,)}),
        Example((normal(2),), {"repeats": (0,)}),
    ],
)


@front("expand", function=False)
def expand_front(self: Tensor, *sizes: Any, size: Any = None, implicit: bool = False) -> Tensor:
    """A view with dimensions of size 1 repeated to `size`; -1 keeps a dimension."""
    return run(expand, self, size=sizes_of(sizes if size is None else (size,)))


@front("expand_as", function=False)
def expand_as(self: Tensor, other: Tensor) -> Tensor:
    """A view repeated to the shape of `other`."""
    return run(expand, self, size=tuple(other.shape))


@front("broadcast_to")
def broadcast_to(self: Tensor, *size: Any) -> Tensor:
    """A view repeated to `size`."""
    return run(expand, self, size=sizes_of(size))


@front("broadcast_tensors", method=False)
def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    """Expands each tensor to the common shape that all broadcast to."""
    listed = several(tensors)
    shape = common_shape(*[tensor.shape for tensor in listed])
    return tuple([t if t.shape == shape else run(expand, t, size=shape) for t in listed])


def common_shape(*shapes: Shape) -> Shape:
    """The shape that tensors broadcast to.

    Raises RuntimeError, with PyTorch's text for two of them, if there is none.
    """
    common: Shape = ()
    for shape in shapes:
        try:
            common = np.broadcast_shapes(common, tuple(shape))
        except ValueError:
            raise RuntimeError(broadcast_error(common, tuple(shape))) from None
    return common


@front("broadcast_shapes", method=False)
def broadcast_shapes(*shapes: int | Sequence[int]) -> Size:
    """The shape that all broadcast to. Raises RuntimeError, with PyTorch's text, if there is none."""
    common: list[int] = []
    for i, sizes in enumerate(shapes):
        shape = (sizes,) if isinstance(sizes, int) else tuple(sizes)
        common = [1] * (len(shape) - len(common)) + common
        for dim in range(-1, -1 - len(shape), -1):
            if shape[dim] not in (1, common[dim]) and common[dim] != 1:
                raise RuntimeError(
                    f"Attempting to broadcast a dimension of length {shape[dim]} at {dim}! Mismatching argument at "
                    f"index {i} had {shape}; but expected shape should be broadcastable to {common}"
                )
            common[dim] = shape[dim] if common[dim] == 1 else common[dim]
    return Size(common)


@front("repeat", function=False)
def repeat(self: Tensor, *sizes: Any, repeats: Any = None) -> Tensor:
    """A copy that repeats this tensor `repeats` times along each dimension."""
    times = sizes_of(sizes if repeats is None else (repeats,))
    if len(times) < self.ndim:
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
    result = [n * r for n, r in zip((1,) * (len(times) - self.ndim) + tuple(self.shape), times, strict=True)]
    for n in result:
        if n < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {n}: {result}")
    return run(repeat_op, self, repeats=times)


@front("tile")
def tile(self: Tensor, *sizes: Any, dims: Any = None) -> Tensor:
    """`repeat`, with leading dimensions repeated once if `dims` is shorter."""
    times = sizes_of(sizes if dims is None else (dims,))
    return repeat(self, *(1,) * (self.ndim - len(times)), *times)


@front("repeat_interleave")
def repeat_interleave(
    self: Tensor, repeats: int | Tensor | None = None, dim: int | None = None, *, output_size: int | None = None
) -> Tensor:
    """Repeats each element of `dim` (of all, without it) `repeats` times in a row; a number, or one per element."""
    if repeats is None:
        return new_tensor(np.repeat(np.arange(len(self._array)), _counts(self)))
    if dim is None:
        self, dim = view(self, -1) if self._array.flags.c_contiguous else self.flatten(), 0
    (axis,) = normal_dims(dim, self.ndim)
    if isinstance(repeats, Tensor):
        return _repeated_by(self, repeats, axis)
    if repeats < 0:
        raise RuntimeError("Repeats must be non-negative")
    if not self.ndim:
        raise IndexError("Dimension out of range (expected to be in range of [-1, 0], but got 1)")
    lead, length, rest = self.shape[:axis], self.shape[axis], self.shape[axis + 1 :]
    wide = run(expand, unsqueeze(self, axis + 1), size=(*lead, length, repeats, *rest))
    return view(run(clone_in_order, wide), *lead, length * repeats, *rest)


def _repeated_by(self: Tensor, repeats: Tensor, axis: int) -> Tensor:
    counts, length = _counts(repeats), self.shape[axis]
    if repeats.ndim > 1:
        raise RuntimeError("repeats must be 0-dim or 1-dim tensor")
    if counts.size not in (1, length):
        raise RuntimeError(
            "repeats must have the same size as input along dim, but got repeats.size(0) = "
            f"{counts.size} and input.size({axis}) = {length}"
        )
    places = np.repeat(np.arange(length), counts if repeats.ndim else int(counts))
    return index_select(self, axis, new_tensor(places))


def _counts(repeats: Tensor) -> Array:
    repeats._read("array")
    if repeats.dtype.name not in ("int32", "int64"):
        raise NotImplementedError(f"\"repeat_interleave_cpu\" not implemented for '{repeats.dtype.tensor_type}'")
    if (repeats._array < 0).any():
        raise RuntimeError("repeats can not be negative")
    return repeats._array


# ----------------------------------------------------------------------------------------------------------------------
# All combinations of the elements of several vectors.


@front("meshgrid", method=False)
def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Tensor, ...]:
    """The coordinates of a grid: each vector along its own dimension, repeated along the others.

    With `indexing` "xy" the first two vectors belong to columns and rows, instead of rows and columns.
    """
    vectors = several(tensors)
    if indexing is None:
        messages.warn_once(messages.MESHGRID)
    if indexing not in (None, "ij", "xy"):
        raise RuntimeError(f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    if any(vector.dtype is not vectors[0].dtype for vector in vectors):
        raise RuntimeError("meshgrid expects all tensors to have the same dtype")
    for vector in vectors:
        if vector.ndim > 1:
            raise RuntimeError(
                "torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: "
                + cpp_text(vector._array, vector.dtype)
            )
    if not vectors:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    swapped = indexing == "xy" and len(vectors) > 1
    ordered = [vectors[1], vectors[0], *vectors[2:]] if swapped else vectors
    grids = _grids(ordered)
    return (grids[1], grids[0], *grids[2:]) if swapped else tuple(grids)


def _grids(vectors: Sequence[Tensor]) -> list[Tensor]:
    if any(vector.dtype is not vectors[0].dtype for vector in vectors):
        raise RuntimeError("meshgrid expects all tensors to have the same dtype")
    size = tuple([vector.numel() for vector in vectors])
    lines = [
        view(vector, *[n if d == place else 1 for d, n in enumerate(size)]) for place, vector in enumerate(vectors)
    ]
    return [run(expand, line, size=size) for line in lines]


def _check_vector(tensor: Tensor) -> None:
    if tensor.ndim != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(tensor.shape)}")


@front("cartesian_prod", method=False)
def cartesian_prod(*tensors: Tensor) -> Tensor:
    """All tuples of one element from each vector, one per row."""
    all_tensors(tensors)
    for tensor in tensors:
        _check_vector(tensor)
    if len(tensors) == 1:
        return tensors[0]
    return stack([flatten(grid) for grid in _grids(tensors)], 1)


@front("combinations")
def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All combinations of `r` elements of a vector, in order, one per row."""
    _check_vector(input)
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return new_tensor(np.zeros(0, input._array.dtype))
    taken = combinations_with_replacement if with_replacement else index_combinations
    chosen = np.zeros((input.numel(),) * r, bool)
    places = list(taken(range(input.numel()), r))
    chosen[tuple(np.array(places, int).reshape(-1, r).T)] = True
    mask = new_tensor(chosen)
    return stack([run(select_where, grid, mask) for grid in _grids([input] * r)], 1)

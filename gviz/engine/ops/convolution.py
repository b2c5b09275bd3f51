"""Convolution and its transpose, in any number of dimensions: blocks of the input times the weight as one matrix.

Three operations are each other's gradients: the convolution, the transposed one, and the gradient of the weight. So
gradients of any order consist of these.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import numpy as np

from gviz.engine.op import Example, Op, Rule
from gviz.engine.ops._examples import normal
from gviz.engine.ops.indexing import narrow
from gviz.engine.ops.reductions import sum_dim
from gviz.values.value import Array

# ----------------------------------------------------------------------------------------------------------------------
# Windows that slide over the last dimensions of an array, for convolutions, pooling and unfolding.
#
# Blocks are the elements under all windows side by side, ``(*lead, places in the window, windows)``. With a stride of 1
# the windows are *wide*: counted as if a row had as many of them as the padded input has elements. Those at the end of
# a row, which extend into the next one, are invalid and are cut off; in return, every place in the window is a
# contiguous run of memory.


Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Windows:
    """The windows in a padded input of some size: their number along each dimension, and their movement."""

    size: Shape
    count: Shape
    kernel: Shape
    stride: Shape
    dilation: Shape

    @property
    def is_wide(self) -> bool:
        """Whether blocks have rows as long as those of the padded input."""
        return all(s == 1 for s in self.stride)

    @property
    def row(self) -> Shape:
        """The number of elements between neighbours, along each dimension of the padded input."""
        return tuple([prod(self.size[d + 1 :]) for d in range(len(self.size))])

    @property
    def columns(self) -> int:
        """The number of windows in the blocks."""
        if not self.is_wide:
            return prod(self.count)
        return 1 + sum((n - 1) * r for n, r in zip(self.count, self.row, strict=True)) if all(self.count) else 0

    def places(self) -> Iterator[Shape]:
        """The places in the window, in order."""
        return product(*[range(k) for k in self.kernel])

    def start(self, place: Shape) -> int:
        """The start of a place's run in the padded input, for wide blocks."""
        return sum(p * d * r for p, d, r in zip(place, self.dilation, self.row, strict=True))

    def under(self, place: Shape) -> tuple[Any, ...]:
        """The index of the elements at one place of every window."""
        steps = zip(place, self.dilation, self.stride, self.count, strict=True)
        return (..., *[slice(p * d, p * d + s * (n - 1) + 1, s) for p, d, s, n in steps])


def counted(size: Shape, kernel: Shape, stride: Shape, dilation: Shape) -> Shape:
    """The number of windows along each dimension of a padded input; less than 1 if none fits."""
    return tuple([(n - d * (k - 1) - 1) // s + 1 for n, k, s, d in zip(size, kernel, stride, dilation, strict=True)])


def padded(array: Array, before: Shape, after: Shape, value: float = 0) -> Array:
    """A copy with `value` around the last dimensions; the array itself if nothing is added and it is contiguous."""
    if not any(before) and not any(after):
        return np.ascontiguousarray(array)
    lead = array.ndim - len(before)
    sizes = [b + n + a for b, n, a in zip(before, array.shape[lead:], after, strict=True)]
    result = np.full((*array.shape[:lead], *sizes), value, array.dtype)
    result[inner(array.shape[lead:], before)] = array
    return result


def inner(sizes: Shape, before: Shape) -> tuple[Any, ...]:
    """The index of the original elements within a padded array."""
    return (..., *[slice(b, b + n) for b, n in zip(before, sizes, strict=True)])


def blocks_of(array: Array, windows: Windows) -> Array:
    """The elements under the windows of a padded array, as blocks ``(*lead, places, columns)``."""
    lead = array.shape[: array.ndim - len(windows.size)]
    flat = array.reshape(*lead, prod(windows.size))
    if windows.is_wide and prod(windows.kernel) == 1:
        return flat[..., np.newaxis, : windows.columns]
    blocks = np.empty((*lead, prod(windows.kernel), windows.columns), array.dtype)
    for number, place in enumerate(windows.places()):
        if windows.is_wide:
            start = windows.start(place)
            blocks[..., number, :] = flat[..., start : start + windows.columns]
        else:
            part = array[windows.under(place)]
            blocks[..., number, :].reshape(part.shape)[...] = part
    return blocks


def added_under(blocks: Array, windows: Windows) -> Array:
    """The padded array that sums the blocks' values for each element: the transpose of `blocks_of`."""
    lead = blocks.shape[:-2]
    result = np.zeros((*lead, *windows.size), blocks.dtype)
    flat = result.reshape(*lead, prod(windows.size))
    for number, place in enumerate(windows.places()):
        if windows.is_wide:
            start = windows.start(place)
            flat[..., start : start + windows.columns] += blocks[..., number, :]
        else:
            result[windows.under(place)] += blocks[..., number, :].reshape(*lead, *windows.count)
    return result


def in_columns(array: Array, windows: Windows) -> Array:
    """One value per window, ``(*lead, *count)``, as ``(*lead, columns)``; zeros where wide blocks are invalid."""
    lead = array.shape[: array.ndim - len(windows.count)]
    if not windows.is_wide or windows.count[1:] == windows.size[1:]:
        return array.reshape(*lead, -1) if array.size else np.zeros((*lead, windows.columns), array.dtype)
    wide = np.zeros((*lead, windows.count[0], *windows.size[1:]), array.dtype)
    wide[inner(windows.count, (0,) * len(windows.count))] = array
    return wide.reshape(*lead, prod(wide.shape[len(lead) :]))[..., : windows.columns]


def room_for_columns(lead: Shape, windows: Windows, kind: np.dtype[Any]) -> tuple[Array, Array]:
    """Memory for values per window: as columns to write to, and with the windows in their dimensions to read."""
    if not windows.is_wide:
        room = np.empty((*lead, *windows.count), kind)
        return room.reshape(*lead, prod(windows.count)), room
    room = np.empty((*lead, windows.count[0], *windows.size[1:]), kind)
    columns = room.reshape(*lead, prod(room.shape[len(lead) :]))[..., : windows.columns]
    return columns, room[inner(windows.count, (0,) * len(windows.count))]


# ----------------------------------------------------------------------------------------------------------------------
# The operations.


def _grouped(matrix: Array, groups: int, dim: int) -> Array:
    """Split one dimension into groups."""
    return matrix.reshape(*matrix.shape[:dim], groups, matrix.shape[dim] // groups, *matrix.shape[dim + 1 :])


def _around(size: Shape, padding: Shape) -> Shape:
    return tuple([n + 2 * p for n, p in zip(size, padding, strict=True)])


def _blocks(input: Array, windows: Windows, padding: Shape, groups: int) -> Array:
    """``(batch, groups, channels of a group * places, columns)``."""
    blocks = blocks_of(padded(input, padding, padding), windows)
    batch, channels, places, columns = blocks.shape
    return blocks.reshape(batch, groups, channels // groups * places, columns)


def _rows(weight: Array, groups: int) -> Array:
    """Return the weight as one matrix per group: ``(groups, first channels of a group, other channels * places)``."""
    return weight.reshape(groups, weight.shape[0] // groups, prod(weight.shape[1:]))


def _convolve(input: Array, weight: Array, stride: Shape, padding: Shape, dilation: Shape, groups: int) -> Array:
    size, kernel = _around(input.shape[2:], padding), weight.shape[2:]
    windows = Windows(size, counted(size, kernel, stride, dilation), kernel, stride, dilation)
    columns, room = room_for_columns((len(input), groups, len(weight) // groups), windows, input.dtype)
    np.matmul(_rows(weight, groups), _blocks(input, windows, padding, groups), out=columns)
    return np.ascontiguousarray(room).reshape(len(input), len(weight), *windows.count)


def _convolve_transposed(
    input: Array, weight: Array, stride: Shape, padding: Shape, dilation: Shape, output_padding: Shape, groups: int
) -> Array:
    size = transposed_size(input.shape[2:], weight.shape[2:], stride, padding, dilation, output_padding)
    windows = Windows(_around(size, padding), input.shape[2:], weight.shape[2:], stride, dilation)
    per_group = _grouped(in_columns(input, windows), groups, 1)
    blocks = np.matmul(_rows(weight, groups).swapaxes(1, 2), per_group)
    channels = groups * weight.shape[1]
    whole = added_under(blocks.reshape(len(input), channels, prod(weight.shape[2:]), windows.columns), windows)
    return np.ascontiguousarray(whole[inner(size, padding)])


def transposed_size(
    count: Shape, kernel: Shape, stride: Shape, padding: Shape, dilation: Shape, output_padding: Shape
) -> Shape:
    """The spatial size of the result of a transposed convolution."""
    geometry = zip(count, kernel, stride, padding, dilation, output_padding, strict=True)
    return tuple([(n - 1) * s - 2 * p + d * (k - 1) + o + 1 for n, k, s, p, d, o in geometry])


def _convolution(
    input: Array,
    weight: Array,
    bias: Array | None,
    stride: Shape,
    padding: Shape,
    dilation: Shape,
    transposed: bool,
    output_padding: Shape,
    groups: int,
) -> Array:
    if transposed:
        result = _convolve_transposed(input, weight, stride, padding, dilation, output_padding, groups)
    else:
        result = _convolve(input, weight, stride, padding, dilation, groups)
    if bias is not None:
        result += bias.reshape(-1, *[1] * (result.ndim - 2))
    return result


def _for_weight(
    input: Array, grad_output: Array, kernel: Shape, stride: Shape, padding: Shape, dilation: Shape, groups: int
) -> Array:
    windows = Windows(_around(input.shape[2:], padding), grad_output.shape[2:], kernel, stride, dilation)
    blocks = _blocks(input, windows, padding, groups)
    products = np.matmul(_grouped(in_columns(grad_output, windows), groups, 1), blocks.swapaxes(2, 3))
    summed: Array = np.add.reduce(products, axis=0)
    return summed.reshape(grad_output.shape[1], input.shape[1] // groups, *kernel)


def _back(g: Any, weight: Any, size: Shape, stride: Shape, padding: Shape, dilation: Shape, groups: int) -> Any:
    """Return the transposed convolution of `g` that gives exactly this spatial size."""
    least = transposed_size(g.shape[2:], weight.shape[2:], stride, padding, dilation, (0,) * len(size))
    missing = tuple([n - m for n, m in zip(size, least, strict=True)])
    geometry = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    return convolution(g, weight, None, **geometry, transposed=True, output_padding=missing)


def _forth(input: Any, weight: Any, size: Shape, stride: Shape, padding: Shape, dilation: Shape, groups: int) -> Any:
    """Return the convolution of `input`, cropped to this spatial size."""
    geometry = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    result = convolution(input, weight, None, **geometry, transposed=False, output_padding=(0,) * len(size))
    for dim, n in enumerate(size, 2):
        if result.shape[dim] != n:
            result = narrow(result, dim=dim, start=0, end=n, step=1)
    return result


def _through_input(
    g: Any,
    weight: Any,
    input_sym_sizes: Shape,
    stride: Shape,
    padding: Shape,
    dilation: Shape,
    transposed: bool,
    groups: int,
) -> Any:
    function = _forth if transposed else _back
    return function(g, weight, input_sym_sizes[2:], stride, padding, dilation, groups)


def _through_weight(
    g: Any,
    input: Any,
    weight_sym_sizes: Shape,
    stride: Shape,
    padding: Shape,
    dilation: Shape,
    transposed: bool,
    groups: int,
) -> Any:
    wide, narrow = (g, input) if transposed else (input, g)
    geometry = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    return convolution_weight(wide, narrow, kernel=weight_sym_sizes[2:], **geometry)


_plain: dict[str, Any] = {"stride": (1,), "padding": (0,), "dilation": (1,), "groups": 1}
_bent: dict[str, Any] = {"stride": (2, 1), "padding": (1, 2), "dilation": (1, 2), "groups": 2}


def _examples() -> list[Example]:
    forth, back = {"transposed": False}, {"transposed": True}
    return [
        Example((normal(2, 2, 5), normal(3, 2, 3), normal(3)), _plain | forth | {"output_padding": (0,)}),
        Example((normal(1, 4, 4, 5), normal(2, 2, 2, 2), None), _bent | forth | {"output_padding": (0, 0)}),
        Example((normal(2, 2, 3), normal(2, 3, 2), normal(3)), _plain | back | {"output_padding": (0,)}),
        Example((normal(1, 2, 3, 4), normal(2, 2, 2, 2), None), _bent | back | {"output_padding": (1, 1)}),
    ]


convolution: Op = Op(
    "convolution(input, weight, bias?, *, stride, padding, dilation, transposed, output_padding, groups)",
    grad_fn="ConvolutionBackward0",
    formula="weight slid over input, products summed, + bias",
    forward=_convolution,
    rules=(
        Rule("input", "g, convolved with weight the other way", _through_input),
        Rule("weight", "sum of g * what of input lay under it", _through_weight),
        Rule("bias", "g, summed per channel", lambda g: sum_dim(g, dim=(0, *range(2, g.ndim)), keepdim=False)),
    ),
    public=False,
    examples=_examples,
)
convolution_weight: Op = Op(
    "convolution_backward(input, grad_output, *, kernel, stride, padding, dilation, groups)",
    grad_fn="ConvolutionBackwardBackward0",
    formula="sum of grad_output * what of input lies under it",
    forward=_for_weight,
    rules=(
        Rule(
            "input",
            "grad_output, convolved with g the other way",
            lambda g, grad_output, input_sym_sizes, stride, padding, dilation, groups: _back(
                grad_output, g, input_sym_sizes[2:], stride, padding, dilation, groups
            ),
        ),
        Rule(
            "grad_output",
            "input, convolved with g",
            lambda g, input, grad_output_sym_sizes, stride, padding, dilation, groups: _forth(
                input, g, grad_output_sym_sizes[2:], stride, padding, dilation, groups
            ),
        ),
    ),
    public=False,
    examples=lambda: [
        Example((normal(2, 2, 5), normal(2, 3, 3)), _plain | {"kernel": (3,)}),
        Example((normal(1, 4, 4, 5), normal(1, 2, 3, 7)), _bent | {"kernel": (2, 2)}),
    ],
)

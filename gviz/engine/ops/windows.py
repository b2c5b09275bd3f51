"""Windows that slide over the last dimensions of an array: what convolutions, pooling and unfolding look through.

Blocks are the elements under all windows side by side, ``(*lead, places in the window, windows)``. With a stride of 1
the windows are *wide*: counted as if a row had as many of them as the padded input has elements. Those at the end of a
row, which reach into the next one, are nonsense to be cut off; but every place in the window is then one run of memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import numpy as np

from gviz.values import Array

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Windows:
    """Where windows lie in a padded input of some size: how many of them along each dimension, and how they step."""

    size: Shape
    count: Shape
    kernel: Shape
    stride: Shape
    dilation: Shape

    @property
    def is_wide(self) -> bool:
        """Whether blocks are laid out in rows as long as those of the padded input."""
        return all(s == 1 for s in self.stride)

    @property
    def row(self) -> Shape:
        """How many elements lie between neighbours, along each dimension of the padded input."""
        return tuple([prod(self.size[d + 1 :]) for d in range(len(self.size))])

    @property
    def columns(self) -> int:
        """How many windows the blocks hold."""
        if not self.is_wide:
            return prod(self.count)
        return 1 + sum((n - 1) * r for n, r in zip(self.count, self.row, strict=True)) if all(self.count) else 0

    def places(self) -> Iterator[Shape]:
        """The places in the window, in order."""
        return product(*[range(k) for k in self.kernel])

    def start(self, place: Shape) -> int:
        """Where in the padded input the run of a place begins, when blocks are wide."""
        return sum(p * d * r for p, d, r in zip(place, self.dilation, self.row, strict=True))

    def under(self, place: Shape) -> tuple[Any, ...]:
        """The index of the elements that lie at one place of every window."""
        steps = zip(place, self.dilation, self.stride, self.count, strict=True)
        return (..., *[slice(p * d, p * d + s * (n - 1) + 1, s) for p, d, s, n in steps])


def counted(size: Shape, kernel: Shape, stride: Shape, dilation: Shape) -> Shape:
    """How many windows fit into a padded input along each dimension; less than 1 if none does."""
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
    """The index of what was there before padding."""
    return (..., *[slice(b, b + n) for b, n in zip(before, sizes, strict=True)])


def blocks_of(array: Array, windows: Windows) -> Array:
    """What lies under the windows of a padded array, as blocks ``(*lead, places, columns)``."""
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
    """The padded array whose elements are the sums of what blocks hold for them: the transpose of `blocks_of`."""
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
    """One value per window, ``(*lead, *count)``, as ``(*lead, columns)``: zeros where wide blocks hold nonsense."""
    lead = array.shape[: array.ndim - len(windows.count)]
    if not windows.is_wide or windows.count[1:] == windows.size[1:]:
        return array.reshape(*lead, -1) if array.size else np.zeros((*lead, windows.columns), array.dtype)
    wide = np.zeros((*lead, windows.count[0], *windows.size[1:]), array.dtype)
    wide[inner(windows.count, (0,) * len(windows.count))] = array
    return wide.reshape(*lead, prod(wide.shape[len(lead) :]))[..., : windows.columns]


def room_for_columns(lead: Shape, windows: Windows, kind: np.dtype[Any]) -> tuple[Array, Array]:
    """Memory for values per window: as columns to write to, and as the windows in their dimensions to read."""
    if not windows.is_wide:
        room = np.empty((*lead, *windows.count), kind)
        return room.reshape(*lead, prod(windows.count)), room
    room = np.empty((*lead, windows.count[0], *windows.size[1:]), kind)
    columns = room.reshape(*lead, prod(room.shape[len(lead) :]))[..., : windows.columns]
    return columns, room[inner(windows.count, (0,) * len(windows.count))]

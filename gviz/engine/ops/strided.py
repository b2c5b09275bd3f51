"""A view as plain memory: reads a strided part of a base, places a part among zeros, replaces a part.

Offsets and strides count elements of the base's memory. A gradient may have another layout than its base, so it is
first converted to the base's layout.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.lib.array_utils import byte_bounds
from numpy.lib.stride_tricks import as_strided

from gviz.engine.array_storage import address_of, owner_of
from gviz.engine.op import Example, Op, Rule, zeros
from gviz.engine.ops._examples import normal
from gviz.engine.ops._kernels import added
from gviz.values.value import Array


@dataclass(frozen=True, slots=True)
class Geometry:
    """The geometry of a view in its base."""

    base_shape: tuple[int, ...]
    base_strides: tuple[int, ...]
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int

    @classmethod
    def of(cls, base: Array, view: Array) -> Geometry:
        """The geometry of `view` in `base`.

        They share memory unless one of them was given other data. In that case, as in PyTorch, the view's position in
        its own memory is used as its position in the base.
        """
        distance = address_of(view) - address_of(base)
        own, other = owner_of(base), owner_of(view)
        if own is not other and not np.may_share_memory(own, other):
            distance += address_of(own) - address_of(other)
        return cls(base.shape, _in_items(base), view.shape, _in_items(view), distance // base.itemsize)

    @property
    def start(self) -> int:
        """The first element of either, counted from the first of the base."""
        return min(0, self.offset)

    @property
    def end(self) -> int:
        """The element after the last of either."""
        last = _extent(self.base_shape, self.base_strides)
        return max(last, self.offset + _extent(self.shape, self.strides), self.offset)

    @property
    def may_overlap(self) -> bool:
        """Whether the view may have an element more than once, other than by repeating a whole dimension."""
        reach = 0
        for stride, n in sorted((s, n) for s, n in zip(self.strides, self.shape, strict=True) if n > 1 and s):
            if stride <= reach:
                return True
            reach += stride * (n - 1)
        return False


def _extent(shape: tuple[int, ...], strides: tuple[int, ...]) -> int:
    """Return the number of elements in memory that an array spans."""
    if 0 in shape:
        return 0
    return 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))


def _in_items(array: Array) -> tuple[int, ...]:
    return tuple(stride // array.itemsize for stride in array.strides)


def overlaps_itself(array: Array) -> bool:
    """Whether several elements of `array` share memory, as after `expand`."""
    return array.size > 1 and not array.flags.c_contiguous and repeats(array.shape, array.strides)


def repeats(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Whether several elements along a dimension are in the same place."""
    return 0 in [stride for stride, n in zip(strides, shape, strict=True) if n > 1]


def rows_overlap(array: Array) -> bool:
    """Whether rows of `array` share some of their memory, as those of ``x.unfold(0, 2, 1)`` do."""
    reach = array.itemsize
    for stride, length in sorted((abs(s), n) for s, n in zip(array.strides, array.shape, strict=True) if n > 1):
        if stride < reach:
            return True
        reach += (length - 1) * stride
    return False


def overlap(a: Array, b: Array) -> Literal["no", "partial", "full"]:
    """Whether two arrays without gaps share memory fully, element for element, or partially.

    As in PyTorch, the answer for arrays with gaps is ``no``. For ``full``, all strides must be equal, also those of
    dimensions of size 1.
    """
    if a is b:
        return "full"
    if not (a.size and b.size and _has_no_gaps(a) and _has_no_gaps(b)):
        return "no"
    (low, high), (other_low, other_high) = byte_bounds(a), byte_bounds(b)
    if (low, high) == (other_low, other_high):
        return "full" if a.strides == b.strides else "partial"
    return "partial" if low < other_high and other_low < high else "no"


def _has_no_gaps(array: Array) -> bool:
    steps = sorted((s, n) for s, n in zip(array.strides, array.shape, strict=True) if n > 1)
    expected = array.itemsize
    for stride, length in steps:
        if stride != expected:
            return False
        expected *= length
    return True


def _window(memory: Array, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> Array:
    return as_strided(memory[offset:], shape, tuple(s * memory.itemsize for s in strides))


def _memory(base: Array, geometry: Geometry) -> Array:
    """`base` copied into contiguous memory in the layout of the geometry's base; zeros where only the view is."""
    memory = np.zeros(geometry.end - geometry.start, base.dtype)
    _window(memory, -geometry.start, geometry.base_shape, geometry.base_strides)[...] = base
    return memory


def _read(self: Array, geometry: Geometry) -> Array:
    window = _window(_memory(self, geometry), geometry.offset - geometry.start, geometry.shape, geometry.strides)
    return window.copy()


def _place(self: Array, geometry: Geometry) -> Array:
    memory = np.zeros(geometry.end - geometry.start, self.dtype)
    offset = geometry.offset - geometry.start
    repeated = tuple(d for d, (n, s) in enumerate(zip(geometry.shape, geometry.strides, strict=True)) if s == 0 < n - 1)
    # an expanded view reads an element several times
    summed = self.sum(axis=repeated, keepdims=True) if repeated else self
    if geometry.may_overlap:
        places = _window(np.arange(len(memory)), offset, summed.shape, geometry.strides)
        memory = added(len(memory), places.reshape(-1), summed.reshape(-1))
    else:
        _window(memory, offset, summed.shape, geometry.strides)[...] = summed
    return _window(memory, -geometry.start, geometry.base_shape, geometry.base_strides)


def _replace(self: Array, src: Array, geometry: Geometry) -> Array:
    memory = _memory(self, geometry)
    _window(memory, geometry.offset - geometry.start, geometry.shape, geometry.strides)[...] = src
    return _window(memory, -geometry.start, geometry.base_shape, geometry.base_strides)


_CORNER = Geometry((2, 3), (3, 1), (2, 2), (3, 1), 1)
_REPEATED = Geometry((2,), (1,), (3, 2), (0, 1), 0)
_SLIDING = Geometry((4,), (1,), (3, 2), (1, 1), 0)

read_part: Op = Op(
    "as_strided(self, *, geometry)",
    grad_fn="AsStridedBackward0",
    formula="self through a view",
    forward=_read,
    rules=(Rule("self", "g where the view looks, 0 elsewhere", lambda g, geometry: place_part(g, geometry=geometry)),),
    public=False,
    examples=lambda: [Example((normal(2, 3),), {"geometry": _CORNER}), Example((normal(2),), {"geometry": _REPEATED})],
)
place_part: Op = Op(
    "as_strided_place(self, *, geometry)",
    grad_fn="AsStridedPlaceBackward0",
    formula="self where the view looks, 0 elsewhere",
    forward=_place,
    rules=(Rule("self", "g through the view", lambda g, geometry: read_part(g, geometry=geometry)),),
    public=False,
    examples=lambda: [
        Example((normal(2, 2),), {"geometry": _CORNER}),
        Example((normal(3, 2),), {"geometry": _REPEATED}),
        Example((normal(3, 2),), {"geometry": _SLIDING}),
    ],
)
replace_part: Op = Op(
    "as_strided_scatter(self, src, *, geometry)",
    grad_fn="AsStridedScatterBackward0",
    formula="self with src where the view looks",
    forward=_replace,
    rules=(
        Rule(
            "self",
            "g, 0 where the view looks",
            lambda g, geometry: replace_part(g, zeros(g, geometry.shape), geometry=geometry),
        ),
        Rule("src", "g through the view", lambda g, geometry: read_part(g, geometry=geometry)),
    ),
    public=False,
    examples=lambda: [Example((normal(2, 3), normal(2, 2)), {"geometry": _CORNER})],
)

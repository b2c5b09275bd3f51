"""What one output of a node holds after the memory it lives in was written."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from gviz.events import Output
from gviz.values import ITEM_SIZES, Array, Value

LARGEST_VIEW = 1 << 26
"""Views are derived up to this many bytes: one of stride 0 can claim any shape over a single element."""

FindArray = Callable[[Value], Array | None]


def value_after(output: Output, written: Value, find_array: FindArray) -> Value | None:
    """The output's value once its storage holds `written`, derived through its offset and strides.

    An output that had no value before has the value of the whole storage, if it fills that; None if it does not. A
    value with nothing stored if the elements were not kept.
    """
    if output.value is None:
        return written if output.strides is None else None
    dtype, shape = output.value.dtype, output.value.shape
    if ITEM_SIZES.get(dtype) != ITEM_SIZES.get(written.dtype):
        return Value(dtype, shape)
    if output.strides is None:
        same = written.size == output.value.size
        return Value(dtype, shape, written.data, written.stats, written.blob) if same else Value(dtype, shape)
    data = _strided(output.offset, output.strides, shape, written, find_array)
    return Value(dtype, shape, data)


def _strided(
    offset: int, strides: tuple[int, ...], shape: tuple[int, ...], written: Value, find_array: FindArray
) -> bytes | None:
    raw = written.data
    if raw is None:
        found = find_array(written) if written.blob is not None else None
        if found is None or written.dtype == "bfloat16":
            return None
        raw = found.tobytes()
    size = ITEM_SIZES[written.dtype]
    if prod(shape) * size > LARGEST_VIEW or not _fits(offset, strides, shape, len(raw) // size):
        return None
    items: Array = np.frombuffer(raw, f"V{size}")
    view = np.lib.stride_tricks.as_strided(items[offset:], shape, tuple(step * size for step in strides))
    return view.tobytes()


def _fits(offset: int, strides: tuple[int, ...], shape: tuple[int, ...], size: int) -> bool:
    if len(strides) != len(shape) or any(n < 0 for n in shape):
        return False
    if 0 in shape:
        return True
    reach = [(n - 1) * step for n, step in zip(shape, strides, strict=True)]
    low = offset + sum(r for r in reach if r < 0)
    high = offset + sum(r for r in reach if r > 0)
    return low >= 0 and high < size

"""Computes what an output holds after its memory was written."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from gviz.events import Output
from gviz.values.value import ITEM_SIZES, Array, Value

LARGEST_VIEW = 1 << 26
"""The largest view, in bytes, that is computed: a view of stride 0 can claim any shape over a single element."""

FindArray = Callable[[Value], Array | None]


def value_after(output: Output, written: Value, find_array: FindArray) -> Value | None:
    """Return the output's value once its storage holds `written`, computed with its offset and strides.

    An output without a value before gets the value of the whole storage if it fills that, otherwise None. If the
    elements were not kept, the returned value has none.
    """
    if output.value is None:
        return written if output.strides is None else None
    dtype, shape, itemsize = output.value.dtype, output.value.shape, ITEM_SIZES.get(output.value.dtype)
    if itemsize is None or written.dtype not in ITEM_SIZES:
        return Value(dtype, shape)
    is_all = output.value.size * itemsize == written.nbytes
    if written.dtype == dtype and is_all:
        if output.strides is None:
            return Value(dtype, shape, written.data, written.stats, written.blob)
        if written.stats is not None and written.data is None and written.blob is None:
            return Value(dtype, shape, None, written.stats if _is_dense(shape, output.strides) else None)
    strides = _in_a_row(shape) if output.strides is None else output.strides
    return Value(dtype, shape, _strided(output.offset, strides, shape, itemsize, written, find_array))


def _in_a_row(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides of a C-contiguous array."""
    return tuple(prod(shape[place + 1 :]) for place in range(len(shape)))


def _is_dense(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Return whether elements are stored without gaps, each once, in any order of the dimensions."""
    step = 1
    for stride, size in sorted(zip(strides, shape, strict=False)):
        if size != 1:
            if stride != step:
                return False
            step *= size
    return len(shape) == len(strides)


def _strided(
    offset: int, strides: tuple[int, ...], shape: tuple[int, ...], size: int, written: Value, find_array: FindArray
) -> bytes | None:
    """Return the elements of a view, `size` bytes each, in the dtype in which they were written."""
    raw = written.data
    if raw is None:
        array = find_array(written) if written.blob is not None else None
        if array is None:
            return None
        bits = array.astype("<f4").view("<u4") >> 16 if written.dtype == "bfloat16" else array
        raw = (bits.astype("<u2") if written.dtype == "bfloat16" else bits).tobytes()
    if prod(shape) * size > LARGEST_VIEW or not _fits(offset, strides, shape, len(raw) // size):
        return None
    items: Array = np.frombuffer(raw, f"V{size}", len(raw) // size)
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

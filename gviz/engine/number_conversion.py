"""The conversion of numbers to dtypes: which dtype can hold which number, and PyTorch's errors for the others."""

from __future__ import annotations

from typing import Any

import numpy as np

from gviz.engine import dtypes
from gviz.engine.arguments import typename
from gviz.engine.dtypes import dtype as DType
from gviz.engine.tensor import Tensor
from gviz.values.value import Array

_C_NAMES = {"uint8": "uint8_t", "int8": "int8_t", "int16": "int16_t", "int32": "int", "int64": "int64_t"}
_C_NAMES |= {"float16": "c10::Half", "float32": "float"}


def fitting(value: Any, kind: DType) -> Any:
    """Returns `value` if it is in the range of a dtype, as C++ checks it; negative values wrap in unsigned dtypes."""
    if isinstance(value, np.generic):
        value = value.item()
    if not isinstance(value, (bool, int, float)):
        raise TypeError(f"must be a number, not {typename(value)}")
    if kind.is_floating_point:
        limit = float(np.finfo(kind.numpy).max)
        overflows = abs(value) > limit and abs(value) != np.inf
    else:
        overflows = kind.name != "bool" and not in_range(value, kind)
    if overflows:
        raise RuntimeError(f"value cannot be converted to type {_C_NAMES.get(kind.name, kind.name)} without overflow")
    return int(value) % (1 << 8 * kind.itemsize) if kind.numpy.kind == "u" and value < 0 else value


def in_range(value: Any, kind: DType) -> bool:
    """Whether an integer dtype can hold a number; negative integers wrap around in unsigned dtypes."""
    limits = np.iinfo(kind.numpy)
    low = -int(limits.max) if limits.min == 0 and not isinstance(value, float) else int(limits.min)
    return bool(low <= value <= int(limits.max))


def real_number(value: Any, kind: DType) -> Any:
    """Return an element of the data for a tensor as a Python number. Raises TypeError for anything else."""
    if isinstance(value, Tensor):
        if value._array.size != 1:
            raise ValueError("only one element tensors can be converted to Python scalars")
        if not kind.is_floating_point and value.dtype.is_floating_point:
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return value.item()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (bool, int, float)):
        return value
    if kind.is_floating_point:
        raise TypeError(f"must be real number, not {typename(value)}")
    raise TypeError(f"'{typename(value)}' object cannot be interpreted as an integer")


def integer_array(flat: list[Any], kind: DType) -> Array:
    """Return numbers as integers, truncated towards zero. Raises RuntimeError for one out of the range of `kind`."""
    if float in {*map(type, flat)}:
        if any(value != value or not in_range(value, kind) for value in flat):
            raise overflow(kind)
        flat = [int(value) for value in flat]
    try:
        array = np.array(flat, dtype=np.int64)
    except OverflowError:
        raise ValueError("Overflow when unpacking long long") from None
    if kind is not dtypes.int64 and array.size and not (in_range(array.min(), kind) and in_range(array.max(), kind)):
        raise overflow(kind)
    return array.astype(kind.numpy)


def overflow(kind: DType) -> RuntimeError:
    """The error for a number that is out of the range of `kind`."""
    return RuntimeError(f"value cannot be converted to type {kind.name} without overflow")

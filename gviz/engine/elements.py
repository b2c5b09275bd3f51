"""Python data as arrays: what `torch.tensor` makes of numbers, nested sequences, tensors and arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any

import numpy as np

from gviz.engine import dtypes
from gviz.engine.arguments import in_range, typename
from gviz.engine.dtypes import dtype as DType
from gviz.engine.modes import thread
from gviz.engine.tensor import Tensor
from gviz.values import Array

_NUMBERS = (bool, int, float)
_UNSUPPORTED = (
    "can't convert np.ndarray of type numpy.{name}. The only supported types are: float64, float32, float16, "
    "complex64, complex128, int64, int32, int16, int8, uint64, uint32, uint16, uint8, and bool."
)
_STRIDES = (
    "At least one stride in the given numpy array is negative, and tensors with negative strides are not currently "
    "supported. (You can probably work around this by making a copy of your array  with array.copy().) "
)
_BYTES = (
    "given numpy array has byte order different from the native byte order. Conversion between byte orders is "
    "currently not supported."
)
MAX_DIMS = 64


def array_of(data: Any, kind: DType | None = None) -> Array:
    """`data` as an array of dtype `kind`, else of the dtype it suggests; arrays and tensors share their memory."""
    if isinstance(data, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{typename(data)}'")
    if isinstance(data, (np.ndarray, Tensor)):
        array = data._array if isinstance(data, Tensor) else checked(data)
        return array if kind is None else cast(array, kind)
    shape = _shape(data)
    return _stored(data, shape, kind or _inferred(data))


def checked(array: Array) -> Array:
    """An array that a tensor can have. TypeError or ValueError, in PyTorch's words, for any other."""
    if array.dtype.newbyteorder("=") != array.dtype:
        raise ValueError(_BYTES)
    kind = dtypes.by_name(array.dtype.name)
    if kind is None:
        raise TypeError(_UNSUPPORTED.format(name=array.dtype.type.__name__))
    if any(s < 0 for s in array.strides):
        raise ValueError(_STRIDES)
    assert kind.numpy  # refuses a dtype that is a name only
    return np.asarray(array)


def cast(array: Array, kind: DType) -> Array:
    """The array as another dtype: what is too large becomes inf, or wraps around."""
    if array.dtype == kind.numpy:
        return array
    result: Array = thread.quietly(array.astype, kind.numpy)
    return result


def _shape(data: Any) -> tuple[int, ...]:
    """The lengths of nested sequences, as the first element of each has them."""
    shape: list[int] = []
    while is_sequence(data):
        shape.append(len(data))
        if len(shape) > MAX_DIMS:
            raise ValueError(f"too many dimensions '{typename(data)}'")
        if not shape[-1]:
            break
        data = data[0]
    return tuple(shape)


def is_sequence(data: object) -> bool:
    """Whether `data` has elements in an order, and is not a tensor or a number."""
    if isinstance(data, (list, tuple)):
        return True
    if isinstance(data, (Tensor, np.generic, Mapping, Set)):
        return False
    return hasattr(data, "__getitem__") and hasattr(data, "__len__")


def _inferred(data: Any) -> DType:
    """The dtype of a number, or the common one of nested sequences of numbers."""
    if isinstance(data, (bool, np.bool_)):
        return dtypes.bool_
    if isinstance(data, np.generic):
        return dtypes.of(data)
    if isinstance(data, (int, float)):
        return dtypes.int64 if isinstance(data, int) else dtypes.get_default_dtype()
    if isinstance(data, Tensor):
        return data.dtype
    if isinstance(data, np.ndarray):
        return dtypes.of(checked(data))
    if isinstance(data, complex):
        return dtypes.complex64
    if isinstance(data, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{typename(data)}'")
    if not is_sequence(data):
        raise RuntimeError(f"Could not infer dtype of {typename(data)}")
    return _common(data)


def _common(items: Sequence[Any]) -> DType:
    one_of_each = {type(item): item for item in items if isinstance(item, _NUMBERS)}
    rest = [item for item in items if not isinstance(item, _NUMBERS)]
    if any(item is items for item in rest):
        raise TypeError("new(): self-referential lists are incompatible")
    kinds = {_inferred(item) for item in (*one_of_each.values(), *rest)}
    if not kinds:
        return dtypes.get_default_dtype()
    if dtypes.complex64 in kinds:
        return dtypes.complex64
    common = dtypes.join([kind.numpy for kind in kinds])
    assert common is not None
    return dtypes.of_numpy(common)


def _stored(data: Any, shape: tuple[int, ...], kind: DType) -> Array:
    flat: list[Any] = []
    if 0 not in shape:
        _flatten(data, shape, 0, kind, flat)
    if not kind.is_floating_point and kind is not dtypes.bool_:
        return _integers(flat, kind).reshape(shape)
    target = np.float64 if kind.is_floating_point else kind.numpy
    return cast(np.array(flat, dtype=target), kind).reshape(shape)


def _flatten(data: Any, shape: tuple[int, ...], dim: int, kind: DType, flat: list[Any]) -> None:
    """Add the numbers of nested sequences to `flat`. ValueError where they differ in length."""
    assert kind.numpy  # refuses a dtype that is a name only
    if dim == len(shape):
        flat.append(_number(data, kind))
        return
    if not is_sequence(data) and not isinstance(data, str):
        raise TypeError("not a sequence")
    if len(data) != shape[dim]:
        raise ValueError(f"expected sequence of length {shape[dim]} at dim {dim} (got {len(data)})")
    if dim == len(shape) - 1 and {*map(type, data)} <= {*_NUMBERS}:
        flat.extend(data)
        return
    for item in data:
        _flatten(item, shape, dim + 1, kind, flat)


def _number(value: Any, kind: DType) -> Any:
    if isinstance(value, Tensor):
        if value._array.size != 1:
            raise ValueError("only one element tensors can be converted to Python scalars")
        if not kind.is_floating_point and value.dtype.is_floating_point:
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return value.item()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, _NUMBERS):
        return value
    if kind.is_floating_point:
        raise TypeError(f"must be real number, not {typename(value)}")
    raise TypeError(f"'{typename(value)}' object cannot be interpreted as an integer")


def _integers(flat: list[Any], kind: DType) -> Array:
    """Numbers as integers, cut off behind the point. RuntimeError for one that `kind` does not hold."""
    if float in {*map(type, flat)}:
        if any(value != value or not in_range(value, kind) for value in flat):
            raise _overflow(kind)
        flat = [int(value) for value in flat]
    try:
        array = np.array(flat, dtype=np.int64)
    except OverflowError:
        raise ValueError("Overflow when unpacking long long") from None
    if kind is not dtypes.int64 and array.size and not (in_range(array.min(), kind) and in_range(array.max(), kind)):
        raise _overflow(kind)
    return array.astype(kind.numpy)


def _overflow(kind: DType) -> RuntimeError:
    return RuntimeError(f"value cannot be converted to type {kind.name} without overflow")

"""PyTorch's dtypes over numpy's, and its rules for mixing them.

Promotion looks at three categories, bool < integer < floating. Within the highest one present, tensors with dimensions
decide over 0-dimensional ones (PyTorch, "Tensor Attributes", type promotion). Python numbers never widen a tensor of
their own category.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gviz.values import Array

__all__ = [
    "double",
    "dtype",
    "float16",
    "float32",
    "float64",
    "get_default_dtype",
    "half",
    "int8",
    "int16",
    "int32",
    "int64",
    "long",
    "set_default_dtype",
    "short",
    "uint8",
]


class dtype:  # PyTorch's own spelling: users write torch.dtype
    """The element type of a tensor. There is one object per type; compare with ``is`` or ``==``."""

    __slots__ = ("is_floating_point", "itemsize", "name", "numpy", "tensor_type")

    def __init__(self, name: str, code: str, tensor_type: str) -> None:
        self.name = name
        self.numpy = np.dtype(code)
        self.itemsize = self.numpy.itemsize
        self.is_floating_point = self.numpy.kind == "f"
        self.tensor_type = tensor_type

    @property
    def is_complex(self) -> bool:
        return False

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> tuple[Any, ...]:
        return named, (self.name,)


float16 = half = dtype("float16", "f2", "Half")
float32 = float_ = dtype("float32", "f4", "Float")
float64 = double = dtype("float64", "f8", "Double")
uint8 = dtype("uint8", "u1", "Byte")
int8 = dtype("int8", "i1", "Char")
int16 = short = dtype("int16", "i2", "Short")
int32 = int_ = dtype("int32", "i4", "Int")
int64 = long = dtype("int64", "i8", "Long")
bool_ = dtype("bool", "?", "Bool")

ALL = (float16, float32, float64, uint8, int8, int16, int32, int64, bool_)
_by_name = {d.name: d for d in ALL}
_by_numpy = {d.numpy: d for d in ALL}
_default = float32


def named(name: str) -> dtype:
    """The dtype called `name`."""
    return _by_name[name]


def of(array: Array | np.generic) -> dtype:
    """The dtype of an array; TypeError for element types the engine does not have (complex, objects, text)."""
    try:
        return _by_numpy[array.dtype]
    except KeyError:
        raise TypeError(
            f"can't convert np.ndarray of type {array.dtype}. The only supported types are: "
            "float64, float32, float16, int64, int32, int16, int8, uint8, and bool."
        ) from None


def of_numpy(d: np.dtype[Any]) -> dtype:
    """The dtype of numpy's dtype `d`."""
    return _by_numpy[d]


def get_default_dtype() -> dtype:
    """The dtype of tensors made from Python floats."""
    return _default


def set_default_dtype(d: dtype) -> None:
    """Change the dtype of tensors made from Python floats."""
    global _default
    if not d.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type")
    _default = d


def scalar_dtype(number: bool | int | float, like: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype a Python number takes beside a tensor of dtype `like`: it never widens within its category."""
    kind = like.kind
    if isinstance(number, bool):
        return like
    if isinstance(number, int):
        return int64.numpy if kind == "b" else like
    return like if kind == "f" else _default.numpy


def promote(arrays: Sequence[Array]) -> np.dtype[Any]:
    """The common dtype of several arrays under PyTorch's rules."""
    with_dims = _join([a.dtype for a in arrays if a.ndim])
    without = _join([a.dtype for a in arrays if not a.ndim])
    if with_dims is None or without is None:
        common = with_dims or without
        if common is None:
            raise TypeError("promote needs at least one array")
        return common
    return without if _category(without) > _category(with_dims) else with_dims


def _category(d: np.dtype[Any]) -> int:
    return {"b": 0, "u": 1, "i": 1, "f": 2}[d.kind]


def _join(dtypes: Sequence[np.dtype[Any]]) -> np.dtype[Any] | None:
    if not dtypes:
        return None
    highest = max(_category(d) for d in dtypes)
    same = [d for d in dtypes if _category(d) == highest]
    return np.result_type(*same)

"""PyTorch's dtypes on top of NumPy's, and PyTorch's type promotion.

Promotion has three categories, bool < integer < floating. Within the highest category present, tensors with dimensions
take precedence over 0-dimensional ones (PyTorch, "Tensor Attributes", type promotion). Python numbers never widen a
tensor of their own category.

The dtypes without arrays in the engine (complex, bfloat16 ...) exist as names, so that a program can refer to them;
creating a tensor of one raises an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from gviz.values.value import Array

_PUBLIC = {"bool_": "bool", "float_": "float", "int_": "int"}
"""Names with an underscore in this file, where the builtins are used."""

_CPP_NAMES = {
    "float64": "double",
    "float32": "float",
    "float16": "c10::Half",
    "bfloat16": "c10::BFloat16",
    "int64": "long int",
    "int32": "int",
    "int16": "short int",
    "int8": "signed char",
    "uint8": "unsigned char",
}


class dtype:  # PyTorch's own spelling: users write torch.dtype
    """The element type of a tensor. There is one object per type; compare with ``is`` or ``==``."""

    __slots__ = ("is_complex", "is_floating_point", "is_signed", "itemsize", "name", "numpy", "tensor_type")
    __module__ = "torch"
    numpy: np.dtype[Any]

    def __init__(self, name: str, tensor_type: str, code: str = "", *, itemsize: int = 0, kind: str = "") -> None:
        self.name = name
        self.tensor_type = tensor_type
        if code:
            self.numpy = np.dtype(code)
            itemsize, kind = self.numpy.itemsize, self.numpy.kind
        self.itemsize = itemsize
        self.is_floating_point = kind == "f"
        self.is_complex = kind == "c"
        self.is_signed = kind in "fic"

    def __getattr__(self, attribute: str) -> Any:
        if attribute == "numpy":  # the slot is empty: a name only
            raise TypeError(
                f"gviz's built-in engine has no tensors of dtype torch.{self.name}; it has "
                f"{', '.join(d.name for d in ALL)}"
            )
        raise AttributeError(f"'torch.dtype' object has no attribute '{attribute}'")

    @property
    def cpp_name(self) -> str:
        """The name of the type in C++, as some of PyTorch's errors show it."""
        return _CPP_NAMES.get(self.name, self.name)

    def to_complex(self) -> dtype:
        """The complex dtype of the same precision."""
        return _complex_of.get(self.name, self)

    def to_real(self) -> dtype:
        """The floating dtype of the same precision."""
        return next((_by_name[real] for real, other in _complex_of.items() if other is self), self)

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> tuple[Any, ...]:
        return named, (self.name,)

    def __deepcopy__(self, memo: dict[int, Any]) -> dtype:
        return self


float16 = half = dtype("float16", "Half", "f2")
float32 = float_ = dtype("float32", "Float", "f4")
float64 = double = dtype("float64", "Double", "f8")
uint8 = dtype("uint8", "Byte", "u1")
int8 = dtype("int8", "Char", "i1")
int16 = short = dtype("int16", "Short", "i2")
int32 = int_ = dtype("int32", "Int", "i4")
int64 = long = dtype("int64", "Long", "i8")
bool_ = dtype("bool", "Bool", "?")
ALL = (float16, float32, float64, uint8, int8, int16, int32, int64, bool_)
"""The dtypes that tensors of the engine can have."""

bfloat16 = dtype("bfloat16", "BFloat16", itemsize=2, kind="f")
complex32 = chalf = dtype("complex32", "ComplexHalf", itemsize=4, kind="c")
complex64 = cfloat = dtype("complex64", "ComplexFloat", itemsize=8, kind="c")
complex128 = cdouble = dtype("complex128", "ComplexDouble", itemsize=16, kind="c")
uint16 = dtype("uint16", "UInt16", itemsize=2, kind="u")
uint32 = dtype("uint32", "UInt32", itemsize=4, kind="u")
uint64 = dtype("uint64", "UInt64", itemsize=8, kind="u")
qint8 = dtype("qint8", "QInt8", itemsize=1, kind="i")
quint8 = dtype("quint8", "QUInt8", itemsize=1, kind="q")
qint32 = dtype("qint32", "QInt32", itemsize=4, kind="i")
float8_e4m3fn = dtype("float8_e4m3fn", "Float8_e4m3fn", itemsize=1, kind="f")
float8_e5m2 = dtype("float8_e5m2", "Float8_e5m2", itemsize=1, kind="f")

_by_name = {d.name: d for d in list(globals().values()) if isinstance(d, dtype)}
_by_numpy = {d.numpy: d for d in ALL}
_by_python: dict[Any, dtype] = {float: float64, int: int64, bool: bool_, complex: complex128}
_complex_of = {"float16": complex32, "float32": complex64, "float64": complex128}
_default = float32


def named(name: str) -> dtype:
    """The dtype called `name`."""
    return _by_name[name]


def by_name(name: str) -> dtype | None:
    """The dtype called `name`, which may be one without tensors; None if there is none."""
    return _by_name.get(name)


def of(array: Array | np.generic) -> dtype:
    """The dtype of an array. Raises TypeError for element types that the engine lacks (complex, objects, text)."""
    try:
        return _by_numpy[array.dtype]
    except KeyError:
        raise TypeError(
            f"can't convert np.ndarray of type {array.dtype}. The only supported types are: "
            "float64, float32, float16, int64, int32, int16, int8, uint8, and bool."
        ) from None


def of_numpy(d: np.dtype[Any]) -> dtype:
    """The dtype of NumPy's dtype `d`."""
    return _by_numpy[d]


def from_argument(value: object) -> dtype | None:
    """The dtype of a ``dtype`` argument, which may be ``float``, ``int`` or ``bool``; None for anything else."""
    return value if isinstance(value, dtype) else _by_python.get(value) if isinstance(value, type) else None


def get_default_dtype() -> dtype:
    """The dtype of tensors made from Python floats."""
    return _default


def set_default_dtype(d: dtype) -> None:
    """Sets the dtype of tensors made from Python floats."""
    global _default
    if not isinstance(d, dtype):
        raise TypeError("invalid dtype object: only floating-point types are supported as the default type")
    if not d.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type")
    assert d.numpy  # raises for a dtype that is only a name
    _default = d


def scalar_dtype(number: bool | int | float, like: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of a Python number next to a tensor of dtype `like`: it never widens within its category."""
    kind = like.kind
    if isinstance(number, bool):
        return like
    if isinstance(number, int):
        return int64.numpy if kind == "b" else like
    return like if kind == "f" else _default.numpy


def promote(arrays: Sequence[Array]) -> np.dtype[Any]:
    """The common dtype of several arrays under PyTorch's rules."""
    with_dims = join([a.dtype for a in arrays if a.ndim])
    without = join([a.dtype for a in arrays if not a.ndim])
    if with_dims is None or without is None:
        common = with_dims or without
        if common is None:
            raise TypeError("promote needs at least one array")
        return common
    return without if category(without) > category(with_dims) else with_dims


def category(d: np.dtype[Any]) -> int:
    """0 for bool, 1 for integers, 2 for floating dtypes; the highest decides."""
    return {"b": 0, "u": 1, "i": 1, "f": 2}[d.kind]


def castable(source: np.dtype[Any], target: np.dtype[Any]) -> bool:
    """Whether a result may be written to a tensor of dtype `target`: not into a lower category."""
    return category(source) <= category(target)


def join(dtypes: Sequence[np.dtype[Any]]) -> np.dtype[Any] | None:
    """The smallest dtype that holds all dtypes of the highest category present; None if `dtypes` is empty."""
    if not dtypes:
        return None
    highest = max(category(d) for d in dtypes)
    same = [d for d in dtypes if category(d) == highest]
    return np.result_type(*same)


__all__ = ["dtype", "get_default_dtype", "set_default_dtype"]
__all__ += [name for name, value in list(globals().items()) if isinstance(value, dtype) and name not in _PUBLIC]


# ----------------------------------------------------------------------------------------------------------------------
# ``torch.finfo`` and ``torch.iinfo``: the limits of dtypes.


__all__ += ["finfo", "iinfo"]


class _NotPickled:
    __slots__ = ()

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"cannot pickle 'torch.{type(self).__name__}' object")


class finfo(_NotPickled):
    """The limits of a floating dtype; of the default dtype if none is given."""

    __slots__ = ("bits", "dtype", "eps", "max", "min", "resolution", "smallest_normal", "tiny")
    __module__ = "torch"

    def __init__(self, type: dtype | None = None) -> None:
        kind = _checked("finfo", get_default_dtype() if type is None else type)
        if not kind.is_floating_point:
            raise TypeError(
                "torch.finfo() requires a floating point input type. Use torch.iinfo to handle 'torch.finfo'"
            )
        limits = np.finfo(kind.numpy)
        self.bits, self.dtype = limits.bits, kind.name
        self.min, self.max, self.eps = float(limits.min), float(limits.max), float(limits.eps)
        self.tiny = self.smallest_normal = float(limits.smallest_normal)
        self.resolution = float(f"1e-{limits.precision}")

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
            f"smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, dtype={self.dtype})"
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, finfo) and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)


class iinfo(_NotPickled):
    """The limits of an integer dtype."""

    __slots__ = ("bits", "dtype", "max", "min")
    __module__ = "torch"

    def __init__(self, type: dtype) -> None:
        kind = _checked("iinfo", type)
        if kind.is_floating_point or kind.is_complex:
            raise TypeError("torch.iinfo() requires an integer input type. Use torch.finfo to handle 'torch.iinfo'")
        if kind is bool_:
            raise TypeError("torch.bool is not supported by torch.iinfo")
        limits = np.iinfo(kind.numpy)
        self.bits, self.dtype = limits.bits, kind.name
        self.min, self.max = int(limits.min), int(limits.max)

    def __repr__(self) -> str:
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, iinfo) and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)


def _checked(name: str, kind: object) -> dtype:
    result = from_argument(kind)
    if result is None:
        raise TypeError(f"{name}(): argument 'type' (position 1) must be torch.dtype, not {type(kind).__name__}")
    return result

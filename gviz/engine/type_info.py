"""``torch.finfo`` and ``torch.iinfo``: what the numbers of a dtype can be."""

from __future__ import annotations

from typing import NoReturn

import numpy as np

from gviz.engine import dtypes
from gviz.engine.dtypes import dtype as DType

__all__ = ["finfo", "iinfo"]


class _NotPickled:
    __slots__ = ()

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"cannot pickle 'torch.{type(self).__name__}' object")


class finfo(_NotPickled):
    """The limits of a floating dtype, of the default one if none is named."""

    __slots__ = ("bits", "dtype", "eps", "max", "min", "resolution", "smallest_normal", "tiny")
    __module__ = "torch"

    def __init__(self, type: DType | None = None) -> None:
        kind = _checked("finfo", dtypes.get_default_dtype() if type is None else type)
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

    def __init__(self, type: DType) -> None:
        kind = _checked("iinfo", type)
        if kind.is_floating_point or kind.is_complex:
            raise TypeError("torch.iinfo() requires an integer input type. Use torch.finfo to handle 'torch.iinfo'")
        if kind is dtypes.bool_:
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


def _checked(name: str, kind: object) -> DType:
    found = dtypes.given(kind)
    if found is None:
        raise TypeError(f"{name}(): argument 'type' (position 1) must be torch.dtype, not {type(kind).__name__}")
    return found

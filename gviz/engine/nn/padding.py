"""Padding of the last dimensions, as modules; ``F.pad`` is in ``ops/images.py``."""

from __future__ import annotations

from typing import Any, ClassVar

from gviz.engine.nn import functional as F
from gviz.engine.nn._families_by_dimension import each
from gviz.engine.nn.module import Module
from gviz.engine.tensor import Tensor


class _Pad(Module):
    """`padding` is the number of elements on each side, last dimension first."""

    dims: ClassVar[int]
    mode: ClassVar[str]

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = each(padding, 2 * self.dims)

    def forward(self, input: Tensor) -> Tensor:
        """Pads the input."""
        return F.pad(input, self.padding, self.mode)

    def extra_repr(self) -> str:
        """The padding."""
        return f"{self.padding}"


class _CircularPad(_Pad):
    mode = "circular"

    def forward(self, input: Tensor) -> Tensor:
        """Pads the input."""
        allowed = (self.dims + 1, self.dims + 2)
        if input.dim() not in allowed:
            raise ValueError(f"expected {allowed[0]}D or {allowed[1]}D input (got {input.dim()}D input)")
        return super().forward(input)


class CircularPad1d(_CircularPad):
    """Pads a sequence circularly: each end continues at the other."""

    dims = 1


class CircularPad2d(_CircularPad):
    """Pads an image circularly: each side continues at the opposite one."""

    dims = 2


class CircularPad3d(_CircularPad):
    """Pads a volume circularly: each side continues at the opposite one."""

    dims = 3


class _ReflectionPad(_Pad):
    mode = "reflect"


class ReflectionPad1d(_ReflectionPad):
    """Pads a sequence by reflection at each end."""

    dims = 1


class ReflectionPad2d(_ReflectionPad):
    """Pads an image by reflection at each side."""

    dims = 2


class ReflectionPad3d(_ReflectionPad):
    """Pads a volume by reflection at each side."""

    dims = 3


class _ReplicationPad(_Pad):
    mode = "replicate"


class ReplicationPad1d(_ReplicationPad):
    """Pads a sequence by repeating the last element at each end."""

    dims = 1


class ReplicationPad2d(_ReplicationPad):
    """Pads an image by repeating the last element at each side."""

    dims = 2


class ReplicationPad3d(_ReplicationPad):
    """Pads a volume by repeating the last element at each side."""

    dims = 3


class _ConstantPad(_Pad):
    mode = "constant"

    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        """Pads the input."""
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        """The padding and its value."""
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPad):
    """Pads a sequence with a constant."""

    dims = 1


class ConstantPad2d(_ConstantPad):
    """Pads an image with a constant."""

    dims = 2


class ConstantPad3d(_ConstantPad):
    """Pads a volume with a constant."""

    dims = 3


class _ZeroPad(_ConstantPad):
    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        """The padding."""
        return f"{self.padding}"


class ZeroPad1d(_ZeroPad):
    """Pads a sequence with zeros."""

    dims = 1


class ZeroPad2d(_ZeroPad):
    """Pads an image with zeros."""

    dims = 2


class ZeroPad3d(_ZeroPad):
    """Pads a volume with zeros."""

    dims = 3

"""Borders around the last dimensions, as modules; ``F.pad`` is in ``ops/images.py``."""

from __future__ import annotations

from typing import Any, ClassVar

from gviz.engine.nn import functional as F
from gviz.engine.nn._family import each
from gviz.engine.nn.module import Module
from gviz.engine.tensor import Tensor


class _Pad(Module):
    """`padding`: the number of elements on each side, the last dimension first."""

    dims: ClassVar[int]
    mode: ClassVar[str]

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = each(padding, 2 * self.dims)

    def forward(self, input: Tensor) -> Tensor:
        """Pad."""
        return F.pad(input, self.padding, self.mode)

    def extra_repr(self) -> str:
        """The padding."""
        return f"{self.padding}"


class _CircularPad(_Pad):
    mode = "circular"

    def forward(self, input: Tensor) -> Tensor:
        """Pad."""
        allowed = (self.dims + 1, self.dims + 2)
        if input.dim() not in allowed:
            raise ValueError(f"expected {allowed[0]}D or {allowed[1]}D input (got {input.dim()}D input)")
        return super().forward(input)


class CircularPad1d(_CircularPad):
    """A sequence continued at each end from its other end."""

    dims = 1


class CircularPad2d(_CircularPad):
    """A picture continued at each side from its opposite side."""

    dims = 2


class CircularPad3d(_CircularPad):
    """A volume continued at each side from its opposite side."""

    dims = 3


class _ReflectionPad(_Pad):
    mode = "reflect"


class ReflectionPad1d(_ReflectionPad):
    """A mirror at each end of a sequence."""

    dims = 1


class ReflectionPad2d(_ReflectionPad):
    """A mirror at each side of a picture."""

    dims = 2


class ReflectionPad3d(_ReflectionPad):
    """A mirror at each side of a volume."""

    dims = 3


class _ReplicationPad(_Pad):
    mode = "replicate"


class ReplicationPad1d(_ReplicationPad):
    """The last element repeated at each end of a sequence."""

    dims = 1


class ReplicationPad2d(_ReplicationPad):
    """The last element repeated at each side of a picture."""

    dims = 2


class ReplicationPad3d(_ReplicationPad):
    """The last element repeated at each side of a volume."""

    dims = 3


class _ConstantPad(_Pad):
    mode = "constant"

    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        """Pad."""
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        """The padding and its value."""
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPad):
    """A constant at each end of a sequence."""

    dims = 1


class ConstantPad2d(_ConstantPad):
    """A constant at each side of a picture."""

    dims = 2


class ConstantPad3d(_ConstantPad):
    """A constant at each side of a volume."""

    dims = 3


class _ZeroPad(_ConstantPad):
    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        """The padding."""
        return f"{self.padding}"


class ZeroPad1d(_ZeroPad):
    """Zeros at each end of a sequence."""

    dims = 1


class ZeroPad2d(_ZeroPad):
    """Zeros at each side of a picture."""

    dims = 2


class ZeroPad3d(_ZeroPad):
    """Zeros at each side of a volume."""

    dims = 3

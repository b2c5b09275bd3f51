"""Pooling to a given size, as modules."""

from __future__ import annotations

from typing import Any, ClassVar

from gviz.engine.nn import functional
from gviz.engine.nn.module import Module
from gviz.engine.tensor import Tensor


class _AdaptivePool(Module):
    _function: ClassVar[str]

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def extra_repr(self) -> str:
        """The size of the result."""
        return f"output_size={self.output_size}"


class _AdaptiveAvgPool(_AdaptivePool):
    def forward(self, input: Tensor) -> Tensor:
        """Pool."""
        result: Tensor = getattr(functional, self._function)(input, self.output_size)
        return result


class _AdaptiveMaxPool(_AdaptivePool):
    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__(output_size)
        self.return_indices = return_indices

    def forward(self, input: Tensor) -> Any:
        """Pool."""
        return getattr(functional, self._function)(input, self.output_size, self.return_indices)


class AdaptiveAvgPool1d(_AdaptiveAvgPool):
    """A sequence of a given length, of means."""

    _function = "adaptive_avg_pool1d"


class AdaptiveAvgPool2d(_AdaptiveAvgPool):
    """A picture of a given size, of means."""

    _function = "adaptive_avg_pool2d"


class AdaptiveAvgPool3d(_AdaptiveAvgPool):
    """A volume of a given size, of means."""

    _function = "adaptive_avg_pool3d"


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """A sequence of a given length, of largest elements."""

    _function = "adaptive_max_pool1d"


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """A picture of a given size, of largest elements."""

    _function = "adaptive_max_pool2d"


class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """A volume of a given size, of largest elements."""

    _function = "adaptive_max_pool3d"

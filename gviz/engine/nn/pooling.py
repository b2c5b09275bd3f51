"""Pooling, as modules: the largest, the mean or the norm of what lies in a window."""

from __future__ import annotations

from typing import Any, ClassVar

from gviz.engine.nn import functional
from gviz.engine.nn.module import Module
from gviz.engine.nn.sizes import each
from gviz.engine.tensor import Tensor


class _MaxPool(Module):
    """The largest element of every window, and with `return_indices` where it is."""

    _function: ClassVar[str]

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Any:
        """Pool."""
        return getattr(functional, self._function)(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            ceil_mode=self.ceil_mode,
            return_indices=self.return_indices,
        )

    def extra_repr(self) -> str:
        """The window and how it moves."""
        window = f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"
        return f"{window}, dilation={self.dilation}, ceil_mode={self.ceil_mode}"


class MaxPool1d(_MaxPool):
    """The largest element of every window of a sequence."""

    _function = "max_pool1d"


class MaxPool2d(_MaxPool):
    """The largest element of every window of a picture."""

    _function = "max_pool2d"


class MaxPool3d(_MaxPool):
    """The largest element of every window of a volume."""

    _function = "max_pool3d"


class _MaxUnpool(Module):
    """Puts elements back to where a `_MaxPool` took them from, zeros elsewhere."""

    dims: ClassVar[int]

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        super().__init__()
        self.kernel_size = each(kernel_size, self.dims)
        self.stride = each(stride if stride is not None else kernel_size, self.dims)
        self.padding = each(padding, self.dims)

    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        """Put them back."""
        unpool = getattr(functional, f"max_unpool{self.dims}d")
        result: Tensor = unpool(input, indices, self.kernel_size, self.stride, self.padding, output_size)
        return result

    def extra_repr(self) -> str:
        """The window and how it moves."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpool):
    """Undoes `MaxPool1d` as far as that can be."""

    dims = 1


class MaxUnpool2d(_MaxUnpool):
    """Undoes `MaxPool2d` as far as that can be."""

    dims = 2


class MaxUnpool3d(_MaxUnpool):
    """Undoes `MaxPool3d` as far as that can be."""

    dims = 3


class AvgPool1d(Module):
    """The mean of every window of a sequence."""

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        self.kernel_size = each(kernel_size, 1)
        self.stride = each(stride if stride is not None else kernel_size, 1)
        self.padding = each(padding, 1)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        """Pool."""
        window = (self.kernel_size, self.stride, self.padding)
        return functional.avg_pool1d(input, *window, self.ceil_mode, self.count_include_pad)

    def extra_repr(self) -> str:
        """The window and how it moves."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class _AvgPool(Module):
    _function: ClassVar[str]

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Tensor:
        """Pool."""
        window = (self.kernel_size, self.stride, self.padding)
        pool = getattr(functional, self._function)
        result: Tensor = pool(input, *window, self.ceil_mode, self.count_include_pad, self.divisor_override)
        return result

    def extra_repr(self) -> str:
        """The window and how it moves."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool2d(_AvgPool):
    """The mean of every window of a picture."""

    _function = "avg_pool2d"


class AvgPool3d(_AvgPool):
    """The mean of every window of a volume."""

    _function = "avg_pool3d"


class _LPPool(Module):
    _function: ClassVar[str]

    def __init__(self, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Tensor:
        """Pool."""
        pool = getattr(functional, self._function)
        result: Tensor = pool(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)
        return result

    def extra_repr(self) -> str:
        """The norm, the window and how it moves."""
        window = f"kernel_size={self.kernel_size}, stride={self.stride}, ceil_mode={self.ceil_mode}"
        return f"norm_type={self.norm_type}, {window}"


class LPPool1d(_LPPool):
    """The norm of every window of a sequence."""

    _function = "lp_pool1d"


class LPPool2d(_LPPool):
    """The norm of every window of a picture."""

    _function = "lp_pool2d"


class LPPool3d(_LPPool):
    """The norm of every window of a volume."""

    _function = "lp_pool3d"

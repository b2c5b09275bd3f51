"""Convolutions, as modules."""

from __future__ import annotations

from math import prod, sqrt
from typing import Any, ClassVar

from gviz.engine.dtypes import dtype as DType
from gviz.engine.nn import functional, init
from gviz.engine.nn.fresh import begin, empty
from gviz.engine.nn.module import Module
from gviz.engine.nn.parameter import Parameter
from gviz.engine.nn.sizes import each
from gviz.engine.size import Size
from gviz.engine.tensor import Tensor

_MODES = ("zeros", "reflect", "replicate", "circular")


class Convolution(Module):
    """Base of all convolutions: `weight` and `bias`, and how the weight is moved over the input."""

    dims: ClassVar[int]
    transposed: ClassVar[bool] = False
    weight: Parameter
    bias: Parameter | None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any,
        padding: Any,
        dilation: Any,
        output_padding: Any,
        groups: int,
        bias: bool,
        padding_mode: str,
        device: Any,
        dtype: DType | None,
    ) -> None:
        super().__init__()
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = each(kernel_size, self.dims)
        self.stride = each(stride, self.dims)
        self.padding: Any = padding if isinstance(padding, str) else each(padding, self.dims)
        self.dilation = each(dilation, self.dims)
        self.output_padding = each(output_padding, self.dims)
        self.groups = groups
        self.padding_mode = padding_mode
        self._check()
        outer, inner = (in_channels, out_channels) if self.transposed else (out_channels, in_channels)
        self.weight = empty(outer, inner // groups, *self.kernel_size, device=device, dtype=dtype)
        self.register_parameter("bias", empty(out_channels, device=device, dtype=dtype) if bias else None)
        begin(self)

    def _check(self) -> None:
        if self.groups <= 0:
            raise ValueError("groups must be a positive integer")
        for name in ("in_channels", "out_channels"):
            if getattr(self, name) % self.groups:
                raise ValueError(f"{name} must be divisible by groups")
        if isinstance(self.padding, str):
            if self.padding not in ("same", "valid"):
                known = {"same", "valid"}
                raise ValueError(f"Invalid padding string {self.padding!r}, should be one of {known}")
            if self.padding == "same" and any(s != 1 for s in self.stride):
                raise ValueError("padding='same' is not supported for strided convolutions")
        if self.padding_mode not in _MODES:
            known = set(_MODES)
            raise ValueError(f"padding_mode must be one of {known}, but got padding_mode='{self.padding_mode}'")

    def reset_parameters(self) -> None:
        """Draw first values."""
        init.kaiming_uniform_(self.weight, a=sqrt(5))
        if self.bias is not None:
            fan_in = self.weight.shape[1] * prod(self.kernel_size)
            bound = 1 / sqrt(fan_in) if fan_in > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        """Its sizes, and what is not as usual."""
        parts = [f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"]
        usual = {"padding": 0, "dilation": 1, "output_padding": 0}
        for name, number in usual.items():
            value = getattr(self, name)
            if value != (number,) * len(value):
                parts.append(f"{name}={value}")
        if self.groups != 1:
            parts.append(f"groups={self.groups}")
        if self.bias is None:
            parts.append("bias=False")
        if self.padding_mode != "zeros":
            parts.append(f"padding_mode={self.padding_mode}")
        return ", ".join(parts)


class _Conv(Convolution):
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: DType | None = None,
    ) -> None:
        moved = (kernel_size, stride, padding, dilation, 0)
        super().__init__(in_channels, out_channels, *moved, groups, bias, padding_mode, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        """Convolve."""
        padding = self.padding
        if self.padding_mode != "zeros":
            input = functional.pad(input, self._sides(), mode=self.padding_mode)
            padding = (0,) * self.dims
        convolve: Any = getattr(functional, f"conv{self.dims}d")
        result: Tensor = convolve(input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)
        return result

    def _sides(self) -> list[int]:
        """What is padded on every side, the last dimension first."""
        if self.padding == "valid":
            return [0, 0] * self.dims
        if self.padding != "same":
            return [side for width in reversed(self.padding) for side in (width, width)]
        totals = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size, strict=True)]
        return [side for total in reversed(totals) for side in (total // 2, total - total // 2)]


class Conv1d(_Conv):
    """A convolution over sequences."""

    dims = 1


class Conv2d(_Conv):
    """A convolution over pictures."""

    dims = 2


class Conv3d(_Conv):
    """A convolution over volumes."""

    dims = 3


class _ConvTranspose(Convolution):
    transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: DType | None = None,
    ) -> None:
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        moved = (kernel_size, stride, padding, dilation, output_padding)
        super().__init__(in_channels, out_channels, *moved, groups, bias, padding_mode, device, dtype)

    def forward(self, input: Tensor, output_size: Any = None) -> Tensor:
        """Convolve; `output_size` chooses among the sizes that the result may have."""
        convolve: Any = getattr(functional, f"conv_transpose{self.dims}d")
        wider = self.output_padding if output_size is None else self._wider(input, list(output_size))
        result: Tensor = convolve(
            input, self.weight, self.bias, self.stride, self.padding, wider, self.groups, self.dilation
        )
        return result

    def _wider(self, input: Tensor, sizes: list[int]) -> list[int]:
        """How much wider than it must be the output is asked to be."""
        dims = self.dims
        others = 2 if input.dim() == dims + 2 else 1
        if len(sizes) == others + dims:
            sizes = sizes[others:]
        if len(sizes) != dims:
            raise ValueError(
                f"ConvTranspose{dims}D: for {input.dim()}D input, output_size must have {dims} or {others + dims} "
                f"elements (got {len(sizes)})"
            )
        ways = zip(input.shape[others:], self.stride, self.padding, self.dilation, self.kernel_size, strict=True)
        least = [(n - 1) * stride - 2 * padding + d * (k - 1) + 1 for n, stride, padding, d, k in ways]
        most = [low + stride - 1 for low, stride in zip(least, self.stride, strict=True)]
        if any(not low <= size <= high for low, size, high in zip(least, sizes, most, strict=True)):
            raise ValueError(
                f"requested an output size of {sizes}, but valid sizes range from {least} to {most} (for an input of "
                f"{Size(input.shape[2:])})"
            )
        return [size - low for size, low in zip(sizes, least, strict=True)]


class ConvTranspose1d(_ConvTranspose):
    """The transposed convolution over sequences."""

    dims = 1


class ConvTranspose2d(_ConvTranspose):
    """The transposed convolution over pictures."""

    dims = 2


class ConvTranspose3d(_ConvTranspose):
    """The transposed convolution over volumes."""

    dims = 3

"""Convolutions: ``conv1d`` to ``conv3d`` and their transposes, as functions and as modules.

One declaration covers each family. The functions expand sizes to one number per dimension, check them as PyTorch does,
and call one operation, `convolution`. The modules have weights and options, and call the functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod, sqrt
from typing import Any, ClassVar

from gviz.engine.dtypes import dtype as DType
from gviz.engine.functions_and_methods import front
from gviz.engine.nn import functional as F
from gviz.engine.nn import init
from gviz.engine.nn._families_by_dimension import LAST, Shape, Sizes, each, named
from gviz.engine.nn.module import Module
from gviz.engine.nn.parameter import Parameter, begin, empty
from gviz.engine.ops.convolution import convolution, transposed_size
from gviz.engine.ops.images import constant_pad_nd
from gviz.engine.ops.shape import run
from gviz.engine.size import Size
from gviz.engine.tensor import Tensor

PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class Convolution(Module):
    """Base class of all convolutions: `weight`, `bias`, and the options of the convolution."""

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
        self._check_options()
        outer, inner = (in_channels, out_channels) if self.transposed else (out_channels, in_channels)
        self.weight = empty(outer, inner // groups, *self.kernel_size, device=device, dtype=dtype)
        self.register_parameter("bias", empty(out_channels, device=device, dtype=dtype) if bias else None)
        begin(self)

    def _check_options(self) -> None:
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
        if self.padding_mode not in PADDING_MODES:
            known = set(PADDING_MODES)
            raise ValueError(f"padding_mode must be one of {known}, but got padding_mode='{self.padding_mode}'")

    def reset_parameters(self) -> None:
        """Initializes the parameters."""
        init.kaiming_uniform_(self.weight, a=sqrt(5))
        if self.bias is not None:
            fan_in = self.weight.shape[1] * prod(self.kernel_size)
            bound = 1 / sqrt(fan_in) if fan_in > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        """The sizes, and options that differ from the default."""
        parts = [f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"]
        defaults = {"padding": 0, "dilation": 1, "output_padding": 0}
        for name, number in defaults.items():
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
    """Base class of the convolutions with `dims` dimensions."""

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
        """Applies the convolution."""
        padding = self.padding
        if self.padding_mode != "zeros":
            input = F.pad(input, self._sides(), mode=self.padding_mode)
            padding = (0,) * self.dims
        convolve: Any = getattr(F, f"conv{self.dims}d")
        result: Tensor = convolve(input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)
        return result

    def _sides(self) -> list[int]:
        """Return the padding on every side, last dimension first."""
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
    """A convolution over images."""

    dims = 2


class Conv3d(_Conv):
    """A convolution over volumes."""

    dims = 3


class _ConvTranspose(Convolution):
    """Base class of the transposed convolutions with `dims` dimensions."""

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
        """Applies the convolution; `output_size` selects one of the possible sizes of the result."""
        convolve: Any = getattr(F, f"conv_transpose{self.dims}d")
        extra = self.output_padding if output_size is None else self._output_padding(input, list(output_size))
        result: Tensor = convolve(
            input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation
        )
        return result

    def _output_padding(self, input: Tensor, sizes: list[int]) -> list[int]:
        """Return the output padding that results in the requested output sizes."""
        dims = self.dims
        others = 2 if input.dim() == dims + 2 else 1
        if len(sizes) == others + dims:
            sizes = sizes[others:]
        if len(sizes) != dims:
            raise ValueError(
                f"ConvTranspose{dims}D: for {input.dim()}D input, output_size must have {dims} or {others + dims} "
                f"elements (got {len(sizes)})"
            )
        windows = zip(input.shape[others:], self.stride, self.padding, self.dilation, self.kernel_size, strict=True)
        least = [(n - 1) * stride - 2 * padding + d * (k - 1) + 1 for n, stride, padding, d, k in windows]
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
    """The transposed convolution over images."""

    dims = 2


class ConvTranspose3d(_ConvTranspose):
    """The transposed convolution over volumes."""

    dims = 3


def _make_conv(dims: int) -> Callable[..., Tensor]:
    @F._declare
    @front(f"conv{dims}d", method=False)
    @named(f"conv{dims}d", f"`weight` slid over {LAST[dims]} of `input`.")
    def conv(
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Sizes = 1,
        padding: Sizes | str = 0,
        dilation: Sizes = 1,
        groups: int = 1,
    ) -> Tensor:
        batched = _batched(f"conv{dims}d", dims, input)
        attrs: dict[str, Any] = {
            "stride": _sizes("stride", stride, dims),
            "dilation": _sizes("dilation", dilation, dims),
        }
        if isinstance(padding, str):
            batched, around = _by_name(padding, batched, weight, attrs)
        else:
            around = _sizes("padding", padding, dims)
        attrs |= {"padding": around, "transposed": False, "output_padding": (0,) * dims, "groups": groups}
        return _unbatched(_convolved(batched, weight, bias, attrs), input)

    return conv


def _make_conv_transpose(dims: int) -> Callable[..., Tensor]:
    @F._declare
    @front(f"conv_transpose{dims}d", method=False)
    @named(f"conv_transpose{dims}d", f"The transpose of `conv{dims}d`: from its output to its input.")
    def conv_transpose(
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Sizes = 1,
        padding: Sizes = 0,
        output_padding: Sizes = 0,
        groups: int = 1,
        dilation: Sizes = 1,
    ) -> Tensor:
        batched = _batched(f"conv_transpose{dims}d", dims, input)
        attrs: dict[str, Any] = {
            "stride": _sizes("stride", stride, dims),
            "padding": _sizes("padding", padding, dims),
            "dilation": _sizes("dilation", dilation, dims),
            "transposed": True,
            "output_padding": _sizes("output_padding", output_padding, dims),
            "groups": groups,
        }
        return _unbatched(_convolved(batched, weight, bias, attrs), input)

    return conv_transpose


conv1d, conv2d, conv3d = map(_make_conv, (1, 2, 3))
conv_transpose1d, conv_transpose2d, conv_transpose3d = map(_make_conv_transpose, (1, 2, 3))


@front("convolution", method=False)
def any_convolution(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Tensor:
    """The general convolution of a batch, which all others call."""
    dims = weight.ndim - 2
    options = {"stride": stride, "padding": padding, "dilation": dilation, "output_padding": output_padding}
    attrs: dict[str, Any] = {name: _sizes(name, value, dims) for name, value in options.items()}
    attrs |= {"transposed": transposed, "groups": groups}
    return _convolved(input, weight, bias, attrs)


def _convolved(input: Tensor, weight: Tensor, bias: Tensor | None, attrs: dict[str, Any]) -> Tensor:
    """Return the convolution of a batch, with or without a bias, after checking its arguments."""
    _check(input, weight, bias, **attrs)
    op, tensors = convolution.present((input, weight, bias))
    return run(op, *tensors, **attrs)


def _batched(name: str, dims: int, input: Tensor) -> Tensor:
    if input.ndim not in (dims + 1, dims + 2):
        raise RuntimeError(
            f"Expected {dims + 1}D (unbatched) or {dims + 2}D (batched) input to {name}, but got input of size: "
            f"{list(input.shape)}"
        )
    return input if input.ndim == dims + 2 else input.unsqueeze(0)


def _unbatched(result: Tensor, input: Tensor) -> Tensor:
    return result if result.ndim == input.ndim else result.squeeze(0)


def _sizes(name: str, value: Sizes, dims: int) -> Shape:
    """Return one number per dimension. Raises RuntimeError, with PyTorch's text, for another count."""
    sizes = (value,) if isinstance(value, int) else tuple(value)
    if len(sizes) not in (1, dims):
        raise RuntimeError(
            f"expected {name} to be a single integer value or a list of {dims} values to match the convolution "
            f"dimensions, but got {name}={list(sizes)}"
        )
    return sizes * dims if len(sizes) == 1 else sizes


def _by_name(padding: str, input: Tensor, weight: Tensor, attrs: dict[str, Any]) -> tuple[Tensor, Shape]:
    """Return the input and the padding for ``'same'`` or ``'valid'``; an odd remainder is first padded at the end."""
    dims = weight.ndim - 2
    if padding == "valid":
        return input, (0,) * dims
    if padding != "same":
        raise RuntimeError(f"Invalid padding string: '{padding}'")
    if any(s != 1 for s in attrs["stride"]):
        raise RuntimeError("padding='same' is not supported for strided convolutions")
    total = [d * (k - 1) for d, k in zip(attrs["dilation"], weight.shape[2:], strict=True)]
    if any(n % 2 for n in total):
        input = constant_pad_nd(input, [v for n in reversed(total) for v in (0, n % 2)])
    return input, tuple([n // 2 for n in total])


def _check(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Shape,
    padding: Shape,
    dilation: Shape,
    transposed: bool,
    output_padding: Shape,
    groups: int,
) -> None:
    """Raise RuntimeError, with PyTorch's text, for invalid arguments."""
    for bad, text in (
        (any(p < 0 for p in padding), "negative padding is not supported"),
        (any(p < 0 for p in output_padding), "negative output_padding is not supported"),
        (any(s <= 0 for s in stride), "non-positive stride is not supported"),
        (any(d <= 0 for d in dilation), "non-positive dilation is not supported"),
        (groups <= 0, "non-positive groups is not supported"),
        (
            weight.ndim != input.ndim,
            f"expected stride to be a single integer value or a list of {weight.ndim - 2} values to match the "
            f"convolution dimensions, but got stride={list(stride)}",
        ),
    ):
        if bad:
            raise RuntimeError(text)
    _check_channels(input, weight, bias, transposed, groups)
    _check_kinds(input, weight, bias, transposed)
    if transposed:
        _check_output(input, weight, stride, padding, dilation, output_padding)
    else:
        _check_kernel(input, weight, padding, dilation)


def _check_channels(input: Tensor, weight: Tensor, bias: Tensor | None, transposed: bool, groups: int) -> None:
    sizes, option = list(weight.shape), f"transposed={int(transposed)}" if transposed else f"groups={groups}"
    if sizes[0] < groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be at least {groups} at dimension 0, but got weight of size "
            f"{sizes} instead"
        )
    expected = sizes[0] if transposed else sizes[1] * groups
    outputs = sizes[1] * groups if transposed else sizes[0]
    if sizes[0] % groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, but got weight of "
            f"size [{sizes}] instead"
        )
    if input.shape[1] != expected:
        raise RuntimeError(
            f"Given {option}, weight of size {sizes}, expected input{list(input.shape)} to have {expected} channels, "
            f"but got {input.shape[1]} channels instead"
        )
    if bias is not None and (bias.ndim != 1 or bias.shape[0] != outputs):
        where = f"Given {option}, weight" if transposed else "Given weight"
        raise RuntimeError(
            f"{where} of size {sizes}, expected bias to be 1-dimensional with {outputs} elements, but got bias of size "
            f"{list(bias.shape)} instead"
        )


def _check_kinds(input: Tensor, weight: Tensor, bias: Tensor | None, transposed: bool) -> None:
    """Raise RuntimeError for mixed dtypes; which of the two is checked first differs, as in PyTorch."""
    if transposed and weight.dtype is not input.dtype:
        raise RuntimeError(f"expected scalar type {input.dtype.tensor_type} but found {weight.dtype.tensor_type}")
    if bias is not None and bias.dtype is not input.dtype:
        kinds = [t.dtype.tensor_type.lower() for t in (input, bias)]
        raise RuntimeError(f"Input type ({kinds[0]}) and bias type ({kinds[1]}) should be the same")
    if weight.dtype is not input.dtype:
        raise RuntimeError(f"expected scalar type {input.dtype.tensor_type} but found {weight.dtype.tensor_type}")


def _check_kernel(input: Tensor, weight: Tensor, padding: Shape, dilation: Shape) -> None:
    around = [n + 2 * p for n, p in zip(input.shape[2:], padding, strict=True)]
    reach = [d * (k - 1) + 1 for d, k in zip(dilation, weight.shape[2:], strict=True)]
    if any(n < r for n, r in zip(around, reach, strict=True)):
        raise RuntimeError(
            f"Calculated padded input size per channel: ({' x '.join(map(str, around))}). Kernel size: "
            f"({' x '.join(map(str, reach))}). Kernel size can't be greater than actual input size"
        )


def _check_output(
    input: Tensor, weight: Tensor, stride: Shape, padding: Shape, dilation: Shape, output_padding: Shape
) -> None:
    if any(o >= s and o >= d for o, s, d in zip(output_padding, stride, dilation, strict=True)):
        rows = (("output_padding", output_padding), ("stride", stride), ("dilation", dilation))
        ends = ["depth", "height", "width"][-len(stride) :]
        sizes = " ".join(f"{name}_{end}: {v}" for name, values in rows for end, v in zip(ends, values, strict=True))
        raise RuntimeError(f"output padding must be smaller than either stride or dilation, but got {sizes}")
    size = transposed_size(input.shape[2:], weight.shape[2:], stride, padding, dilation, output_padding)
    if any(n < 1 for n in size):
        raise RuntimeError(
            f"Given input size per channel: {list(input.shape[2:])}. Calculated output size per channel: {list(size)}. "
            "Output size is too small"
        )

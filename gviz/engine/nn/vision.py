"""Images: resizing (`interpolate`), windows as columns, channels as pixels; as functions and as modules."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor
from typing import Any

from gviz.engine.functions_and_methods import front
from gviz.engine.nn import functional as F
from gviz.engine.nn._families_by_dimension import Shape, Sizes
from gviz.engine.nn.module import Module
from gviz.engine.nn.pooling import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d
from gviz.engine.ops import images
from gviz.engine.ops._kernels import refuse_unless
from gviz.engine.ops.convolution import counted
from gviz.engine.ops.shape import run
from gviz.engine.tensor import Tensor
from gviz.source.call_stack import warn

MODES = "nearest | linear | bilinear | bicubic | trilinear | lanczos | area | nearest-exact"
NEEDED = {"linear": 3, "bilinear": 4, "trilinear": 5}


class Upsample(Module):
    """Resizes a sequence, image or volume."""

    def __init__(
        self,
        size: Any = None,
        scale_factor: Any = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        self.name = type(self).__name__
        self.size = size
        if isinstance(scale_factor, tuple):
            self.scale_factor: Any = tuple([float(factor) for factor in scale_factor])
        else:
            self.scale_factor = float(scale_factor) if scale_factor else None
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        """Resizes the input."""
        result: Tensor = F.interpolate(
            input,
            self.size,
            self.scale_factor,
            self.mode,
            self.align_corners,
            recompute_scale_factor=self.recompute_scale_factor,
        )
        return result

    def extra_repr(self) -> str:
        """The size or the scale, and the mode."""
        size = f"size={self.size!r}" if self.scale_factor is None else f"scale_factor={self.scale_factor!r}"
        return f"{size}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """Resizes an image, using the nearest elements."""

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """Resizes an image, using means of the four nearest elements."""

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)


class PixelShuffle(Module):
    """Rearranges channels into finer pixels."""

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        """Rearranges the input."""
        result: Tensor = F.pixel_shuffle(input, self.upscale_factor)
        return result

    def extra_repr(self) -> str:
        """The factor."""
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """Rearranges pixels into channels of a coarser image."""

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        """Rearranges the input."""
        result: Tensor = F.pixel_unshuffle(input, self.downscale_factor)
        return result

    def extra_repr(self) -> str:
        """The factor."""
        return f"downscale_factor={self.downscale_factor}"


class ChannelShuffle(Module):
    """Interleaves the channels of groups."""

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        """Rearranges the input."""
        result: Tensor = F.channel_shuffle(input, self.groups)
        return result

    def extra_repr(self) -> str:
        """The number of groups."""
        return f"groups={self.groups}"


class Unfold(Module):
    """Extracts every window of an image as a column."""

    def __init__(self, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        """Extracts the windows."""
        result: Tensor = F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)
        return result

    def extra_repr(self) -> str:
        """The window and its movement."""
        window = f"kernel_size={self.kernel_size}, dilation={self.dilation}"
        return f"{window}, padding={self.padding}, stride={self.stride}"


class Fold(Unfold):
    """Puts columns back as the windows of an image, summed where they overlap."""

    def __init__(
        self, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
    ) -> None:
        super().__init__(kernel_size, dilation, padding, stride)
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        """Sums the windows."""
        window = (self.kernel_size, self.dilation, self.padding, self.stride)
        result: Tensor = F.fold(input, self.output_size, *window)
        return result

    def extra_repr(self) -> str:
        """The size, the window and its movement."""
        return f"output_size={self.output_size}, {super().extra_repr()}"


def _pair(value: Sizes, name: str) -> Shape:
    sizes = (value,) if isinstance(value, int) else tuple(value)
    if len(sizes) not in (1, 2):
        raise RuntimeError(f"It is expected {name} equals to 2, but got size {len(sizes)}")
    return sizes * 2 if len(sizes) == 1 else sizes


def _window(kernel_size: Sizes, dilation: Sizes, padding: Sizes, stride: Sizes) -> tuple[Shape, Shape, Shape, Shape]:
    """Return the four sizes as pairs. Raises RuntimeError for invalid sizes."""
    kernel, gaps = _pair(kernel_size, "kernel_size"), _pair(dilation, "dilation")
    edges, steps = _pair(padding, "padding"), _pair(stride, "stride")
    for name, short, (height, width) in (
        ("kernel size", "kernel", kernel),
        ("stride", "stride", steps),
        ("dilation", "dilation", gaps),
    ):
        if height < 1 or width < 1:
            raise RuntimeError(
                f"{name} should be greater than zero, but got {short}_height: {height} {short}_width: {width}"
            )
    if min(edges) < 0:
        raise RuntimeError(f"padding should be non-negative, but got pad_height: {edges[0]} pad_width: {edges[1]}")
    return kernel, gaps, edges, steps


@F._declare
def unfold(input: Tensor, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1) -> Tensor:
    """Extracts each window of the last two dimensions as a column."""
    kernel, gaps, edges, steps = _window(kernel_size, dilation, padding, stride)
    if input.ndim not in (3, 4) or 0 in input.shape[-3:]:
        raise RuntimeError(
            "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, "
            f"but got: {list(input.shape)}"
        )
    size = tuple(input.shape[-2:])
    counts = counted(tuple([n + 2 * p for n, p in zip(size, edges, strict=True)]), kernel, steps, gaps)
    if any(n < 1 for n in counts):
        raise RuntimeError(
            f"Given input with spatial size {size}, kernel_size={kernel}, dilation={gaps}, padding={edges}, calculated "
            f"shape of the array of sliding blocks as {counts}, but its components must be at least one."
        )
    refuse_unless(input.dtype.is_floating_point, "im2col_out_cpu", input._array)
    return run(images.unfold, input, kernel_size=kernel, dilation=gaps, padding=edges, stride=steps)


@F._declare
def fold(
    input: Tensor,
    output_size: Sizes,
    kernel_size: Sizes,
    dilation: Sizes = 1,
    padding: Sizes = 0,
    stride: Sizes = 1,
) -> Tensor:
    """Sums the columns of `input` as the windows of an image of `output_size`."""
    if not isinstance(output_size, int) and len(output_size) != 2:
        raise RuntimeError(f"It is expected output_size equals to 2, but got size {len(output_size)}")
    size = _pair(output_size, "output_size")
    kernel, gaps, edges, steps = _window(kernel_size, dilation, padding, stride)
    places = kernel[0] * kernel[1]
    if input.ndim not in (2, 3) or 0 in input.shape[-2:]:
        raise RuntimeError(
            "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for "
            f"input, but got: {list(input.shape)}"
        )
    rows, columns = input.shape[-2:]
    if rows % places:
        raise RuntimeError(
            "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got "
            f"input.size(1)={rows} and kernel_size={kernel}."
        )
    counts = counted(tuple([n + 2 * p for n, p in zip(size, edges, strict=True)]), kernel, steps, gaps)
    if columns != counts[0] * counts[1]:
        raise RuntimeError(
            f"Given output_size={size}, kernel_size={kernel}, dilation={gaps}, padding={edges}, "
            f"stride={steps}, expected "
            f"size of input's dimension 2 to match the calculated number of sliding blocks {counts[0]} * "
            f"{counts[1]} = {counts[0] * counts[1]}, but got input.size(2)={columns}."
        )
    refuse_unless(input.dtype.is_floating_point, "col2im_out_cpu", input._array)
    attrs = {"kernel_size": kernel, "dilation": gaps, "padding": edges, "stride": steps}
    return run(images.fold, input, output_size=size, **attrs)


@F._declare
@front("pixel_shuffle", method=False)
def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """Rearranges channels into pixels: an image larger by `upscale_factor` with fewer channels."""
    if input.ndim < 3:
        raise RuntimeError(
            f"pixel_shuffle expects input to have at least 3 dimensions, but got input with {input.ndim} dimension(s)"
        )
    if upscale_factor <= 0:
        raise RuntimeError(f"pixel_shuffle expects a positive upscale_factor, but got {upscale_factor}")
    square = upscale_factor**2
    if input.shape[-3] % square:
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of "
            "upscale_factor, but "
            f"input.size(-3)={input.shape[-3]} is not divisible by {square}"
        )
    return run(images.pixel_shuffle, input, upscale_factor=upscale_factor)


@F._declare
@front("channel_shuffle", method=False)
def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Interleaves the channels of `groups`: the first of each group, then the second of each."""
    if type(groups) is not int:
        kind = type(groups).__name__
        raise TypeError(f"channel_shuffle(): argument 'groups' (position 2) must be int, not {kind}")
    if input.ndim < 3:
        sizes = list(input.shape)
        raise RuntimeError(f"channel_shuffle expects input with > 2 dims, but got input with sizes {sizes}")
    if groups < 1:
        raise RuntimeError(f"Number of groups to divide channels in must be positive. Value of groups:{groups}")
    if input.shape[1] % groups:
        got = f"Got {input.shape[1]} channels and {groups} groups."
        raise RuntimeError(f"Number of channels must be divisible by groups. {got}")
    return run(images.channel_shuffle, input, groups=groups)


@F._declare
@front("pixel_unshuffle", method=False)
def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """Rearranges pixels into channels: an image smaller by `downscale_factor` with more channels."""
    if input.ndim < 3:
        raise RuntimeError(
            f"pixel_unshuffle expects input to have at least 3 dimensions, but got input with {input.ndim} dimension(s)"
        )
    if downscale_factor <= 0:
        raise RuntimeError(f"pixel_unshuffle expects a positive downscale_factor, but got {downscale_factor}")
    for name, dim in (("height", -2), ("width", -1)):
        if input.shape[dim] % downscale_factor:
            raise RuntimeError(
                f"pixel_unshuffle expects {name} to be divisible by downscale_factor, but input.size({dim})="
                f"{input.shape[dim]} is not divisible by {downscale_factor}"
            )
    return run(images.pixel_unshuffle, input, downscale_factor=downscale_factor)


@F._declare
def interpolate(
    input: Tensor,
    size: Sizes | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Resizes `input`, using the nearest pixels, mixtures of neighbours, or means of areas."""
    if mode in ("nearest", "area", "nearest-exact"):
        if align_corners is not None:
            raise ValueError(
                "align_corners option can only be set with the interpolating modes: linear | bilinear | "
                "bicubic | trilinear"
            )
    elif antialias or mode in ("bicubic", "lanczos"):
        raise NotImplementedError(
            "the built-in engine interpolates nearest, nearest-exact, linear, bilinear, trilinear, area"
        )
    counts, scales = _target(input, size, scale_factor)
    if recompute_scale_factor:
        scales = (None,) * len(counts)
    _check_mode(input, mode)
    if mode == "area":
        return (adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d)[len(counts) - 1](input, counts)
    if any(n < 1 for n in counts) or any(n < 1 for n in input.shape[2:]):
        raise RuntimeError(_empty(input, counts))
    kind = "linear" if mode in NEEDED else mode
    kernel = "upsample_bilinear2d_channels_last" if mode == "bilinear" else f"upsample_{mode}"
    refuse_unless(kind != "linear" or input.dtype.is_floating_point, kernel, input._array)
    attrs = {"output_size": counts, "scales": scales, "mode": kind, "align_corners": bool(align_corners)}
    return run(images.OPS[kind, len(counts)], input, **attrs)


def _target(
    input: Tensor, size: Sizes | None, scale_factor: float | Sequence[float] | None
) -> tuple[Shape, tuple[float | None, ...]]:
    """Return the requested spatial size, and the scales if they were passed."""
    places = list(input.shape[2:])
    dims = len(places)
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is not None:
        counts = (size,) * dims if isinstance(size, int) else tuple(size)
        if len(counts) != dims:
            raise ValueError(
                "Input and output must have the same number of spatial dimensions, but got input with "
                "spatial dimensions "
                f"of {places} and output size of {size}. Please provide input tensor in (N, C, d1, d2, "
                "...,dK) format and "
                "output size in (o1, o2, ...,oK) format."
            )
        return counts, (None,) * dims
    if scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    factors = tuple(scale_factor) if isinstance(scale_factor, Sequence) else (scale_factor,) * dims
    if len(factors) != dims:
        raise ValueError(
            "Input and scale_factor must have the same number of spatial dimensions, but got input with spatial "
            f"dimensions of {places} and scale_factor of shape {scale_factor}. Please provide input "
            "tensor in (N, C, d1, "
            "d2, ...,dK) format and scale_factor in (s1, s2, ...,sK) format."
        )
    return tuple([floor(float(n) * f) for n, f in zip(places, factors, strict=True)]), factors


def _check_mode(input: Tensor, mode: str) -> None:
    if input.ndim not in (3, 4, 5) or mode not in MODES.split(" | "):
        raise NotImplementedError(
            f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {input.ndim}D) for the modes: {MODES} "
            f"(got {mode})"
        )
    if mode in NEEDED and NEEDED[mode] != input.ndim:
        raise NotImplementedError(f"Got {input.ndim}D input, but {mode} mode needs {NEEDED[mode]}D input")


def _empty(input: Tensor, counts: Shape) -> str:
    names = ("D", "H", "W")[-len(counts) :] if len(counts) > 1 else ("W",)
    sizes = [", ".join(f"{n}: {v}" for n, v in zip(names, vs, strict=True)) for vs in (input.shape[2:], counts)]
    return f"Input and output sizes should be greater than 0, but got input ({sizes[0]}) output ({sizes[1]})"


@F._declare
def upsample(
    input: Tensor,
    size: Sizes | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """Old name of `interpolate`."""
    warn("`nn.functional.upsample` is deprecated. Use `nn.functional.interpolate` instead.")
    return interpolate(input, size, scale_factor, mode, align_corners)

"""Images of ``torch.nn.functional``: other sizes, blocks, and channels as pixels."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor

from gviz.engine.nn.functional import adaptive_pooling
from gviz.engine.ops import folding, interpolation
from gviz.engine.ops.kernels import refuse_unless
from gviz.engine.ops.shape import run
from gviz.engine.ops.windows import counted
from gviz.engine.surface import front
from gviz.engine.tensor import Tensor

__all__ = ["channel_shuffle", "fold", "interpolate", "pixel_shuffle", "pixel_unshuffle", "unfold", "upsample"]

Sizes = int | Sequence[int]
Shape = tuple[int, ...]
MODES = "nearest | linear | bilinear | bicubic | trilinear | lanczos | area | nearest-exact"
NEEDED = {"linear": 3, "bilinear": 4, "trilinear": 5}


def _pair(value: Sizes) -> Shape:
    given = (value,) if isinstance(value, int) else tuple(value)
    return given * 2 if len(given) == 1 else given


def unfold(input: Tensor, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1) -> Tensor:
    """What lies under each window of the last two dimensions, as columns."""
    kernel, gaps, edges, steps = (_pair(v) for v in (kernel_size, dilation, padding, stride))
    if input.ndim not in (3, 4):
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
    return run(folding.unfold, input, kernel_size=kernel, dilation=gaps, padding=edges, stride=steps)


def fold(
    input: Tensor,
    output_size: Sizes,
    kernel_size: Sizes,
    dilation: Sizes = 1,
    padding: Sizes = 0,
    stride: Sizes = 1,
) -> Tensor:
    """The columns of `input`, added where windows over an image of `output_size` lie."""
    kernel, gaps, edges, steps = (_pair(v) for v in (kernel_size, dilation, padding, stride))
    size, places = _pair(output_size), kernel[0] * kernel[1]
    if input.ndim not in (2, 3):
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
    attrs = {"kernel_size": kernel, "dilation": gaps, "padding": edges, "stride": steps}
    return run(folding.fold, input, output_size=size, **attrs)


@front("pixel_shuffle", method=False)
def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """Channels as pixels: an image larger by `upscale_factor` with fewer channels."""
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
    return run(folding.pixel_shuffle, input, upscale_factor=upscale_factor)


@front("channel_shuffle", method=False)
def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Channels dealt out of `groups` in turn: the first of each group, then the second of each."""
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
    return run(folding.channel_shuffle, input, groups=groups)


@front("pixel_unshuffle", method=False)
def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """Pixels as channels: an image smaller by `downscale_factor` with more channels."""
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
    return run(folding.pixel_unshuffle, input, downscale_factor=downscale_factor)


def interpolate(
    input: Tensor,
    size: Sizes | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """`input` in another size, from the nearest pixels, mixtures of neighbours, or means of areas."""
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
        pools = {1: adaptive_pooling.adaptive_avg_pool1d, 2: adaptive_pooling.adaptive_avg_pool2d}
        return pools.get(len(counts), adaptive_pooling.adaptive_avg_pool3d)(input, counts)
    if any(n < 1 for n in counts) or any(n < 1 for n in input.shape[2:]):
        raise RuntimeError(_empty(input, counts))
    kind = "linear" if mode in NEEDED else mode
    refuse_unless(kind != "linear" or input.dtype.is_floating_point, _kernel(mode), input._array)
    attrs = {"output_size": counts, "scales": scales, "mode": kind, "align_corners": bool(align_corners)}
    return run(interpolation.OPS[kind, len(counts)], input, **attrs)


def _kernel(mode: str) -> str:
    return "upsample_bilinear2d_channels_last" if mode == "bilinear" else f"upsample_{mode}"


def _target(
    input: Tensor, size: Sizes | None, scale_factor: float | Sequence[float] | None
) -> tuple[Shape, tuple[float | None, ...]]:
    """The spatial size wanted, and the scales if they were said."""
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


def upsample(
    input: Tensor,
    size: Sizes | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """`interpolate`, by its older name."""
    return interpolate(input, size, scale_factor, mode, align_corners)

"""Images: padding, resizing, and blocks that are extracted and put back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from gviz.engine.functions_and_methods import Number, front
from gviz.engine.op import Example, Op, Rule
from gviz.engine.ops._examples import normal
from gviz.engine.ops._kernels import added_rows
from gviz.engine.ops.convolution import Windows, counted, inner, padded
from gviz.engine.ops.copying import copy_
from gviz.engine.ops.indexing import sliced
from gviz.engine.ops.shape import run
from gviz.engine.tensor import Tensor, new_tensor
from gviz.values.value import Array

# ----------------------------------------------------------------------------------------------------------------------
# Padding: with one value, by reflection, with the edge, or circular.


Shape = tuple[int, ...]
Padding = Sequence[int]
Source = Callable[[int, int, int], Array]
"""The source of each element of a padded dimension, from its length and the elements added at both ends."""


def _pairs(padding: Padding) -> list[tuple[int, int]]:
    """Return pairs of before and after, last dimension first."""
    return list(zip(padding[::2], padding[1::2], strict=True))


def _with_constant(self: Array, pad: Padding, value: Number) -> Array:
    pairs = [(0, 0)] * (self.ndim - len(pad) // 2) + _pairs(pad)[::-1]
    cropped = self[tuple([slice(max(-a, 0), n - max(-b, 0)) for n, (a, b) in zip(self.shape, pairs, strict=True)])]
    result = np.full([n + a + b for n, (a, b) in zip(self.shape, pairs, strict=True)], value, self.dtype)
    inner = [slice(max(a, 0), n - max(b, 0)) for n, (a, b) in zip(result.shape, pairs, strict=True)]
    result[tuple(inner)] = cropped
    return result


constant_pad: Op = Op(
    "constant_pad_nd(self, *, pad, value=0)",
    grad_fn="ConstantPadNdBackward0",
    formula="self with a border of value",
    forward=_with_constant,
    rules=(
        Rule("self", "g without the border", lambda g, pad: constant_pad(g, pad=tuple([-n for n in pad]), value=0)),
    ),
    public=False,
    torch="constant_pad_nd",
    examples=lambda: [
        Example((normal(2, 3),), {"pad": (1, 2, 0, 1), "value": 1.5}),
        Example((normal(2, 3),), {"pad": (-1, 2), "value": 0}),
    ],
)


def _mirrored(length: int, before: int, after: int) -> Array:
    places = np.abs(np.arange(-before, length + after))
    return np.where(places >= length, 2 * (length - 1) - places, places)


def _repeated(length: int, before: int, after: int) -> Array:
    return np.clip(np.arange(-before, length + after), 0, length - 1)


def _padded(self: Array, padding: Padding, source: Source) -> Array:
    for i, (before, after) in enumerate(_pairs(padding)):
        dim = self.ndim - 1 - i
        self = self.take(source(self.shape[dim], before, after), dim)
    return self


def _summed(g: Array, sizes: Shape, padding: Padding, source: Source) -> Array:
    for i, (before, after) in enumerate(_pairs(padding)):
        dim = g.ndim - 1 - i
        rows = added_rows(sizes[dim], source(sizes[dim], before, after), np.moveaxis(g, dim, 0))
        g = np.moveaxis(rows, 0, dim)
    return g


def _bordered(name: str, grad_fn: str, what: str, source: Source, dims: int) -> Op:
    """Padding of the last `dims` dimensions with elements of the tensor itself."""
    shape, padding = (2, 2, 3, 4)[3 - dims :], (1, 2, 1, 0, 0, 1)[: 2 * dims]
    back: Op = Op(
        f"{name}_backward(self, *, sizes, padding)",
        grad_fn=f"{grad_fn}BackwardBackward0",
        formula=f"self without its border, which is added to {what}",
        forward=lambda self, sizes, padding: _summed(self, sizes, padding, source),
        rules=(Rule("self", f"g with a border of {what}", lambda g, padding: op(g, padding=padding)),),
        public=False,
        examples=lambda: [Example((op.forward(normal(*shape), padding),), {"sizes": shape, "padding": padding})],
    )
    op: Op = Op(
        f"{name}(self, *, padding)",
        grad_fn=f"{grad_fn}Backward0",
        formula=f"self with a border of {what}",
        forward=lambda self, padding: _padded(self, padding, source),
        rules=(
            Rule(
                "self",
                f"g without its border, which is added to {what}",
                lambda g, self, self_sym_sizes, padding: back(g, sizes=self_sym_sizes, padding=padding),
            ),
        ),
        public=False,
        examples=lambda: [Example((normal(*shape),), {"padding": padding})],
    )
    return op


_REFLECT = {d: _bordered(f"reflection_pad{d}d", f"ReflectionPad{d}D", "its mirror", _mirrored, d) for d in (1, 2, 3)}
_REPLICATE = {d: _bordered(f"replication_pad{d}d", f"ReplicationPad{d}D", "its edge", _repeated, d) for d in (1, 2, 3)}


@front("constant_pad_nd", method=False)
def constant_pad_nd(input: Tensor, pad: Padding, value: Number = 0) -> Tensor:
    """`input` padded with `value`; sizes start from the last dimension, and negative ones crop."""
    if len(pad) % 2:
        raise RuntimeError(f"Length of pad must be even but instead it equals {len(pad)}")
    _check_length(input, pad, "Length of pad should be no more than twice the number of dimensions of the input. ")
    for n, (before, after) in zip(input.shape[::-1], _pairs(pad), strict=False):
        if n - max(-before, 0) - max(-after, 0) < 0:
            raise RuntimeError("narrow(): length must be non-negative.")
    return run(constant_pad, input, pad=tuple(pad), value=value)


def _check_length(input: Tensor, pad: Padding, text: str) -> None:
    if len(pad) > 2 * input.ndim:
        raise RuntimeError(f"{text}Pad length is {len(pad)}while the input has {input.ndim}dimensions.")


def pad(input: Tensor, pad: Padding, mode: str = "constant", value: Number | None = None) -> Tensor:
    """`input` padded as by ``torch.nn.functional.pad``."""
    if len(pad) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    if len(pad) > 2 * input.ndim:
        raise RuntimeError(
            "Padding length should be less than or equal to two times the input dimension but got padding length "
            f"{len(pad)} and input of dimension {input.ndim}"
        )
    if mode == "constant":
        return constant_pad_nd(input, pad, 0 if value is None else value)
    if value is not None and value != 0:
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    if (len(pad), input.ndim) not in ((2, 2), (2, 3), (4, 3), (4, 4), (6, 4), (6, 5)):
        raise NotImplementedError(_UNSUPPORTED.format(size=len(pad), ndim=input.ndim))
    if mode == "circular":
        return _circular(input, pad)
    if mode not in ("reflect", "replicate"):
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    _check_border(input, pad, mode)
    return run((_REFLECT if mode == "reflect" else _REPLICATE)[len(pad) // 2], input, padding=tuple(pad))


_UNSUPPORTED = (
    "Padding size {size} is not supported for {ndim}D input tensor.\nSupported combinations for non-constant padding:\n"
    "  - 2D or 3D input: padding size = 2 (pads last dimension)\n"
    "  - 3D or 4D input: padding size = 4 (pads last 2 dimensions)\n"
    "  - 4D or 5D input: padding size = 6 (pads last 3 dimensions)"
)


def _check_border(input: Tensor, pad: Padding, mode: str) -> None:
    """Raise RuntimeError, with PyTorch's text, for padding larger than allowed."""
    dims = len(pad) // 2
    if 0 in input.shape[-dims - (input.ndim == dims + 1) :]:
        raise RuntimeError(
            f"Expected {dims + 1}D or {dims + 2}D (batch mode) tensor with possibly 0 batch size and other non-zero "
            f"dimensions for input, but got: {list(input.shape)}"
        )
    for i, (before, after) in enumerate(_pairs(pad)):
        dim = input.ndim - 1 - i
        if mode == "reflect" and max(before, after) >= input.shape[dim]:
            raise RuntimeError(
                f"Argument #{4 + 2 * i}: Padding size should be less than the corresponding input dimension, but got: "
                f"padding ({before}, {after}) at dimension {dim} of input {list(input.shape)}"
            )


def _circular(input: Tensor, pad: Padding) -> Tensor:
    """Circular padding, written part by part into new memory, as PyTorch records it."""
    shape = list(input.shape)
    for dim, (before, after) in _by_dim(input, pad):
        if max(before, after) > input.shape[dim]:
            raise RuntimeError("Padding value causes wrapping around more than once.")
        shape[dim] += before + after
        if shape[dim] < 0:
            raise RuntimeError("Negative padding value is resulting in an empty dimension")
    result = new_tensor(np.empty(shape, input._array.dtype))
    inside, inner = result, input
    for dim, (before, after) in _by_dim(input, pad):
        inside = sliced(inside, dim, max(before, 0), shape[dim] - max(after, 0))
        inner = sliced(inner, dim, max(-before, 0), input.shape[dim] - max(-after, 0))
    copy_(inside, inner)
    for dim, (before, after) in _by_dim(input, pad):
        end = shape[dim] - max(after, 0)
        if before > 0:
            _write(result, dim, (0, before), (end - before, end))
        if after > 0:
            start = max(before, 0)
            _write(result, dim, (shape[dim] - after, shape[dim]), (start, start + after))
    return result


def _by_dim(input: Tensor, pad: Padding) -> list[tuple[int, tuple[int, int]]]:
    return [(input.ndim - 1 - i, pair) for i, pair in enumerate(_pairs(pad))]


def _write(tensor: Tensor, dim: int, target: tuple[int, int], source: tuple[int, int]) -> None:
    """Copy one slice of a dimension to another."""
    copy_(sliced(tensor, dim, *target), sliced(tensor, dim, *source))


# ----------------------------------------------------------------------------------------------------------------------
# Resized images: the nearest pixel, or a mixture of neighbours along each dimension.


Scales = tuple[float | None, ...]
Mix = list[tuple[Array, Array]]
"""Along one dimension: for each position, the sources and their weights."""


def _nearest(size: int, count: int, scale: float | None, shift: float) -> Mix:
    ratio = np.float32(1 / scale if scale else size / count)
    places = np.floor((np.arange(count, dtype=np.float32) + np.float32(shift)) * ratio).astype(np.int64)
    return [(np.minimum(places, size - 1), np.ones(count))]


def _linear(size: int, count: int, scale: float | None, align_corners: bool, kind: np.dtype[Any]) -> Mix:
    real = kind.type if kind.itemsize > 2 else np.float32
    places = np.arange(count, dtype=real)
    if align_corners:
        at = places * real((size - 1) / (count - 1) if count > 1 else 0)
    else:
        at = np.maximum((places + real(0.5)) * real(1 / scale if scale else size / count) - real(0.5), 0)
    low = np.minimum(at.astype(np.int64), size - 1)
    share = np.clip(at - low, 0, 1)
    return [(low, 1 - share), (np.minimum(low + 1, size - 1), share)]


def _mixes(
    size: Shape, output_size: Shape, scales: Scales, mode: str, align_corners: bool, kind: np.dtype[Any]
) -> list[Mix]:
    if mode == "linear":
        each = zip(size, output_size, scales, strict=True)
        return [_linear(n, count, scale, align_corners, kind) for n, count, scale in each]
    shift = 0.5 if mode == "nearest-exact" else 0.0
    return [_nearest(n, count, scale, shift) for n, count, scale in zip(size, output_size, scales, strict=True)]


def _mixed(self: Array, output_size: Shape, scales: Scales, mode: str, align_corners: bool) -> Array:
    first = self.ndim - len(output_size)
    mixes = _mixes(self.shape[first:], output_size, scales, mode, align_corners, self.dtype)
    for dim, mix in enumerate(mixes, first):
        (places, weights), *others = mix
        result = self.take(places, dim)
        if others:
            result = result * _spread(weights, self, dim)
            for places, weights in others:
                result += self.take(places, dim) * _spread(weights, self, dim)
        self = result
    return np.ascontiguousarray(self)


def _spread(weights: Array, like: Array, dim: int) -> Array:
    return weights.astype(like.dtype).reshape(-1, *[1] * (like.ndim - dim - 1))


def _unmixed(self: Array, size: Shape, scales: Scales, mode: str, align_corners: bool) -> Array:
    """Return the transpose of `_mixed`: distributes each value to its sources by weight."""
    first = self.ndim - len(size)
    mixes = _mixes(size, self.shape[first:], scales, mode, align_corners, self.dtype)
    for dim, (mix, length) in enumerate(zip(mixes, size, strict=True), first):
        moved = np.moveaxis(self, dim, 0)
        result = np.zeros((length, *moved.shape[1:]), self.dtype)
        for places, weights in mix:
            np.add.at(result, places, moved * _spread(weights, moved, 0))
        self = np.moveaxis(result, 0, dim)
    return np.ascontiguousarray(self)


resized_back: Op = Op(
    "upsample_backward(self, *, size, scales, mode, align_corners)",
    grad_fn="UpsampleBackwardBackward0",
    formula="self added where it came from",
    forward=_unmixed,
    rules=(
        Rule(
            "self",
            "g in the other size",
            lambda g, self_sym_sizes, size, scales, mode, align_corners: OPS[mode, len(size)](
                g,
                output_size=self_sym_sizes[len(self_sym_sizes) - len(size) :],
                scales=scales,
                mode=mode,
                align_corners=align_corners,
            ),
        ),
    ),
    public=False,
    examples=lambda: [
        Example((normal(1, 2, 5),), {"size": (3,), "scales": (None,), "mode": mode, "align_corners": False})
        for mode in ("nearest", "linear")
    ],
)


def _op(name: str, grad_fn: str, mode: str, dims: int) -> Op:
    scales = (None,) * dims
    attrs: list[dict[str, Any]] = [{"mode": mode, "align_corners": False, "scales": scales}]
    attrs += [{"mode": mode, "align_corners": True, "scales": scales}] if mode == "linear" else []
    return Op(
        f"{name}(self, *, output_size, scales, mode, align_corners)",
        grad_fn=grad_fn,
        formula="self in another size",
        forward=_mixed,
        rules=(
            Rule(
                "self",
                "g added where it came from",
                lambda g, self_sym_sizes, scales, mode, align_corners: resized_back(
                    g,
                    size=self_sym_sizes[len(self_sym_sizes) - dims :],
                    scales=scales,
                    mode=mode,
                    align_corners=align_corners,
                ),
            ),
        ),
        public=False,
        examples=lambda: [
            Example((normal(1, 2, *(3, 2, 2)[:dims]),), a | {"output_size": (5, 3, 1)[:dims]}) for a in attrs
        ],
    )


LINEAR = {1: "linear", 2: "bilinear", 3: "trilinear"}
OPS: dict[tuple[str, int], Op] = {
    **{("nearest", d): _op(f"upsample_nearest{d}d", f"UpsampleNearest{d}DBackward0", "nearest", d) for d in LINEAR},
    **{
        ("nearest-exact", d): _op(
            f"_upsample_nearest_exact{d}d", f"UpsampleNearestExact{d}DBackward0", "nearest-exact", d
        )
        for d in LINEAR
    },
    **{
        ("linear", d): _op(f"upsample_{name}{d}d", f"Upsample{name.title()}{d}DBackward0", "linear", d)
        for d, name in LINEAR.items()
    },
}
"""The operation of each mode, in each number of dimensions."""


# ----------------------------------------------------------------------------------------------------------------------
# Blocks extracted from images and put back, and channels exchanged with pixels.


def _windows(size: Shape, kernel_size: Shape, dilation: Shape, padding: Shape, stride: Shape) -> Windows:
    around = tuple([n + 2 * p for n, p in zip(size, padding, strict=True)])
    return Windows(around, counted(around, kernel_size, stride, dilation), kernel_size, stride, dilation)


def _unfold(self: Array, kernel_size: Shape, dilation: Shape, padding: Shape, stride: Shape) -> Array:
    *lead, channels = self.shape[:-2]
    windows = _windows(self.shape[-2:], kernel_size, dilation, padding, stride)
    frame = padded(self, padding, padding)
    blocks = np.stack([frame[windows.under(place)] for place in windows.places()], axis=len(lead) + 1)
    return blocks.reshape(*lead, channels * prod(kernel_size), prod(windows.count))


def _fold(self: Array, output_size: Shape, kernel_size: Shape, dilation: Shape, padding: Shape, stride: Shape) -> Array:
    *lead, rows, _ = self.shape
    windows = _windows(output_size, kernel_size, dilation, padding, stride)
    channels = rows // prod(kernel_size)
    blocks = self.reshape(*lead, channels, prod(kernel_size), *windows.count)
    frame = np.zeros((*lead, channels, *windows.size), self.dtype)
    for number, place in enumerate(windows.places()):
        frame[windows.under(place)] += blocks[..., number, :, :]
    return np.ascontiguousarray(frame[inner(output_size, padding)])


_geometry: dict[str, Any] = {"kernel_size": (2, 3), "dilation": (2, 1), "padding": (1, 0), "stride": (1, 2)}

unfold: Op = Op(
    "im2col(self, *, kernel_size, dilation, padding, stride)",
    grad_fn="Im2ColBackward0",
    formula="what lies under each window, as columns",
    forward=_unfold,
    rules=(
        Rule(
            "self",
            "the columns of g, added where they were",
            lambda g, self_sym_sizes, kernel_size, dilation, padding, stride: fold(
                g,
                output_size=self_sym_sizes[-2:],
                kernel_size=kernel_size,
                dilation=dilation,
                padding=padding,
                stride=stride,
            ),
        ),
    ),
    public=False,
    examples=lambda: [Example((normal(1, 2, 3, 5),), _geometry)],
)
fold: Op = Op(
    "col2im(self, *, output_size, kernel_size, dilation, padding, stride)",
    grad_fn="Col2ImBackward0",
    formula="the columns of self, added where windows lie",
    forward=_fold,
    rules=(
        Rule(
            "self",
            "what of g lies under each window",
            lambda g, kernel_size, dilation, padding, stride: unfold(
                g, kernel_size=kernel_size, dilation=dilation, padding=padding, stride=stride
            ),
        ),
    ),
    public=False,
    examples=lambda: [Example((normal(1, 12, 6),), _geometry | {"output_size": (3, 5)})],
)


def _shuffle(self: Array, upscale_factor: int) -> Array:
    *lead, channels, height, width = self.shape
    r, own = upscale_factor, channels // upscale_factor**2
    parts = self.reshape(*lead, own, r, r, height, width)
    n = len(lead) + 1
    turned = parts.transpose(*range(n), n + 2, n, n + 3, n + 1)
    return turned.reshape(*lead, own, height * r, width * r)


def _unshuffle(self: Array, downscale_factor: int) -> Array:
    *lead, channels, height, width = self.shape
    r = downscale_factor
    parts = self.reshape(*lead, channels, height // r, r, width // r, r)
    n = len(lead) + 1
    turned = parts.transpose(*range(n), n + 1, n + 3, n, n + 2)
    return turned.reshape(*lead, channels * r * r, height // r, width // r)


pixel_shuffle: Op = Op(
    "pixel_shuffle(self, *, upscale_factor)",
    grad_fn="PixelShuffleBackward0",
    formula="self, channels as pixels",
    forward=_shuffle,
    rules=(
        Rule(
            "self",
            "g, pixels as channels",
            lambda g, upscale_factor: pixel_unshuffle(g, downscale_factor=upscale_factor),
        ),
    ),
    public=False,
    examples=lambda: [Example((normal(1, 8, 2, 3),), {"upscale_factor": 2})],
)
pixel_unshuffle: Op = Op(
    "pixel_unshuffle(self, *, downscale_factor)",
    grad_fn="PixelUnshuffleBackward0",
    formula="self, pixels as channels",
    forward=_unshuffle,
    rules=(
        Rule(
            "self",
            "g, channels as pixels",
            lambda g, downscale_factor: pixel_shuffle(g, upscale_factor=downscale_factor),
        ),
    ),
    public=False,
    examples=lambda: [Example((normal(1, 2, 4, 6),), {"downscale_factor": 2})],
)


def _deal(self: Array, groups: int) -> Array:
    count, channels, *size = self.shape
    parts = self.reshape(count, groups, channels // groups, *size)
    return parts.swapaxes(1, 2).copy().reshape(self.shape)


channel_shuffle: Op = Op(
    "channel_shuffle(self, *, groups)",
    grad_fn="ChannelShuffleBackward0",
    formula="self, channels dealt out of groups in turn",
    forward=_deal,
    rules=(Rule("self", "g, channels back in groups", lambda g, groups: _undealt(g, groups)),),
    public=False,
    torch="channel_shuffle",
    examples=lambda: [Example((normal(2, 6, 3),), {"groups": 3}), Example((normal(1, 4, 1, 2),), {"groups": 1})],
)


def _undealt(g: Any, groups: int) -> Any:
    return channel_shuffle(g, groups=g.shape[1] // groups)

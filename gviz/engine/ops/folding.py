"""Blocks cut out of images and put back, and channels traded for pixels."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from gviz.engine.op import Example, Op, Rule
from gviz.engine.ops.examples import normal
from gviz.engine.ops.windows import Windows, counted, inner, padded
from gviz.values import Array

Shape = tuple[int, ...]


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

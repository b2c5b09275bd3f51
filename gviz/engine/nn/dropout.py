"""Dropout, as functions and as modules: sets random elements to zero during training."""

from __future__ import annotations

from typing import cast

import numpy as np

from gviz.engine import dtypes
from gviz.engine.functions_and_methods import front
from gviz.engine.nn import functional as F
from gviz.engine.nn.module import Module
from gviz.engine.op import apply
from gviz.engine.ops.arithmetic import mul
from gviz.engine.ops.random_draws import DROPOUTS, Mask
from gviz.engine.ops.shape import run
from gviz.engine.random import stream_of
from gviz.engine.tensor import Tensor, new_tensor
from gviz.engine.views import apply_in_place
from gviz.source.call_stack import warn


class _Dropout(Module):
    """Base class of dropout with probability `p`, during training only."""

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if p < 0 or p > 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.inplace = inplace

    def extra_repr(self) -> str:
        """The probability."""
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_Dropout):
    """Sets each element to zero with probability `p`; the others are scaled by ``1 / (1 - p)``."""

    def forward(self, input: Tensor) -> Tensor:
        """Applies dropout."""
        return F.dropout(input, self.p, self.training, self.inplace)


class Dropout1d(_Dropout):
    """Sets each channel of a sequence to zero with probability `p`."""

    def forward(self, input: Tensor) -> Tensor:
        """Applies dropout."""
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(_Dropout):
    """Sets each channel of an image to zero with probability `p`."""

    def forward(self, input: Tensor) -> Tensor:
        """Applies dropout."""
        return F.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(_Dropout):
    """Sets each channel of a volume to zero with probability `p`."""

    def forward(self, input: Tensor) -> Tensor:
        """Applies dropout."""
        return F.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(_Dropout):
    """Dropout that preserves mean and variance, for `SELU`."""

    def forward(self, input: Tensor) -> Tensor:
        """Applies dropout."""
        return F.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(_Dropout):
    """`AlphaDropout` of whole channels."""

    def forward(self, input: Tensor) -> Tensor:
        """Applies dropout."""
        return F.feature_alpha_dropout(input, self.p, self.training)


ALPHA = 1.7580993408473766
"""The limit of -selu for large negative inputs. Alpha dropout preserves mean and variance of selu's output."""


def _check_p(p: float) -> None:
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def _noise(input: Tensor, p: float, by_channel: bool) -> Tensor:
    """Return a mask, 1 for elements that are kept and 0 for dropped ones; drawn for each element, or for whole
    channels.
    """
    if by_channel and input.ndim < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    shape = (*input.shape[:2], *[1] * (input.ndim - 2)) if by_channel else tuple(input.shape)
    is_kept = stream_of(None).random(shape) >= p
    kind = input._array.dtype
    if kind.kind != "f":
        raise RuntimeError(
            f"result type Float can't be cast to the desired output type {dtypes.of_numpy(kind).tensor_type}"
        )
    return new_tensor(is_kept.astype(kind))


def _times(input: Tensor, factor: Tensor, inplace: bool) -> Tensor:
    return apply_in_place(mul, (input, factor), {}) if inplace else run(mul, input, factor)


def _dropped(input: Tensor, p: float, training: bool, inplace: bool, name: str = "dropout") -> Tensor:
    """Return the product of `input` and the mask that the dropout called `name` draws."""
    if p == 0 or not training or not input.numel():
        return input
    kept = np.zeros((), input._array.dtype) if p == 1 else _noise(input, p, name != "dropout")._array
    mask = new_tensor(kept / kept.dtype.type(1 - p or 1), Mask)
    run_it = apply_in_place if inplace else apply
    return cast(Tensor, run_it(DROPOUTS[name], (input, mask), {"p": p}))


@F._declare
def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Sets each element to zero with probability `p` and scales the others by ``1 / (1 - p)``; only if `training`."""
    _check_p(p)
    return _dropped(input, p, training, inplace)


@front("dropout", method=False)
def torch_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """`dropout` without defaults."""
    _check_p_of_torch(p)
    return _dropped(input, p, train, False)


@front("dropout_", method=False)
def torch_dropout_in_place(input: Tensor, p: float, train: bool) -> Tensor:
    """`dropout` in place."""
    _check_p_of_torch(p)
    return _dropped(input, p, train, True)


@front("feature_dropout", method=False)
def torch_feature_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """`dropout` of whole channels."""
    _check_p_of_torch(p)
    return _dropped(input, p, train, False, "dropout2d")


def _check_p_of_torch(p: float) -> None:
    if not 0.0 <= p <= 1.0:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p:g}")


@F._declare
def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """`dropout` of whole channels of sequences, with or without a batch."""
    _check_p(p)
    if input.ndim not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {input.ndim}D input. Note that dropout1d exists to "
            "provide channel-wise dropout on inputs with 1 spatial dimension, a channel dimension, and an optional "
            "batch dimension (i.e. 2D or 3D inputs)."
        )
    if input.ndim == 3:
        return _dropped(input, p, training, inplace, "dropout1d")
    return _dropped(input.unsqueeze(0), p, training, inplace, "dropout1d").squeeze(0)


@F._declare
def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """`dropout` of whole channels of images."""
    _check_p(p)
    if input.ndim not in (3, 4):
        warn(
            f"dropout2d: Received a {input.ndim}-D input to dropout2d, which is deprecated and will result in an error "
            "in a future release. To retain the behavior and silence this warning, please use dropout instead. Note "
            "that dropout2d exists to provide channel-wise dropout on inputs with 2 spatial dimensions, a channel "
            "dimension, and an optional batch dimension (i.e. 3D or 4D inputs).",
        )
    if input.ndim == 3:
        warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior is desired "
            "- input is interpreted as shape (N, C, L), where C is the channel dim. This behavior will change in a "
            "future release to interpret the input as one without a batch dimension, i.e. shape (C, H, W). To maintain "
            "the 1D channel-wise dropout behavior, please switch to using dropout1d instead.",
        )
    return _dropped(input, p, training, inplace, "dropout2d")


@F._declare
def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """`dropout` of whole channels of volumes, with or without a batch."""
    _check_p(p)
    if input.ndim not in (4, 5):
        warn(
            f"dropout3d: Received a {input.ndim}-D input to dropout3d, which is deprecated and will result in an error "
            "in a future release. To retain the behavior and silence this warning, please use dropout instead. Note "
            "that dropout3d exists to provide channel-wise dropout on inputs with 3 spatial dimensions, a channel "
            "dimension, and an optional batch dimension (i.e. 4D or 5D inputs).",
        )
    if input.ndim != 4:
        return _dropped(input, p, training, inplace, "dropout3d")
    return _dropped(input.unsqueeze(0), p, training, inplace, "dropout3d").squeeze(0)


def _alpha_dropped(input: Tensor, p: float, training: bool, inplace: bool, by_channel: bool) -> Tensor:
    """Set dropped elements to the limit of selu, then scale and shift, which preserves mean and variance."""
    if p == 0 or not training or not input.numel():
        return input
    if p == 1:
        return _times(input, new_tensor(np.zeros((), input._array.dtype)), inplace)
    noise = _noise(input, p, by_channel)
    scale = 1 / np.sqrt((ALPHA * ALPHA * p + 1) * (1 - p))
    kind = input._array.dtype.type
    shift = new_tensor(np.asarray((noise._array - 1) * kind(ALPHA * scale) + kind(ALPHA * scale * p)))
    noise._array *= kind(scale)
    result = _times(input, noise, inplace)
    return result.add_(shift) if inplace else result + shift


@F._declare
def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """`dropout` that preserves the mean and variance of the output of selu."""
    _check_p(p)
    return _alpha_dropped(input, p, training, inplace, by_channel=False)


@F._declare
def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """`alpha_dropout` of whole channels."""
    _check_p(p)
    return _alpha_dropped(input, p, training, inplace, by_channel=True)

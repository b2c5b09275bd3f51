"""Losses of ``torch.nn.functional`` between an input and a target of the same shape."""

from __future__ import annotations

import math
from typing import Any

from gviz.engine.modes import no_grad
from gviz.engine.nn.functional.reducing import checked, deprecated, reduce, refuse_tracked
from gviz.engine.op import Op
from gviz.engine.ops import loss, scalars
from gviz.engine.ops.repeating import broadcast_tensors
from gviz.engine.ops.shape import run
from gviz.engine.tensor import Tensor
from gviz.site import warn

__all__ = [
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "gaussian_nll_loss",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "mse_loss",
    "poisson_nll_loss",
    "smooth_l1_loss",
    "soft_margin_loss",
]


def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """The mean (or ``sum``, or ``none``) of the squared differences."""
    how = deprecated(size_average, reduce, reduction)
    first, second = _alike(input, target)
    if weight is not None:
        return _weighted((first - second).pow(2), weight, how)
    return run(loss.mse, first, second, reduction=checked(how))


def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """The mean of the absolute differences."""
    how = deprecated(size_average, reduce, reduction)
    first, second = _alike(input, target)
    if weight is not None:
        return _weighted((first - second).abs(), weight, how)
    return _reduce((first - second).abs(), how)


def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """The mean of the absolute differences, squared and scaled where they are below `beta`."""
    how = deprecated(size_average, reduce, reduction)
    first, second = _alike(input, target)
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    if beta == 0:
        return _reduce((first - second).abs(), how)
    return run(loss.smooth_l1, first, second, reduction=checked(how), beta=beta)


def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """The mean of the squared differences, growing linearly where they are above `delta`."""
    first, second = _alike(input, target)
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    if weight is not None:
        return _weighted(run(loss.huber, first, second, reduction="none", delta=delta), weight, reduction)
    return run(loss.huber, first, second, reduction=checked(reduction), delta=delta)


def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The mean of ``log(1 + exp(-target * input))``."""
    how = checked(deprecated(size_average, reduce, reduction))
    refuse_tracked("soft_margin_loss", target=target)
    return run(loss.soft_margin, *broadcast_tensors(input, target), reduction=how)


def _alike(input: Tensor, target: Tensor) -> tuple[Tensor, ...]:
    """Both in the shape they broadcast to, with a warning where that is not what they have."""
    if target.shape != input.shape:
        warn(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}). This will "
            "likely lead to incorrect results due to broadcasting. Please ensure they have the same size.",
        )
    return broadcast_tensors(input, target)


def _weighted(losses: Tensor, weight: Tensor, reduction: str) -> Tensor:
    if weight.shape != losses.shape:
        raise ValueError("Weights and input must have the same size.")
    weighted = losses * weight
    if checked(reduction) == "mean":
        return weighted.sum() / weight.sum()
    return _reduce(weighted, reduction)


_reduce = reduce


def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The cross entropy of probabilities and targets between 0 and 1."""
    how = checked(deprecated(size_average, reduce, reduction))
    if target.shape != input.shape:
        raise ValueError(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}) is deprecated. "
            "Please ensure they have the same size."
        )
    if weight is not None and weight.shape != input.shape:
        weight = weight.expand(*broadcast_tensors(target, weight)[1].shape)
    refuse_tracked("binary_cross_entropy", weight=weight)
    return _optional(loss.bce, input, target, weight, reduction=how)


def _optional(op: Op, *tensors: Tensor | None, **attrs: Any) -> Tensor:
    """Run an op, of which some tensors may be None."""
    result: Tensor = op(*tensors, **attrs)
    return result


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """`binary_cross_entropy` of ``sigmoid(input)``, computed in one."""
    how = checked(deprecated(size_average, reduce, reduction))
    if target.shape != input.shape:
        raise ValueError(f"Target size ({target.shape}) must be the same as input size ({input.shape})")
    refuse_tracked("binary_cross_entropy_with_logits", weight=weight, pos_weight=pos_weight)
    return _optional(loss.bce_with_logits, input, target, weight, pos_weight, reduction=how)


def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """How far the distribution `target` is from that whose logarithms are `input`."""
    how = deprecated(size_average, reduce, reduction)
    if how == "mean":
        warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size."
            "'batchmean' divides only by the batch size, and aligns with the KL div math definition."
            "'mean' will be changed to behave the same as 'batchmean' in the next major release.",
        )
    losses = target.exp() * (target - input) if log_target else target.xlogy(target) - target * input
    if how == "batchmean":
        total = losses.sum()
        return total / input.shape[0] if input.ndim else total
    return _reduce(losses, how)


def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """How improbable the counts `target` are where `input` (or its exponential) are expected."""
    how = deprecated(size_average, reduce, reduction)
    losses = input.exp() - target * input if log_input else input - target * run(scalars.plus, input, other=eps).log()
    if full:
        stirling = target * target.log() - target + 0.5 * (2 * math.pi * target).log()
        losses += stirling.masked_fill(target <= 1, 0)
    return _reduce(losses, how)


def gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Tensor | float, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Tensor:
    """How improbable `target` is where normal numbers of mean `input` and variance `var` are expected."""
    variance = var if isinstance(var, Tensor) else var * input.detach().new_ones(tuple(input.shape))
    if bool((variance._array < 0).any()):
        raise ValueError("var has negative entry/entries")
    if variance.shape != input.shape:
        variance = _fitting(variance, input)
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(reduction + " is not valid")
    variance = variance.clone()
    with no_grad():
        variance.clamp_(min=eps)
    losses = 0.5 * (variance.log() + (input - target) ** 2 / variance)
    if full:
        losses += 0.5 * math.log(2 * math.pi)
    return _reduce(losses, reduction)


def _fitting(var: Tensor, input: Tensor) -> Tensor:
    """A variance per row as one per element. ValueError for any other shape."""
    if input.shape[:-1] == var.shape:
        return var.unsqueeze(-1)
    if input.shape[:-1] == var.shape[:-1] and var.shape[-1] == 1:
        return var
    raise ValueError("var is of incorrect size")

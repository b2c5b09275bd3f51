"""Losses, as functions and as modules.

The first losses compare an input and a target of the same shape. Then follow those whose target is a class, then those
that require one number to be larger than another by a margin. Every function checks its arguments as PyTorch does,
computes a loss for each element or example, and reduces them by `reduction`: to the mean, the sum, or not at all.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from math import prod
from typing import Any

from gviz.engine import creation, messages
from gviz.engine.functions_and_methods import front, number
from gviz.engine.modes import no_grad
from gviz.engine.nn import functional as F
from gviz.engine.nn._families_by_dimension import refuse_tracked
from gviz.engine.nn.activation import logsigmoid
from gviz.engine.nn.distance import pairwise_distance
from gviz.engine.nn.module import Module
from gviz.engine.op import Op
from gviz.engine.ops import losses as ops
from gviz.engine.ops._kernels import refuse_unless
from gviz.engine.ops.activations import log_softmax_front
from gviz.engine.ops.arithmetic import minus_number, over_number, plus_number, sub, times_number
from gviz.engine.ops.comparison import where
from gviz.engine.ops.joining import broadcast_tensors
from gviz.engine.ops.shape import run
from gviz.engine.tensor import Tensor
from gviz.source.call_stack import warn


class Loss(Module):
    """Base class of losses: their values are averaged, summed, or left as they are (``none``)."""

    def __init__(self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean") -> None:
        super().__init__()
        if size_average is not None or reduce is not None:
            averages, reduces = size_average is None or size_average, reduce is None or reduce
            reduction = ("mean" if averages else "sum") if reduces else "none"
            warn(
                f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead.",
            )
        self.reduction = reduction


class WeightedLoss(Loss):
    """Base class of losses with a weight for every class."""

    weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


class L1Loss(Loss):
    """The absolute difference."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Computes the loss."""
        return F.l1_loss(input, target, reduction=self.reduction)


class MSELoss(Loss):
    """The squared difference."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Computes the loss."""
        return F.mse_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(Loss):
    """The absolute difference; below `beta`, half the squared difference divided by `beta`."""

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        beta: float = 1.0,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Computes the loss."""
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(Loss):
    """Half the squared difference, linear beyond `delta`."""

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        if not isinstance(delta, (float, int)):
            raise TypeError(f"delta must be a float or int, got: {type(delta)}")
        super().__init__(reduction=reduction)
        self.delta = delta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Computes the loss."""
        return F.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


class BCELoss(WeightedLoss):
    """The cross entropy of probabilities and binary targets."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Computes the loss."""
        return F.binary_cross_entropy(input, target, weight=self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(Loss):
    """The cross entropy of the sigmoid of the input and binary targets."""

    weight: Tensor | None
    pos_weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Computes the loss."""
        return F.binary_cross_entropy_with_logits(
            input, target, self.weight, pos_weight=self.pos_weight, reduction=self.reduction
        )


class NLLLoss(WeightedLoss):
    """The negative log-probabilities of the target classes; the input has log-probabilities."""

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Computes the loss."""
        return F.nll_loss(input, target, weight=self.weight, ignore_index=self.ignore_index, reduction=self.reduction)


class CrossEntropyLoss(WeightedLoss):
    """The cross entropy of the softmax of the input and target classes or probabilities."""

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Computes the loss."""
        return F.cross_entropy(
            input,
            target,
            weight=self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


class KLDivLoss(Loss):
    """The Kullback-Leibler divergence of the target from a distribution given by log-probabilities."""

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        log_target: bool = False,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Computes the loss."""
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class PoissonNLLLoss(Loss):
    """The negative log-likelihood of the targets under a Poisson distribution."""

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        size_average: bool | None = None,
        eps: float = 1e-8,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_input = log_input
        self.full = full
        self.eps = eps

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:
        """Computes the loss."""
        return F.poisson_nll_loss(
            log_input, target, log_input=self.log_input, full=self.full, eps=self.eps, reduction=self.reduction
        )


class GaussianNLLLoss(Loss):
    """The negative log-likelihood of the targets under a normal distribution."""

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(None, None, reduction)
        self.full = full
        self.eps = eps

    def forward(self, input: Tensor, target: Tensor, var: Tensor | float) -> Tensor:
        """Computes the loss, given variances."""
        return F.gaussian_nll_loss(input, target, var, full=self.full, eps=self.eps, reduction=self.reduction)


class _MarginLoss(Loss):
    """Base class of losses with a margin, which defaults to `_margin`."""

    _margin = 0.0

    def __init__(
        self,
        margin: float | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = self._margin if margin is None else margin


class HingeEmbeddingLoss(_MarginLoss):
    """Rewards small distances for targets of 1, and distances beyond the margin for targets of -1."""

    _margin = 1.0

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Computes the loss."""
        return F.hinge_embedding_loss(input, target, margin=self.margin, reduction=self.reduction)


class CosineEmbeddingLoss(_MarginLoss):
    """Rewards small angles for targets of 1, and angles beyond the margin for targets of -1."""

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        """Computes the loss of two inputs."""
        return F.cosine_embedding_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class MarginRankingLoss(_MarginLoss):
    """Requires the first input to exceed the second by the margin (target 1), or the reverse (target -1)."""

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        """Computes the loss of two inputs."""
        return F.margin_ranking_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class SoftMarginLoss(Loss):
    """The logistic loss of targets of 1 and -1."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Computes the loss."""
        return F.soft_margin_loss(input, target, reduction=self.reduction)


class MultiLabelMarginLoss(Loss):
    """Requires every target class to exceed every other class by 1."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Computes the loss."""
        return F.multilabel_margin_loss(input, target, reduction=self.reduction)


class MultiLabelSoftMarginLoss(WeightedLoss):
    """The cross entropy of the sigmoid of every class and binary targets."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Computes the loss."""
        return F.multilabel_soft_margin_loss(input, target, weight=self.weight, reduction=self.reduction)


class MultiMarginLoss(WeightedLoss):
    """Requires the target class to exceed every other class by the margin."""

    def __init__(
        self,
        p: int = 1,
        margin: float = 1.0,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        if p not in (1, 2):
            raise ValueError("only p == 1 and p == 2 supported")
        if weight is not None and weight.dim() != 1:
            raise ValueError(f"MultiMarginLoss: expected weight to be None or 1D tensor, got {weight.dim()}D instead")
        self.p = p
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Computes the loss."""
        return F.multi_margin_loss(
            input, target, p=self.p, margin=self.margin, weight=self.weight, reduction=self.reduction
        )


class TripletMarginLoss(Loss):
    """Requires an anchor to be closer to the positive example than to the negative one by the margin."""

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        if margin <= 0:
            raise ValueError(f"TripletMarginLoss: expected margin to be greater than 0, got {margin} instead")
        self.margin = margin
        self.p = p
        self.eps = eps
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """Computes the loss of the distances."""
        return F.triplet_margin_loss(
            anchor,
            positive,
            negative,
            margin=self.margin,
            p=self.p,
            eps=self.eps,
            swap=self.swap,
            reduction=self.reduction,
        )


@F._declare
def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """The mean (or ``sum``, or ``none``) of the squared differences."""
    how = _reduction(size_average, reduce, reduction)
    first, second = _alike(input, target)
    if weight is not None:
        return _weighted((first - second).pow(2), input, weight, how)
    return run(ops.mse, first, second, reduction=_checked(how))


@F._declare
def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """The mean of the absolute differences."""
    how = _reduction(size_average, reduce, reduction)
    first, second = _alike(input, target)
    if weight is not None:
        return _weighted((first - second).abs(), input, weight, how)
    return _reduced((first - second).abs(), how)


@F._declare
def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """The mean of the absolute differences; below `beta`, of half the squared ones divided by `beta`."""
    how = _reduction(size_average, reduce, reduction)
    first, second = _alike(input, target)
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    if beta == 0:
        return _reduced((first - second).abs(), how)
    return run(ops.smooth_l1, first, second, reduction=_checked(how), beta=beta)


@F._declare
def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """The mean of half the squared differences, linear beyond `delta`."""
    first, second = _alike(input, target)
    delta = float(delta)  # it may be a tensor
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    second = second.to(first.dtype)  # the only one of these losses whose result has the dtype of `input`
    if weight is not None:
        if weight.size() != input.shape:
            raise ValueError("Weights and input must have the same size.")
        if reduction not in _REDUCTIONS:
            raise ValueError(f"Invalid reduction mode: {reduction}. Expected one of 'none', 'mean', 'sum'.")
        return _reduced(run(ops.huber, first, second, reduction="none", delta=delta) * weight, reduction)
    return run(ops.huber, first, second, reduction=_checked(reduction), delta=delta)


@F._declare
def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The mean of ``log(1 + exp(-target * input))``."""
    how = _checked(_reduction(size_average, reduce, reduction))
    refuse_tracked("soft_margin_loss", target=target)
    first, second = broadcast_tensors(input, target)
    if first.shape != input.shape:
        raise RuntimeError(messages.OUTPUT_SHAPE.format(own=list(input.shape), result=list(first.shape)))
    return run(ops.soft_margin, first, second, reduction=how)


def _alike(input: Tensor, target: Tensor) -> tuple[Tensor, ...]:
    """Return both tensors broadcast to a common shape, with a warning if their shapes differ."""
    if target.shape != input.shape:
        warn(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}). This will "
            "likely lead to incorrect results due to broadcasting. Please ensure they have the same size.",
        )
    return broadcast_tensors(input, target)


def _weighted(losses: Tensor, input: Tensor, weight: Tensor, reduction: str) -> Tensor:
    if weight.size() != input.shape:  # before it is broadcast
        raise ValueError("Weights and input must have the same size.")
    weighted = losses * weight
    if _checked(reduction) == "mean":
        return weighted.sum() / weight.sum()
    return _reduced(weighted, reduction)


@F._declare
def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The cross entropy of probabilities and targets between 0 and 1."""
    how = _checked(_reduction(size_average, reduce, reduction))
    if target.shape != input.shape:
        raise ValueError(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}) is deprecated. "
            "Please ensure they have the same size."
        )
    if weight is not None and weight.size() != input.shape:
        weight = weight.expand(broadcast_tensors(target, weight)[1].shape)
    refuse_tracked("binary_cross_entropy", weight=weight)
    return _optional(ops.bce, input, target, weight, reduction=how)


def _optional(op: Op, *tensors: Tensor | None, **attrs: Any) -> Tensor:
    """Run an op; some of its tensors may be None."""
    result: Tensor = op(*tensors, **attrs)
    return result


@F._declare
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """`binary_cross_entropy` of ``sigmoid(input)``, computed in one operation."""
    how = _checked(_reduction(size_average, reduce, reduction))
    if target.shape != input.shape:
        raise ValueError(f"Target size ({target.shape}) must be the same as input size ({input.shape})")
    refuse_tracked("binary_cross_entropy_with_logits", weight=weight, pos_weight=pos_weight)
    return _optional(ops.bce_with_logits, input, target, weight, pos_weight, reduction=how)


@F._declare
def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """The Kullback-Leibler divergence of `target` from the distribution with log-probabilities `input`."""
    how = _reduction(size_average, reduce, reduction)
    if how == "mean":
        warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size."
            "'batchmean' divides only by the batch size, and aligns with the KL div math definition."
            "'mean' will be changed to behave the same as 'batchmean' in the next major release.",
        )
    if not (input.dtype.is_floating_point and target.dtype.is_floating_point):
        raise RuntimeError("kl_div: Integral inputs not supported.")
    losses = target.exp() * (target - input) if log_target else target.xlogy(target) - target * input
    if how == "batchmean":
        total = losses.sum()
        return total / input.shape[0] if input.ndim else total
    return _reduced(losses, how)


@F._declare
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
    """The negative log-likelihood of the counts `target` under Poisson distributions.

    `input` has their means or, with `log_input`, the logarithms of these.
    """
    how = _reduction(size_average, reduce, reduction)
    _refuse_unknown(how)
    losses = input.exp() - target * input if log_input else input - target * run(plus_number, input, other=eps).log()
    if full:
        stirling = (
            target * target.log()
            - target
            + run(times_number, run(times_number, target, other=2 * math.pi).log(), other=0.5)
        )
        losses += stirling.masked_fill(target <= 1, 0)
    return _reduced(losses, how)


@F._declare
def gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Tensor | float, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Tensor:
    """The negative log-likelihood of `target` under normal distributions of mean `input` and variance `var`."""
    variance = var if isinstance(var, Tensor) else var * input.detach().new_ones(tuple(input.shape))
    if bool((variance._array < 0).any()):
        raise ValueError("var has negative entry/entries")
    if variance.shape != input.shape:
        if input.shape[:-1] == variance.shape:  # one variance per row
            variance = variance.unsqueeze(-1)
        elif input.shape[:-1] != variance.shape[:-1] or variance.shape[-1] != 1:
            raise ValueError("var is of incorrect size")
    _refuse_unknown(reduction, "is not valid")
    variance = variance.clone()
    with no_grad():
        variance.clamp_(min=eps)
    losses = 0.5 * (variance.log() + (input - target) ** 2 / variance)
    if full:
        losses += 0.5 * math.log(2 * math.pi)
    return _reduced(losses, reduction)


@F._declare
def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The negative log-likelihood of the classes `target`; `input` has log-probabilities."""
    return _nll(input, target, weight, ignore_index, _checked(_reduction(size_average, reduce, reduction)))


def _nll(input: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int, reduction: str) -> Tensor:
    if not input.ndim:
        raise ValueError("Expected 1 or more dimensions (got 0)")
    if input.ndim != 1 and (not target.ndim or input.shape[0] != target.shape[0]):
        count = target.shape[0] if target.ndim else 0
        raise ValueError(f"Expected input batch_size ({input.shape[0]}) to match target batch_size ({count}).")
    if input.ndim in (1, 2, 4):
        return _nll_of(ops.nll2d if input.ndim == 4 else ops.nll, input, target, weight, ignore_index, reduction)
    # several positions per example: as if they lay in a plane
    batch, classes, *places = input.shape
    expected = (batch, *places)
    if tuple(target.shape) != expected:
        raise RuntimeError(f"Expected target size {list(expected)}, got {list(target.shape)}")
    flat = input.contiguous().view(batch, classes, 1, prod(places))
    flat_target = target.contiguous().view(batch, 1, prod(places))
    result = _nll_of(ops.nll2d, flat, flat_target, weight, ignore_index, reduction)
    return result.view(expected) if reduction == "none" else result


def _nll_of(op: Op, input: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int, reduction: str) -> Tensor:
    classes = input.shape[0] if input.ndim == 1 else input.shape[1]
    if input.ndim == 4 and target.ndim != 3:
        kind = f"only batches of spatial targets supported (3D tensors) but got targets of dimension: {target.ndim}"
        raise RuntimeError(kind)
    if input.ndim == 4 and tuple(target.shape) != (input.shape[0], *input.shape[2:]):
        raise RuntimeError(f"size mismatch (got input: {list(input.shape)} , target: {list(target.shape)}")
    if input.ndim <= 2 and target.ndim > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if target.dtype.name not in ("int64", "uint8"):
        raise RuntimeError(f"expected target dtype to be Long or Byte, but got {target.dtype.tensor_type}")
    if input.ndim == 1 and target.ndim == 1 and target.shape[0] != 1:
        raise ValueError(f"For 1D input, 1D target must have size 1, but got target size: {target.shape[0]}")
    if weight is not None and tuple(weight.shape) != (classes,):
        raise RuntimeError(
            f"weight tensor should be defined either for all {classes} classes or no classes but got weight tensor of "
            f"shape: {list(weight.shape)}"
        )
    refuse_tracked("nll_loss2d_forward" if input.ndim == 4 else "nll_loss_forward", weight=weight)
    kernel = "nll_loss2d_forward_out_frame" if input.ndim == 4 else "nll_loss_out_frame"
    refuse_unless(input.dtype.is_floating_point, kernel, input._array)
    if weight is not None and weight.dtype is not input.dtype:
        source, expected = weight.dtype.tensor_type, input.dtype.tensor_type
        raise RuntimeError(f"expected scalar type {expected} but found {source}")
    alone = input.ndim == 1 and target.ndim == 1
    result, _ = op(
        input, target.detach().view(()) if alone else target, weight, reduction=reduction, ignore_index=ignore_index
    )
    return result  # type: ignore[no-any-return]  # the first of two tensors


@F._declare
def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """The cross entropy of `target` (classes, or their probabilities) and the softmax of the scores `input`."""
    how = _checked(_reduction(size_average, reduce, reduction))
    if input.shape == target.shape:
        if not target.dtype.is_floating_point:
            raise RuntimeError(
                "Expected floating point type for target with class probabilities, got " + target.dtype.tensor_type
            )
        if not input.ndim:
            raise IndexError("Dimension specified as 1 but tensor has no dimensions")
        return _against_probabilities(input, target, weight, how, label_smoothing)
    if not 0 <= label_smoothing <= 1:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing:g}")
    scores = log_softmax_front(input, _class_dim(input))
    likely = _nll(scores, target, weight, ignore_index, how)
    if not label_smoothing:
        return likely
    smooth = _smoothed(scores, target, weight, ignore_index, how)
    likely_part = run(times_number, likely, other=1 - label_smoothing)
    return likely_part + run(times_number, smooth, other=label_smoothing / input.shape[_class_dim(input)])


def _class_dim(input: Tensor) -> int:
    return 0 if input.ndim == 1 else 1


def _per_class(weight: Tensor, input: Tensor) -> Tensor:
    """Return a weight per class, in a shape that broadcasts with `input`."""
    return weight.view([-1 if d == _class_dim(input) else 1 for d in range(input.ndim)])


def _smoothed(scores: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int, reduction: str) -> Tensor:
    """Return the loss against a target that is uniform over the classes."""
    weighed = scores if weight is None else scores * _per_class(weight, scores)
    losses = -weighed.sum(_class_dim(scores))
    ignored = target == ignore_index
    losses.masked_fill_(ignored, 0.0)
    if reduction != "mean":
        return _reduced(losses, reduction)
    if weight is None:
        return losses.sum() / (~ignored).sum()
    return losses.sum() / weight.gather(0, target.masked_select(~ignored).flatten()).sum()


def _against_probabilities(
    input: Tensor, target: Tensor, weight: Tensor | None, reduction: str, label_smoothing: float
) -> Tensor:
    dim = _class_dim(input)
    scores, classes = log_softmax_front(input, dim), input.shape[dim]
    if label_smoothing:
        target = run(plus_number, run(times_number, target, other=1 - label_smoothing), other=label_smoothing / classes)
    products = scores * target
    if weight is not None:
        products = products * _per_class(weight, input)
    if reduction == "none":
        return -products.sum(dim)
    if reduction == "mean" and not input.numel():
        return -products.sum().fill_(float("nan"))
    total = -products.sum()
    return total if reduction == "sum" else run(over_number, total, other=input.numel() / classes)


@F._declare
def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The mean over the classes of the binary cross entropy of each."""
    how = _reduction(size_average, reduce, reduction)
    losses = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input))
    if weight is not None:
        losses = losses * weight
    losses = losses.sum(-1) / input.shape[-1]
    _refuse_unknown(how, "is not valid")
    return _reduced(losses, how)


@F._declare
def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """How far the other classes come within `margin` of the class `target`."""
    how = _checked(_reduction(size_average, reduce, reduction))
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.ndim != 1:
        raise ValueError("weight must be one-dimensional")
    _check_scores(input)
    rows = input.shape[0] if input.ndim == 2 else 1
    if target.ndim > 1 or target.numel() != rows:
        raise RuntimeError(
            "multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples (batch "
            f"size). Expected target size [{rows}], but got {list(target.shape)}. Input has shape {list(input.shape)}."
        )
    if weight is not None and weight.shape[0] != input.shape[-1]:
        raise RuntimeError(f"inconsistent weight size, expected {input.shape[-1]} but got {list(weight.shape)}")
    refuse_tracked("multi_margin_loss", weight=weight)
    if target.ndim != input.ndim - 1:
        target = target.reshape(input.shape[:-1])
    result: Tensor = ops.multi_margin(input, target, weight, p=p, margin=margin, reduction=how)
    return result


def _check_scores(input: Tensor) -> None:
    """Raises RuntimeError unless `input` has scores of classes, of one example or of several."""
    if input.ndim > 2 or 0 in input.shape[1:] or tuple(input.shape) == (0,):
        sizes = list(input.shape)
        raise RuntimeError(f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {sizes}")


@F._declare
def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """How far the other classes come within 1 of those in `target`, up to its first -1."""
    how = _checked(_reduction(size_average, reduce, reduction))
    _check_scores(input)
    if target.shape != input.shape:
        raise RuntimeError(f"inconsistent target size: {list(target.shape)} for input of size: {list(input.shape)}")
    result: Tensor = ops.multilabel_margin(input, target, reduction=how)[0]
    return result


def _minus(value: float, tensor: Tensor) -> Tensor:
    """`value` minus a tensor, as PyTorch computes it here: the number is converted to a tensor first."""
    return run(sub, number(value, tensor._array), tensor)


@F._declare
@front("hinge_embedding_loss", method=False)
def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The distance where `target` is 1; where it is -1, how far it is below `margin`."""
    how = _reduction(size_average, reduce, reduction)
    margin = margin if input.is_floating_point() else int(margin)  # PyTorch converts it to the type of the input
    short = _minus(margin, input).clamp_min_(0)
    nothing = creation.zeros_like(input.detach())
    return _reduced(where(target != 1, short, nothing) + where(target != -1, input, nothing), how)


@F._declare
@front("margin_ranking_loss", method=False)
def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """How far `input1` fails to exceed (`target` 1) or stay below (-1) `input2` by `margin`."""
    how = _reduction(size_average, reduce, reduction)
    if not input1.ndim == input2.ndim == target.ndim:
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {input1.shape}, input2: {input2.shape}, target: {target.shape} "
        )
    shortfall = run(plus_number, -target * (input1 - input2), other=margin)
    return _reduced(shortfall.clamp_min_(0), how)


@F._declare
@front("triplet_margin_loss", method=False)
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """How far `anchor` fails to be closer to `positive` than to `negative` by `margin`."""
    how = _reduction(size_average, reduce, reduction)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            f"anchor {anchor.ndim}D, positive {positive.ndim}D, and negative {negative.ndim}D inputs"
        )
    near = pairwise_distance(anchor, positive, p, eps)
    far = pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = far.minimum(pairwise_distance(positive, negative, p, eps))
    return _reduced((run(plus_number, near, other=margin) - far).clamp_min(0), how)


@F._declare
def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """`triplet_margin_loss` with any distance function."""
    _refuse_unknown(reduction)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    distance = distance_function or pairwise_distance
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = far.minimum(distance(positive, negative))
    return _reduced((margin + near - far).clamp_min(0), reduction)


@F._declare
@front("cosine_embedding_loss", method=False)
def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """How far the cosine is from 1 where `target` is 1; where it is -1, how far it is above `margin`."""
    how = _reduction(size_average, reduce, reduction)
    if target.ndim > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    dims = target.ndim + 1
    if input1.ndim != dims or input2.ndim != dims:
        kind = "1D target tensor expects 2D" if target.ndim else "0D target tensor expects 1D"
        raise RuntimeError(
            f"{kind} input tensors, but found inputs with sizes {list(input1.shape)} and {list(input2.shape)}."
        )
    dim = target.ndim
    products = (input1 * input2).sum(dim)
    squares = [run(plus_number, (t * t).sum(dim), other=1e-12) for t in (input1, input2)]
    cosine = products / (squares[0] * squares[1]).sqrt_()
    nothing = creation.zeros_like(cosine.detach())
    alike, apart = (
        where(target == 1, _minus(1, cosine), nothing),
        where(target == -1, run(minus_number, cosine, other=margin).clamp_min_(0), nothing),
    )
    return _reduced(alike + apart, how)


_REDUCTIONS = ("none", "mean", "sum")


def _refuse_unknown(reduction: str, reason: str = "is not a valid value for reduction") -> None:
    """Raise ValueError for an unknown reduction before a loss is computed, and TypeError for anything but text.

    PyTorch's Python functions add the texts, as here. Those that call C++ (`_checked`) write anything into the text.
    """
    if reduction not in _REDUCTIONS:
        raise ValueError(reduction + " " + reason)


def _checked(reduction: str) -> str:
    """Return `reduction`, or "mean" for its old name. Raises ValueError for an unknown one."""
    if reduction == "elementwise_mean":
        warn("reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.")
        return "mean"
    if reduction not in _REDUCTIONS:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return reduction


def _reduced(losses: Tensor, reduction: str) -> Tensor:
    """Return the mean or the sum of the losses, or the losses themselves."""
    how = _checked(reduction)
    return losses.mean() if how == "mean" else losses.sum() if how == "sum" else losses


def _reduction(size_average: bool | None, reduce: bool | None, reduction: str) -> str:
    """Return the reduction for two deprecated arguments, with a warning; `reduction` if they are not given."""
    if size_average is None and reduce is None:
        return reduction
    meant = "none" if reduce is False else "sum" if size_average is False else "mean"
    warn(f"size_average and reduce args will be deprecated, please use reduction='{meant}' instead.")
    return meant

"""Losses between an input and a target of the same shape that PyTorch computes in one operation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import signature as signature_of
from math import prod
from typing import Any

import numpy as np

from gviz.engine.op import Example, Op, Rule
from gviz.engine.ops.comparison import where_op
from gviz.engine.ops.examples import normal, spaced, within
from gviz.engine.ops.exponential import exp, log, sigmoid
from gviz.engine.ops.kernels import only
from gviz.engine.ops.limits import clamp_min
from gviz.engine.ops.reduced_losses import by_reduction, with_weights
from gviz.engine.ops.signs import sign
from gviz.values import Array

REDUCTIONS = ("mean", "sum", "none")


def reduced(losses: Array, reduction: str) -> Any:
    """All losses, their sum, or their mean."""
    if reduction == "none":
        return losses
    total = np.add.reduce(losses, axis=None)
    return total if reduction == "sum" else total / np.asarray(losses.size, losses.dtype)


def share(g: Any, like: Any, reduction: str) -> Any:
    """The gradient of one loss, from that of what all were reduced to; for use inside rules."""
    return g / max(prod(like.shape), 1) if reduction == "mean" else g


def _compared(
    signature: str,
    grad_fn: str,
    one: str,
    loss: Callable[..., Array],
    rules: tuple[Rule, Rule],
    extra: Sequence[dict[str, Any]] = ({},),
) -> Op:
    """A loss that depends on ``self - target`` alone, in which that of an element is `one`."""
    name = signature.partition("(")[0]

    def forward(self: Array, target: Array, reduction: str, **attrs: Any) -> Any:
        return reduced(loss(self - target, **attrs), reduction)

    return Op(
        signature,
        grad_fn=grad_fn,
        formula=f"mean of {one}",
        readings=by_reduction(f"mean of {one}", f"sum of {one}", one),
        forward=forward,
        rules=rules,
        promotes=True,
        public=False,
        torch=f"nn.functional.{name}",
        examples=lambda: [
            Example((spaced(2, 3), spaced(2, 3) * 0.3), {"reduction": r} | attrs) for r in REDUCTIONS for attrs in extra
        ],
    )


def _opposite(text: str, towards_self: Callable[..., Any]) -> tuple[Rule, Rule]:
    """The rules of both inputs: the target gets the opposite of what the other gets."""

    def towards_target(*args: Any, **attrs: Any) -> Any:
        return -towards_self(*args, **attrs)

    towards_target.__signature__ = signature_of(towards_self)  # type: ignore[attr-defined]
    return Rule("self", text, towards_self), Rule("target", f"-{text}", towards_target)


def _smooth(difference: Array, beta: float) -> Array:
    size = np.abs(difference)
    return np.where(size < beta, 0.5 * size * size / beta, size - 0.5 * beta)


def _smooth_slope(difference: Any, beta: float) -> Any:
    near = (difference < beta) & (difference > -beta)
    return where_op(near, difference / beta, sign(difference))


def _huber(difference: Array, delta: float) -> Array:
    size = np.abs(difference)
    return np.where(size <= delta, 0.5 * size * size, delta * (size - 0.5 * delta))


def _huber_slope(difference: Any, delta: float) -> Any:
    near = (difference < delta) & (difference > -delta)  # where both are equal, the next slope is 0
    return where_op(near, difference, sign(difference) * delta)


mse = _compared(
    "mse_loss(self, target, *, reduction='mean')",
    "MseLossBackward0",
    "(self - target)**2",
    only("f", "mse_cpu", np.square),
    _opposite(
        "g * 2 * (self - target)",
        lambda g, self, target, reduction: share(g, self, reduction) * (2 * (self - target)),
    ),
)
smooth_l1 = _compared(
    "smooth_l1_loss(self, target, *, reduction='mean', beta=1.0)",
    "SmoothL1LossBackward0",
    "|self - target| - beta / 2, rounded at 0",
    only("f", "smooth_l1_cpu", _smooth),
    _opposite(
        "g * (self - target) / beta, at least -g, at most g",
        lambda g, self, target, reduction, beta: share(g, self, reduction) * _smooth_slope(self - target, beta),
    ),
    [{"beta": 1.0}, {"beta": 0.6}],
)
huber = _compared(
    "huber_loss(self, target, *, reduction='mean', delta=1.0)",
    "HuberLossBackward0",
    "delta * (|self - target| - delta / 2), rounded at 0",
    only("f", "huber_cpu", _huber),
    _opposite(
        "g * (self - target), at most delta away from 0",
        lambda g, self, target, reduction, delta: share(g, self, reduction) * _huber_slope(self - target, delta),
    ),
    [{"delta": 1.0}, {"delta": 0.6}],
)


def _signs(*shape: int) -> Array:
    return np.sign(spaced(*shape))


def _through_soft_margin(g: Any, self: Any, target: Any, reduction: str) -> Any:
    power = exp(-target * self)
    return share(g, self, reduction) * (-target * power / (1 + power))  # nan where it overflows, as in PyTorch


soft_margin: Op = Op(
    "soft_margin_loss(self, target, *, reduction='mean')",
    grad_fn="SoftMarginLossBackward0",
    formula="mean of log(1 + exp(-target * self))",
    readings=by_reduction(
        "mean of log(1 + exp(-target * self))",
        "sum of log(1 + exp(-target * self))",
        "log(1 + exp(-target * self))",
    ),
    forward=lambda self, target, reduction: reduced(np.log1p(np.exp(-target * self)), reduction),
    rules=(Rule("self", "-g * target * sigmoid(-target * self)", _through_soft_margin),),
    public=False,
    torch="nn.functional.soft_margin_loss",
    examples=lambda: [Example((normal(2, 3), _signs(2, 3)), {"reduction": r}) for r in REDUCTIONS],
)


_LEAST = float(np.float32(1e-12))


def _weighted(losses: Any, weight: Any) -> Any:
    return losses if weight is None else losses * weight


def _bce(self: Array, target: Array, weight: Array | None, reduction: str) -> Any:
    if ((self < 0) | (self > 1)).any():
        raise RuntimeError("all elements of input should be between 0 and 1")
    losses = (target - 1) * np.maximum(np.log1p(-self), -100) - target * np.maximum(np.log(self), -100)
    return reduced(_weighted(losses, weight), reduction)


def _both_apart(self: Any) -> Any:
    """``self * (1 - self)``, never 0."""
    return (self + 1e-12) * (1 - self + 1e-12)


bce_slope: Op = Op(
    "binary_cross_entropy_backward(self, target)",
    grad_fn="BinaryCrossEntropyBackwardBackward0",
    formula="(self - target) / (self * (1 - self))",
    forward=lambda self, target: (self - target) / np.maximum((1 - self) * self, _LEAST),
    rules=(
        Rule(
            "self",
            "g * (self**2 - 2 * self * target + target) / (self * (1 - self))**2",
            lambda g, self, target: g * ((self * self - 2 * self * target + target) / _both_apart(self) ** 2),
        ),
        Rule("target", "-g / (self * (1 - self))", lambda g, self: -g / _both_apart(self)),
    ),
    public=False,
    examples=lambda: [Example((within(0.1, 0.9, 2, 3), within(0.1, 0.9, 2, 3)), {})],
)
"""The slope of a loss, of which PyTorch limits the slope in another way than the slope itself."""


def _through_bce_input(g: Any, self: Any, target: Any, weight: Any, reduction: str) -> Any:
    return _weighted(share(g, self, reduction) * bce_slope(self, target), weight)


def _through_bce_target(g: Any, self: Any, target: Any, weight: Any, reduction: str) -> Any:
    slope = clamp_min(log(1 - self), min=-100) - clamp_min(log(self), min=-100)
    return _weighted(share(g, self, reduction) * slope, weight)


bce: Op = Op(
    "binary_cross_entropy(self, target, weight?, *, reduction='mean')",
    grad_fn="BinaryCrossEntropyBackward0",
    formula="-mean of target * log(self) + (1 - target) * log(1 - self)",
    readings=with_weights(
        by_reduction(
            "-mean of target * log(self) + (1 - target) * log(1 - self)",
            "-sum of target * log(self) + (1 - target) * log(1 - self)",
            "-(target * log(self) + (1 - target) * log(1 - self))",
        )
    ),
    forward=only("f", "binary_cross_entropy", _bce),
    rules=(
        Rule("self", "g * (self - target) / (self * (1 - self))", _through_bce_input),
        Rule("target", "g * (log(1 - self) - log(self))", _through_bce_target),
    ),
    public=False,
    examples=lambda: [
        Example((within(0.1, 0.9, 2, 3), within(0.1, 0.9, 2, 3), w), {"reduction": r})
        for r in REDUCTIONS
        for w in (None, within(0.5, 2, 2, 3))
    ],
)


def _bce_with_logits(self: Array, target: Array, weight: Array | None, pos_weight: Array | None, reduction: str) -> Any:
    softplus = np.log1p(np.exp(-np.abs(self))) + np.maximum(-self, 0)
    pull = softplus if pos_weight is None else (1 + (pos_weight - 1) * target) * softplus
    losses = _weighted((1 - target) * self + pull, weight)
    return reduced(losses.astype(np.result_type(self, target), copy=False), reduction)  # whatever the weights are


def _through_logits(g: Any, self: Any, target: Any, weight: Any, pos_weight: Any, reduction: str) -> Any:
    if pos_weight is None:
        slope = sigmoid(self) - target
    else:
        positive = pos_weight * target
        slope = (positive + 1 - target) * sigmoid(self) - positive
    return _weighted(share(g, self, reduction) * slope, weight)


def _log_sigmoid(self: Any) -> Any:
    """Exact for large numbers of both signs; for use inside rules."""
    size = where_op(self < 0, self, -self)
    return where_op(self < 0, self, self * 0) - log(1 + exp(size))


def _through_logits_target(g: Any, self: Any, target: Any, weight: Any, pos_weight: Any, reduction: str) -> Any:
    slope = -self if pos_weight is None else _log_sigmoid(-self) - pos_weight * _log_sigmoid(self)
    return _weighted(share(g, self, reduction) * slope, weight)


bce_with_logits: Op = Op(
    "binary_cross_entropy_with_logits(self, target, weight?, pos_weight?, *, reduction='mean')",
    grad_fn="BinaryCrossEntropyWithLogitsBackward0",
    formula="binary cross entropy of sigmoid(self) and target",
    readings=with_weights(
        by_reduction(
            "mean binary cross entropy of sigmoid(self) and target",
            "sum of the binary cross entropy of sigmoid(self) and target",
            "binary cross entropy of sigmoid(self) and target",
        )
    ),
    forward=_bce_with_logits,
    rules=(
        Rule("self", "g * (sigmoid(self) - target)", _through_logits),
        Rule("target", "-g * self", _through_logits_target),
    ),
    public=False,
    examples=lambda: [
        Example((normal(2, 3), within(0.1, 0.9, 2, 3), w, p), {"reduction": r})
        for r in REDUCTIONS
        for w, p in ((None, None), (within(0.5, 2, 2, 3), within(0.5, 2, 3)))
    ],
)

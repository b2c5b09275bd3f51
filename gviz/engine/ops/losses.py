"""Losses that are one operation: for regression, for probabilities, and for classes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import signature as signature_of
from math import prod
from typing import Any

import msgspec
import numpy as np

from gviz.engine import dtypes
from gviz.engine.op import Example, Op, Reading, Rule, zero_gradient, zeros
from gviz.engine.ops._examples import normal, positive, spaced, uniform_array
from gviz.engine.ops._kernels import laid_out_as, only, refuse_unless
from gviz.engine.ops.arithmetic import sign
from gviz.engine.ops.comparison import where_op
from gviz.engine.ops.elementary_functions import exp, log, logit, sigmoid
from gviz.engine.ops.shape import unsqueeze_dims
from gviz.values.value import Array

# ----------------------------------------------------------------------------------------------------------------------
# The formula and rule texts of a loss for each reduction, and with or without weights.


def by_reduction(
    mean: str, total: str, each: str, *, share: str = "g / number of elements", part: str = "g"
) -> tuple[Reading, ...]:
    """The formulas of a loss. Its rules are for one element, which receives `share` for a mean, otherwise `part`."""
    return (
        Reading((("reduction", "mean"),), mean, (("g", share),)),
        Reading((("reduction", "sum"),), total, (("g", part),)),
        Reading((("reduction", "none"),), each, (("g", part),)),
    )


def with_weights(readings: tuple[Reading, ...], *, share: str = "") -> tuple[Reading, ...]:
    """The same for a loss with optional weights, with and without them.

    For a mean each element then receives the `share`; by default this is the unweighted one times the weight.
    """
    return *[_weighted(it, share) for it in readings], *readings


def _weighted(reading: Reading, share: str) -> Reading:
    [(g, part)] = reading.words
    is_mean = ("reduction", "mean") in reading.given
    weighted = share if share and is_mean else part.replace(g, f"{g} * weight", 1)
    formula = f"{reading.formula}, weighted by weight"
    return msgspec.structs.replace(reading, formula=formula, words=((g, weighted),), beside=("weight",))


# ----------------------------------------------------------------------------------------------------------------------
# Losses between an input and a target of the same shape that PyTorch computes in one operation.


REDUCTIONS = ("mean", "sum", "none")


def reduced(losses: Array, reduction: str) -> Any:
    """The losses, their sum, or their mean."""
    if reduction == "none":
        return losses
    total = np.add.reduce(losses, axis=None)
    return total if reduction == "sum" else total / np.asarray(losses.size, losses.dtype)


def share(g: Any, like: Any, reduction: str) -> Any:
    """The gradient of one loss from that of the reduced loss; for use in rules."""
    return g / max(prod(like.shape), 1) if reduction == "mean" else g


def _compared(
    signature: str,
    grad_fn: str,
    one: str,
    loss: Callable[..., Array],
    rules: tuple[Rule, Rule],
    extra: Sequence[dict[str, Any]] = ({},),
) -> Op:
    """Return a loss that depends on ``self - target`` only; `one` is the loss of an element."""
    name = signature.partition("(")[0]
    kernel = name.removesuffix("_loss") + "_cpu"

    def forward(self: Array, target: Array, reduction: str, **attrs: Any) -> Any:
        refuse_unless(self.dtype.kind == "f", kernel, self)
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
    """Return the rules of both inputs: the gradient of the target is the negative of the input's."""

    def towards_target(*args: Any, **attrs: Any) -> Any:
        return -towards_self(*args, **attrs)

    towards_target.__signature__ = signature_of(towards_self)  # type: ignore[attr-defined]
    return Rule("self", text, towards_self), Rule("target", f"-{text}", towards_target)


def _smooth(difference: Array, beta: float) -> Array:
    size = np.abs(difference)
    return np.where(size < beta, 0.5 * size * size / beta, size - 0.5 * beta)


def _smooth_slope(difference: Any, beta: float) -> Any:
    far = (difference >= beta) | (difference <= -beta)  # a nan is not
    return where_op(far, sign(difference), difference / beta)


def _huber(difference: Array, delta: float) -> Array:
    size = np.abs(difference)
    return np.where(size <= delta, 0.5 * size * size, delta * (size - 0.5 * delta))


def _huber_slope(difference: Any, delta: float) -> Any:
    far = (difference >= delta) | (difference <= -delta)  # where both are equal, the next slope is 0; a nan is not far
    return where_op(far, sign(difference) * delta, difference)


mse = _compared(
    "mse_loss(self, target, *, reduction='mean')",
    "MseLossBackward0",
    "(self - target)**2",
    np.square,
    _opposite(
        "g * 2 * (self - target)",
        lambda g, self, target, reduction: share(g, self, reduction) * (2 * (self - target)),
    ),
)
smooth_l1 = _compared(
    "smooth_l1_loss(self, target, *, reduction='mean', beta=1.0)",
    "SmoothL1LossBackward0",
    "|self - target| - beta / 2, rounded at 0",
    _smooth,
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
    _huber,
    _opposite(
        "g * (self - target), at most delta away from 0",
        lambda g, self, target, reduction, delta: share(g, self, reduction) * _huber_slope(self - target, delta),
    ),
    [{"delta": 1.0}, {"delta": 0.6}],
)


def _signs(*shape: int) -> Array:
    return np.sign(spaced(*shape))


def _soft_margin(self: Array, target: Array) -> Array:
    if target.dtype.kind == "b":
        target = target.astype(self.dtype)
    losses: Array = np.log1p(np.exp(-target * self))
    if not dtypes.castable(losses.dtype, self.dtype):
        source, output_type = dtypes.of(losses).tensor_type, dtypes.of(self).tensor_type
        raise RuntimeError(f"result type {source} can't be cast to the desired output type {output_type}")
    return laid_out_as(self, losses.astype(self.dtype, copy=False))


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
    forward=lambda self, target, reduction: reduced(_soft_margin(self, target), reduction),
    rules=(Rule("self", "-g * target * sigmoid(-target * self)", _through_soft_margin),),
    public=False,
    torch="nn.functional.soft_margin_loss",
    examples=lambda: [Example((normal(2, 3), _signs(2, 3)), {"reduction": r}) for r in REDUCTIONS],
)


_LEAST = float(np.float32(1e-12))


def _weighted_loss(losses: Any, weight: Any) -> Any:
    return losses if weight is None else losses * weight


def _bce(self: Array, target: Array, weight: Array | None, reduction: str) -> Any:
    if target.dtype != self.dtype:
        names = dtypes.of(target).tensor_type, dtypes.of(self).tensor_type
        raise RuntimeError(f"Found dtype {names[0]} but expected {names[1]}")
    for name, values in (("input", self), ("target", target)):
        if not ((values >= 0) & (values <= 1)).all():
            raise RuntimeError(f"all elements of {name} should be between 0 and 1")
    losses = (target - 1) * np.maximum(np.log1p(-self), -100) - target * np.maximum(np.log(self), -100)
    return reduced(laid_out_as(self, _weighted_loss(losses, weight).astype(self.dtype, copy=False)), reduction)


def _both_apart(self: Any) -> Any:
    """``self * (1 - self)``, never exactly 0."""
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
    examples=lambda: [Example((uniform_array(0.1, 0.9, 2, 3), uniform_array(0.1, 0.9, 2, 3)), {})],
)
"""The slope of a loss. PyTorch limits the slope's own slope in another way than the slope."""


def _through_bce_input(g: Any, self: Any, target: Any, weight: Any, reduction: str) -> Any:
    return _weighted_loss(share(g, self, reduction) * bce_slope(self, target), weight)


def _through_bce_target(g: Any, self: Any, target: Any, weight: Any, reduction: str) -> Any:
    return _weighted_loss(share(g, self, reduction) * -logit(self, eps=None), weight)


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
        Example((uniform_array(0.1, 0.9, 2, 3), uniform_array(0.1, 0.9, 2, 3), w), {"reduction": r})
        for r in REDUCTIONS
        for w in (None, uniform_array(0.5, 2, 2, 3))
    ],
)


def _bce_with_logits(self: Array, target: Array, weight: Array | None, pos_weight: Array | None, reduction: str) -> Any:
    if target.dtype.kind == "b":
        raise RuntimeError(
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` "
            "operator instead."
        )
    if target.dtype.kind != "f":
        source, target_type = dtypes.of(self).tensor_type, dtypes.of(target).tensor_type
        raise RuntimeError(f"result type {source} can't be cast to the desired output type {target_type}")
    softplus = np.log1p(np.exp(-np.abs(self))) + np.maximum(-self, 0)
    pull = softplus if pos_weight is None else (1 + (pos_weight - 1) * target) * softplus
    losses = _weighted_loss((1 - target) * self + pull, weight)
    in_place = losses.astype(target.dtype, copy=False)  # PyTorch computes it in `1 - target`
    return reduced(laid_out_as(target, in_place) if in_place.shape == target.shape else in_place, reduction)


def _through_logits(g: Any, self: Any, target: Any, weight: Any, pos_weight: Any, reduction: str) -> Any:
    if pos_weight is None:
        slope = sigmoid(self) - target
    else:
        positive = pos_weight * target
        slope = (positive + 1 - target) * sigmoid(self) - positive
    return _weighted_loss(share(g, self, reduction) * slope, weight)


def _log_sigmoid(self: Any) -> Any:
    """Accurate for large numbers of both signs; for use in rules."""
    size = where_op(self < 0, self, -self)
    return where_op(self < 0, self, self * 0) - log(1 + exp(size))


def _through_logits_target(g: Any, self: Any, target: Any, weight: Any, pos_weight: Any, reduction: str) -> Any:
    slope = -self if pos_weight is None else _log_sigmoid(-self) - pos_weight * _log_sigmoid(self)
    return _weighted_loss(share(g, self, reduction) * slope, weight)


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
    forward=only("f", "log_sigmoid_cpu", _bce_with_logits),
    rules=(
        Rule("self", "g * (sigmoid(self) - target)", _through_logits),
        Rule("target", "-g * self", _through_logits_target),
    ),
    public=False,
    examples=lambda: [
        Example((normal(2, 3), uniform_array(0.1, 0.9, 2, 3), w, p), {"reduction": r})
        for r in REDUCTIONS
        for w, p in ((None, None), (uniform_array(0.5, 2, 2, 3), uniform_array(0.5, 2, 3)))
    ],
)


# ----------------------------------------------------------------------------------------------------------------------
# Losses whose target is a class: negative log-likelihood and margins.


Shape = tuple[int, ...]


def _class_dim(shape: Shape) -> int:
    return 0 if len(shape) == 1 else 1


def _counted_targets(target: Array, ignore_index: int | None) -> tuple[Array, Array]:
    """Return which targets count, and all targets, with 0 for those that do not count."""
    counts = np.ones(target.shape, bool) if ignore_index is None else target != ignore_index
    return counts, np.where(counts, target, 0)


def _picked(self: Array, target: Array, ignore_index: int | None) -> Array:
    dim = _class_dim(self.shape)
    counts, classes = _counted_targets(target, ignore_index)
    chosen = np.take_along_axis(self, np.expand_dims(classes, dim), dim)[(slice(None),) * dim + (0,)]
    return np.where(counts, chosen, np.zeros((), self.dtype))


def _put(self: Array, target: Array, sizes: Shape, ignore_index: int | None) -> Array:
    dim = _class_dim(sizes)
    counts, classes = _counted_targets(target, ignore_index)
    values = np.where(counts, np.broadcast_to(self, target.shape), np.zeros((), self.dtype))
    result = np.zeros(sizes, self.dtype)
    np.put_along_axis(result, np.expand_dims(classes, dim), np.expand_dims(values, dim), dim)
    return result


pick_class: Op = Op(
    "pick_class(self, target, *, ignore_index)",
    grad_fn="PickClassBackward0",
    formula="self at the class target, 0 where target is ignore_index",
    forward=_picked,
    rules=(
        Rule(
            "self",
            "g at the class target, else 0",
            lambda g, target, self_sym_sizes, ignore_index: put_class(
                g, target, sizes=self_sym_sizes, ignore_index=ignore_index
            ),
        ),
    ),
    public=False,
    examples=lambda: [Example((normal(3, 2), np.array([1, -100, 0])), {"ignore_index": -100})],
)
put_class: Op = Op(
    "put_class(self, target, *, sizes, ignore_index)",
    grad_fn="PutClassBackward0",
    formula="self at the class target, else 0",
    forward=_put,
    rules=(
        Rule(
            "self",
            "g at the class target",
            lambda g, target, ignore_index: pick_class(g, target, ignore_index=ignore_index),
        ),
    ),
    public=False,
    examples=lambda: [Example((normal(3), np.array([1, -100, 0])), {"sizes": (3, 2), "ignore_index": -100})],
)
class_weights: Op = Op(
    "class_weights(target, weight?, *, kind, ignore_index)",
    grad_fn="",
    formula="weight of the class target, 0 where target is ignore_index",
    forward=lambda target, weight, kind, ignore_index: _weights(target, weight, np.dtype(kind), ignore_index),
    public=False,
)


def _weights(target: Array, weight: Array | None, kind: np.dtype[Any], ignore_index: int | None) -> Array:
    counts, classes = _counted_targets(target, ignore_index)
    return counts.astype(kind) if weight is None else np.where(counts, weight[classes], np.zeros((), kind))


def _check_classes(target: Array, count: int, ignore_index: int | None) -> None:
    counts, classes = _counted_targets(target, ignore_index)
    wrong = target[counts & ((classes < 0) | (classes >= count))]
    if wrong.size:
        raise IndexError(f"Target {wrong[0]} is out of bounds.")


def _nll(self: Array, target: Array, weight: Array | None, reduction: str, ignore_index: int) -> tuple[Array, Array]:
    _check_classes(target, self.shape[_class_dim(self.shape)], ignore_index)
    weights = _weights(target, weight, self.dtype, ignore_index)
    losses = -_picked(self, target, ignore_index) * weights
    if reduction == "none":
        return losses, np.zeros((), self.dtype)
    total, total_weight = np.asarray(losses.sum()), np.asarray(weights.sum())
    return (total / total_weight if reduction == "mean" else total), total_weight


def _nll_slope(target: Any, weight: Any, total_weight: Any, kind: str, reduction: str, ignore_index: int) -> Any:
    """Return the slope of the loss at each target."""
    weights = class_weights(target, weight, kind=kind, ignore_index=ignore_index)
    return -weights / total_weight if reduction == "mean" else -weights


def _nll_gradient(
    self: Array, at: Array, target: Array, weight: Array | None, total_weight: Array, reduction: str, ignore_index: int
) -> Array:
    each = self * _nll_slope(target, weight, total_weight, self.dtype.name, reduction, ignore_index)
    return _put(each, target, at.shape, ignore_index)


_targets = {
    (3, 4): np.array([1, 3, 0]),
    (4,): np.array(2),
    (2, 3, 2, 2): np.array([[[0, 1], [2, -100]], [[1, 1], [0, 2]]]),
}


def _nll_backward(name: str, grad_fn: str, shape: Shape) -> Op:
    """Return the gradient of the loss, as an operation on the incoming gradient."""

    def towards_self(g: Any, target: Any, weight: Any, total_weight: Any, reduction: str, ignore_index: int) -> Any:
        kind = str(g.dtype).removeprefix("torch.")
        slope = _nll_slope(target, weight, total_weight, kind, reduction, ignore_index)
        return pick_class(g, target, ignore_index=ignore_index) * slope

    return Op(
        f"{name}_backward(self, at, target, weight?, total_weight, *, reduction, ignore_index)",
        grad_fn=grad_fn,
        formula="-self at the class target, else 0",
        forward=_nll_gradient,
        rules=(Rule("self", "-g at the class target", towards_self), Rule("at", "0", zero_gradient)),
        public=False,
        examples=lambda: [
            Example(
                (
                    normal(*(_targets[shape].shape if r == "none" else ())),
                    normal(*shape),
                    _targets[shape],
                    w,
                    np.array(2.0),
                ),
                {"reduction": r, "ignore_index": -100},
            )
            for r in REDUCTIONS
            for w in (None, positive(shape[_class_dim(shape)]))
        ],
    )


def _nll_op(name: str, grad_fn: str, *shapes: Shape) -> Op:
    backward = _nll_backward(name, grad_fn.replace("0", "Backward0"), shapes[0])

    def towards_self(
        g: Any, self: Any, target: Any, weight: Any, total_weight: Any, reduction: str, ignore_index: int
    ) -> Any:
        return backward(g, self, target, weight, total_weight, reduction=reduction, ignore_index=ignore_index)

    return Op(
        f"{name}(self, target, weight?, *, reduction='mean', ignore_index=-100)",
        grad_fn=grad_fn,
        formula="-mean of self at the class target",
        readings=with_weights(
            by_reduction(
                "-mean of self at the class target",
                "-sum of self at the class target",
                "-self at the class target",
                share="g / number of targets",
            ),
            share="g * weight / sum of weights",
        ),
        forward=_nll,
        rules=(Rule("self", "-g at the class target, else 0", towards_self),),
        outputs=("output", "total_weight"),
        differentiable_outputs=1,
        public=False,
        examples=lambda: [
            Example((normal(*shape), _targets[shape], w), {"reduction": r, "ignore_index": -100})
            for shape in shapes
            for r in REDUCTIONS
            for w in (None, positive(shape[_class_dim(shape)]))
        ],
    )


nll = _nll_op("nll_loss", "NllLossBackward0", (3, 4), (4,))
nll2d = _nll_op("nll_loss2d", "NllLoss2DBackward0", (2, 3, 2, 2))


def _multi_margin(self: Array, target: Array, weight: Array | None, p: int, margin: float, reduction: str) -> Any:
    dim = _class_dim(self.shape)
    refuse_unless(self.dtype in (np.float32, np.float64), "multi_margin_loss_cpu_kernel", self)
    if weight is not None and weight.dtype != self.dtype:
        source, expected = dtypes.of(weight).tensor_type, dtypes.of(self).tensor_type
        raise RuntimeError(f"expected scalar type {expected} but found {source}")
    if ((target < 0) | (target >= self.shape[dim])).any():
        raise RuntimeError("target out of range")
    below = margin - np.expand_dims(_picked(self, target, None), dim) + self
    below = np.where(below > 0, below, np.zeros((), self.dtype)) ** p  # a nan counts as 0
    np.put_along_axis(below, np.expand_dims(target, dim), 0, dim)
    losses = below.sum(dim) / self.shape[dim]
    return reduced(losses if weight is None else losses * weight[target], reduction)


def _through_multi_margin(g: Any, self: Any, target: Any, weight: Any, p: int, margin: float, reduction: str) -> Any:
    sizes, dim = tuple(self.shape), _class_dim(self.shape)
    weights = class_weights(target, weight, kind=str(g.dtype).removeprefix("torch."), ignore_index=None)
    each = g * weights / sizes[dim]
    each = each / sizes[0] if reduction == "mean" and dim else each
    below = margin - unsqueeze_dims(pick_class(self, target, ignore_index=None), dims=(dim,)) + self
    nothing = zeros(g, ())
    others = where_op(below > 0, below * 2 if p == 2 else nothing + 1, nothing)
    others = others - put_class(pick_class(others, target, ignore_index=None), target, sizes=sizes, ignore_index=None)
    others = others * unsqueeze_dims(each, dims=(dim,))
    return others - put_class(others.sum(dim), target, sizes=sizes, ignore_index=None)


multi_margin: Op = Op(
    "multi_margin_loss(self, target, weight?, *, p=1, margin=1.0, reduction='mean')",
    grad_fn="MultiMarginLossBackward0",
    formula="mean of (margin - self at target + self)**p where positive",
    readings=with_weights(
        by_reduction(
            "mean of (margin - self at target + self)**p where positive",
            "sum of the means over classes of (margin - self at target + self)**p where positive",
            "mean over classes of (margin - self at target + self)**p where positive",
            part="g / number of classes",
        )
    ),
    forward=_multi_margin,
    rules=(Rule("self", "g at the classes too near, -g for each at the class target", _through_multi_margin),),
    public=False,
    examples=lambda: [
        Example((spaced(3, 4), np.array([1, 3, 0]), w), {"p": p, "margin": 1.1, "reduction": r})
        for p, r in ((1, "mean"), (2, "sum"), (2, "none"))
        for w in (None, positive(4))
    ],
)


def _named(target: Array) -> Array:
    """Return how often each row lists each class, up to its first -1: PyTorch counts a repeated class twice."""
    rows = np.atleast_2d(target)
    ended = np.cumsum(rows == -1, axis=1) > 0
    named = np.zeros(rows.shape, np.int64)
    np.add.at(named, (np.arange(len(rows))[:, np.newaxis].repeat(rows.shape[1], 1)[~ended], rows[~ended]), 1)
    return named.reshape(target.shape)


def _multilabel_margin(self: Array, target: Array, reduction: str) -> tuple[Any, Array]:
    refuse_unless(self.dtype in (np.float32, np.float64), "multilabel_margin_loss_forward_out_frame", self)
    if ((target < -1) | (target >= target.shape[-1])).any():
        raise RuntimeError("argument #2 'target' is out of range")
    named = _named(target)
    gaps = _gaps(self, named)
    losses = (np.maximum(gaps, 0) * named[..., :, np.newaxis].astype(self.dtype)).sum((-2, -1)) / self.shape[-1]
    return reduced(losses, reduction), (named > 0).astype(self.dtype)


def _gaps(self: Array, named: Array) -> Array:
    """1 - (a listed class - another), for each such pair; 0 for other pairs."""
    pairs = (named[..., :, np.newaxis] > 0) & (named[..., np.newaxis, :] == 0)
    return np.where(pairs, 1 - (self[..., :, np.newaxis] - self[..., np.newaxis, :]), np.zeros((), self.dtype))


def _slopes(self: Array, target: Array) -> Array:
    named = _named(target)
    near = (_gaps(self, named) > 0).astype(self.dtype) * named[..., :, np.newaxis].astype(self.dtype)
    return np.asarray((near.sum(-2) - near.sum(-1)) / self.shape[-1], self.dtype)


multilabel_slopes: Op = Op(
    "multilabel_slopes(self, target)", grad_fn="", formula="the slope of each row's loss", forward=_slopes, public=False
)


def _through_multilabel(g: Any, self: Any, target: Any, reduction: str) -> Any:
    slopes = multilabel_slopes(self, target)
    if reduction == "none" and len(self.shape) > 1:
        return unsqueeze_dims(g, dims=(1,)) * slopes
    return g * slopes / (self.shape[0] if reduction == "mean" and len(self.shape) > 1 else 1)


multilabel_margin: Op = Op(
    "multilabel_margin_loss(self, target, *, reduction='mean')",
    grad_fn="MultilabelMarginLossBackward0",
    formula="mean over pairs of 1 - (self at a named class - self at another), where positive",
    forward=_multilabel_margin,
    rules=(Rule("self", "g for the others too near, -g for the named ones", _through_multilabel),),
    outputs=("output", "is_target"),
    differentiable_outputs=1,
    public=False,
    examples=lambda: [
        Example((spaced(2, 4) * 0.9, np.array([[1, 2, -1, 0], [0, -1, 1, 1]])), {"reduction": r}) for r in REDUCTIONS
    ],
)

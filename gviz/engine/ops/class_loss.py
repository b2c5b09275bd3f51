"""Losses whose target names a class: negative log-likelihood and margins."""

from __future__ import annotations

from typing import Any

import numpy as np

from gviz.engine.apply import zeros
from gviz.engine.op import Example, Op, Rule
from gviz.engine.ops.comparison import where_op
from gviz.engine.ops.examples import normal, positive, spaced
from gviz.engine.ops.loss import REDUCTIONS, reduced
from gviz.engine.ops.reduced_losses import by_reduction, with_weights
from gviz.engine.ops.shape import unsqueeze_dims
from gviz.values import Array

Shape = tuple[int, ...]


def _class_dim(shape: Shape) -> int:
    return 0 if len(shape) == 1 else 1


def _kept(target: Array, ignore_index: int | None) -> tuple[Array, Array]:
    """Which targets count, and all of them with those that do not as class 0."""
    kept = np.ones(target.shape, bool) if ignore_index is None else target != ignore_index
    return kept, np.where(kept, target, 0)


def _picked(self: Array, target: Array, ignore_index: int | None) -> Array:
    dim = _class_dim(self.shape)
    kept, classes = _kept(target, ignore_index)
    chosen = np.take_along_axis(self, np.expand_dims(classes, dim), dim)[(slice(None),) * dim + (0,)]
    return np.where(kept, chosen, np.zeros((), self.dtype))


def _put(self: Array, target: Array, sizes: Shape, ignore_index: int | None) -> Array:
    dim = _class_dim(sizes)
    kept, classes = _kept(target, ignore_index)
    values = np.where(kept, np.broadcast_to(self, target.shape), np.zeros((), self.dtype))
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
    kept, classes = _kept(target, ignore_index)
    return kept.astype(kind) if weight is None else np.where(kept, weight[classes], np.zeros((), kind))


def _check_classes(target: Array, count: int, ignore_index: int | None) -> None:
    kept, classes = _kept(target, ignore_index)
    wrong = target[kept & ((classes < 0) | (classes >= count))]
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


def _through_nll(
    g: Any, target: Any, weight: Any, total_weight: Any, self_sym_sizes: Shape, reduction: str, ignore_index: int
) -> Any:
    weights = class_weights(target, weight, kind=str(g.dtype).removeprefix("torch."), ignore_index=ignore_index)
    each = -g * weights / total_weight if reduction == "mean" else -g * weights
    return put_class(each, target, sizes=self_sym_sizes, ignore_index=ignore_index)


_targets = {
    (3, 4): np.array([1, 3, 0]),
    (4,): np.array(2),
    (2, 3, 2, 2): np.array([[[0, 1], [2, -100]], [[1, 1], [0, 2]]]),
}


def _nll_op(name: str, grad_fn: str, *shapes: Shape) -> Op:
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
        rules=(Rule("self", "-g at the class target, else 0", _through_nll),),
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
    if ((target < 0) | (target >= self.shape[dim])).any():
        raise RuntimeError("target out of range")
    below = margin - np.expand_dims(_picked(self, target, None), dim) + self
    below = np.where(below > 0, below, np.zeros((), self.dtype)) ** p  # a nan counts as nothing
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
    """How often each row names each class, up to its first -1: PyTorch counts a class that is named twice twice."""
    rows = np.atleast_2d(target)
    ended = np.cumsum(rows == -1, axis=1) > 0
    named = np.zeros(rows.shape, np.int64)
    np.add.at(named, (np.arange(len(rows))[:, np.newaxis].repeat(rows.shape[1], 1)[~ended], rows[~ended]), 1)
    return named.reshape(target.shape)


def _multilabel_margin(self: Array, target: Array, reduction: str) -> tuple[Any, Array]:
    if ((target < -1) | (target >= target.shape[-1])).any():
        raise RuntimeError("argument #2 'target' is out of range")
    named = _named(target)
    gaps = _gaps(self, named)
    losses = (np.maximum(gaps, 0) * named[..., :, np.newaxis].astype(self.dtype)).sum((-2, -1)) / self.shape[-1]
    return reduced(losses, reduction), (named > 0).astype(self.dtype)


def _gaps(self: Array, named: Array) -> Array:
    """1 - (a named class - another), for each pair of such; 0 for other pairs."""
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

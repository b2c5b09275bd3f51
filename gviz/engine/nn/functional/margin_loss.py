"""Losses of ``torch.nn.functional`` that ask for a margin between classes or inputs."""

from __future__ import annotations

from collections.abc import Callable

from gviz.engine import creation
from gviz.engine.nn.functional.distance import pairwise_distance
from gviz.engine.nn.functional.reducing import checked, deprecated, reduce, refuse_tracked
from gviz.engine.ops import class_loss, scalars
from gviz.engine.ops.arithmetic import sub
from gviz.engine.ops.comparison import where
from gviz.engine.ops.shape import run
from gviz.engine.surface import front, number
from gviz.engine.tensor import Tensor

__all__ = [
    "cosine_embedding_loss",
    "hinge_embedding_loss",
    "margin_ranking_loss",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
]

_reduce = reduce


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
    """By how much other classes come nearer than `margin` to the class `target`."""
    how = checked(deprecated(size_average, reduce, reduction))
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None:
        if weight.ndim != 1:
            raise ValueError("weight must be one-dimensional")
        if weight.shape[0] != input.shape[-1]:
            raise RuntimeError(f"inconsistent weight size, expected {input.shape[-1]} but got {list(weight.shape)}")
    rows = input.shape[0] if input.ndim == 2 else 1
    if target.ndim > 1 or target.numel() != rows:
        raise RuntimeError(
            "multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples (batch "
            f"size). Expected target size [{rows}], but got {list(target.shape)}. Input has shape {list(input.shape)}."
        )
    refuse_tracked("multi_margin_loss", weight=weight)
    if target.ndim != input.ndim - 1:
        target = target.reshape(input.shape[:-1])
    result: Tensor = class_loss.multi_margin(input, target, weight, p=p, margin=margin, reduction=how)
    return result


_reduce = reduce


def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """By how much other classes come nearer than 1 to those that `target` lists, up to its first -1."""
    how = checked(deprecated(size_average, reduce, reduction))
    if target.shape != input.shape:
        raise RuntimeError(f"inconsistent target size: {list(target.shape)} for input of size: {list(input.shape)}")
    result: Tensor = class_loss.multilabel_margin(input, target, reduction=how)[0]
    return result


def _from(value: float, tensor: Tensor) -> Tensor:
    """`value` less a tensor, as PyTorch's own functions write it: a number made a tensor first."""
    return run(sub, number(value, tensor._array), tensor)


@front("hinge_embedding_loss", method=False)
def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Distances themselves where `target` is 1; where it is -1, by how much they are below `margin`."""
    how = deprecated(size_average, reduce, reduction)
    short = _from(margin, input).clamp_min_(0)
    nothing = creation.zeros_like(input.detach())
    return _reduce(where(target != 1, short, nothing) + where(target != -1, input, nothing), how)


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
    """By how much `input1` is not above (`target` 1) or below (-1) `input2` by `margin`."""
    how = deprecated(size_average, reduce, reduction)
    if not input1.ndim == input2.ndim == target.ndim:
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {input1.shape}, input2: {input2.shape}, target: {target.shape} "
        )
    behind = run(scalars.plus, -target * (input1 - input2), other=margin)
    return _reduce(behind.clamp_min_(0), how)


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
    """By how much `anchor` is not nearer to `positive` than to `negative` by `margin`."""
    how = deprecated(size_average, reduce, reduction)
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
    return _reduce((run(scalars.plus, near, other=margin) - far).clamp_min(0), how)


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
    """`triplet_margin_loss` with any distance."""
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    distance = distance_function or pairwise_distance
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = far.minimum(distance(positive, negative))
    return _reduce((margin + near - far).clamp_min(0), reduction)


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
    """How far from 1 the cosine is where `target` is 1; where it is -1, by how much it is above `margin`."""
    how = deprecated(size_average, reduce, reduction)
    if target.ndim > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    _check_pair(input1, input2, target)
    dim = target.ndim
    products = (input1 * input2).sum(dim)
    squares = [run(scalars.plus, (t * t).sum(dim), other=1e-12) for t in (input1, input2)]
    cosine = products / (squares[0] * squares[1]).sqrt_()
    nothing = creation.zeros_like(cosine.detach())
    alike, apart = (
        where(target == 1, _from(1, cosine), nothing),
        where(target == -1, run(scalars.minus, cosine, other=margin).clamp_min_(0), nothing),
    )
    return _reduce(alike + apart, how)


def _check_pair(input1: Tensor, input2: Tensor, target: Tensor) -> None:
    wanted = target.ndim + 1
    if input1.ndim != wanted or input2.ndim != wanted:
        kind = "1D target tensor expects 2D" if target.ndim else "0D target tensor expects 1D"
        raise RuntimeError(
            f"{kind} input tensors, but found inputs with sizes {list(input1.shape)} and {list(input2.shape)}."
        )

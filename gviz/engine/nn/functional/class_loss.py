"""Losses of ``torch.nn.functional`` whose target names classes, or compares several inputs."""

from __future__ import annotations

from math import prod

from gviz.engine.nn.functional.activation import logsigmoid
from gviz.engine.nn.functional.reducing import checked, deprecated, reduce, refuse_tracked
from gviz.engine.op import Op
from gviz.engine.ops import class_loss, scalars
from gviz.engine.ops.shape import run
from gviz.engine.ops.softmax import log_softmax_front
from gviz.engine.tensor import Tensor

__all__ = [
    "cross_entropy",
    "multilabel_soft_margin_loss",
    "nll_loss",
]

_reduce = reduce


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """How improbable the classes `target` are, where `input` are logarithms of probabilities."""
    return _nll(input, target, weight, ignore_index, checked(deprecated(size_average, reduce, reduction)))


def _nll(input: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int, reduction: str) -> Tensor:
    if not input.ndim:
        raise ValueError("Expected 1 or more dimensions (got 0)")
    if input.ndim != 1 and (not target.ndim or input.shape[0] != target.shape[0]):
        found = target.shape[0] if target.ndim else 0
        raise ValueError(f"Expected input batch_size ({input.shape[0]}) to match target batch_size ({found}).")
    if input.ndim in (1, 2, 4):
        return _nll_of(
            class_loss.nll2d if input.ndim == 4 else class_loss.nll, input, target, weight, ignore_index, reduction
        )
    return _nll_of_any(input, target, weight, ignore_index, reduction)


def _nll_of_any(input: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int, reduction: str) -> Tensor:
    """Classes of 1 or of many places per example, as if the places lay in a plane."""
    batch, classes, *places = input.shape
    expected = (batch, *places)
    if tuple(target.shape) != expected:
        raise RuntimeError(f"Expected target size {list(expected)}, got {list(target.shape)}")
    flat = input.contiguous().view(batch, classes, 1, prod(places))
    flat_target = target.contiguous().view(batch, 1, prod(places))
    result = _nll_of(class_loss.nll2d, flat, flat_target, weight, ignore_index, reduction)
    return result.view(*expected) if reduction == "none" else result


def _nll_of(op: Op, input: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int, reduction: str) -> Tensor:
    classes = input.shape[0] if input.ndim == 1 else input.shape[1]
    if input.ndim == 4 and tuple(target.shape) != (input.shape[0], *input.shape[2:]):
        raise RuntimeError(f"size mismatch (got input: {list(input.shape)} , target: {list(target.shape)}")
    if input.ndim <= 2 and target.ndim > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if target.dtype.name not in ("int64", "uint8"):
        raise RuntimeError(f"expected target dtype to be Long or Byte, but got {target.dtype.tensor_type}")
    if weight is not None and tuple(weight.shape) != (classes,):
        raise RuntimeError(
            f"weight tensor should be defined either for all {classes} classes or no classes but got weight tensor of "
            f"shape: {list(weight.shape)}"
        )
    refuse_tracked("nll_loss2d_forward" if input.ndim == 4 else "nll_loss_forward", weight=weight)
    if weight is not None and weight.dtype is not input.dtype:
        found, expected = weight.dtype.tensor_type, input.dtype.tensor_type
        raise RuntimeError(f"expected scalar type {expected} but found {found}")
    alone = input.ndim == 1 and target.ndim == 1
    result, _ = op(
        input, target.detach().view() if alone else target, weight, reduction=reduction, ignore_index=ignore_index
    )
    return result  # type: ignore[no-any-return]  # the first of two tensors


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
    """How improbable `target` (classes, or their probabilities) is, where `input` are scores of the classes."""
    how = checked(deprecated(size_average, reduce, reduction))
    if input.shape == target.shape:
        if not target.dtype.is_floating_point:
            raise RuntimeError(
                "Expected floating point type for target with class probabilities, got " + target.dtype.tensor_type
            )
        return _probable(input, target, weight, how, label_smoothing)
    if not 0 <= label_smoothing <= 1:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing:g}")
    scores = log_softmax_front(input, _class_dim(input))
    likely = _nll(scores, target, weight, ignore_index, how)
    if not label_smoothing:
        return likely
    smooth = _smoothed(scores, target, weight, ignore_index, how)
    kept = run(scalars.times, likely, other=1 - label_smoothing)
    return kept + run(scalars.times, smooth, other=label_smoothing / input.shape[_class_dim(input)])


def _class_dim(input: Tensor) -> int:
    return 0 if input.ndim == 1 else 1


def _per_class(weight: Tensor, input: Tensor) -> Tensor:
    """A weight per class, ready to meet `input`."""
    return weight.view(*[-1 if d == _class_dim(input) else 1 for d in range(input.ndim)])


def _smoothed(scores: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int, reduction: str) -> Tensor:
    """The loss against all classes alike."""
    weighed = scores if weight is None else scores * _per_class(weight, scores)
    losses = -weighed.sum(_class_dim(scores))
    ignored = target == ignore_index
    losses.masked_fill_(ignored, 0.0)
    if reduction != "mean":
        return _reduce(losses, reduction)
    if weight is None:
        return losses.sum() / (~ignored).sum()
    return losses.sum() / weight.gather(0, target.masked_select(~ignored).flatten()).sum()


def _probable(input: Tensor, target: Tensor, weight: Tensor | None, reduction: str, label_smoothing: float) -> Tensor:
    dim = _class_dim(input)
    scores, classes = log_softmax_front(input, dim), input.shape[dim]
    if label_smoothing:
        target = run(
            scalars.plus, run(scalars.times, target, other=1 - label_smoothing), other=label_smoothing / classes
        )
    products = scores * target
    if weight is not None:
        products = products * _per_class(weight, input)
    if reduction == "none":
        return -products.sum(dim)
    if reduction == "mean" and not input.numel():
        return -products.sum().fill_(float("nan"))
    total = -products.sum()
    return total if reduction == "sum" else run(scalars.over, total, other=input.numel() / classes)


def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The mean over the classes of the binary cross entropy of each."""
    how = deprecated(size_average, reduce, reduction)
    losses = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input))
    if weight is not None:
        losses = losses * weight
    return _reduce(losses.sum(-1) / input.shape[-1], how)

"""What losses are reduced to: their mean, their sum, or nothing."""

from __future__ import annotations

from gviz.engine.modes import thread
from gviz.engine.tensor import Tensor
from gviz.site import warn


def refuse_tracked(function: str, **constants: Tensor | None) -> None:
    """RuntimeError, in PyTorch's words, for a tensor that wants a gradient `function` does not have."""
    for name, tensor in constants.items():
        if tensor is not None and tensor.requires_grad and thread.grad_enabled:
            raise RuntimeError(
                f"The function '{function}' is not differentiable with respect to argument '{name}'. This input cannot "
                "have requires_grad True."
            )


def checked(reduction: str) -> str:
    """`reduction`, if there is such a one. ValueError in PyTorch's words otherwise."""
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return reduction


def reduce(losses: Tensor, reduction: str) -> Tensor:
    """The mean or the sum of all losses, or all of them."""
    how = checked(reduction)
    return losses.mean() if how == "mean" else losses.sum() if how == "sum" else losses


def deprecated(size_average: bool | None, reduce: bool | None, reduction: str) -> str:
    """The reduction that two older arguments ask for, with a warning; `reduction` if they are not given."""
    if size_average is None and reduce is None:
        return reduction
    meant = "none" if reduce is False else "sum" if size_average is False else "mean"
    warn(f"size_average and reduce args will be deprecated, please use reduction='{meant}' instead.")
    return meant

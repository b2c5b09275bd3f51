"""What may be put in a tensor's ``.grad``, and what is said where none is kept there, in PyTorch's words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gviz.engine import messages
from gviz.site import warn

if TYPE_CHECKING:
    from gviz.engine.tensor import Tensor


def refuse_unfit(of: Tensor, grad: Tensor) -> None:
    """Raise RuntimeError for a gradient that is the tensor itself, or of another dtype or shape."""
    if grad is of:
        raise RuntimeError(messages.GRAD_SELF)
    if grad._array.dtype != of._array.dtype:
        raise RuntimeError(messages.GRAD_DTYPE.format(grad=grad.dtype.cpp_name, own=of.dtype.tensor_type))
    if grad._array.shape != of._array.shape:
        raise RuntimeError(messages.GRAD_SIZE.format(grad=list(grad.shape), own=list(of.shape)))


def read(tensor: Tensor) -> Tensor | None:
    """What stands in a tensor's ``.grad``; warns of a result, whose gradient no pass will put there."""
    if tensor._grad is None and tensor._grad_fn is not None and not tensor.retains_grad:
        warn(messages.GRAD_OF_NON_LEAF, UserWarning)
    return tensor._grad

"""Gradients cleared, as modules and optimizers do it."""

from __future__ import annotations

from gviz.engine.modes import no_grad
from gviz.engine.tensor import Tensor


def clear_grad(tensor: Tensor, set_to_none: bool) -> None:
    """Forget a tensor's gradient, or set it to zero where it lies."""
    grad = tensor.grad
    if grad is None:
        return
    if set_to_none:
        tensor.grad = None
        return
    if grad.grad_fn is not None:
        tensor.grad = grad.detach()
        grad = tensor.grad
    with no_grad():
        grad.zero_()

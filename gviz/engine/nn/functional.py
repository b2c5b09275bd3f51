"""``torch.nn.functional``."""

from __future__ import annotations

from gviz.engine.missing import lookup_in
from gviz.engine.ops.loss import mse_loss as mse_loss
from gviz.engine.ops.matrix import linear as linear
from gviz.engine.tensor import Tensor


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """`input` with zero in place of what is below zero."""
    return input.relu_() if inplace else input.relu()


def sigmoid(input: Tensor) -> Tensor:
    """``1 / (1 + exp(-input))``."""
    return input.sigmoid()


def tanh(input: Tensor) -> Tensor:
    """The hyperbolic tangent."""
    return input.tanh()


__getattr__ = lookup_in(__name__)

"""Losses, as modules."""

from __future__ import annotations

from gviz.engine.nn import functional
from gviz.engine.nn.module import Module
from gviz.engine.tensor import Tensor


class MSELoss(Module):
    """The mean (or ``sum``, or ``none``) of the squared differences."""

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = reduction

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Compare with `target`."""
        return functional.mse_loss(input, target, reduction=self.reduction)

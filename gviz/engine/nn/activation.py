"""Functions applied element by element, as modules."""

from __future__ import annotations

from gviz.engine.nn import functional
from gviz.engine.nn.module import Module
from gviz.engine.tensor import Tensor


class ReLU(Module):
    """What is below zero becomes zero."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return functional.relu(input, inplace=self.inplace)

    def extra_repr(self) -> str:
        """Whether it overwrites its input."""
        return "inplace=True" if self.inplace else ""


class Tanh(Module):
    """The hyperbolic tangent."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return functional.tanh(input)


class Sigmoid(Module):
    """``1 / (1 + exp(-x))``."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return functional.sigmoid(input)

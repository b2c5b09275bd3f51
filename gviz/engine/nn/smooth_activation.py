"""Functions applied element by element, as modules: the smooth ones; and softmax."""

from __future__ import annotations

from gviz.engine.nn import functional
from gviz.engine.nn.activation import InPlace, noted
from gviz.engine.nn.module import Module
from gviz.engine.tensor import Tensor


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


class LogSigmoid(Module):
    """The logarithm of the sigmoid."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return functional.logsigmoid(input)


class Softsign(Module):
    """``x / (1 + |x|)``."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return functional.softsign(input)


class Tanhshrink(Module):
    """The input less its hyperbolic tangent."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return functional.tanhshrink(input)


class Softplus(Module):
    """``log(1 + exp(beta * x)) / beta``: a smooth `ReLU`."""

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return functional.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        """Its options."""
        return f"beta={self.beta}, threshold={self.threshold}"


class GELU(Module):
    """The input times the normal distribution function at it."""

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return functional.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        """Exact or not."""
        return f"approximate={self.approximate!r}"


class SiLU(InPlace):
    """The input times its sigmoid."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return functional.silu(input, inplace=self.inplace)


class Mish(InPlace):
    """The input times the hyperbolic tangent of its softplus."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return functional.mish(input, inplace=self.inplace)


class SELU(InPlace):
    """An `ELU` scaled so that means and variances keep themselves."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return functional.selu(input, self.inplace)


class ELU(InPlace):
    """What is below zero becomes ``alpha * (exp(x) - 1)``."""

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.alpha = alpha

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return functional.elu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        """Where it ends."""
        return noted(f"alpha={self.alpha}", self.inplace)


class CELU(ELU):
    """What is below zero becomes ``alpha * (exp(x / alpha) - 1)``."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return functional.celu(input, self.alpha, self.inplace)


class Softmax(Module):
    """Positive numbers that sum to 1 along `dim`."""

    dim: int | None

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return functional.softmax(input, self.dim)

    def extra_repr(self) -> str:
        """Along which dimension."""
        return f"dim={self.dim}"


class Softmin(Softmax):
    """The softmax of the negative input."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return functional.softmin(input, self.dim)


class LogSoftmax(Softmax):
    """The logarithm of the softmax."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return functional.log_softmax(input, self.dim)


class Softmax2d(Module):
    """Softmax over the channels of every place of a picture."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        if input.dim() not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead")
        return functional.softmax(input, -3)

"""Functions applied element by element, as modules: those with a kink."""

from __future__ import annotations

from typing import Any

from gviz.engine.dtypes import dtype as DType
from gviz.engine.nn import functional, init
from gviz.engine.nn.fresh import begin, empty
from gviz.engine.nn.module import Module
from gviz.engine.tensor import Tensor


def noted(text: str, inplace: bool) -> str:
    """A module's options, and whether it overwrites its input."""
    return ", ".join([part for part in (text, "inplace=True" if inplace else "") if part])


class InPlace(Module):
    """A module that may overwrite its input."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def extra_repr(self) -> str:
        """Whether it overwrites its input."""
        return noted("", self.inplace)


class ReLU(InPlace):
    """What is below zero becomes zero."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return functional.relu(input, inplace=self.inplace)


class LeakyReLU(InPlace):
    """What is below zero is multiplied by `negative_slope`."""

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.negative_slope = negative_slope

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return functional.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        """The slope."""
        return noted(f"negative_slope={self.negative_slope}", self.inplace)


class PReLU(Module):
    """What is below zero is multiplied by a slope that is learned, one for all or one a channel."""

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: DType | None = None
    ) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = empty(num_parameters, device=device, dtype=dtype)
        begin(self)

    def reset_parameters(self) -> None:
        """Give the slope its first value."""
        init.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return functional.prelu(input, self.weight)

    def extra_repr(self) -> str:
        """How many slopes."""
        return f"num_parameters={self.num_parameters}"


class RReLU(InPlace):
    """What is below zero is multiplied by a slope drawn at random; in evaluation, by the middle one."""

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.lower = lower
        self.upper = upper

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return functional.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        """The bounds of the slope."""
        return noted(f"lower={self.lower}, upper={self.upper}", self.inplace)


class Hardtanh(InPlace):
    """What is outside of two bounds becomes the nearer one."""

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.min_val = min_val
        self.max_val = max_val
        if max_val <= min_val:
            raise AssertionError(f"max_val ({max_val}) must be greater than min_val ({min_val})")

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return functional.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        """The bounds."""
        return noted(f"min_val={self.min_val}, max_val={self.max_val}", self.inplace)


class ReLU6(Hardtanh):
    """What is below 0 becomes 0, what is above 6 becomes 6."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self) -> str:
        """Whether it overwrites its input."""
        return noted("", self.inplace)


class Hardsigmoid(InPlace):
    """A sigmoid of three straight parts."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return functional.hardsigmoid(input, self.inplace)

    def extra_repr(self) -> str:
        """Nothing."""
        return ""


class Hardswish(InPlace):
    """The input times its `Hardsigmoid`."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return functional.hardswish(input, self.inplace)

    def extra_repr(self) -> str:
        """Nothing."""
        return ""


class Threshold(InPlace):
    """What is not above `threshold` becomes `value`."""

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.threshold = threshold
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return functional.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self) -> str:
        """Threshold and value."""
        return noted(f"threshold={self.threshold}, value={self.value}", self.inplace)


class Hardshrink(Module):
    """What is within `lambd` of zero becomes zero."""

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return functional.hardshrink(input, self.lambd)

    def extra_repr(self) -> str:
        """How far from zero."""
        return f"{self.lambd}"


class Softshrink(Hardshrink):
    """Everything comes nearer to zero by `lambd`, and what reaches it stays there."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return functional.softshrink(input, self.lambd)


class GLU(Module):
    """One half of the input times the sigmoid of the other half."""

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return functional.glu(input, self.dim)

    def extra_repr(self) -> str:
        """Where the halves are."""
        return f"dim={self.dim}"

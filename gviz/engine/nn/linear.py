"""Linear maps, and modules that pass on or change the shape of what they get."""

from __future__ import annotations

from math import sqrt
from typing import Any

from gviz.engine.dtypes import dtype as DType
from gviz.engine.nn import functional, init
from gviz.engine.nn.fresh import begin, empty
from gviz.engine.nn.module import Module
from gviz.engine.nn.parameter import Parameter
from gviz.engine.tensor import Tensor


class Linear(Module):
    """``input @ weight.T + bias``. Both start uniform within 1 / sqrt(`in_features`), as in PyTorch."""

    weight: Parameter
    bias: Parameter | None

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: DType | None = None
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = empty(out_features, in_features, device=device, dtype=dtype)
        self.register_parameter("bias", empty(out_features, device=device, dtype=dtype) if bias else None)
        begin(self)

    def reset_parameters(self) -> None:
        """Draw first values."""
        init.kaiming_uniform_(self.weight, a=sqrt(5))
        if self.bias is not None:
            bound = 1 / sqrt(self.in_features) if self.in_features > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        """Apply the map to the last dimension."""
        return functional.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        """Its sizes."""
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class Bilinear(Module):
    """``input1 @ weight[k] @ input2 + bias[k]`` for every output `k`."""

    weight: Parameter
    bias: Parameter | None

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        self.weight = empty(out_features, in1_features, in2_features, device=device, dtype=dtype)
        self.register_parameter("bias", empty(out_features, device=device, dtype=dtype) if bias else None)
        begin(self)

    def reset_parameters(self) -> None:
        """Draw first values."""
        if self.in1_features <= 0:
            raise ValueError(f"in1_features must be > 0, but got (in1_features={self.in1_features})")
        bound = 1 / sqrt(self.in1_features)
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        """Apply the map to the last dimensions."""
        result: Tensor = functional.bilinear(input1, input2, self.weight, self.bias)
        return result

    def extra_repr(self) -> str:
        """Its sizes."""
        sizes = f"in1_features={self.in1_features}, in2_features={self.in2_features}, out_features={self.out_features}"
        return f"{sizes}, bias={self.bias is not None}"


class Identity(Module):
    """Gives back its input; takes any arguments and ignores them."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        """Its input."""
        return input

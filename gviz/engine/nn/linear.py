"""Affine maps."""

from __future__ import annotations

from math import sqrt
from typing import Any

from gviz.engine import dtypes, random
from gviz.engine.nn.functional import linear
from gviz.engine.nn.module import Module
from gviz.engine.nn.parameter import Parameter
from gviz.engine.tensor import Tensor, new_tensor


class Linear(Module):
    """``input @ weight.T + bias``. Both start uniform within 1 / sqrt(`in_features`), as in PyTorch."""

    weight: Parameter
    bias: Parameter | None

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: dtypes.dtype | None = None,
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        bound = 1 / sqrt(in_features) if in_features else 0.0
        kind = dtype or dtypes.get_default_dtype()
        self.weight = _uniform(bound, (out_features, in_features), kind)
        self.register_parameter("bias", _uniform(bound, (out_features,), kind) if bias else None)

    def forward(self, input: Tensor) -> Tensor:
        """Apply the map to the last dimension."""
        return linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        """Its sizes."""
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class Identity(Module):
    """Gives back its input; takes any arguments and ignores them."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        """Its input."""
        return input


def _uniform(bound: float, shape: tuple[int, ...], kind: dtypes.dtype) -> Parameter:
    values = new_tensor(random.uniform(-bound, bound, shape, kind.numpy))
    values._counter[0] = 1  # PyTorch writes first values in place, and its messages count that
    return Parameter(values)

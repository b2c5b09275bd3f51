"""Elements set to zero at random while training, as modules."""

from __future__ import annotations

from gviz.engine.nn import functional
from gviz.engine.nn.module import Module
from gviz.engine.tensor import Tensor


class _Dropout(Module):
    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if p < 0 or p > 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.inplace = inplace

    def extra_repr(self) -> str:
        """How likely it is."""
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_Dropout):
    """Each element is set to zero with probability `p`; the others grow to make up for it."""

    def forward(self, input: Tensor) -> Tensor:
        """Drop out."""
        return functional.dropout(input, self.p, self.training, self.inplace)


class Dropout1d(_Dropout):
    """Each channel of a sequence is set to zero with probability `p`."""

    def forward(self, input: Tensor) -> Tensor:
        """Drop out."""
        return functional.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(_Dropout):
    """Each channel of a picture is set to zero with probability `p`."""

    def forward(self, input: Tensor) -> Tensor:
        """Drop out."""
        return functional.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(_Dropout):
    """Each channel of a volume is set to zero with probability `p`."""

    def forward(self, input: Tensor) -> Tensor:
        """Drop out."""
        return functional.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(_Dropout):
    """Dropout that keeps mean and variance, for `SELU`."""

    def forward(self, input: Tensor) -> Tensor:
        """Drop out."""
        return functional.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(_Dropout):
    """`AlphaDropout` of whole channels."""

    def forward(self, input: Tensor) -> Tensor:
        """Drop out."""
        return functional.feature_alpha_dropout(input, self.p, self.training)

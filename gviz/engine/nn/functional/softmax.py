"""The softmax family of ``torch.nn.functional``."""

from __future__ import annotations

from gviz.engine import creation
from gviz.engine.dtypes import dtype as DType
from gviz.engine.ops.softmax import log_softmax_front, softmax_front
from gviz.engine.tensor import Tensor
from gviz.site import warn

__all__ = [
    "gumbel_softmax",
    "log_softmax",
    "softmax",
    "softmin",
]


def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None) -> Tensor:
    """Shares of `dim` that add up to 1, each in proportion to the exponential of `input`."""
    return softmax_front(input, _dim("softmax", dim, input), dtype)


def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None) -> Tensor:
    """The logarithm of `softmax`, computed in one."""
    return log_softmax_front(input, _dim("log_softmax", dim, input), dtype)


def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None) -> Tensor:
    """`softmax` of ``-input``."""
    return softmax_front(-input, _dim("softmin", dim, input), dtype)


def _dim(name: str, dim: int | None, input: Tensor) -> int:
    """The dimension meant, guessed with a warning where none is said."""
    if dim is not None:
        return dim
    warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
    )
    return 0 if input.ndim in (0, 1, 3) else 1


def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """A sample of the Gumbel-softmax distribution; with `hard` one-hot, with the gradient of the soft one."""
    if eps != 1e-10:
        warn("`eps` parameter is deprecated and has no effect.")
    gumbels = -creation.empty_like(logits).exponential_().log()
    soft = softmax_front((logits + gumbels) / tau, dim)
    if not hard:
        return soft
    index = soft.max(dim, keepdim=True)[1]
    one_hot = creation.zeros_like(logits).scatter_(dim, index, 1.0)
    return one_hot - soft.detach() + soft

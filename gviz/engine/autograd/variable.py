"""``torch.autograd.Variable``: the name of tensors with a gradient before 2018."""

from __future__ import annotations

from typing import NoReturn

import numpy as np

from gviz.engine import dtypes, messages
from gviz.engine.tensor import Tensor, new_tensor
from gviz.engine.unsupported_names import lookup_in


class _VariableMeta(type):
    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, Tensor)


class Variable(metaclass=_VariableMeta):
    """Every tensor is an instance; calling it makes a leaf that shares the memory of `data`."""

    __module__ = "torch.autograd.variable"

    def __new__(  # type: ignore[misc]  # returns a tensor, as PyTorch's does
        cls, data: Tensor | None = None, requires_grad: bool = False, volatile: bool = False
    ) -> Tensor:
        """A detached tensor with the memory of `data`; a new leaf if it is to require grad."""
        if data is None:
            return new_tensor(np.zeros(0, dtypes.get_default_dtype().numpy))
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        if requires_grad and not data.dtype.is_floating_point:
            raise RuntimeError(messages.FACTORY_CANNOT_REQUIRE)
        leaf: Tensor = data.detach()
        return leaf.requires_grad_(requires_grad)


def variable(*args: object, **kwargs: object) -> NoReturn:
    """Raises RuntimeError, as PyTorch does."""
    raise RuntimeError("torch.autograd.variable(...) is deprecated, use torch.tensor(...) instead")


__getattr__ = lookup_in(__name__)

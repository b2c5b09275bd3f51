"""Questions about tensors that are answered in plain Python."""

from __future__ import annotations

from typing import Any

import numpy as np

from gviz.engine.ops.memory import to
from gviz.engine.ops.shape import normal_dims
from gviz.engine.surface import front
from gviz.engine.tensor import Tensor


@front("is_tensor", method=False)
def is_tensor(obj: object) -> bool:
    """Whether `obj` is a tensor."""
    return isinstance(obj, Tensor)


@front("is_floating_point")
def is_floating_point(self: Tensor) -> bool:
    """Whether the elements are floating-point numbers."""
    return self.dtype.is_floating_point


@front("numel")
@front("nelement", function=False)
def numel(self: Tensor) -> int:
    """The number of elements."""
    return self._array.size


@front("dim", function=False)
def dim(self: Tensor) -> int:
    """The number of dimensions."""
    return self._array.ndim


@front("size", function=False)
def size(self: Tensor, dim: int | None = None) -> Any:
    """The shape, or the size of one dimension."""
    return self.shape if dim is None else self.shape[normal_dims(dim, self.ndim)[0]]


@front("element_size", function=False)
def element_size(self: Tensor) -> int:
    """The number of bytes of one element."""
    return self._array.itemsize


@front("equal")
def equal(self: Tensor, other: Tensor) -> bool:
    """Whether shape and all elements are the same."""
    return bool(np.array_equal(self._array, other._array))


@front("allclose")
def allclose(self: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Whether all elements differ by at most `atol` + `rtol` * the other's size."""
    return bool(np.allclose(self._array, other._array, rtol, atol, equal_nan))


@front("type", function=False)
def type_front(self: Tensor, dtype: object = None) -> Tensor | str:
    """The name of the tensor's type; with `dtype`, this tensor in that type."""
    return f"torch.{self.dtype.tensor_type}Tensor" if dtype is None else to(self, dtype)  # type: ignore[arg-type]

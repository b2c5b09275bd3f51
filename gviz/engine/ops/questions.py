"""Questions about tensors that are answered in plain Python."""

from __future__ import annotations

from typing import Any

import numpy as np

from gviz.engine.op import Op
from gviz.engine.ops.memory import to
from gviz.engine.ops.reduction import apply_one
from gviz.engine.ops.shape import normal_dims
from gviz.engine.surface import derive_all, front, operator
from gviz.engine.tensor import Tensor

all_op: Op = Op("all(self)", grad_fn="", formula="whether all hold", forward=np.all)
any_op: Op = Op("any(self)", grad_fn="", formula="whether any holds", forward=np.any)
logical_and: Op = Op("logical_and(self, other)", grad_fn="", formula="self and other", forward=np.logical_and)
logical_or: Op = Op("logical_or(self, other)", grad_fn="", formula="self or other", forward=np.logical_or)

bitwise_and: Op = Op(
    "bitwise_and(self, other)", grad_fn="", formula="self & other", forward=np.bitwise_and, promotes=True
)
bitwise_or: Op = Op("bitwise_or(self, other)", grad_fn="", formula="self | other", forward=np.bitwise_or, promotes=True)
bitwise_not: Op = Op("bitwise_not(self)", grad_fn="", formula="~self", forward=np.invert)

derive_all(all_op, any_op, logical_and, logical_or, bitwise_and, bitwise_or, bitwise_not)
front("__and__", function=False)(operator(bitwise_and))
front("__or__", function=False)(operator(bitwise_or))
front("__invert__", function=False)(lambda self: apply_one(bitwise_not, self))


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

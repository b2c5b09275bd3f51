"""Properties of tensors that are returned as plain Python values."""

from __future__ import annotations

from typing import Any

import numpy as np

from gviz.engine.arguments import integer, typename
from gviz.engine.functions_and_methods import attribute, front
from gviz.engine.ops.comparison import isclose_front
from gviz.engine.ops.shape import normal_dims
from gviz.engine.tensor import Tensor


def _tensor(function: str, value: object) -> Tensor:
    if isinstance(value, Tensor):
        return value
    raise TypeError(f"{function}(): argument 'input' (position 1) must be Tensor, not {typename(value)}")


@front("is_tensor", method=False)
def is_tensor(obj: object) -> bool:
    """Whether `obj` is a tensor."""
    return isinstance(obj, Tensor)


@front("is_storage", method=False)
def is_storage(obj: object) -> bool:
    """Whether `obj` is a storage: always False, the engine has none."""
    return False


@front("is_floating_point")
def is_floating_point(input: Tensor) -> bool:
    """Whether the elements are floating-point numbers."""
    return _tensor("is_floating_point", input).dtype.is_floating_point


@front("is_complex")
@front("is_conj")
@front("is_neg")
def is_complex(input: Tensor) -> bool:
    """Whether the elements are complex, or lazily conjugated or negated: always False."""
    _tensor("is_complex", input)
    return False


@front("is_signed")
def is_signed(input: Tensor) -> bool:
    """Whether the elements can be negative."""
    return _tensor("is_signed", input).dtype.is_signed


@front("is_nonzero")
def is_nonzero(input: Tensor) -> bool:
    """Whether the single element is not 0."""
    return bool(_tensor("is_nonzero", input))


@front("is_same_size")
def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape."""
    return input.shape == other.shape


@front("numel")
@front("nelement", function=False)
def numel(input: Tensor) -> int:
    """The number of elements."""
    return _tensor("numel", input)._array.size


@front("dim", function=False)
@front("ndimension", function=False)
def dim(self: Tensor) -> int:
    """The number of dimensions."""
    return self._array.ndim


@front("size", function=False)
def size(self: Tensor, dim: int | None = None) -> Any:
    """The shape, or the size of one dimension."""
    return self.shape if dim is None else self.shape[normal_dims(integer("size", dim, "dim", 1), self.ndim)[0]]


@front("element_size", function=False)
def element_size(self: Tensor) -> int:
    """The size of one element in bytes."""
    return self._array.itemsize


@front("storage_offset", function=False)
def storage_offset(self: Tensor) -> int:
    """The number of elements before its first one in its base's memory."""
    own = self._array
    base = own if self._base is None else self._base._array
    before = 0
    if self._base is None or not np.may_share_memory(own, base):  # it has no base, or was given other memory
        base = own
        while isinstance(base.base, np.ndarray):
            base = base.base
    else:
        before = storage_offset(self._base)  # `set_` may have moved the base's own memory
    return (own.ctypes.data - base.ctypes.data) // own.itemsize + before if own.size else 0


@front("equal")
def equal(self: Tensor, other: Tensor) -> bool:
    """Whether shape and all elements are the same."""
    return bool(np.array_equal(self._array, other._array))


@front("allclose")
def allclose(self: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Whether all elements differ by at most `atol` + `rtol` * the other's absolute value."""
    close: Tensor = isclose_front(self, other, rtol, atol, equal_nan)
    return bool(close._array.all())


@front("real", method=False)
@front("conj")
@front("resolve_conj")
@front("resolve_neg")
def real(input: Tensor) -> Tensor:
    """Returns the tensor itself: its elements are real."""
    return _tensor("real", input)


@front("imag", method=False)
def imag(input: Tensor) -> Tensor:
    """Raises RuntimeError: there are no complex tensors."""
    raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")


def _set_real(self: Tensor, value: Any) -> None:
    self[...] = value  # its elements are real


def _set_imag(self: Tensor, value: Any) -> None:
    imag(self)


attribute("real", real, _set_real)
attribute("imag", imag, _set_imag)

"""Tensors from data and constants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gviz import emit
from gviz.engine import announce, dtypes, messages
from gviz.engine.dtypes import dtype as DType
from gviz.engine.modes import thread
from gviz.engine.ops.shape import sizes_of
from gviz.engine.surface import front
from gviz.engine.tensor import Tensor, new_tensor
from gviz.values import Array

__all__ = [
    "arange",
    "as_tensor",
    "empty",
    "empty_like",
    "eye",
    "from_numpy",
    "full",
    "linspace",
    "ones",
    "ones_like",
    "tensor",
    "zeros",
    "zeros_like",
]


def tensor(data: Any, *, dtype: DType | None = None, requires_grad: bool = False, device: Any = None) -> Tensor:
    """A tensor with a copy of `data`: numbers, nested sequences, arrays."""
    return from_array(np.array(_elements(data, dtype)), requires_grad)


def as_tensor(data: Any, *, dtype: DType | None = None, device: Any = None) -> Tensor:
    """A tensor of `data`, sharing memory where that is possible."""
    if isinstance(data, Tensor):
        return data if dtype is None else data.to(dtype)
    return from_array(_elements(data, dtype), False)


def from_numpy(array: Array) -> Tensor:
    """A tensor that shares memory with a numpy array."""
    if not isinstance(array, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(array).__name__})")
    dtypes.of(array)
    return from_array(array, False)


def full(
    size: Any, fill_value: Any, *, dtype: DType | None = None, requires_grad: bool = False, device: Any = None
) -> Tensor:
    """A tensor of one value."""
    shape = sizes_of((size,))
    return from_array(thread.quietly(np.full, shape, fill_value, _elements(fill_value, dtype).dtype), requires_grad)


def arange(
    start: Any, end: Any = None, step: Any = 1, *, dtype: DType | None = None, requires_grad: bool = False
) -> Tensor:
    """Numbers from `start` (0) up to but without `end`, `step` apart."""
    low, high = (0, start) if end is None else (start, end)
    whole = all(isinstance(v, int) for v in (low, high, step))
    kind = dtype or (dtypes.int64 if whole else dtypes.get_default_dtype())
    return from_array(np.arange(low, high, step).astype(kind.numpy), requires_grad)


def linspace(
    start: float, end: float, steps: int, *, dtype: DType | None = None, requires_grad: bool = False
) -> Tensor:
    """`steps` numbers from `start` to `end`, both included."""
    return from_array(np.linspace(start, end, steps).astype((dtype or dtypes.get_default_dtype()).numpy), requires_grad)


def eye(n: int, m: int | None = None, *, dtype: DType | None = None, requires_grad: bool = False) -> Tensor:
    """Ones on the diagonal, zeros elsewhere."""
    return from_array(np.eye(n, m, dtype=(dtype or dtypes.get_default_dtype()).numpy), requires_grad)


def _factory(name: str, make: Callable[[tuple[int, ...]], Array], doc: str) -> Callable[..., Tensor]:
    def factory(*size: Any, dtype: DType | None = None, requires_grad: bool = False, device: Any = None) -> Tensor:
        shape = sizes_of(size) if size else ()
        return from_array(make(shape).astype((dtype or dtypes.get_default_dtype()).numpy), requires_grad)

    factory.__name__, factory.__doc__ = name, doc
    return factory


zeros = _factory("zeros", np.zeros, "Zeros.")
ones = _factory("ones", np.ones, "Ones.")
empty = _factory("empty", np.zeros, "Memory nobody has written yet: zeros here, so that recordings repeat.")


def _like(name: str, make: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def like(input: Tensor, *, dtype: DType | None = None, requires_grad: bool = False) -> Tensor:
        return make(tuple(input.shape), dtype=dtype or input.dtype, requires_grad=requires_grad)

    like.__name__, like.__doc__ = name, f"`{make.__name__}` of the shape and dtype of `input`."
    return like


zeros_like = _like("zeros_like", zeros)
ones_like = _like("ones_like", ones)
empty_like = _like("empty_like", empty)


def _new(name: str, make: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def new(self: Tensor, *args: Any, dtype: DType | None = None, requires_grad: bool = False) -> Tensor:
        return make(*args, dtype=dtype or self.dtype, requires_grad=requires_grad)

    new.__name__, new.__doc__ = name, f"`{make.__name__}` of the dtype of this tensor."
    return new


for made in (tensor, full, zeros, ones, empty):
    front(f"new_{made.__name__}", function=False)(_new(f"new_{made.__name__}", made))


def _elements(data: Any, dtype: DType | None) -> Array:
    """`data` as an array: Python floats in the default dtype, integers as int64."""
    if isinstance(data, (list, tuple)):
        data = _without_tensors(data)
    array = data._array if isinstance(data, Tensor) else _as_array(data)
    if array.dtype.kind in "SU":
        raise TypeError(f"new(): invalid data type '{type(data).__name__}'")
    if dtype is not None:
        return _cast(array, dtype)
    if not isinstance(data, (Tensor, np.ndarray, np.generic)):
        if array.dtype.kind == "f":
            return _cast(array, dtypes.get_default_dtype())
        if not array.size and array.dtype.kind != "b":
            return _cast(array, dtypes.get_default_dtype())
    dtypes.of(array)
    return array


def _cast(array: Array, dtype: DType) -> Array:
    cast: Array = thread.quietly(array.astype, dtype.numpy)  # what is too large becomes inf
    return cast


def _as_array(data: Any) -> Array:
    try:
        return np.asarray(data)
    except ValueError:
        raise ValueError(_uneven(data, 0) or "too many dimensions") from None


def _uneven(data: Any, dim: int) -> str:
    """Where nested sequences differ in length, in PyTorch's words; empty if they do not."""
    if not isinstance(data, list):
        return ""
    for item in data:
        length = len(item) if isinstance(item, list) else 0
        if isinstance(data[0], list) and length != len(data[0]):
            return f"expected sequence of length {len(data[0])} at dim {dim + 1} (got {length})"
    return next((text for item in data if (text := _uneven(item, dim + 1))), "")


def _without_tensors(data: Any) -> Any:
    if isinstance(data, (list, tuple)):
        return [_without_tensors(item) for item in data]
    return data.tolist() if isinstance(data, Tensor) else data


def from_array(array: Array, requires_grad: bool) -> Tensor:
    """A new leaf or constant around `array`. RuntimeError if it should require grad and cannot."""
    if requires_grad and array.dtype.kind != "f":
        raise RuntimeError(messages.FACTORY_CANNOT_REQUIRE)
    result = new_tensor(array)
    result._requires_grad = requires_grad
    if emit.channel is not None:
        announce.entered(emit.channel, result)
    return result

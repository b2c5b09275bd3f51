"""Tensors of random numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gviz.engine import dtypes, random
from gviz.engine.dtypes import dtype as DType
from gviz.engine.from_data import from_array
from gviz.engine.ops.random import check_floating, check_integer_range
from gviz.engine.ops.shape import sizes_of
from gviz.engine.random import Generator, stream_of
from gviz.engine.tensor import Tensor
from gviz.values import Array

__all__ = ["rand", "rand_like", "randint", "randint_like", "randn", "randn_like", "randperm"]


def rand(
    *sizes: Any,
    size: Any = None,
    generator: Generator | None = None,
    dtype: DType | None = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Uniform numbers from 0 up to but without 1."""
    kind = _kind(dtype, "check_uniform_bounds")
    return from_array(random.uniform(0, 1, _shape("rand", sizes, size), kind, generator), requires_grad)


def randn(
    *sizes: Any,
    size: Any = None,
    generator: Generator | None = None,
    dtype: DType | None = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Standard normal numbers."""
    kind = _kind(dtype, "normal_kernel_cpu")
    return from_array(random.normal(0, 1, _shape("randn", sizes, size), kind, generator), requires_grad)


def randint(
    *bounds: Any,
    low: int = 0,
    high: int | None = None,
    size: Any = None,
    generator: Generator | None = None,
    dtype: DType | None = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Whole numbers from `low` up to but without `high`: ``randint(high, size)`` or ``randint(low, high, size)``."""
    given = list(bounds)
    if size is None and given:
        size = given.pop()
    if high is None and given:
        high = given.pop()
    if given:
        low = given.pop()
    if size is None or isinstance(size, int) or high is None or given:
        raise TypeError("randint() received an invalid combination of arguments: it needs high and size")
    if isinstance(high, float):
        raise TypeError(f"randint(): argument 'high' (position {max(1, len(bounds) - 1)}) must be int, not float")
    kind = (dtype or dtypes.int64).numpy
    return from_array(_integers(low, high, sizes_of((size,)), kind, generator), requires_grad)


def randperm(
    n: int,
    *,
    generator: Generator | None = None,
    dtype: DType | None = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """The numbers from 0 up to but without `n`, in random order."""
    (size,) = _checked_shape((n,))
    kind = (dtype or dtypes.int64).numpy
    return from_array(stream_of(generator).permutation(size).astype(kind), requires_grad)


def _like(name: str, make: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def like(input: Tensor, *, dtype: DType | None = None, **options: Any) -> Tensor:
        options.pop("memory_format", None)
        return make(tuple(input.shape), dtype=dtype or input.dtype, **options)

    like.__name__, like.__doc__ = name, f"`{make.__name__}` of the shape and dtype of `input`."
    return like


rand_like = _like("rand_like", rand)
randn_like = _like("randn_like", randn)


def randint_like(
    input: Tensor, low: int, high: int | None = None, *, dtype: DType | None = None, requires_grad: bool = False
) -> Tensor:
    """`randint` of the shape and dtype of `input`."""
    start, stop = (0, low) if high is None else (low, high)
    drawn = _integers(start, stop, input._array.shape, (dtype or input.dtype).numpy, None)
    return from_array(drawn, requires_grad)


def _integers(low: int, high: int, shape: tuple[int, ...], kind: np.dtype[Any], generator: Generator | None) -> Array:
    check_integer_range(low, high, kind)
    return np.asarray(stream_of(generator).integers(low, high, shape)).astype(kind)


def _shape(name: str, sizes: tuple[Any, ...], size: Any) -> tuple[int, ...]:
    if not sizes and size is None:
        raise TypeError(f'{name}() missing 1 required positional arguments: "size"')
    return _checked_shape(sizes_of(sizes or (size,)))


def _checked_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    negative = [n for n in shape if n < 0]
    if negative:
        raise RuntimeError(f"Trying to create tensor with negative dimension {negative[0]}: {list(shape)}")
    return shape


def _kind(dtype: DType | None, kernel: str) -> np.dtype[Any]:
    kind = (dtype or dtypes.get_default_dtype()).numpy
    check_floating(kernel, kind)
    return kind

"""Random tensors: ``rand``, ``randn``, ``randint``, ``randperm``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gviz.engine import dtypes, random
from gviz.engine.argument_parser import want_tensors
from gviz.engine.arguments import checked, kind_of
from gviz.engine.arguments import size as sizes_given
from gviz.engine.creation import factory_result, shape_of
from gviz.engine.memory_format import checked_format, contiguous_format, preserve_format, zeros_like
from gviz.engine.ops.random_draws import check_floating, check_integer_range
from gviz.engine.random import Generator, stream_of
from gviz.engine.tensor import Tensor
from gviz.values.value import Array

__all__ = ["rand", "rand_like", "randint", "randint_like", "randn", "randn_like", "randperm"]

Kind = np.dtype[Any]


def rand(*size: Any, generator: Generator | None = None, **options: Any) -> Tensor:
    """Uniform random numbers in [0, 1)."""
    shape, kind = shape_of("rand", size, options), _floating("rand", options)
    return factory_result("rand", random.uniform(0, 1, shape, kind, generator), options)  # type: ignore[arg-type]  # checked


def randn(*size: Any, generator: Generator | None = None, **options: Any) -> Tensor:
    """Standard normal numbers."""
    shape, kind = shape_of("randn", size, options), _floating("randn", options)
    return factory_result("randn", random.normal(0, 1, shape, kind, generator), options)  # type: ignore[arg-type]  # checked


def randint(
    *bounds: Any,
    low: int = 0,
    high: int | None = None,
    size: Any = None,
    generator: Generator | None = None,
    **options: Any,
) -> Tensor:
    """Random integers in [`low`, `high`): ``randint(high, size)`` or ``randint(low, high, size)``."""
    numbers = list(bounds)
    if size is None and numbers:
        size = numbers.pop()
    if high is None and numbers:
        high = numbers.pop()
    if numbers:
        low = numbers.pop()
    if size is None or isinstance(size, int) or high is None or numbers:
        raise TypeError("randint() received an invalid combination of arguments: it needs high and size")
    if isinstance(high, float):
        raise TypeError(f"randint(): argument 'high' (position {max(1, len(bounds) - 1)}) must be int, not float")
    kind = kind_of("randint", checked("randint", options), dtypes.int64).numpy  # type: ignore[arg-type]  # it checks
    drawn = _integers(low, high, sizes_given("randint", size), kind, generator)
    return factory_result("randint", drawn, options)  # type: ignore[arg-type]  # checked


def randperm(n: int, *, generator: Generator | None = None, **options: Any) -> Tensor:
    """A random permutation of the integers from 0 to `n` - 1."""
    (size,) = sizes_given("randperm", (n,))
    kind = kind_of("randperm", checked("randperm", options), dtypes.int64).numpy  # type: ignore[arg-type]  # it checks
    drawn = stream_of(generator).permutation(size).astype(kind)
    return factory_result("randperm", drawn, options)  # type: ignore[arg-type]  # checked


def _like(name: str, make: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def like(input: Tensor, **options: Any) -> Tensor:
        drawn = make(tuple(input.shape), **{"dtype": input.dtype, **_without_format(options)})
        return _arranged(name, drawn, input, options)

    like.__name__, like.__doc__ = name, f"`{make.__name__}` of the shape and dtype of `input`."
    return like


rand_like = _like("rand_like", rand)
randn_like = _like("randn_like", randn)


def randint_like(input: Tensor, low: int, high: int | None = None, **options: Any) -> Tensor:
    """`randint` with the shape and dtype of `input`."""
    start, stop = (0, low) if high is None else (low, high)
    drawn = randint(start, stop, tuple(input.shape), **{"dtype": input.dtype, **_without_format(options)})
    return _arranged("randint_like", drawn, input, options)


def _without_format(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name != "memory_format"}


def _arranged(name: str, drawn: Tensor, like: Tensor, options: dict[str, Any]) -> Tensor:
    """Put random numbers into the memory order of another tensor, or into the requested one."""
    format = options.get("memory_format")
    order = preserve_format if format is None else checked_format(name, format)
    if not (like._array.flags.c_contiguous and order is preserve_format) and order is not contiguous_format:
        array = zeros_like(like._array, drawn._array.dtype, order)
        array[...] = drawn._array
        drawn._array = array
    return drawn


def _integers(low: int, high: int, shape: tuple[int, ...], kind: Kind, generator: Generator | None) -> Array:
    check_integer_range(low, high, kind)
    return np.asarray(stream_of(generator).integers(low, high, shape)).astype(kind)


def _floating(name: str, options: Any) -> Kind:
    kind = kind_of(name, checked(name, options, refused=("memory_format",))).numpy
    check_floating("check_uniform_bounds" if name == "rand" else "normal_kernel_cpu", kind)
    return kind


want_tensors(globals())

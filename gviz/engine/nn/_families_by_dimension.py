"""Helpers of all families of functions and modules: names, sizes, and errors for tensors without a derivative."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from gviz.engine.modes import thread
from gviz.engine.tensor import Tensor

_F = TypeVar("_F", bound=Callable[..., Any])
Sizes = int | Sequence[int]
Shape = tuple[int, ...]
COUNTS = {1: "one", 2: "two", 3: "three"}
LAST = {1: "the last dimension", 2: "the last two dimensions", 3: "the last three dimensions"}


def named(name: str, doc: str) -> Callable[[_F], _F]:
    """Gives a function of a family the name and docstring of one member."""

    def name_it(function: _F) -> _F:
        function.__name__ = function.__qualname__ = name
        function.__doc__ = doc
        return function

    return name_it


def each(value: Any, count: int) -> tuple[Any, ...]:
    """`value` as one entry per dimension, as modules store it: passed once for all, or one by one."""
    return tuple(value) if isinstance(value, Iterable) else (value,) * count


def sizes_of(name: str, what: str, value: Sizes, dims: int, omitted: str = "") -> Shape:
    """One number per dimension, for the pool `name`. Raises RuntimeError, with PyTorch's text, for another count."""
    sizes = (value,) if isinstance(value, int) else tuple(value)
    if len(sizes) not in (1, dims):
        raise RuntimeError(f"{name}: {what} must either be {omitted}a single int, or a tuple of {COUNTS[dims]} ints")
    return sizes * dims if len(sizes) == 1 else sizes


def stride_of(name: str, stride: Sizes | None, kernel: Shape) -> Shape:
    """The stride of the pool `name`; it defaults to the size of the windows."""
    if stride is None or (not isinstance(stride, int) and not len(stride)):
        return kernel
    return sizes_of(name, "stride", stride, len(kernel), "omitted, ")


def refuse_tracked(function: str, **constants: Tensor | None) -> None:
    """Raises RuntimeError, with PyTorch's text, for a tensor that requires grad where `function` has no derivative."""
    for name, tensor in constants.items():
        if tensor is not None and tensor.requires_grad and thread.grad_enabled:
            raise RuntimeError(
                f"The function '{function}' is not differentiable with respect to argument '{name}'. This input cannot "
                "have requires_grad True."
            )

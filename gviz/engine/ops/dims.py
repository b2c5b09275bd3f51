"""The dimensions of reductions, as PyTorch lets them be given."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from gviz.engine.apply import apply
from gviz.engine.op import Op
from gviz.engine.ops.shape import expand, normal_dims, unsqueeze_dims
from gviz.engine.tensor import Tensor

Dims = int | Sequence[int] | None
F = TypeVar("F", bound=Callable[..., Any])


def reduced_dims(dim: Dims, ndim: int) -> tuple[int, ...]:
    """What is reduced along, counted from 0: every dimension for None or none. RuntimeError for one named twice.

    A tensor without dimensions counts as having one, as long as it is not used.
    """
    if dim is None or dim == () or dim == []:
        return tuple(range(ndim))
    dims = normal_dims(dim, ndim)
    for d in dims:
        if dims.count(d) > 1:
            raise RuntimeError(f"dim {d} appears multiple times in the list of dims")
    return dims if ndim else ()


def one_dim(dim: int, ndim: int) -> int:
    """One dimension, counted from 0. TypeError for what is no whole number."""
    if not isinstance(dim, (int, np.integer)):
        raise TypeError(f"argument 'dim' must be int, not {type(dim).__name__}")
    return normal_dims(dim, ndim)[0]


def spread(g: Any, sizes: tuple[int, ...], dim: tuple[int, ...], keepdim: bool) -> Any:
    """A reduced gradient repeated over the dimensions it was reduced along; for use inside rules."""
    return expand(kept(g, dim, keepdim), size=sizes)


def kept(reduced: Any, dim: tuple[int, ...], keepdim: bool) -> Any:
    """A reduced value with the dimensions it was reduced along, of size 1; for use inside rules."""
    return reduced if keepdim or not dim else unsqueeze_dims(reduced, dims=dim)


def applied(op: Op, self: Tensor, **attrs: Any) -> Tensor:
    """Run an op of one tensor and one output, without the attributes that are None."""
    result: Tensor = apply(op, (self,), {name: value for name, value in attrs.items() if value is not None})
    return result


def numpy_names(function: F) -> F:
    """Let `axis` and `keepdims` stand for `dim` and `keepdim`, as PyTorch does for programs written for numpy.

    TypeError where both are given.
    """
    name = function.__name__.removesuffix("_front")
    places = {own: place for place, own in enumerate(inspect.signature(function).parameters)}
    synonyms = [(other, own) for other, own in (("axis", "dim"), ("keepdims", "keepdim")) if own in places]

    @functools.wraps(function)
    def renamed(*args: Any, **kwargs: Any) -> Any:
        for other, own in synonyms:
            if other in kwargs:
                if own in kwargs or places[own] < len(args):
                    raise TypeError(f"{name}() got an unexpected keyword argument '{other}'")
                kwargs[own] = kwargs.pop(other)
        return function(*args, **kwargs)

    return renamed  # type: ignore[return-value]  # a wrapper of the same signature

"""The arguments `dim` and `dtype` of reductions, in the forms that PyTorch accepts; `reduced_dims` reads `dim`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from gviz.engine import dtypes
from gviz.engine.dtypes import dtype as DType
from gviz.engine.modes import thread
from gviz.engine.op import Op, apply
from gviz.engine.ops.shape import expand, normal_dims, unsqueeze_dims
from gviz.engine.tensor import Tensor
from gviz.values.value import Array

Dims = int | Sequence[int] | None
Shape = tuple[int, ...]
F = TypeVar("F", bound=Callable[..., Any])


def reduced_dims(dim: Dims, ndim: int) -> tuple[int, ...]:
    """The dimensions to reduce, counted from 0; all for None or an empty list. Raises RuntimeError for a repeated one.

    A 0-dimensional tensor counts as having one dimension, as long as it is not used.
    """
    if dim is None or dim == () or dim == []:
        return tuple(range(ndim))
    dims = normal_dims(dim, ndim)
    for d in dims:
        if dims.count(d) > 1:
            raise RuntimeError(f"dim {d} appears multiple times in the list of dims")
    return dims if ndim else ()


def all_dims(self: Any, dim: Shape | None) -> Shape:
    """The dimensions to reduce, where None stands for all; for use in kernels and rules."""
    return tuple(range(len(self.shape))) if dim is None else dim


def spread(g: Any, sizes: tuple[int, ...], dim: tuple[int, ...], keepdim: bool) -> Any:
    """A reduced gradient repeated over the reduced dimensions; for use in rules."""
    return expand(kept(g, dim, keepdim), size=sizes)


def kept(reduced: Any, dim: tuple[int, ...], keepdim: bool) -> Any:
    """A reduced value with the reduced dimensions of size 1; for use in rules."""
    return reduced if keepdim or not dim else unsqueeze_dims(reduced, dims=dim)


def applied(op: Op, self: Tensor, **attrs: Any) -> Tensor:
    """Runs an op of one tensor and one output, without the attributes that are None."""
    result: Tensor = apply(op, (self,), {name: value for name, value in attrs.items() if value is not None})
    return result


def numpy_names(function: F) -> F:
    """Accepts `axis` and `keepdims` for `dim` and `keepdim`, as PyTorch does for programs written for NumPy.

    Raises TypeError if both are passed.
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


def in_dtype(self: Array, dtype: str | None) -> Array:
    """`self` converted to the dtype of this name, if one is given."""
    return self if dtype is None else self.astype(dtypes.named(dtype).numpy, copy=False)


def name_of(dtype: DType | None, self: Tensor | None = None) -> str | None:
    """A dtype as an attribute. Raises RuntimeError if `self` requires a gradient and the dtype cannot have one."""
    if dtype is None:
        return None
    if self is not None and self.requires_grad and thread.grad_enabled and not dtype.is_floating_point:
        raise RuntimeError(f"Autograd not support dtype: {dtype.tensor_type}")
    return dtype.name


def in_wide_dtype(self: Array, dtype: str | None) -> Array:
    """`self` in the dtype in which sums and products are computed: int64 for integers."""
    self = in_dtype(self, dtype)
    return self if dtype is not None or self.dtype.kind == "f" else self.astype(np.int64)

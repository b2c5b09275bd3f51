"""Tensors of constants: ``zeros``, ``full``, ``ones_like``, ``Tensor.new_zeros`` and their like."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, Unpack

import numpy as np

from gviz.engine import dtypes
from gviz.engine.arguments import Options, checked, fitting, kind_of, number, sizes, typename, worded
from gviz.engine.arguments import size as sizes_given
from gviz.engine.dtypes import dtype as DType
from gviz.engine.from_data import copied, made
from gviz.engine.from_data import from_array as from_array
from gviz.engine.from_data import from_numpy as from_numpy
from gviz.engine.from_data import tensor as tensor
from gviz.engine.layout import contiguous_format, preserve_format, strides_in
from gviz.engine.layout import zeros as zeros_in
from gviz.engine.layout import zeros_like as zeros_as
from gviz.engine.surface import front
from gviz.engine.tensor import Tensor
from gviz.values import Array

__all__ = [
    "empty",
    "empty_like",
    "full",
    "full_like",
    "ones",
    "ones_like",
    "scalar_tensor",
    "zeros",
    "zeros_like",
]


@worded
def scalar_tensor(s: Any, **options: Unpack[Options]) -> Tensor:
    """A 0-dimensional tensor of a number, in the default dtype unless one is named."""
    checked("scalar_tensor", options, refused=("memory_format", "out"))
    return made("scalar_tensor", filled("scalar_tensor", (), s, kind_of("scalar_tensor", options), "s", 1), options)


@worded
def full(size: Any, fill_value: Any, **options: Unpack[Options]) -> Tensor:
    """A tensor of one value."""
    shape = sizes_given("full", size)
    value = number("full", fill_value, "fill_value", 2)
    kind = kind_of("full", checked("full", options, refused=("memory_format",)), _kind_of_number(value))
    return made("full", filled("full", shape, value, kind), options)


def _kind_of_number(value: Any) -> DType:
    if isinstance(value, bool):
        return dtypes.bool_
    if isinstance(value, int):
        fitting(value, dtypes.int64)
        return dtypes.int64
    return dtypes.get_default_dtype()


def filled(
    function: str, shape: tuple[int, ...], value: Any, kind: DType, name: str = "fill_value", position: int = 2
) -> Array:
    """An array of one value, which the function was given as its argument `name`; TypeError for what is no number."""
    value = fitting(number(function, value, name, position), kind)
    single = np.array(value if kind.is_floating_point or kind is dtypes.bool_ else int(value))
    return allocated(np.full, shape, single.astype(kind.numpy))


def allocated(make: Callable[..., Array], shape: tuple[int, ...], *args: Any) -> Array:
    """What `make` makes of a shape. RuntimeError, in PyTorch's words, for more than there is memory."""
    try:
        array: Array = make(shape, *args)
    except (MemoryError, ValueError):
        raise RuntimeError(_too_much(shape)) from None
    return array


def _too_much(shape: tuple[int, ...]) -> str:
    if prod(shape) >= 2**63:
        return f"Storage size calculation overflowed with sizes={list(shape)}"
    return f"DefaultCPUAllocator: can't allocate memory for a tensor of size {list(shape)}"


def _factory(name: str, make: Callable[..., Array], doc: str) -> Callable[..., Tensor]:
    def factory(*size: Any, **options: Any) -> Tensor:
        shape = shape_of(name, size, options)
        refused = () if name == "empty" else ("memory_format",)
        kind = kind_of(name, checked(name, options, refused=refused))  # type: ignore[arg-type]  # it checks them
        order = options.get("memory_format")
        if order is preserve_format:
            raise RuntimeError("unsupported memory format Preserve")
        if order is None or order is contiguous_format:
            return made(name, allocated(make, shape, kind.numpy), options)  # type: ignore[arg-type]
        strides = strides_in(shape, order)
        return made(name, allocated(zeros_in, shape, kind.numpy, strides), options)  # type: ignore[arg-type]

    factory.__name__ = factory.__qualname__ = name
    factory.__doc__ = doc
    return factory


def shape_of(function: str, args: tuple[Any, ...], options: dict[str, Any]) -> tuple[int, ...]:
    """The shape that a function was given, in one of PyTorch's ways; TypeError if it was given twice."""
    if "size" not in options:
        return sizes(function, args)
    if args:
        raise TypeError(f"{function}() got multiple values for argument 'size'")
    return sizes_given(function, options.pop("size"), "")


zeros = _factory("zeros", np.zeros, "Zeros.")
ones = _factory("ones", np.ones, "Ones.")
empty = _factory("empty", np.zeros, "Memory nobody has written yet: zeros here, so that recordings repeat.")


def _like(name: str, value: int, doc: str) -> Callable[..., Tensor]:
    def like(input: Tensor, **options: Unpack[Options]) -> Tensor:
        kind = _kind_like(name, input, options)
        array = zeros_as(input._array, kind.numpy, options.get("memory_format") or preserve_format)
        array[...] = value
        return made(name, array, options)

    like.__name__ = like.__qualname__ = name
    like.__doc__ = doc
    return worded(like)


def _kind_like(name: str, input: Tensor, options: Options) -> DType:
    if not isinstance(input, Tensor):
        raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {typename(input)}")
    return kind_of(name, checked(name, options, refused=("out",)), input.dtype)


zeros_like = _like("zeros_like", 0, "Zeros, of the shape and dtype of `input`.")
ones_like = _like("ones_like", 1, "Ones, of the shape and dtype of `input`.")
empty_like = _like("empty_like", 0, "`empty`, of the shape and dtype of `input`.")


@worded
def full_like(input: Tensor, fill_value: Any, **options: Unpack[Options]) -> Tensor:
    """One value, in the shape and dtype of `input`."""
    kind = _kind_like("full_like", input, options)
    value = filled("full_like", (), fill_value, kind)
    array = zeros_as(input._array, kind.numpy, options.get("memory_format") or preserve_format)
    array[...] = value
    return made("full_like", array, options)


def _new(name: str, make: Callable[..., Array]) -> Callable[..., Tensor]:
    def new(self: Tensor, *size: Any, **options: Any) -> Tensor:
        shape = shape_of(name, size, options)
        kind = kind_of(name, checked(name, options, refused=("memory_format",)), self.dtype)  # type: ignore[arg-type]  # it checks them
        return made(name, allocated(make, shape, kind.numpy), options)  # type: ignore[arg-type]

    new.__name__, new.__qualname__ = name, name
    new.__doc__ = "A tensor of the dtype of this one."
    return new


for name, make in (("new_zeros", np.zeros), ("new_ones", np.ones), ("new_empty", np.zeros)):
    front(name, function=False)(_new(name, make))


@front("new_full", function=False)
@worded
def new_full(self: Tensor, size: Any, fill_value: Any, **options: Any) -> Tensor:
    """A tensor of one value, of the dtype of this one."""
    kind = kind_of("new_full", checked("new_full", options, refused=("memory_format",)), self.dtype)  # type: ignore[arg-type]  # it checks them
    array = filled("new_full", sizes_given("new_full", size), fill_value, kind)
    return made("new_full", array, options)  # type: ignore[arg-type]


@front("new_tensor", function=False)
@worded
def new_tensor_method(self: Tensor, data: Any, **options: Any) -> Tensor:
    """A tensor with a copy of `data`, of the dtype of this one."""
    return copied("new_tensor", data, options, self.dtype)  # type: ignore[arg-type]  # it checks them

"""For which dtypes an operation exists, refused in PyTorch's words elsewhere; and scipy's functions, imported late."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gviz.engine import dtypes
from gviz.engine.apply import broadcast_error
from gviz.engine.memory_order import empty_as
from gviz.values import Array

Forward = Callable[..., Any]


def only(kinds: str, kernel: str, forward: Forward) -> Forward:
    """`forward` for arrays of these kinds (numpy's letters). NotImplementedError for others, with the kernel's name."""

    def checked(self: Array, *others: Array, **attrs: Any) -> Any:
        refuse_unless(self.dtype.kind in kinds, kernel, self)
        return forward(self, *others, **attrs)

    if "f" in kinds:
        checked.__wrapped__ = forward  # type: ignore[attr-defined]  # what it is for floating numbers, see `blocks`
    return checked


def refuse_unless(fits: bool, kernel: str, array: Array) -> None:
    """NotImplementedError in PyTorch's words, unless the array `fits` the kernel of this name."""
    if not fits:
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{dtypes.of(array).tensor_type}'")


def in_rows(forward: Forward) -> Forward:
    """`forward`, its result in rows: numpy lays results out as their operands are, PyTorch not always."""

    def laid_out(*arrays: Array, **attrs: Any) -> Array:
        return np.asarray(forward(*arrays, **attrs), order="C")

    return laid_out


def all_in_rows(forward: Forward) -> Forward:
    """`in_rows`, for several results."""

    def laid_out(*arrays: Array, **attrs: Any) -> tuple[Array, ...]:
        return tuple([np.asarray(result, order="C") for result in forward(*arrays, **attrs)])

    return laid_out


def laid_out_as(model: Array, array: Array) -> Array:
    """The array in the order that the elements of `model` have in memory."""
    result = empty_as(model, array.dtype)
    result[...] = array
    return result


def check_broadcast(*arrays: Array) -> None:
    """RuntimeError, in PyTorch's words, for arrays that do not broadcast."""
    shape: tuple[int, ...] = ()
    for array in arrays:
        try:
            shape = np.broadcast_shapes(shape, array.shape)
        except ValueError:
            raise RuntimeError(broadcast_error(shape, array.shape)) from None


def scipy_special(name: str) -> Forward:
    """The function of ``scipy.special``, in the dtype of its last argument, the array."""

    def forward(*args: Any, **attrs: Any) -> Any:
        from scipy import special  # slow to import, and few programs need it

        return np.asarray(getattr(special, name)(*args, **attrs)).astype(args[-1].dtype, copy=False)

    return forward

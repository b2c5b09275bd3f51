"""In which order the elements of a new result lie in memory: as PyTorch lays them out, which numpy does not always do.

It decides which later ``view()`` is possible, so programs notice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gviz.values import Array


def laid_out(result: Any, operands: Sequence[Any]) -> Any:
    """The result of an operation element by element, in the order that its operands' memory asks for."""
    if result.__class__ is not np.ndarray or result.ndim < 2:
        return result
    for operand in operands:
        if operand.ndim > result.ndim:
            return result
        if operand.__class__ is np.ndarray and not operand.flags.c_contiguous:
            break
    else:
        return result if result.flags.c_contiguous else np.ascontiguousarray(result)
    dims = order_of(result.shape, operands)
    turned = result.transpose(dims)
    return result if turned.flags.c_contiguous else np.ascontiguousarray(turned).transpose(np.argsort(dims))


def order_of(shape: tuple[int, ...], operands: Sequence[Array]) -> list[int]:
    """The dimensions of `shape`, that of the longest stride first.

    The first operand in which two dimensions have different strides decides between them; one that is broadcast along
    either of them does not count.
    """
    ndim = len(shape)
    strides = [_strides(shape, operand) for operand in operands if operand.ndim]
    order = list(range(ndim))  # from the longest stride to the shortest
    for last in range(ndim - 2, -1, -1):
        at = last
        for other in range(last + 1, ndim):
            longer = _compare(order[other], order[at], shape, strides)
            if longer < 0:
                break
            if longer > 0:
                order[at], order[other] = order[other], order[at]
                at = other
    return order


def _strides(shape: tuple[int, ...], operand: Array) -> list[int]:
    missing = len(shape) - operand.ndim
    own = zip(operand.shape, operand.strides, shape[missing:], strict=True)
    return [0] * missing + [0 if n == 1 and wide != 1 else stride for n, stride, wide in own]


def _compare(one: int, other: int, shape: tuple[int, ...], strides: list[list[int]]) -> int:
    """1 if dimension `one` must have the longer stride, -1 if `other` must, 0 if nothing decides."""
    for own in strides:
        if not own[one] or not own[other]:
            continue
        if own[one] != own[other]:
            return 1 if own[one] > own[other] else -1
        if shape[one] > shape[other]:
            return 1
    return 0


def empty_as(model: Array, dtype: Any = None) -> Array:
    """Memory for as many elements as `model` has, laid out as its own are; expanded dimensions come last."""
    if model.flags.c_contiguous:
        return np.empty(model.shape, dtype or model.dtype)
    dims = order_of(model.shape, [model])
    return np.empty([model.shape[d] for d in dims], dtype or model.dtype).transpose(np.argsort(dims))


def in_columns(array: Array) -> Array:
    """Matrices in the order of LAPACK: column after column."""
    return np.ascontiguousarray(array.swapaxes(-1, -2)).swapaxes(-1, -2)

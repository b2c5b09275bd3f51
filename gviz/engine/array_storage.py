"""The storage of a NumPy array: the memory that it is a part of, and where in that memory it begins.

A tensor's ``storage_offset()`` and which tensors share memory follow from `owner_of` (the array that owns the memory)
and `address_of` (the address of the first element). `copy_with_owner` and `InMemory` copy and pickle an array with all
its memory, so views of one memory remain views of one memory. `resized` changes the shape within the memory. The order
of the elements, which strides express, is in `memory_format`; in-place writes through views are in `views`.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds
from numpy.lib.stride_tricks import as_strided

from gviz.engine.memory_format import empty_as
from gviz.values.value import Array


def owner_of(array: Array) -> Array:
    """The array that owns the memory of `array`."""
    owner = array
    base: Any = array.base
    while base is not None:
        if isinstance(base, np.ndarray):
            owner = base
        base = getattr(base, "base", None)
    return owner


def address_of(array: Array) -> int:
    """The address of an array's first element."""
    address: int = array.__array_interface__["data"][0]
    return address


def copy_with_owner(array: Array, copied: dict[int, Array]) -> Array:
    """A copy of `array` within a copy of all the memory it refers to; `copied` has earlier copies by the owner's id.

    So views of one memory remain views of one memory.
    """
    if not array.size:
        return empty_as(array)
    owner = owner_of(array)
    if id(owner) not in copied:
        copied[id(owner)] = owner.copy("K")
    if array is owner:
        return copied[id(owner)]
    if not owner.size or owner.dtype != array.dtype or not (owner.flags.c_contiguous or owner.flags.f_contiguous):
        return array.copy("K")
    offset = address_of(array) - address_of(owner)
    return np.ndarray(array.shape, array.dtype, copied[id(owner)].reshape(-1, order="A"), offset, array.strides)


def resized(array: Array, shape: tuple[int, ...], strides: tuple[int, ...]) -> Array:
    """The array with another shape, with `strides` in elements: in its own memory if that is long enough.

    New memory begins with the elements of the old one, and is zero after them.
    """
    memory, size = owner_of(array).ravel("K"), prod(shape)
    start = (address_of(array) - address_of(memory)) // array.itemsize
    if start + size <= memory.size:
        return _laid_out(memory[start : start + size], shape, strides)
    larger = np.zeros(size, array.dtype)
    larger[: memory.size - start] = memory[start:]
    return _laid_out(larger, shape, strides)


def _laid_out(memory: Array, shape: tuple[int, ...], strides: tuple[int, ...]) -> Array:
    if not memory.size:
        return memory.reshape(shape)
    return as_strided(memory, shape, [step * memory.itemsize for step in strides])


class InMemory:
    """An array that is pickled with its memory layout: NumPy would make it contiguous."""

    __slots__ = ("array",)

    def __init__(self, array: Array) -> None:
        self.array = array

    def __reduce__(self) -> tuple[Any, ...]:
        array = self.array
        if array.flags.c_contiguous or array.flags.f_contiguous:
            return InMemory, (array,)
        low, high = byte_bounds(array)
        around = np.ndarray(
            (high - low) // array.itemsize, array.dtype, owner_of(array), low - address_of(owner_of(array))
        )
        return _in_memory, (around, array.shape, array.strides, address_of(array) - low)


def _in_memory(around: Array, shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> InMemory:
    return InMemory(np.ndarray(shape, around.dtype, around, offset, strides))

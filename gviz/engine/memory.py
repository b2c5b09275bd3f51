"""Where a tensor lies in memory, as a recording knows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import ref

import numpy as np

from gviz.events import Output
from gviz.values import Array

if TYPE_CHECKING:
    from gviz.emit import Channel
    from gviz.engine.tensor import Tensor


class Storage:
    """Memory that tensors share: its number in the recording, and the tensors whose ``.grad`` lies in it."""

    __slots__ = ("_owners", "number")

    def __init__(self, channel: Channel, owner: ref[Tensor] | None = None) -> None:
        self.number = channel.next_storage()
        self._owners: tuple[ref[Tensor], ...] = () if owner is None else (owner,)

    def add_owner(self, owner: ref[Tensor]) -> None:
        """The ``.grad`` of `owner` lies here from now on."""
        self._owners = (*[known for known in self._owners if known() is not None and known is not owner], owner)

    def owners(self) -> list[Tensor]:
        """The tensors whose ``.grad`` lies here now."""
        alive = [owner() for owner in self._owners]
        return [t for t in alive if t is not None and t._grad is not None and _lies_in(t._grad, self)]


def _lies_in(tensor: Tensor, storage: Storage) -> bool:
    return tensor._seen is not None and tensor._storage is storage


def output(channel: Channel, tensor: Tensor, view_of: int) -> Output:
    """A tensor as an output of the node that made it: its value, and which elements of its memory it shows."""
    array, storage, version = tensor._array, tensor._storage.number, tensor._counter[0]
    value = channel.value(array)
    if array.base is None and array.flags.c_contiguous:
        return Output(value, storage, version, view_of)
    owner = _owner(array)
    if array.flags.c_contiguous and array.nbytes == owner.nbytes:
        return Output(value, storage, version, view_of)
    offset = (_address(array) - _address(owner)) // array.itemsize
    strides = tuple(stride // array.itemsize for stride in array.strides)
    return Output(value, storage, version, view_of, offset, strides)


def whole(array: Array) -> Array:
    """All elements of the memory that an array looks into, in the order in which they lie there."""
    return _owner(array).ravel(order="K")


def _owner(array: Array) -> Array:
    owner = array
    base: Any = array.base
    while base is not None:
        if isinstance(base, np.ndarray):
            owner = base
        base = getattr(base, "base", None)
    return owner


def _address(array: Array) -> int:
    address: int = array.__array_interface__["data"][0]
    return address

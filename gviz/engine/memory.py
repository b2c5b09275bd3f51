"""Where a tensor lies in memory, as a recording knows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import ref

import numpy as np
from numpy.lib.array_utils import byte_bounds

from gviz.events import Output
from gviz.values import Array, Value

if TYPE_CHECKING:
    from gviz.emit import Channel
    from gviz.engine.tensor import Tensor


class Storage:
    """Memory that tensors share: its number in the recording, and the tensors whose ``.grad`` lies in it.

    Recorded outputs never change their storage. So tensors that came here later (``x.data = v``), or have another form
    here (``x.t_()``), are told one by one: they have `moved`.
    """

    __slots__ = ("_moved", "_owners", "number")

    def __init__(self, channel: Channel, owner: ref[Tensor] | None = None) -> None:
        self.number = channel.next_storage()
        self._owners: tuple[ref[Tensor], ...] = () if owner is None else (owner,)
        self._moved: tuple[ref[Tensor], ...] = ()

    def add_owner(self, owner: ref[Tensor]) -> None:
        """The ``.grad`` of `owner` lies here from now on."""
        self._owners = (*[known for known in self._owners if known() is not None and known is not owner], owner)

    def owners(self) -> list[Tensor]:
        """The tensors whose ``.grad`` lies here now."""
        alive = [owner() for owner in self._owners]
        return [t for t in alive if t is not None and t._grad is not None and _lies_in(t._grad, self)]

    def move(self, tensor: Tensor) -> None:
        """`tensor` lies here from now on, other than it was announced."""
        others = [one for one in self.moved() if one is not tensor]
        self._moved = tuple(map(ref, (*others, tensor)))
        tensor._storage = self

    def moved(self, array: Array | None = None) -> list[Tensor]:
        """The tensors that have moved here, or those of them that share memory with `array`."""
        alive = [tensor for known in self._moved if (tensor := known()) is not None and tensor._storage is self]
        return [t for t in alive if array is None or np.may_share_memory(t._array, array)]


def _lies_in(tensor: Tensor, storage: Storage) -> bool:
    return tensor._seen is not None and tensor._storage is storage


def output(channel: Channel, tensor: Tensor, view_of: int, *, has_value: bool = True, is_first: bool = False) -> Output:
    """A tensor as an output of the node that made it: its value, and which elements of its memory it shows.

    Of one that `is_first`, as a call of a custom Function, the value is kept whole.
    """
    array, storage, version = tensor._array, tensor._storage.number, tensor._counter[0]
    if version < 0:  # an inference tensor counts no writes
        version = 0
    value = (channel.whole(array) if is_first else None) or channel.value(array) if has_value else None
    # A view is drawn from its memory as soon as that has a value: its shape must be known.
    unknown = value if has_value else Value(array.dtype.name, array.shape)
    if array.base is None and array.flags.c_contiguous:
        return Output(value, storage, version, view_of)
    owner = owner_of(array)
    if array.flags.c_contiguous and array.nbytes == owner.nbytes:
        return Output(value, storage, version, view_of)
    offset = (address_of(array) - address_of(owner)) // array.itemsize
    strides = tuple(stride // array.itemsize for stride in array.strides)
    return Output(unknown, storage, version, view_of, offset, strides)


def owner_of(array: Array) -> Array:
    """The array that has the memory which `array` looks into."""
    owner = array
    base: Any = array.base
    while base is not None:
        if isinstance(base, np.ndarray):
            owner = base
        base = getattr(base, "base", None)
    return owner


def address_of(array: Array) -> int:
    """Where the first element of an array lies."""
    address: int = array.__array_interface__["data"][0]
    return address


def copy_with_owner(array: Array, copied: dict[int, Array]) -> Array:
    """A copy that lies in a copy of all the memory it looks into; `copied` has those made before, by their originals.

    So views of one memory remain views of one memory.
    """
    owner = owner_of(array)
    if id(owner) not in copied:
        copied[id(owner)] = owner.copy("K")
    if array is owner:
        return copied[id(owner)]
    if not owner.size or owner.dtype != array.dtype or not (owner.flags.c_contiguous or owner.flags.f_contiguous):
        return array.copy("K")
    offset = address_of(array) - address_of(owner)
    return np.ndarray(array.shape, array.dtype, copied[id(owner)].reshape(-1, order="A"), offset, array.strides)


class InMemory:
    """An array that is pickled as it lies in memory: numpy would put its elements in a row."""

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

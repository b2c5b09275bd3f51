"""Says in events that memory has other contents, or that a tensor lies in other memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gviz.emit import Channel
from gviz.engine.announce import grad_set, seen
from gviz.engine.memory import Storage, owner_of
from gviz.engine.modes import thread
from gviz.events import DataSet, StorageWritten

if TYPE_CHECKING:
    from gviz.engine.tensor import Tensor


def memory_written(channel: Channel, tensor: Tensor, node: int, told: Tensor | None = None) -> None:
    """The memory of `tensor` was changed by `node`, and with it every ``.grad`` that lies there, but that of `told`."""
    if thread.is_building:
        return
    storage, array = tensor._storage, tensor._array
    value = channel.value(owner_of(array).ravel(order="K"))
    channel.say(StorageWritten(storage.number, node, tensor._counter[0], value))
    for other in storage.moved(array):
        say_data(channel, other, node)
    for owner in storage.owners():
        if owner is not told and owner._grad is not None:
            grad_set(channel, owner, "in place" if owner._grad._array.any() else "zero", channel.stack())


def computed(channel: Channel, tensor: Tensor) -> None:
    """An operation that was announced before computed its output, of which nobody but it has the memory, anew."""
    node = seen(channel, tensor).node
    if owner_of(tensor._array) is not tensor._array or tensor._storage.moved():
        memory_written(channel, tensor, node)
        return
    channel.say(StorageWritten(tensor._storage.number, node, tensor._counter[0], channel.value(tensor._array)))


def moved(channel: Channel, tensor: Tensor, to: Tensor | None = None) -> None:
    """A tensor that was announced lies in the memory of `to` now (None: in new memory), perhaps in another form."""
    (Storage(channel) if to is None else to._storage).move(tensor)
    say_data(channel, tensor)
    owner = None if tensor._grad_of is None else tensor._grad_of()
    if owner is not None and owner._grad is tensor and tensor._grad_of is not None:
        tensor._storage.add_owner(tensor._grad_of)
        grad_set(channel, owner, "in place" if tensor._array.any() else "zero", channel.stack())


def say_data(channel: Channel, tensor: Tensor, writer: int = 0) -> None:
    """Say what a tensor shows that lies elsewhere than where it was announced, or in another form."""
    node, version = seen(channel, tensor).node, max(tensor._counter[0], 0)
    value, stack = channel.value(tensor._array), channel.stack()
    channel.say(DataSet(node, tensor._output_nr, version, value, writer or node, stack))

"""The captures of CUDA graphs: when gviz must not read from a device, and what a replay writes to.

All names are in ``torch.cuda`` in every supported release. They are used only for tensors on a device.
"""

from __future__ import annotations

import weakref
from typing import Any

import torch


class Captures:
    """The CUDA graph captures of one recording: those in progress, and the tensors that each graph will write to.

    Nothing is computed during capture, and any copy to the host, from any thread, ends the capture with an error. A
    replay writes to the same memory every time: that of the `noted` tensors, which are referenced weakly.
    """

    def __init__(self) -> None:
        self._running: weakref.WeakSet[Any] = weakref.WeakSet()
        self._noted: weakref.WeakKeyDictionary[Any, dict[int, weakref.ref[torch.Tensor]]] = weakref.WeakKeyDictionary()
        self._memories: dict[int, weakref.ref[Any]] = {}
        self.is_noting = False
        """Whether a capture that the recording saw begin is in progress."""

    def begin(self, graph: Any) -> None:
        """Start the capture of a graph; tensors noted for an earlier capture of it are dropped."""
        self._running.add(graph)
        self._noted[graph] = {}
        self.is_noting = True

    def end(self, graph: Any) -> None:
        """End the capture, successful or not."""
        self._running.discard(graph)
        self.is_noting = bool(self._running)
        if not self.is_noting:
            self._memories.clear()

    def forget(self, graph: Any) -> None:
        """Forget an abandoned graph, which cannot be replayed."""
        self.end(graph)
        self._noted.pop(graph, None)

    def hides(self, tensor: torch.Tensor) -> bool:
        """Return whether a tensor has no readable value now, because the device is capturing rather than computing."""
        return tensor.is_cuda and (bool(self._running) or torch.cuda.is_current_stream_capturing())

    def note(self, tensor: torch.Tensor) -> None:
        """Note that every graph being captured will write to this tensor when replayed."""
        memory = _memory(tensor)
        if not tensor.is_cuda or memory is None:
            return
        self._memories[id(memory)] = weakref.ref(memory)
        for graph in self._running:
            self._noted[graph][id(tensor)] = weakref.ref(tensor)

    def is_noted(self, tensor: torch.Tensor) -> bool:
        """Return whether a tensor is in memory that a capture in progress will write to."""
        memory = _memory(tensor)
        known = self._memories.get(id(memory))
        return memory is not None and known is not None and known() is memory

    def noted(self, graph: Any) -> list[torch.Tensor]:
        """Return the living tensors that a replay of `graph` writes to, in the order of the capture."""
        known = self._noted.get(graph, {})
        alive = {number: tensor for number, it in known.items() if (tensor := it()) is not None}
        if len(alive) < len(known):
            self._noted[graph] = {number: known[number] for number in alive}
        return list(alive.values())


def _memory(tensor: torch.Tensor) -> Any:
    """Return the storage of a tensor, or None if it has none of its own."""
    try:
        return torch.Tensor.untyped_storage(tensor)
    except (NotImplementedError, RuntimeError):
        return None

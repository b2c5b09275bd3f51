"""What gviz may ask of a CUDA device, and when: nothing while a graph is captured, and no copy that a program counts.

All names are those of ``torch.cuda`` that every supported release has. They are asked of tensors on a device alone.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch


class Captures:
    """The CUDA graphs that are captured in one recording: those in progress, and the tensors that each will write to.

    While one is captured nothing is computed, and to copy anything to the host ends the capture with an error, from
    whichever thread. A replay writes to the same memory every time: that of `noted` tensors, which are referred to
    weakly.
    """

    def __init__(self) -> None:
        self._running: weakref.WeakSet[Any] = weakref.WeakSet()
        self._noted: weakref.WeakKeyDictionary[Any, dict[int, weakref.ref[torch.Tensor]]] = weakref.WeakKeyDictionary()
        self._memories: dict[int, weakref.ref[Any]] = {}
        self.is_noting = False
        """Whether a capture is in progress that the recording has seen begin."""

    def begin(self, graph: Any) -> None:
        """A graph is captured from now on; what it wrote to before is no longer its own."""
        self._running.add(graph)
        self._noted[graph] = {}
        self.is_noting = True

    def end(self, graph: Any) -> None:
        """The capture is over, however it ended."""
        self._running.discard(graph)
        self.is_noting = bool(self._running)
        if not self.is_noting:
            self._memories.clear()

    def forget(self, graph: Any) -> None:
        """The graph was given up: it cannot be replayed."""
        self.end(graph)
        self._noted.pop(graph, None)

    def hides(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor has no value that could be read now, because the device only notes what it is to do."""
        return tensor.is_cuda and (bool(self._running) or torch.cuda.is_current_stream_capturing())

    def note(self, tensor: torch.Tensor) -> None:
        """Every graph that is captured now will write to a tensor when it is replayed."""
        memory = _memory(tensor)
        if not tensor.is_cuda or memory is None:
            return
        self._memories[id(memory)] = weakref.ref(memory)
        for graph in self._running:
            self._noted[graph][id(tensor)] = weakref.ref(tensor)

    def is_noted(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor lies in memory that a capture in progress will write to."""
        memory = _memory(tensor)
        known = self._memories.get(id(memory))
        return memory is not None and known is not None and known() is memory

    def noted(self, graph: Any) -> list[torch.Tensor]:
        """The tensors that a replay of a graph writes to, as far as they are alive, in the order of the capture."""
        known = self._noted.get(graph, {})
        alive = {number: tensor for number, it in known.items() if (tensor := it()) is not None}
        if len(alive) < len(known):
            self._noted[graph] = {number: known[number] for number in alive}
        return list(alive.values())


def _memory(tensor: torch.Tensor) -> Any:
    """The memory of a tensor; None where it has none of its own."""
    try:
        return torch.Tensor.untyped_storage(tensor)
    except (NotImplementedError, RuntimeError):
        return None


def to_host(tensor: torch.Tensor) -> torch.Tensor:
    """A copy of a tensor in the memory of the host; that gviz waits for it is no concern of the sync-debug mode."""
    if not (tensor.is_cuda and torch.cuda.is_initialized()):  # type: ignore[no-untyped-call]  # PyTorch has no types here
        return tensor.cpu()
    with waiting_unnoticed():
        return tensor.cpu()


class _Window:
    """How many threads copy something now, and the sync-debug mode that the program has meanwhile.

    The mode is one for the whole process: the first thread to copy switches it off, and the last one on again.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()  # a signal handler of the program may compute in the midst of it
        self.depth = 0
        self.mode = 0


_window = _Window()


@contextmanager
def waiting_unnoticed() -> Iterator[None]:
    """A context in which gviz may wait for a device: no sync-debug mode. No lock is held meanwhile."""
    window = _window
    with window.lock:
        window.depth += 1
        if window.depth == 1:
            window.mode = torch.cuda.get_sync_debug_mode()
            if window.mode:
                torch.cuda.set_sync_debug_mode(0)
    try:
        yield
    finally:
        with window.lock:
            window.depth -= 1
            if not window.depth and window.mode and not torch.cuda.get_sync_debug_mode():  # else another thread set it
                torch.cuda.set_sync_debug_mode(window.mode)
